#pragma once

/// A mixture of ridge experts as a mixing measure, and back.

#include <optional>
#include <span>

#include "sim/data/mixing_measure.h"
#include "sim/model/array_places.h"

namespace moelab {

/// The form of the mixing measures that a model's parameters are; none for others (an MLP router, say).
std::optional<MixtureForm> mixture_form(const ModelOptions& options);

/// Whether its router has the biases β0 of a mixing measure: a linear one may lack them.
bool has_gate_bias(const ModelOptions& options);

/// Where β1, β0, a and b of a mixture with one output lie in the flat buffer of parameters.
class MeasurePlaces {
 public:
  /// For a mixture that has a mixture_form(), with a bias in the router. Throws InvalidOption at "model.…"
  /// for other models.
  MeasurePlaces(const ModelOptions& options, const Network<double>& network);

  MixingMeasure read(std::span<const double> parameters) const;
  /// `measure` has as many components as the model has experts.
  void write(const MixingMeasure& measure, std::span<double> parameters) const;

 private:
  MixtureForm form_;
  Eigen::Index experts_;
  Eigen::Index dim_;
  std::vector<std::size_t> gate_, bias_, slope_, intercept_;
};

}  // namespace moelab
