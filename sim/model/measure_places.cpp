#include "sim/model/measure_places.h"

#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"

namespace moelab {
namespace {

/// Each function returns whether there is such a form.
bool set_router(const RouterOptions& router, MixtureForm& form) {
  if (const auto* const cosine = router.as<CosineRouterOptions>()) {
    form.router = MixtureForm::Router::cosine;
    return !cosine->projection_dim && !cosine->temperature;
  }
  if (const auto* const perturbed = router.as<PerturbedCosineRouterOptions>()) {
    form.router = MixtureForm::Router::cosine;
    form.tau1 = perturbed->tau1;
    form.tau2 = perturbed->tau2;
    return true;
  }
  if (const auto* const distance = router.as<SquaredDistanceRouterOptions>()) {
    form.router = MixtureForm::Router::squared_distance;
    return !distance->std;
  }
  if (const auto* const two_level = router.as<TwoLevelRouterOptions>()) {
    form.router = MixtureForm::Router::two_level;
    form.groups = two_level->groups;
    return true;
  }
  const auto* const linear = router.as<LinearRouterOptions>();
  form.temperature = linear && linear->temperature;
  return linear && (!linear->temperature || linear->temperature->is_learned);
}

bool set_gate(const GatingRule& gating, MixtureForm& form) {
  if (const auto* const sparse = gating.as<TopKGatingOptions>()) {
    form.selected = sparse->k;
    return sparse->renormalize.value_or(sparse->k > 1) && !sparse->capacity.capacity_factor;
  }
  if (const auto* const sigmoid = gating.as<SigmoidGatingOptions>()) {
    form.gate = sigmoid->renormalize.value_or(false) ? MixtureForm::Gate::normalised_sigmoid
                                                     : MixtureForm::Gate::sigmoid;
    return !sigmoid->k;
  }
  return gating.as<SoftGatingOptions>() != nullptr;
}

bool set_expert(const ExpertOptions& expert, MixtureForm& form) {
  using Expert = MixtureForm::Expert;
  const auto set = [&](const auto* kind, Expert own) {
    if (!kind) return false;
    form.expert = own;
    form.unit = kind->normalize == ExpertLength::unit;
    return true;
  };
  const auto* const polynomial = expert.as<PolynomialExpertOptions>();
  if (polynomial) form.power = polynomial->power;
  const auto* const linear = expert.as<LinearExpertOptions>();
  return set(polynomial, Expert::power) || (set(linear, Expert::power) && linear->bias) ||
         set(expert.as<ReluExpertOptions>(), Expert::relu) ||
         set(expert.as<GeluExpertOptions>(), Expert::gelu) ||
         set(expert.as<SigmoidExpertOptions>(), Expert::sigmoid);
}

MixtureForm checked_form(const ModelOptions& options, const Layout& layout) {
  if (!options.kind.as<MoeOptions>()) {
    throw InvalidOption("model.kind", "got \"" + options.kind.chosen() + "\", needs a mixture, \"moe\"");
  }
  if (options.layers != 1) throw InvalidOption("model.layers", "a mixing measure needs 1");
  const std::optional<MixtureForm> form = mixture_form(options);
  if (!form) {
    throw InvalidOption(
        "model",
        "needs a router of kind linear, cosine, perturbed_cosine, squared_distance (s_e = 1) or two_level, a "
        "gating.train of kind soft, topk (renormalised) or sigmoid (of every expert) and an expert of kind "
        "linear, polynomial, relu, gelu or sigmoid, without attention, projection, a fixed temperature, a "
        "cosine's "
        "temperature, capacity or null "
        "experts: others have no mixing measure");
  }
  if (!has_gate_bias(options)) {
    throw InvalidOption("model.router.bias", "missing; a mixing measure needs true");
  }
  if (layout.output_dim != 1) throw InvalidOption("model", "a mixing measure needs data of one output");
  return *form;
}

}  // namespace

std::optional<MixtureForm> mixture_form(const ModelOptions& options) {
  if (!options.kind.as<MoeOptions>() || options.layers != 1 || options.attention || has_projection(options) ||
      options.null_experts > 0)
    return std::nullopt;
  MixtureForm form;
  if (!set_router(options.router, form) || !set_gate(options.gating.train, form) ||
      !set_expert(options.expert, form))
    return std::nullopt;
  form.shared = options.shared_experts;
  return form;
}

bool has_gate_bias(const ModelOptions& options) {
  if (const auto* const linear = options.router.as<LinearRouterOptions>())
    return linear->bias.value_or(false);
  if (const auto* const distance = options.router.as<SquaredDistanceRouterOptions>()) return distance->bias;
  const auto* const two_level = options.router.as<TwoLevelRouterOptions>();
  return !two_level || two_level->bias;
}

MeasurePlaces::MeasurePlaces(const ModelOptions& options, const Network<double>& network)
    : form_(checked_form(options, network.layout())),
      experts_(options.experts),
      dim_(network.layout().input_dim) {
  const std::pair<const char*, std::vector<std::size_t>*> names[] = {
      {"router_weight", &gate_},
      {"router_direction", &gate_},
      {"router_centers", &gate_},
      {"router_within_weight", &gate_},
      {"router_bias", &bias_},
      {"router_within_bias", &bias_},
      {"router_group_weight", &group_gate_},
      {"router_group_bias", &group_bias_},
      {"router_log_scale", &log_scale_},
      {"expert_weight_1", &slope_},
      {"expert_bias_1", &intercept_},
      {"shared_expert_weight_1", &shared_slope_},
      {"shared_expert_bias_1", &shared_intercept_},
  };
  for (auto& [name, places] : array_places(network)) {
    for (const auto& [known, own] : names) {
      if (name == known) *own = places;
    }
  }
}

MixingMeasure MeasurePlaces::empty() const {
  MixingMeasure measure{form_, Matrix(experts_, dim_), Vector(experts_), Matrix(experts_, dim_),
                        Vector(experts_)};
  measure.group_bias.resize(static_cast<Eigen::Index>(group_bias_.size()));
  measure.group_gate.resize(measure.group_bias.size(), dim_);
  measure.shared_slope.resize(form_.shared, dim_);
  measure.shared_intercept.resize(form_.shared);
  return measure;
}

std::vector<MeasurePlaces::Part> MeasurePlaces::parts(MixingMeasure& measure) const {
  return {{gate_, measure.gate.data()},
          {bias_, measure.bias.data()},
          {slope_, measure.slope.data()},
          {intercept_, measure.intercept.data()},
          {group_gate_, measure.group_gate.data()},
          {group_bias_, measure.group_bias.data()},
          {shared_slope_, measure.shared_slope.data()},
          {shared_intercept_, measure.shared_intercept.data()},
          {log_scale_, &measure.log_scale}};
}

MixingMeasure MeasurePlaces::read(std::span<const double> parameters) const {
  MixingMeasure measure = empty();
  for (const Part& part : parts(measure)) {
    double* value = part.values;
    for (const std::size_t place : part.places) *value++ = parameters[place];
  }
  put_on_sphere(measure);
  return measure;
}

void MeasurePlaces::write(MixingMeasure measure, std::span<double> parameters) const {
  for (const Part& part : parts(measure)) {
    const double* value = part.values;
    for (const std::size_t place : part.places) parameters[place] = *value++;
  }
}

}  // namespace moelab
