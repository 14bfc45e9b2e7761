#include "analysis/theory/specialization2025/cross_gradients.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/theory/extremes.h"
#include "analysis/theory/specialization2025/terms.h"
#include "sim/model/expert/linear_expert.h"
#include "sim/model/router/linear_router.h"

namespace moelab {
namespace {

const std::string kCrossGradientPrefix = "specialization2025.cross_gradient.";
constexpr int kCrossGradientRows = 24, kCrossGradientDim = 5, kCrossGradientOutputs = 4,
              kCrossGradientExperts = 6;
constexpr int kCrossGradientRepetitions = 8;
constexpr double kCrossGradientDifferenceStep = 1e-6;

Model<double> draw_model(Engine& engine, int layers) {
  ModelOptions options;
  options.layers = layers;
  options.experts = kCrossGradientExperts;
  options.router = LinearRouterOptions{};
  options.expert = LinearExpertOptions{};
  options.gating.train = TopKGatingOptions{.k = 2, .renormalize = std::nullopt};
  const Layout layout{.input_dim = kCrossGradientDim, .output_dim = kCrossGradientOutputs};
  return {options, layout, Start{Seeds{engine(), 0}}};
}

/// The entries of a flat array that belong to parameters of a role.
Vector part_of(const AlignedVector<double>& values, const Model<double>& model, ParameterGroup::Role role) {
  Vector part = Vector::Zero(static_cast<Eigen::Index>(values.size()));
  for (const ParameterGroup& group : model.network->groups()) {
    if (group.role != role) continue;
    for (std::size_t i = group.begin; i < group.end; ++i) part[static_cast<Eigen::Index>(i)] = values[i];
  }
  return part;
}

}  // namespace

CheckFinding check_cross_gradient(const CheckEffort& effort, const std::string& term,
                                  ParameterGroup::Role role, int layers) {
  using Role = ParameterGroup::Role;
  const Role other = role == Role::router ? Role::expert : Role::router;
  const std::unique_ptr<TaskLoss<double>> task = make_task_loss<double>("mse");
  double largest = 0, smallest_other = std::numeric_limits<double>::infinity();
  for (int repetition = 0; repetition < kCrossGradientRepetitions * effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, kCrossGradientPrefix + term, repetition);
    const Matrix x = draw_normals(engine, kCrossGradientRows, kCrossGradientDim),
                 y = draw_normals(engine, kCrossGradientRows, kCrossGradientOutputs);
    Model<double> model = draw_model(engine, layers);
    Workspace<double> workspace = model.network->make_workspace();
    const auto pass = [&](const Objective<double>& objective) {
      loss_and_gradient(model, objective, x.data(), y.data(), kCrossGradientRows, workspace);
      return workspace.gradient;
    };
    const auto value_of_term = [&] {
      pass({*task});
      double sum = 0;
      for (int layer = 0; layer < layers; ++layer) {
        const PlacedBlock<double>& placed = model.network->placed_mixture(layer);
        MixtureScratch<double>& scratch = model.network->mixture_scratch(layer, workspace);
        placed.mixture->pair_outputs(model.network->values(placed, model.parameters, model.state), scratch);
        sum += term_value(term, placed.mixture->routed_batch(scratch, true));
      }
      return sum;
    };
    const AlignedVector<double> with_term = pass({*task, losses_with(term)});
    const AlignedVector<double> without = pass({*task});
    const auto gradient = [&](Role of) {
      return Vector(part_of(with_term, model, of) - part_of(without, model, of));
    };
    const double found = gradient(role).norm(), in_other = gradient(other).norm();
    const AlignedVector<double> kept = model.parameters;
    AlignedVector<double> direction(kept.size());
    fill_normal(engine, 1.0, direction.data(), direction.size());
    const Vector along = part_of(direction, model, role).normalized();
    const auto value_at = [&](double distance) {
      for (std::size_t i = 0; i < kept.size(); ++i)
        model.parameters[i] = kept[i] + distance * along[static_cast<Eigen::Index>(i)];
      return value_of_term();
    };
    const double slope = (value_at(kCrossGradientDifferenceStep) - value_at(-kCrossGradientDifferenceStep)) /
                         (2 * kCrossGradientDifferenceStep);
    largest = larger(largest, std::max(found, std::abs(slope)) / in_other);
    smallest_other = smaller(smallest_other, in_other);
  }
  CheckFinding finding;
  finding.hypotheses = {{"the term has a gradient in the other parameters (smallest norm > 0)",
                         smallest_other, smallest_other > 0}};
  finding.measured = largest;
  finding.error_bound = 1e-12;
  finding.error_origin = "rounding of the two gradients' difference";
  return finding;
}

std::vector<Check> specialization2025_cross_gradient_checks() {
  using Role = ParameterGroup::Role;
  const std::string source = "Guo et al. 2025, section 3.2";
  const std::string norm = " in one layer (its norm over that of the term's gradient in the others)";
  const auto check = [&](const std::string& term, Role role, const std::string& statement) {
    return Check{kCrossGradientPrefix + term, source, statement + norm, CheckVerdict::holds,
                 [=](const CheckEffort& effort) { return check_cross_gradient(effort, term, role); }};
  };
  return {check("aux", Role::expert, "the balance loss has no gradient in the experts"),
          check("variance", Role::expert, "the variance loss has no gradient in the experts"),
          check("orthogonality", Role::router,
                "the orthogonality loss has no gradient in the router, whose selection is held fixed,")};
}

}  // namespace moelab
