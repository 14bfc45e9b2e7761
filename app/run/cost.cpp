#include "app/run/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "app/run/cell_times.h"
#include "app/run/session.h"
#include "app/scenario/experiment_reader.h"

namespace moelab {
namespace {

/// Of the program itself, with its libraries.
constexpr double kBaseBytes = 16e6;

/// The share of the experts that a row passes through in training.
double active_share(const GatingRule& gating, int experts) {
  const GatingKind& kind = gating.entry();
  const int most = kind.most_experts ? kind.most_experts(gating.options()) : 0;
  return most > 0 ? std::min(1.0, static_cast<double>(most) / experts) : 1;
}

}  // namespace

CellCost estimated_cost(const Cell& cell) {
  const CellOptions options = read_cell(cell.config);
  const DataOptions& data = options.experiment.data;
  const TrainOptions& train = options.experiment.train;
  const std::unique_ptr<Problem> problem = draw_problem(data, options.seeds);
  const Layout layout = problem->layout();
  const Network<float> network(options.experiment.model, layout);
  const double parameters = static_cast<double>(network.parameter_count());
  const double active =
      network.has_router()
          ? parameters * active_share(options.experiment.model.gating.train, network.experts())
          : parameters;

  const bool population = train.gradient == TrainOptions::Gradient::population;
  const int train_samples = data.train_samples.value_or(population ? 0 : kMeasuredTrainSamples);
  const double steps = static_cast<double>(total_steps(train, train_samples));
  const double batch =
      population
          ? population_rule(train).points
          : std::min<double>(static_cast<double>(train.batch_size.value_or(train_samples)), train_samples);
  const double records = 2 + (train.record_every ? steps / static_cast<double>(*train.record_every) : 10);
  const double tests = data.test_samples * (1.0 + static_cast<double>(options.evaluations.size()));
  const double measured = tests + std::min(train_samples, kMeasuredTrainSamples);
  const double tokens = layout.tokens;

  CellCost cost;
  cost.operations = tokens * (6 * active * steps * batch + 2 * parameters * records * measured);
  const double sample = layout.sample_dim() + layout.target_dim();
  const double row = layout.input_dim + layout.output_dim;
  const double numbers = tokens * (steps * batch * (row + network.experts()) +
                                   records * measured * (row + 8.0 * network.experts()));
  const double draws = (train_samples + tests) * sample + (population ? steps * batch * sample : 0);
  cost.seconds = cost.operations / kNominalSpeed + numbers * kNominalNumber + draws * kNominalDraw;
  const double real = train.precision == TrainOptions::Precision::in_double ? 8 : 4;
  // Test sets are kept as drawn and as contaminated; outputs and probabilities of all rows are measured.
  const double measured_width = 2 * sample + tokens * (2.0 * network.experts() + 2.0 * layout.output_dim);
  // A weight of d inputs stands for 1/d of an activation, kept forwards and backwards.
  const double activations = 2 * batch * tokens * parameters / std::max(layout.input_dim, 1);
  cost.bytes = real * (train_samples * sample + 4 * parameters + activations) + 8 * measured * measured_width;
  return cost;
}

RunCost run_cost(const Scenario& scenario, const Records& records, int threads) {
  CellTimes times(scenario);
  for (const auto& [id, record] : records) times.learn(id, record.state, record.seconds);
  times.fit();

  RunCost cost;
  cost.learned = times.learned();
  std::vector<double> seconds;
  int unlike = 0;
  for (const Cell* cell : missing_cells(scenario, records)) {
    seconds.push_back(times.seconds(*cell));
    cost.bytes = std::max(cost.bytes, times.cost(*cell).bytes);
    unlike += times.has_like(*cell) ? 0 : 1;
  }
  cost.seconds = seconds_on_threads(seconds, threads);
  if (seconds.empty()) return cost;
  cost.bytes =
      kBaseBytes + cost.bytes * std::clamp(static_cast<int>(seconds.size()), 1, std::max(threads, 1));
  if (cost.learned == 0) {
    cost.source = fmt::format("a model of a usual machine, since no cell is done ({})", unlike);
    return cost;
  }
  cost.source = cost.learned == 1 ? "1 cell done" : fmt::format("{} cells done", cost.learned);
  if (unlike > 0)
    cost.source += fmt::format(", and a model for {} at arms and sweep points where none is", unlike);
  return cost;
}

}  // namespace moelab
