#pragma once

/// The squared loss of mixtures of ridge experts with its derivatives, computed with samples in the lanes.

#include <memory>
#include <vector>

#include "sim/base/kernels/kernels.h"
#include "sim/model/measure_places.h"
#include "sim/train/batches.h"

namespace moelab {

/// L(θ) = (1/n) Σ_i (f_θ(x_i) − y_i)² of a model that is a mixing measure, its gradient, and (1/n) JᵀJ with J
/// = ∂f/∂θ. θ (p) are the parameters that learn.
///
/// The values equal the network's, up to rounding. The network pads every row to 16 entries, and a fit
/// has two or three experts. Here the lanes hold samples (kernels::RidgeMixture). On 2 inputs and 3 experts
/// one evaluation takes a tenth of the network's time.
///
/// The kernel knows linear scores only. So the parameters are mapped to coefficients c(θ) of (z, 1) and (x,
/// 1), and derivatives are multiplied by C = ∂c/∂θ:
///
///     linear            z = x,              g = β1 exp(s), β0 exp(s) with a temperature exp(−s)
///     cosine            z = x / (‖x‖ + τ2), g = β1 / (‖β1‖ + τ1), β0
///     squared distance  z = x,              g = β1, β0 − ‖β1‖² / 2, since a softmax ignores ‖x‖² / 2
///     unit experts      (a, b) / ‖(a, b)‖
class RidgeLoss {
 public:
  /// Null if the kernel does not cover the model. `free` are the places of θ in the flat buffer of
  /// parameters.
  static std::unique_ptr<RidgeLoss> make(const ModelOptions& options, const Network<double>& network,
                                         const TrainingSet<double>& data,
                                         const std::vector<std::size_t>& free);

  /// L on the first `rows` samples; `gradient` (p) may be null.
  double evaluate(std::span<const double> parameters, int rows, double* gradient);
  /// (1/rows) JᵀJ (p, p) on the first `rows` samples.
  Matrix products(std::span<const double> parameters, int rows);

 private:
  RidgeLoss(const MixtureForm& form, MeasurePlaces places, const TrainingSet<double>& data, int dim,
            const std::vector<std::size_t>& free, std::size_t buffer);
  void set_inputs(const TrainingSet<double>& data);
  /// Sets the coefficients and C.
  void read(std::span<const double> parameters);
  /// Adds `value` to C at a coefficient and a place in the buffer. Places that do not learn have no column.
  void add_to_chart(Eigen::Index coefficient, std::size_t place, double value);
  void read_router(std::span<const double> parameters, int component);
  /// Reads one expert from the places of a and b.
  void read_expert(std::span<const double> parameters, const std::vector<std::size_t>& slopes,
                   const std::vector<std::size_t>& intercepts, int expert, int place);

  MixtureForm form_;
  MeasurePlaces places_;
  int dim_;
  std::vector<int> column_;  ///< of each place of the buffer in θ, or −1
  AlignedVector<double> z_, x_, y_, coefficients_, gradient_, products_, scratch_;
  Matrix chart_;  ///< C (coefficients, p)
  kernels::RidgeMixture<double> mixture_;
};

}  // namespace moelab
