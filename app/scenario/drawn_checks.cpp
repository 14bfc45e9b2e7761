#include "app/scenario/drawn_checks.h"

#include <fmt/format.h>

#include <memory>

#include "app/scenario/experiment_reader.h"
#include "sim/base/error.h"
#include "sim/train/batches.h"
#include "sim/train/best_fit.h"

namespace moelab {
namespace {

std::unique_ptr<Problem> small_problem(const Json& data) {
  return draw_problem(read_small_data(data), Seeds{1, 0});
}

/// Without the fields that every generator has, none of which has a part in the shape of a row.
Json shaping(Json data) {
  for (const char* field : {"contamination", "train_samples", "test_samples", "independent"})
    data.erase(field);
  return data;
}

/// "sequences of 4 rows of 3 inputs, 2 outputs a row".
std::string shape_text(const Layout& layout) {
  if (layout.vocabulary > 0)
    return fmt::format("sequences of {} tokens, {} in all", layout.tokens, layout.vocabulary);
  const std::string sequences = layout.sequences ? fmt::format("sequences of {} ", layout.tokens) : "";
  const std::string image =
      layout.image.size() > 0 ? fmt::format(" ({} of an image)", layout.image.size()) : "";
  return fmt::format("{}rows of {} inputs{}, {} outputs{}", sequences, layout.input_dim, image,
                     layout.output_dim, layout.target_per_token ? " a row" : "");
}

}  // namespace

void check_same_rows(const Json& data, const Json& other, const std::string& place) {
  if (shaping(data) == shaping(other)) return;
  const Layout needed = small_problem(data)->layout(), own = small_problem(other)->layout();
  if (own.has_same_rows(needed)) return;
  throw UserError(place, fmt::format("has {}, needs {}, which the model was made for", shape_text(own),
                                     shape_text(needed)));
}

void check_training_on(const Json& data, const TrainOptions& train) {
  const bool is_population = train.gradient == TrainOptions::Gradient::population;
  if (is_population && population_rule(train).rule == TrainOptions::Rule::quasi_monte_carlo)
    check_uniform_map(*small_problem(data));
  if (train.start && train.start->as<BestStartOptions>()) check_best_targets(small_problem(data)->layout());
}

}  // namespace moelab
