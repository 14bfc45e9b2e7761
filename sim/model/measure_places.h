#pragma once

/// A mixture of ridge experts as a mixing measure, and back.

#include <span>

#include "sim/data/mixing_measure.h"
#include "sim/model/array_places.h"

namespace moelab {

/// Where β1, β0, a and b of a mixture with one output lie in the flat buffer of parameters.
class MeasurePlaces {
 public:
  /// For a resolved `model` object of a mixture that has a mixture_form(), with a bias in the router. Throws
  /// UserError at "model.…" for other models.
  MeasurePlaces(const Json& model, const Layout& layout);

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
