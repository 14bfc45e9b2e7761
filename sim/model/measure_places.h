#pragma once

/// A mixture of ridge experts as a mixing measure, and back.

#include <optional>
#include <span>

#include "sim/data/mixing_measure.h"
#include "sim/model/network.h"

namespace moelab {

/// The form of the mixing measures that a model's parameters are, under gating.train; none for others (an MLP
/// router, say, or gates that couple rows).
std::optional<MixtureForm> mixture_form(const ModelOptions& options);

/// Whether its router has the biases β0 of a mixing measure: a linear one may lack them.
bool has_gate_bias(const ModelOptions& options);

/// Where β1, β0, a, b and what components share lie in the flat buffer of parameters, for one output.
class MeasurePlaces {
 public:
  /// For a mixture that has a mixture_form(), with a bias in the router. Throws InvalidOption at "model.…"
  /// for other models.
  MeasurePlaces(const ModelOptions& options, const Network<double>& network);

  MixingMeasure read(std::span<const double> parameters) const;
  /// `measure` has as many components as the model has experts.
  void write(MixingMeasure measure, std::span<double> parameters) const;

 private:
  MixtureForm form_;
  Eigen::Index experts_;
  Eigen::Index dim_;
  /// An array of a measure and its places.
  struct Part {
    const std::vector<std::size_t>& places;
    double* values;
  };
  /// A measure of the model's size; and its parts.
  MixingMeasure empty() const;
  std::vector<Part> parts(MixingMeasure& measure) const;

  std::vector<std::size_t> gate_, bias_, slope_, intercept_, group_gate_, group_bias_, shared_slope_,
      shared_intercept_, log_scale_;
};

}  // namespace moelab
