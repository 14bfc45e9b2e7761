/// moelab_token_parts: times the parts of a language model separately on one thread, forward and backward,
/// with the shapes of workload L. It prints one line of JSON: the time of a call, its least cost, and the
/// calls in a training step.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <iostream>

#include "bench/normals.h"
#include "bench/workload.h"
#include "sim/base/kernels/multiply.h"
#include "sim/model/blocks/residual.h"
#include "sim/model/blocks/sequence_mixer.h"
#include "sim/model/expert/expert.h"
#include "sim/model/loss/task_loss.h"

namespace moelab {
namespace {

const Seeds kSeeds{1, 0};
constexpr int kLeastCalls = 5;

// A product in the forward pass needs two in the backward pass, for the gradients of both factors.
constexpr double kProducts = 3;
// Operations per softmax entry in addition to its exponential: maximum, difference, sum and scaling; backward
// a multiply-add, a difference and a scaling.
constexpr double kSoftmaxOperations = 4;
constexpr double kSoftmaxBackwardOperations = 4;
// Operations per entry of a norm. Forward: mean square, scaling, gain. Backward: gradient of the gain, ŷ, its
// mean product with x̂ and the subtraction of it, scaling. Layer norms add mean, difference and bias forward,
// and the gradient of the bias, a mean and a difference backward.
constexpr double kRmsOperations = 4 + 8;
constexpr double kLayerNormOperations = kRmsOperations + 3 + 3;

/// The sizes of a workload's transformer and of its batch.
struct Shapes {
  explicit Shapes(const Workload& workload)
      : sequences(workload.train.at("batch_size")),
        tokens(workload.data.at("tokens")),
        vocabulary(workload.data.at("vocabulary")),
        rows(sequences * tokens),
        dim(workload.options.model.kind.as<TransformerOptions>()->width.value()) {}

  int sequences;
  int tokens;      ///< s, of a sequence
  int vocabulary;  ///< V
  int rows;        ///< n, of a batch
  int dim;         ///< d
};

/// The time of a call of a part, and the least cost of any way to compute it.
struct Part {
  std::string name;
  double microseconds = 0;  ///< median processor time of a call, forward and backward
  double operations = 0;    ///< a multiply-add counts 2
  double exponentials = 0;
  double bytes = 0;  ///< read and written at least
  int calls = 0;     ///< in a training step
};

/// The inputs of a part, rows (n, d) and ∂L/∂outputs (n, d), and arrays for its outputs.
struct Arrays {
  Arrays(const Shapes& shapes, std::size_t parameter_size)
      : inputs(normals(shapes.rows, shapes.dim, 0)),
        output_gradient(normals(shapes.rows, shapes.dim, 1)),
        outputs(inputs.size()),
        input_gradient(inputs.size()),
        parameters(parameter_size),
        gradient(parameter_size) {}

  AlignedVector<float> inputs, output_gradient, outputs, input_gradient;
  AlignedVector<float> parameters, gradient;
};

double seconds_between(std::clock_t start, std::clock_t end) {
  return static_cast<double>(end - start) / CLOCKS_PER_SEC;
}

/// The median processor time of calls during `seconds`. Other work on the machine disturbs it less than wall
/// time. The first call, which allocates, is left out.
template <class Work>
double median_microseconds(double seconds, const Work& work) {
  work();
  std::vector<double> times;
  const std::clock_t begin = std::clock();
  std::clock_t start = begin;
  while (seconds_between(begin, start) < seconds || times.size() < kLeastCalls) {
    work();
    const std::clock_t end = std::clock();
    times.push_back(1e6 * seconds_between(start, end));
    start = end;
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// Bytes of the rows (n, d) that both passes read, outputs, both gradients of rows, parameters that both
/// passes read, and their written gradient. Intermediate values of a part may stay in a cache.
double bytes_there_and_back(const Shapes& shapes, std::size_t parameters) {
  return sizeof(float) * (5.0 * shapes.rows * shapes.dim + 3.0 * static_cast<double>(parameters));
}

/// A call of a block that maps rows (n, d) to rows (n, d): time and bytes.
Part measure_block(const std::string& name, const Block<float>& block, const Shapes& shapes, double seconds) {
  Arrays arrays(shapes, block.block_size());
  block.initialize({kSeeds}, arrays.parameters.data());
  const std::unique_ptr<Scratch> scratch = block.make_scratch();
  const View<const float> inputs =
      kernels::padded_rows<const float>(arrays.inputs.data(), shapes.rows, shapes.dim);
  const View<float> outputs = kernels::padded_rows(arrays.outputs.data(), shapes.rows, shapes.dim);
  const BlockValues<float> values{arrays.parameters.data(), nullptr};
  Pass<float> pass;
  pass.tokens = shapes.tokens;
  pass.keep = pass.training = true;
  Part part{name};
  part.microseconds = median_microseconds(seconds, [&] {
    LayerSignals<float> signals;
    block.forward(pass, inputs, values, signals, *scratch, outputs);
    block.backward(pass, inputs, values, signals, *scratch, outputs, arrays.output_gradient.data(),
                   arrays.gradient.data(), arrays.input_gradient.data());
  });
  part.bytes = bytes_there_and_back(shapes, block.parameter_count());
  return part;
}

/// Four products with weights (d, d) for every row, and two products, Q K^T and A V, for every row and
/// visible key.
Part measure_attention(const ModelOptions& model, const Shapes& shapes, double seconds) {
  const TransformerOptions& transformer = *model.kind.as<TransformerOptions>();
  const int heads = transformer.heads.value_or(1);
  const std::unique_ptr<Block<float>> block =
      make_self_attention<float>({.dim = shapes.dim,
                                  .heads = heads,
                                  .tokens = shapes.tokens,
                                  .rotary = transformer.positions == TransformerOptions::Positions::rotary,
                                  .causal = transformer.is_causal()});
  Part part = measure_block("attention", *block, shapes, seconds);
  const double dim = shapes.dim, tokens = shapes.tokens;
  const double seen = shapes.rows * (transformer.is_causal() ? (tokens + 1) / 2 : tokens);
  const double weights = heads * seen;  // entries of all A_h, each computed once at least
  part.operations = kProducts * 2 * (4 * shapes.rows * dim * dim + 2 * seen * dim) +
                    (kSoftmaxOperations + kSoftmaxBackwardOperations) * weights;
  part.exponentials = weights;
  part.calls = model.layers;
  return part;
}

/// All norms of a transformer: two per layer, one before the read-out.
Part measure_norm(const ModelOptions& model, const Shapes& shapes, double seconds) {
  const Normalization kind = model.kind.as<TransformerOptions>()->norm.value_or(Normalization::layer);
  Part part = measure_block("norm", *make_normalization<float>(kind, shapes.dim, ""), shapes, seconds);
  part.operations = (kind == Normalization::layer ? kLayerNormOperations : kRmsOperations) *
                    static_cast<double>(shapes.rows) * shapes.dim;
  part.calls = 2 * model.layers + 1;
  return part;
}

/// The loss of scores (n, V) and its gradient, without the products that made the scores.
Part measure_vocabulary_softmax(const Workload& workload, const Shapes& shapes, double seconds) {
  const AlignedVector<float> scores = normals(shapes.rows, shapes.vocabulary, 2);
  AlignedVector<float> gradient(scores.size()), ids(size(shapes.rows));
  for (int row = 0; row < shapes.rows; ++row) ids[size(row)] = static_cast<float>(row % shapes.vocabulary);
  LossOptions options;
  options.task = workload.task;
  const std::unique_ptr<TaskLoss<float>> loss = make_task_loss<float>(options, true);
  Part part{"vocabulary softmax"};
  part.microseconds = median_microseconds(seconds, [&] {
    loss->value_and_gradient(scores.data(), ids.data(), shapes.rows, shapes.vocabulary, gradient.data());
  });
  const double values = static_cast<double>(shapes.rows) * shapes.vocabulary;
  part.operations = kSoftmaxOperations * values;
  part.exponentials = values;
  part.bytes = sizeof(float) * (2 * values + shapes.rows);
  part.calls = 1;
  return part;
}

/// A bank of experts behind the workload's gating of random scores, which loads experts about equally. Router
/// and gating are not timed.
Part measure_experts(const ModelOptions& model, const Shapes& shapes, double seconds) {
  const ExpertOptions expert = expert_of(model);
  const std::unique_ptr<ExpertBank<float>> bank =
      make_expert_bank<float>(expert, {shapes.dim, shapes.dim, model.experts});
  const AlignedVector<float> scores = normals(shapes.rows, model.experts, 3);
  GatingContext<float> context;
  context.scores = scores.data();
  context.rows = shapes.rows;
  context.experts = model.experts;
  GatingScratch<float> gating;
  make_gating<float>(model.gating.train, {shapes.dim, model.experts})->gate(context, gating);

  Arrays arrays(shapes, bank->block_size());
  bank->initialize(kSeeds, arrays.parameters.data());
  const std::unique_ptr<Scratch> scratch = bank->make_scratch();
  AlignedVector<float> gate_gradient(scores.size());
  const View<const float> x =
      kernels::padded_rows<const float>(arrays.inputs.data(), shapes.rows, shapes.dim);
  Part part{"expert products"};
  part.microseconds = median_microseconds(seconds, [&] {
    bank->forward(x, gating.routing, arrays.parameters.data(), *scratch, arrays.outputs.data(), true);
    bank->backward(x, gating.routing, arrays.parameters.data(), *scratch,
                   {.outputs = arrays.output_gradient.data(),
                    .parameters = arrays.gradient.data(),
                    .gates = gate_gradient.data(),
                    .inputs = arrays.input_gradient.data()});
  });
  double pairs = 0;
  for (int e = 0; e < model.experts; ++e) pairs += gating.routing.pairs_of(e);
  const MlpExpertOptions* const mlp = expert.as<MlpExpertOptions>();
  if (!mlp || mlp->depth != 2) throw std::logic_error("operations are counted of experts of depth 2");
  part.operations = kProducts * 2 * pairs * 2.0 * shapes.dim * mlp->width;
  // Both passes read the gates, and their gradient is written.
  part.bytes = bytes_there_and_back(shapes, bank->parameters_per_expert() * size(model.experts)) +
               3 * sizeof(float) * pairs;
  part.calls = model.layers;
  return part;
}

Json measure(double seconds) {
  const Workload workload = make_workload("L", {});
  const ModelOptions& model = workload.options.model;
  const Shapes shapes(workload);
  Json parts = Json::array();
  for (const Part& part :
       {measure_attention(model, shapes, seconds), measure_vocabulary_softmax(workload, shapes, seconds),
        measure_experts(model, shapes, seconds), measure_norm(model, shapes, seconds)}) {
    parts.push_back({{"part", part.name},
                     {"microseconds", part.microseconds},
                     {"operations", part.operations},
                     {"exponentials", part.exponentials},
                     {"bytes", part.bytes},
                     {"calls_per_step", part.calls}});
  }
  return {{"workload", workload.name},
          {"program", "moelab"},
          {"vector_level", kernels::vector_level_name()},
          {"parts", parts}};
}

int run_program(int count, char** arguments) {
  CLI::App program("Times the parts of a language model alone and prints one line of JSON.");
  double seconds = 0.5;
  program.add_option("--seconds", seconds, "length of the measurement of a part")->check(CLI::PositiveNumber);
  CLI11_PARSE(program, count, arguments);
  std::cout << measure(seconds).dump() << '\n';
  return 0;
}

}  // namespace
}  // namespace moelab

int main(int count, char** arguments) {
  return moelab::guarded("moelab_token_parts", moelab::run_program, count, arguments);
}
