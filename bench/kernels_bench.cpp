/// Times the kernels on the shapes of training and prints their GFLOP/s. MOELAB_VECTOR_LEVEL=avx2 (or sse)
/// selects another vector level.

#include <benchmark/benchmark.h>

#include "bench/normals.h"
#include "sim/base/arrays.h"
#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

constexpr double kGiga = 1e9;

void count_operations(benchmark::State& state, double per_call) {
  state.counters["GFLOP/s"] = benchmark::Counter(per_call * static_cast<double>(state.iterations()) / kGiga,
                                                 benchmark::Counter::kIsRate);
}

/// Which of A and B is read transposed.
enum class Form { plain, b_transposed, a_transposed };

void multiply(benchmark::State& state, Form form, kernels::Start start, kernels::Finish finish) {
  const int m = static_cast<int>(state.range(0));
  const int n = static_cast<int>(state.range(1));
  const int k = static_cast<int>(state.range(2));
  const int stride = kernels::padded(n);
  const int k_stride = kernels::padded(k), m_stride = kernels::padded(m);
  const AlignedVector<float> a = form == Form::a_transposed ? normals(k, m) : normals(m, k);
  const AlignedVector<float> b = form == Form::b_transposed ? normals(n, k) : normals(k, n);
  const AlignedVector<float> bias = normals(1, n), mask = normals(m, n);
  AlignedVector<float> c = normals(m, n);
  kernels::Product<float> product;
  product.m = m;
  product.n = n;
  product.k = k;
  product.a = a.data();
  product.a_row = form == Form::a_transposed ? 1 : k_stride;
  product.a_column = form == Form::a_transposed ? m_stride : 1;
  product.b = b.data();
  product.b_row = form == Form::b_transposed ? k_stride : stride;
  product.b_transposed = form == Form::b_transposed;
  product.c = c.data();
  product.c_row = stride;
  product.start = start;
  product.bias = bias.data();
  product.finish = finish;
  product.mask = mask.data();
  for (auto _ : state) {
    kernels::multiply(product);
    benchmark::ClobberMemory();
  }
  count_operations(state, 2.0 * m * n * k);
}

/// A layer's outputs: relu(x A + b). Arguments of all products: m (rows of the result), n, k.
void layer_forward(benchmark::State& state) {
  multiply(state, Form::plain, kernels::Start::bias, kernels::Finish::relu);
}
BENCHMARK(layer_forward)
    ->ArgNames({"m", "n", "k"})
    ->Args({128, 96, 24})
    ->Args({128, 96, 96})
    ->Args({128, 10, 96})
    ->Args({512, 96, 24})
    ->Args({256, 256, 64})
    ->Args({256, 64, 256})
    ->Args({2, 96, 24})
    ->Args({2, 96, 96})
    ->Args({2, 10, 96});

/// The router's scores, and gates times constant experts.
void product_plain(benchmark::State& state) {
  multiply(state, Form::plain, kernels::Start::zero, kernels::Finish::none);
}
BENCHMARK(product_plain)
    ->ArgNames({"m", "n", "k"})
    ->Args({256, 64, 24})
    ->Args({256, 10, 64})
    ->Args({128, 4096, 24})
    ->Args({512, 32, 32})
    ->Args({2048, 192, 64})
    ->Args({2048, 256, 64})
    ->Args({32, 16, 128});

/// A layer's input gradient: (∂L/∂h) A^T, masked by the ReLU.
void layer_backward(benchmark::State& state) {
  multiply(state, Form::b_transposed, kernels::Start::zero, kernels::Finish::relu_mask);
}
BENCHMARK(layer_backward)
    ->ArgNames({"m", "n", "k"})
    ->Args({128, 96, 96})
    ->Args({128, 96, 10})
    ->Args({256, 64, 10})
    ->Args({256, 256, 64})
    ->Args({256, 64, 256})
    ->Args({32, 128, 16})
    ->Args({2, 96, 96})
    ->Args({2, 96, 10});

/// A layer's weight gradient: h^T (∂L/∂h).
void weight_gradient(benchmark::State& state) {
  multiply(state, Form::a_transposed, kernels::Start::zero, kernels::Finish::none);
}
BENCHMARK(weight_gradient)
    ->ArgNames({"m", "n", "k"})
    ->Args({96, 96, 128})
    ->Args({24, 96, 128})
    ->Args({96, 10, 128})
    ->Args({24, 64, 256})
    ->Args({64, 10, 256})
    ->Args({64, 256, 256})
    ->Args({256, 64, 256})
    ->Args({64, 256, 2048})
    ->Args({96, 96, 2})
    ->Args({24, 96, 2});

void softmax(benchmark::State& state) {
  const int rows = static_cast<int>(state.range(0)), columns = static_cast<int>(state.range(1));
  const int stride = kernels::padded(columns);
  const AlignedVector<float> scores = normals(rows, columns);
  AlignedVector<float> probabilities(scores.size());
  for (auto _ : state) {
    kernels::softmax_rows(scores.data(), probabilities.data(), rows, columns, stride);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * rows * columns);
}
BENCHMARK(softmax)
    ->ArgNames({"rows", "columns"})
    ->Args({256, 64})
    ->Args({128, 64})
    ->Args({512, 32})
    ->Args({128, 4096});

void softmax_backward(benchmark::State& state) {
  const int rows = static_cast<int>(state.range(0)), columns = static_cast<int>(state.range(1));
  const int stride = kernels::padded(columns);
  const AlignedVector<float> gradient = normals(rows, columns);
  AlignedVector<float> probabilities = gradient, result(gradient.size());
  kernels::softmax_rows(gradient.data(), probabilities.data(), rows, columns, stride);
  for (auto _ : state) {
    kernels::softmax_backward_rows(probabilities.data(), gradient.data(), result.data(), rows, columns,
                                   stride);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * rows * columns);
}
BENCHMARK(softmax_backward)->ArgNames({"rows", "columns"})->Args({256, 64})->Args({128, 4096});

/// Operations per parameter update, where divisions and roots count as one.
constexpr double kAdamOperations = 13;
constexpr double kSgdOperations = 6;

void adam(benchmark::State& state) {
  const int count = static_cast<int>(state.range(0));
  const AlignedVector<float> gradient = normals(1, count);
  AlignedVector<float> first(gradient.size()), second(gradient.size()), parameters = gradient;
  kernels::AdamStep<float> step;
  step.learning_rate = step.step_size = 1e-3f;
  step.beta1 = 0.9f;
  step.beta2 = 0.999f;
  step.epsilon = 1e-8f;
  step.second_moment_scale = 1.0f;
  for (auto _ : state) {
    kernels::adam_step(step, gradient.data(), first.data(), second.data(), parameters.data(),
                       gradient.size());
    benchmark::ClobberMemory();
  }
  count_operations(state, kAdamOperations * count);
}
BENCHMARK(adam)->ArgName("parameters")->Arg(2560)->Arg(65536)->Arg(1 << 22);

void sgd(benchmark::State& state) {
  const int count = static_cast<int>(state.range(0));
  const AlignedVector<float> gradient = normals(1, count);
  AlignedVector<float> velocity(gradient.size()), parameters = gradient;
  const kernels::SgdStep<float> step{1e-6f, 0.9f, 0.0f};
  for (auto _ : state) {
    kernels::sgd_step(step, gradient.data(), velocity.data(), parameters.data(), gradient.size());
    benchmark::ClobberMemory();
  }
  count_operations(state, kSgdOperations * count);
}
BENCHMARK(sgd)->ArgName("parameters")->Arg(2560)->Arg(65536)->Arg(1 << 22);

}  // namespace
}  // namespace moelab
