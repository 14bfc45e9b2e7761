#pragma once

/// Where least-squares fits of mixtures begin.

#include "sim/data/mixing_measure.h"
#include "sim/train/batches.h"

namespace moelab {

/// Starts come in turns: near the truth, at clusters, at random; one that cannot be made is a random one.
enum class StartTurn { near_truth, clusters, random };
inline StartTurn start_turn(int number) {
  return static_cast<StartTurn>(number % 3);
}

/// The stream of a start for n samples: another n has other starts, more starts have the same first ones.
Engine start_stream(const Seeds& seeds, int samples, int number);

/// Fit i at component i mod k* of `truth` (of two levels so within each group), its weight exp(β0) shared by
/// the fits of that component, each parameter moved by an independent N(0, perturbation²). At least k*
/// experts.
MixingMeasure near_truth(const MixingMeasure& truth, int experts, double perturbation, Engine& engine);

/// Experts that share out the samples by themselves: the clusters of k-means (k-means++ seeds) on x and y,
/// each coordinate in units of its deviation. An expert starts at the ridge regression of y on its cluster's
/// x (of a power p, of sign(y) |y|^(1/p)); a linear router at β1 = c, β0 = −‖c‖²/2 and a cosine at β1 = c, β0
/// = 0, with c the cluster's mean input less that of all samples; squared distances at the mean input itself;
/// two levels at the c of each expert and, of a group, their mean. The first shared expert starts at the
/// regression of all samples, the others at 0, and routed ones at what it leaves. For one output, of the
/// first `rows` samples.
MixingMeasure clustered_start(const MixtureForm& form, const TrainingSet<double>& data, int rows, int dim,
                              int experts, Engine& engine);

}  // namespace moelab
