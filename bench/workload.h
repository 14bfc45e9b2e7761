#pragma once

/// The training runs whose speed and memory the benchmarks measure.

#include <string>
#include <vector>

#include "app/scenario/json.h"
#include "sim/train/experiment.h"

namespace moelab {

/// Runs the main() of a measured program. Prints errors, and returns 2 for a refused option and 3 for other
/// errors.
int guarded(const char* name, int (*run)(int, char**), int count, char** arguments);

/// A run: the objects `data`, `model` and `train` of a scenario, also as options.
struct Workload {
  std::string name;
  Json data;
  Json model;
  Json train;
  std::string task = "mse";  ///< the optimised loss
  ExperimentOptions options = {};
  /// For C: measure seconds until train_nmse ≤ kTargetNmse instead of steps per second.
  bool to_target = false;
};

/// Sizes that replace the workload's. 0 keeps a size.
struct WorkloadSizes {
  int experts = 0;
  int dim = 0;
  int batch = 0;
  int samples = 0;
};

constexpr double kTargetNmse = 0.01;
constexpr int kTargetEvery = 250;    ///< steps between evaluations of train_nmse
constexpr int kTargetSteps = 10000;  ///< of fig3, after which C stops

/// A: fig2 with constant experts. B: the dense phase of fig3. C and C_frozen: fig3 to a training loss. D:
/// linear experts on tokens. S: fig3's experts behind a specialised router. H_…: stacks of two layers with
/// plain or adaptive clustering routers. I_…: attention before tokens that route separately or together. J_…:
/// A behind routers and their formulas. L: a language model. README.md describes them.
std::vector<std::string> workload_names();

/// Throws InvalidOption for an unknown name or an impossible size.
Workload make_workload(const std::string& name, const WorkloadSizes& sizes);

/// Floating-point operations of the matrix products of one step with all experts active (a multiply-add
/// counts 2): outputs and weight gradients of each layer, and input gradients except in the first layer.
double step_operations(const Workload& workload);

/// Exponentials of a step: one per row and expert.
double step_exponentials(const Workload& workload);

/// The least number of bytes that a step reads and writes. The batch is gathered (read, written, read). Of
/// every parameter, both passes read the weight and the update writes it, the gradient is written and read,
/// and each value of the optimizer is read and written.
double step_bytes(const Workload& workload);

/// Bytes of parameters, gradients, optimizer state, training set and the activations of one batch, in float
/// without padding. Activations are the layer outputs of all `pairs` active pairs, and scores, probabilities
/// and their gradients.
double needed_bytes(const Workload& workload, double pairs);

}  // namespace moelab
