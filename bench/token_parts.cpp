/// moelab_token_parts: times the parts of a language model, each alone and on one thread, there and back at
/// the shapes of workload L, and prints one line of JSON: what a call takes, what it needs at least, and how
/// many calls a training step has.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <iostream>

#include "bench/program.h"
#include "bench/workload.h"
#include "sim/base/kernels/multiply.h"
#include "sim/model/blocks/residual.h"
#include "sim/model/blocks/self_attention.h"
#include "sim/model/expert/expert.h"
#include "sim/model/loss/task_loss.h"
#include "sim/model/transformer.h"

namespace moelab {
namespace {

const Seeds kSeeds{1, 0};
constexpr int kLeastCalls = 5;

// A product there needs two back: the gradients of either factor.
constexpr double kProducts = 3;
// Of a softmax's entry beside its exponential: maximum, difference, sum and scaling; on the way back a
// multiply-add, a difference and a scaling.
constexpr double kSoftmaxOperations = 4;
constexpr double kSoftmaxBackwardOperations = 4;
// Of a norm's entry (normalization.h) there: mean square, scaling, gain; back: gradient of the gain, ŷ, its
// mean product with x̂, what that takes away, scaling. Layer norms add mean, difference and bias there, and
// the bias's gradient, a mean and a difference back.
constexpr double kRmsOperations = 4 + 8;
constexpr double kLayerNormOperations = kRmsOperations + 3 + 3;

/// The sizes of a workload's transformer and of its batch.
struct Shapes {
  explicit Shapes(const Workload& workload)
      : sequences(workload.train.at("batch_size")),
        tokens(workload.data.at("tokens")),
        vocabulary(workload.data.at("vocabulary")),
        rows(sequences * tokens),
        dim(*workload.options.model.width) {}

  int sequences;
  int tokens;      ///< s, of a sequence
  int vocabulary;  ///< V
  int rows;        ///< n, of a batch
  int dim;         ///< d
};

/// What a call of a part takes, and what no way of computing it can do without.
struct Part {
  std::string name;
  double microseconds = 0;  ///< of a call forward and backward, the median, in processor time
  double operations = 0;    ///< a multiply-add counts 2
  double exponentials = 0;
  double bytes = 0;  ///< read and written at least
  int calls = 0;     ///< in a training step
};

/// Standard normals (rows, columns) as kernels want them: rows padded(columns) apart, padding zero.
AlignedVector<float> normals(int rows, int columns, std::uint64_t stream) {
  const int stride = kernels::padded(columns);
  AlignedVector<float> values(entries(rows, stride));
  Engine engine = kSeeds.stream(Purpose::evaluation, stream);
  for (int row = 0; row < rows; ++row) {
    for (int j = 0; j < columns; ++j)
      values[entries(row, stride) + size(j)] = static_cast<float>(draw_normal(engine));
  }
  return values;
}

/// Rows (n, d) that a part reads, and ∂L/∂outputs (n, d); and the arrays for what it writes.
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

/// The median of as many calls as `seconds` have room for, in processor time, which other work on the machine
/// disturbs less. The first call, which allocates, is left out.
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

/// Bytes of rows (n, d) read by both passes, of outputs, of both gradients of rows, and of parameters read by
/// both passes with their gradient written. What a part keeps between its passes might stay in a cache.
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

/// Four products with weights (d, d) of every row, and two, Q K^T and A V, of every row and key that it sees.
Part measure_attention(const ModelOptions& model, const Shapes& shapes, double seconds) {
  const TransformerOptions& transformer = model.transformer;
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

/// Every norm of a transformer: two in a layer, one before the read-out.
Part measure_norm(const ModelOptions& model, const Shapes& shapes, double seconds) {
  const Normalization kind = model.transformer.norm.value_or(Normalization::layer);
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

/// A bank of experts behind the workload's gating of random scores, which loads experts about equally. The
/// router, the gating and its backward pass are left out.
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
  // The gates are read by both passes, and their gradient is written.
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
