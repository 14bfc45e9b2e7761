#pragma once

/// Conversions between a mixture of ridge experts and a mixing measure.

#include <optional>
#include <span>

#include "sim/data/mixing_measure.h"
#include "sim/model/network.h"

namespace moelab {

/// The form of the mixing measures that describe the model's parameters under gating.train. Empty for models
/// that are not a mixing measure: several mixtures, an MLP router, or gates that couple rows.
std::optional<MixtureForm> mixture_form(const ModelOptions& options);

/// Whether the router has the biases β0 of a mixing measure. A linear router may lack them.
bool has_gate_bias(const ModelOptions& options);

/// The places of β1, β0, a, b and shared parameters in the flat buffer of parameters, for one output.
class MeasurePlaces {
 public:
  /// The mixture needs a mixture_form() and a router with biases. Throws InvalidOption at "model.…" for other
  /// models.
  MeasurePlaces(const ModelOptions& options, const Network<double>& network);

  /// Unit experts have length 1, whatever length the parameters have.
  MixingMeasure read(std::span<const double> parameters) const;
  /// `measure` must have as many components as the model has experts.
  void write(MixingMeasure measure, std::span<double> parameters) const;

  // The places of each array, row-major. Empty if the model has no such array.
  const std::vector<std::size_t>& gate() const { return gate_; }
  const std::vector<std::size_t>& bias() const { return bias_; }
  const std::vector<std::size_t>& slope() const { return slope_; }
  const std::vector<std::size_t>& intercept() const { return intercept_; }
  const std::vector<std::size_t>& shared_slope() const { return shared_slope_; }
  const std::vector<std::size_t>& shared_intercept() const { return shared_intercept_; }
  const std::vector<std::size_t>& log_scale() const { return log_scale_; }

 private:
  MixtureForm form_;
  Eigen::Index experts_;
  Eigen::Index dim_;
  /// An array of a measure and its places.
  struct Part {
    const std::vector<std::size_t>& places;
    double* values;
  };
  /// An empty measure of the model's size, and its parts.
  MixingMeasure empty() const;
  std::vector<Part> parts(MixingMeasure& measure) const;

  std::vector<std::size_t> gate_, bias_, slope_, intercept_, group_gate_, group_bias_, shared_slope_,
      shared_intercept_, log_scale_;
};

}  // namespace moelab
