#include "sim/model/measure_places.h"

#include "sim/base/error.h"

namespace moelab {
namespace {

MixtureForm checked_form(const Json& model, const Layout& layout) {
  if (model.at("kind") != "moe") throw UserError("model.kind", "got \"dense\", needs a mixture, \"moe\"");
  if (model.at("layers") != 1) throw UserError("model.layers", "a mixing measure needs 1");
  const std::optional<MixtureForm> form = mixture_form(model);
  if (!form) {
    throw UserError("model",
                    "needs a router of kind linear, cosine or perturbed_cosine and an expert of kind linear, "
                    "polynomial or relu, without attention, projection or temperature: others have no mixing "
                    "measure");
  }
  if (model.at("router").at("kind") == "linear" && !model.at("router").value("bias", false))
    throw UserError("model.router.bias", "missing; a mixing measure needs true");
  if (layout.output_dim != 1) throw UserError("model", "a mixing measure needs data of one output");
  return *form;
}

}  // namespace

MeasurePlaces::MeasurePlaces(const Json& model, const Layout& layout)
    : form_(checked_form(model, layout)), experts_(model.at("experts")), dim_(layout.input_dim) {
  for (auto& [name, places] : array_places(model, layout)) {
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
