#include <vector>

#include "bench/workload.h"

namespace moelab {
namespace {

/// d, the hidden widths, o of one expert; a constant has no input.
std::vector<double> expert_widths(const Workload& workload) {
  const Json& expert = workload.model.at("expert");
  const double output = workload.data.at("target").at("dim");
  if (expert.at("kind") == "constant") return {1.0, output};
  std::vector<double> widths(static_cast<std::size_t>(expert_depth(workload.options.model.expert)) + 1,
                             expert.value("width", 1.0));
  widths.front() = workload.data.at("dim");
  widths.back() = output;
  return widths;
}

int output_dim(const Workload& workload) {
  return workload.data.at("target").at("dim");
}

double parameters_of(const Workload& workload) {
  const int dim = workload.data.at("dim");
  const Network<float> network(workload.options.model,
                               {.input_dim = dim, .output_dim = output_dim(workload)});
  return static_cast<double>(network.parameter_count());
}

/// Values that the optimizer keeps of a parameter.
double optimizer_values(const Workload& workload) {
  return workload.options.train.optimizer.entry().rescales_gradients ? 2 : 1;
}

}  // namespace

double step_operations(const Workload& workload) {
  const double rows = workload.train.at("batch_size");
  const double experts = workload.model.at("experts");
  const double dim = workload.data.at("dim");
  const bool trainable = workload.model.at("router").at("trainable");
  double per_row = (trainable ? 2 : 1) * dim * experts;
  if (workload.model.at("expert").at("kind") == "constant") {
    // Outputs, and the gradients of the constants and of the gates.
    const double output = workload.data.at("target").at("dim");
    per_row += (trainable ? 3 : 2) * experts * output;
  } else {
    const std::vector<double> widths = expert_widths(workload);
    for (std::size_t layer = 0; layer + 1 < widths.size(); ++layer) {
      per_row += (layer == 0 ? 2 : 3) * experts * widths[layer] * widths[layer + 1];
    }
  }
  return 2 * rows * per_row;
}

double step_exponentials(const Workload& workload) {
  return workload.train.at("batch_size").get<double>() * workload.model.at("experts").get<double>();
}

double step_bytes(const Workload& workload) {
  const double entries = workload.data.at("dim").get<double>() + output_dim(workload);
  const double rows = workload.train.at("batch_size");
  return sizeof(float) *
         (3 * rows * entries + (5 + 2 * optimizer_values(workload)) * parameters_of(workload));
}

double needed_bytes(const Workload& workload, double pairs) {
  const double rows = workload.train.at("batch_size");
  const double samples = workload.data.at("train_samples");
  const double experts = workload.model.at("experts");
  const int dim = workload.data.at("dim");
  const int output = output_dim(workload);
  const double parameters = parameters_of(workload);
  const double state = optimizer_values(workload);
  double activations = rows * (4 * experts + 2 * output);
  if (workload.model.at("expert").at("kind") != "constant") {
    const std::vector<double> widths = expert_widths(workload);
    for (std::size_t layer = 1; layer < widths.size(); ++layer) activations += pairs * widths[layer];
  }
  return sizeof(float) * ((2 + state) * parameters + samples * (dim + output) + activations);
}

}  // namespace moelab
