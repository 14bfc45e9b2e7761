#pragma once

/// The training runs whose speed and memory are measured.

#include <string>
#include <vector>

#include "app/scenario/json.h"
#include "sim/train/experiment.h"

namespace moelab {

/// A run: the objects `data`, `model` and `train` of a scenario, and what they say.
struct Workload {
  std::string name;
  Json data;
  Json model;
  Json train;
  std::string task = "mse";  ///< the optimised loss
  ExperimentOptions options = {};
  /// C: seconds until train_nmse ≤ kTargetNmse are measured instead of steps per second.
  bool to_target = false;
};

/// Sizes that replace a workload's own; 0 keeps it.
struct WorkloadSizes {
  int experts = 0;
  int dim = 0;
  int batch = 0;
  int samples = 0;
};

constexpr double kTargetNmse = 0.01;
constexpr int kTargetEvery = 250;    ///< steps between evaluations of train_nmse
constexpr int kTargetSteps = 10000;  ///< fig3's; after them C gives up

/// A fig2, constant experts; B fig3's dense phase; C and C_frozen fig3 to a training loss; D linear experts
/// on tokens; S fig3's experts behind a router that has specialised; H_… stacks of two layers with plain or
/// adaptive clustering routers; I_… attention before tokens that route alone or together; J_… A behind
/// routers and their formulas; L a language model. README.md describes them.
std::vector<std::string> workload_names();

/// Throws InvalidOption for an unknown name or an impossible size.
Workload make_workload(const std::string& name, const WorkloadSizes& sizes);

/// Floating-point operations of the matrix products that one step with every expert on needs (a multiply-add
/// counts 2): each layer's outputs and weight gradients, and input gradients except the first layer's.
double step_operations(const Workload& workload);

/// Exponentials of a step: one for each row and expert.
double step_exponentials(const Workload& workload);

/// Bytes that a step reads and writes at least: of the batch, which is gathered (read, written, read), and of
/// every parameter, whose weight is read by both passes and written, its gradient written and read, and each
/// of the optimizer's values read and written.
double step_bytes(const Workload& workload);

/// Bytes of parameters, gradients, optimizer state, training set and one batch's activations (layer outputs
/// of all `pairs` active pairs, and scores, probabilities and their gradients), in float without padding.
double needed_bytes(const Workload& workload, double pairs);

}  // namespace moelab
