#include "sim/data/contamination.h"

#include <fmt/format.h>

#include "sim/base/error.h"

namespace moelab {
namespace {

/// Streams of Purpose::evaluation. Rows and their replacements are drawn apart, so that a larger share
/// replaces the rows of a smaller one and more.
enum EvaluationStream : std::uint64_t { kNoise = 0, kReplacedRows = 1, kReplacement = 2 };

std::vector<double> deviations_of(const Json& deviation, int columns) {
  if (deviation.is_number()) return std::vector<double>(static_cast<std::size_t>(columns), deviation);
  std::vector<double> deviations = deviation;
  if (deviations.size() == static_cast<std::size_t>(columns)) return deviations;
  throw UserError("data.contamination.std",
                  fmt::format("got {} numbers, needs one, or one for each of the {} input columns",
                              deviations.size(), columns));
}

std::vector<Field> iterated_attack_fields() {
  return {{"budget", Shape::real_at_least(0), "largest change of an input entry, ε"},
          {"steps", Shape::count(1, 1e6), "steps", 10},
          {"step_size", Shape::positive_real(), "change of an entry in a step (default 2.5 ε / steps)",
           kOptional}};
}

}  // namespace

const Shape& contamination_shape() {
  static const Shape shape = [] {
    std::vector<Field> spsa = iterated_attack_fields();
    spsa.push_back({"directions", Shape::count(1, 1e6), "random directions of a gradient estimate", 32});
    spsa.push_back({"difference", Shape::positive_real(), "half of the distance of the two losses", 0.01});
    return Shape::variant({
        {"none", "test inputs as drawn", {}},
        {"noise",
         "x + N(0, diag(std²))",
         {{"std", Shape::either({Shape::real_at_least(0), Shape::list(Shape::real_at_least(0), 1)}),
           "standard deviation, one or one for each column"}}},
        {"replaced",
         "a share of the rows (tokens) is replaced by one fixed row, drawn N(0, scale² I)",
         {{"share", Shape::fraction(), "probability of a row to be replaced", 0.025},
          {"scale", Shape::real_at_least(0), "scale of the fixed row", 1.0}}},
        {"fgsm",
         "x + ε sign(∂L/∂x) under the training gating",
         {{"budget", Shape::real_at_least(0), "largest change of an input entry, ε"}}},
        {"pgd", "repeated steps along sign(∂L/∂x), kept within ε of x entry by entry",
         iterated_attack_fields()},
        {"spsa", "pgd with gradients estimated from losses along random signs", std::move(spsa)},
    });
  }();
  return shape;
}

bool is_attack(const Json& contamination) {
  return contamination.contains("budget");
}

void contaminate(const Json& contamination, const Layout& layout, const Seeds& seeds, Matrix& x) {
  const std::string kind = contamination.at("kind");
  const int dim = layout.input_dim;
  if (kind == "noise") {
    const std::vector<double> deviations = deviations_of(contamination.at("std"), dim);
    Engine engine = seeds.stream(Purpose::evaluation, kNoise);
    for (Eigen::Index i = 0; i < x.rows(); ++i) {
      for (Eigen::Index j = 0; j < x.cols(); ++j) {
        x(i, j) += deviations[static_cast<std::size_t>(j % dim)] * draw_normal(engine);
      }
    }
  } else if (kind == "replaced") {
    Engine rows = seeds.stream(Purpose::evaluation, kReplacedRows);
    Engine values = seeds.stream(Purpose::evaluation, kReplacement);
    Vector replacement(dim);
    fill_normal(values, contamination.at("scale"), replacement.data(), static_cast<std::size_t>(dim));
    const double share = contamination.at("share");
    for (Eigen::Index i = 0; i < x.rows(); ++i) {
      for (Eigen::Index start = 0; start < x.cols(); start += dim) {
        if (draw_uniform(rows) < share) x.row(i).segment(start, dim) = replacement;
      }
    }
  }
}

}  // namespace moelab
