#include "analysis/theory/specialization2025_cross_gradients.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/theory/extremes.h"
#include "sim/model/schema.h"

namespace moelab {
namespace {

const std::string kPrefix = "specialization2025.cross_gradient.";
constexpr int kRows = 24, kDim = 5, kOutputs = 4, kExperts = 6;
constexpr int kRepetitions = 8;
constexpr double kDifferenceStep = 1e-6;

Model<double> draw_model(Engine& engine, int layers, const AuxiliaryLosses& losses) {
  const Json gating = {{"kind", "topk"}, {"k", 2}};
  const Json spec = {{"kind", "moe"},      {"layers", layers},   {"experts", kExperts},
                     {"router", "linear"}, {"expert", "linear"}, {"gating", {{"train", gating}}}};
  Model<double> model(resolve(model_shape(), spec, "model"), kDim, kOutputs, 0.0);
  model.initialize({engine(), 0});
  model.add_losses(losses);
  return model;
}

AuxiliaryLosses losses_with(AuxiliaryTerm term) {
  const Json spec = {{auxiliary_loss_name(term), 1.0}};
  return AuxiliaryLosses(resolve(Shape::object(auxiliary_loss_fields()), spec, "loss"));
}

/// The entries of a flat array that belong to parameters of a role.
Vector part_of(const AlignedVector<double>& values, const Model<double>& model, ParameterGroup::Role role) {
  Vector part = Vector::Zero(static_cast<Eigen::Index>(values.size()));
  for (const ParameterGroup& group : model.groups()) {
    if (group.role != role) continue;
    for (std::size_t i = group.begin; i < group.end; ++i) part[static_cast<Eigen::Index>(i)] = values[i];
  }
  return part;
}

}  // namespace

CheckFinding check_cross_gradient(const CheckEffort& effort, AuxiliaryTerm term, ParameterGroup::Role role,
                                  int layers) {
  using Role = ParameterGroup::Role;
  const Role other = role == Role::router ? Role::expert : Role::router;
  const std::unique_ptr<TaskLoss<double>> task = make_task_loss<double>("mse");
  double largest = 0, smallest_other = std::numeric_limits<double>::infinity();
  for (int repetition = 0; repetition < kRepetitions * effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, kPrefix + auxiliary_loss_name(term), repetition);
    const Matrix x = draw_normals(engine, kRows, kDim), y = draw_normals(engine, kRows, kOutputs);
    Model<double> model = draw_model(engine, layers, losses_with(term));
    const auto pass = [&] { model.loss_and_gradient(x.data(), y.data(), kRows, *task); };
    const auto term_value = [&] {
      pass();
      double sum = 0;
      for (int layer = 0; layer < layers; ++layer)
        sum += model.auxiliary_values(layer)[static_cast<std::size_t>(term)];
      return sum;
    };
    pass();
    const AlignedVector<double> with_term = model.gradient();
    model.add_losses(AuxiliaryLosses());
    pass();
    const auto gradient = [&](Role of) {
      return Vector(part_of(with_term, model, of) - part_of(model.gradient(), model, of));
    };
    const double found = gradient(role).norm(), in_other = gradient(other).norm();
    const AlignedVector<double> kept = model.parameters();
    AlignedVector<double> direction(kept.size());
    fill_normal(engine, 1.0, direction.data(), direction.size());
    const Vector along = part_of(direction, model, role).normalized();
    const auto value_at = [&](double distance) {
      for (std::size_t i = 0; i < kept.size(); ++i)
        model.parameters()[i] = kept[i] + distance * along[static_cast<Eigen::Index>(i)];
      return term_value();
    };
    const double slope = (value_at(kDifferenceStep) - value_at(-kDifferenceStep)) / (2 * kDifferenceStep);
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
  const auto check = [&](AuxiliaryTerm term, Role role, const std::string& statement) {
    return Check{kPrefix + auxiliary_loss_name(term), source, statement + norm, CheckVerdict::holds,
                 [=](const CheckEffort& effort) { return check_cross_gradient(effort, term, role); }};
  };
  return {check(AuxiliaryTerm::aux, Role::expert, "the balance loss has no gradient in the experts"),
          check(AuxiliaryTerm::variance, Role::expert, "the variance loss has no gradient in the experts"),
          check(AuxiliaryTerm::orthogonality, Role::router,
                "the orthogonality loss has no gradient in the router, whose selection is held fixed,")};
}

}  // namespace moelab
