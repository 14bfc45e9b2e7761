#include "sim/model/measure_places.h"

#include "sim/model/expert/linear_expert.h"
#include "sim/model/expert/polynomial_expert.h"
#include "sim/model/expert/relu_expert.h"
#include "sim/model/router/cosine_router.h"
#include "sim/model/router/linear_router.h"

namespace moelab {
namespace {

MixtureForm checked_form(const ModelOptions& options, const Layout& layout) {
  if (options.kind != ModelOptions::Kind::moe) {
    throw InvalidOption("model.kind", "got \"dense\", needs a mixture, \"moe\"");
  }
  if (options.layers != 1) throw InvalidOption("model.layers", "a mixing measure needs 1");
  const std::optional<MixtureForm> form = mixture_form(options);
  if (!form) {
    throw InvalidOption(
        "model",
        "needs a router of kind linear, cosine or perturbed_cosine and an expert of kind linear, "
        "polynomial or relu, without attention, projection, temperature, shared or null experts: others have "
        "no mixing "
        "measure");
  }
  if (!has_gate_bias(options)) {
    throw InvalidOption("model.router.bias", "missing; a mixing measure needs true");
  }
  if (layout.output_dim != 1) throw InvalidOption("model", "a mixing measure needs data of one output");
  return *form;
}

}  // namespace

std::optional<MixtureForm> mixture_form(const ModelOptions& options) {
  if (options.attention || options.input_width) return std::nullopt;
  if (options.shared_experts > 0 || options.null_experts > 0) return std::nullopt;
  MixtureForm form;
  if (const auto* const cosine = options.router.as<CosineRouterOptions>()) {
    if (cosine->projection_dim || cosine->temperature) return std::nullopt;
    form.router = MixtureForm::Router::cosine;
  } else if (const auto* const perturbed = options.router.as<PerturbedCosineRouterOptions>()) {
    form.router = MixtureForm::Router::cosine;
    form.tau1 = perturbed->tau1;
    form.tau2 = perturbed->tau2;
  } else if (!options.router.as<LinearRouterOptions>()) {
    return std::nullopt;
  }
  if (options.expert.as<ReluExpertOptions>()) {
    form.expert = MixtureForm::Expert::relu;
  } else if (const auto* const polynomial = options.expert.as<PolynomialExpertOptions>()) {
    form.power = polynomial->power;
  } else if (!options.expert.as<LinearExpertOptions>()) {
    return std::nullopt;
  }
  return form;
}

bool has_gate_bias(const ModelOptions& options) {
  const auto* const linear = options.router.as<LinearRouterOptions>();
  return !linear || linear->bias.value_or(false);
}

MeasurePlaces::MeasurePlaces(const ModelOptions& options, const Network<double>& network)
    : form_(checked_form(options, network.layout())),
      experts_(options.experts),
      dim_(network.layout().input_dim) {
  for (auto& [name, places] : array_places(network)) {
    if (name == "router_weight" || name == "router_direction") gate_ = places;
    if (name == "router_bias") bias_ = places;
    if (name == "expert_weight_1") slope_ = places;
    if (name == "expert_bias_1") intercept_ = places;
  }
}

MixingMeasure MeasurePlaces::read(std::span<const double> parameters) const {
  MixingMeasure measure{form_, Matrix(experts_, dim_), Vector(experts_), Matrix(experts_, dim_),
                        Vector(experts_)};
  const auto fill = [&](const std::vector<std::size_t>& places, double* values) {
    for (const std::size_t place : places) *values++ = parameters[place];
  };
  fill(gate_, measure.gate.data());
  fill(bias_, measure.bias.data());
  fill(slope_, measure.slope.data());
  fill(intercept_, measure.intercept.data());
  return measure;
}

void MeasurePlaces::write(const MixingMeasure& measure, std::span<double> parameters) const {
  const auto fill = [&](const std::vector<std::size_t>& places, const double* values) {
    for (const std::size_t place : places) parameters[place] = *values++;
  };
  fill(gate_, measure.gate.data());
  fill(bias_, measure.bias.data());
  fill(slope_, measure.slope.data());
  fill(intercept_, measure.intercept.data());
}

}  // namespace moelab
