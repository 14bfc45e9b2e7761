#pragma once

/// The inner loops of training. They are compiled for several vector widths and chosen at run time.
///
/// Every output has one accumulator, summed in a fixed order with fused multiply-adds. Sums over a row run in
/// 16 lanes, which are added in a fixed tree. So AVX2 and AVX-512 give the same bits. SSE has no fused
/// multiply-add and differs in the last places.
///
/// NaN in, NaN out: if an entry of a row is NaN, every result that depends on the row is NaN. This holds for
/// both precisions and all vector levels. find_largest() alone returns places, and puts NaN last.
///
/// Rows of matrices that are written or read as vectors are padded to a multiple of kPadding entries. Padding
/// that enters a sum must hold zeros. Padding is never read as a result.

#include <cstddef>
#include <string>
#include <vector>

namespace moelab::kernels {

constexpr int kPadding = 16;
constexpr int padded(int columns) {
  return (columns + kPadding - 1) / kPadding * kPadding;
}

/// The compiled levels, lowest first: "sse", "avx2" and "avx512" on x86-64, "neon" on 64-bit ARM. All except
/// "sse" have fused multiply-adds and give the same bits.
std::vector<std::string> vector_level_names();

/// The level that this processor runs.
std::string vector_level_name();

/// The version of Highway, the library of vector instructions: "1.0.3".
std::string highway_version();

/// Allows only levels up to `name` from now on. Throws UserError for an unknown name.
void limit_vector_level(const std::string& name);

/// The environment variable MOELAB_VECTOR_LEVEL limits the level from the start of the program. Empty is the
/// same as unset. At that time nothing can catch an error, so an unknown level has no effect. Programs call
/// this function before they compute: it throws UserError for an unknown level.
void check_vector_level();

/// The initial value of a product, and the operation at its end.
enum class Start { zero, accumulate, bias };
enum class Finish { none, relu, relu_mask };

/// C (m, n) = start + A (m, k) B (k, n), then finish. A[i, p] = a[i · a_row + p · a_column], so a transposed
/// A has no extra cost. B is row-major with row stride `b_row`; with `b_transposed`, B[p, j] = b[j · b_row +
/// p]. Row strides of C (and of B unless transposed) are at least padded(n). bias (padded(n)) is added to
/// every row. relu_mask zeroes entries with mask[i · c_row + j] ≤ 0.
template <class Real>
struct Product {
  int m = 0, n = 0, k = 0;
  const Real* a = nullptr;
  std::ptrdiff_t a_row = 0, a_column = 1;
  const Real* b = nullptr;
  std::ptrdiff_t b_row = 0;
  bool b_transposed = false;
  Real* c = nullptr;
  std::ptrdiff_t c_row = 0;
  Start start = Start::zero;
  const Real* bias = nullptr;
  Finish finish = Finish::none;
  const Real* mask = nullptr;
};
void multiply(const Product<float>& product);
void multiply(const Product<double>& product);

/// probabilities[i] = softmax(scores[i]) over `columns`, stable for any finite scores. Both are (rows,
/// stride). The padding of `probabilities` becomes zero. The two may be the same array.
void softmax_rows(const float* scores, float* probabilities, int rows, int columns, int stride);
void softmax_rows(const double* scores, double* probabilities, int rows, int columns, int stride);

/// The same, and scores[i] ← log softmax(scores[i]), which is finite even if a probability underflows.
void log_softmax_rows(float* scores, float* probabilities, int rows, int columns, int stride);
void log_softmax_rows(double* scores, double* probabilities, int rows, int columns, int stride);

/// score_gradient[i] = r_i ∘ (g_i − Σ_e r_ie g_ie): the transposed Jacobian of the softmax. It may be in
/// place.
void softmax_backward_rows(const float* probabilities, const float* gradient, float* score_gradient, int rows,
                           int columns, int stride);
void softmax_backward_rows(const double* probabilities, const double* gradient, double* score_gradient,
                           int rows, int columns, int stride);

/// found[i] = the index of the (i + 1)-th largest of `count` values for i < k ≤ count. Among equal values the
/// lower index comes first. Reads entries up to padded(count).
void find_largest(const float* values, int count, int k, int* found);
void find_largest(const double* values, int count, int k, int* found);

/// sums[j] = Σ_i a[i, j] for j < padded(columns), with the rows in order.
void sum_rows(const float* a, int rows, int columns, std::ptrdiff_t stride, float* sums);
void sum_rows(const double* a, int rows, int columns, std::ptrdiff_t stride, double* sums);

/// y ← y + scale · x over `count` entries, a multiple of kPadding.
void add_scaled(float scale, const float* x, float* y, int count);
void add_scaled(double scale, const double* x, double* y, int count);

/// Σ_j x_j y_j over `count` entries, a multiple of kPadding.
float dot(const float* x, const float* y, int count);
double dot(const double* x, const double* y, int count);

/// Rows of an array, `stride` entries apart.
template <class T>
struct RowsOf {
  T* first = nullptr;
  std::ptrdiff_t stride = 0;
  T* row(int i) const { return first + i * stride; }
};

/// sums[i] ← Σ_j x_ij y_ij over `count` entries of each row, a multiple of kPadding: dot() for many rows.
void dot_rows(const RowsOf<const float>& x, const RowsOf<const float>& y, int rows, int count,
              const RowsOf<float>& sums);
void dot_rows(const RowsOf<const double>& x, const RowsOf<const double>& y, int rows, int count,
              const RowsOf<double>& sums);

/// distances[i] ← Σ_j (x_j − y_ij)² over `count` entries, a multiple of kPadding. Computed from differences,
/// because ‖x‖² − 2 x·y + ‖y‖² loses digits that may decide.
void squared_distances(const float* x, const RowsOf<const float>& y, int rows, int count, float* distances);
void squared_distances(const double* x, const RowsOf<const double>& y, int rows, int count,
                       double* distances);

/// y_i ← scales[i] · x_i over `count` entries of each row, a multiple of kPadding.
void scale_rows(const RowsOf<const float>& scales, const RowsOf<const float>& x, int rows, int count,
                const RowsOf<float>& y);
void scale_rows(const RowsOf<const double>& scales, const RowsOf<const double>& x, int rows, int count,
                const RowsOf<double>& y);

/// to[i] ← from[order[i]] for contiguous rows of `columns` entries. `order` has `known` ≥ `rows` entries,
/// which serve to prefetch later rows.
void copy_rows(const float* from, const int* order, int rows, int known, int columns, float* to);
void copy_rows(const double* from, const int* order, int rows, int known, int columns, double* to);

/// y ← scale · x over `count` entries, a multiple of kPadding.
void scale_into(float scale, const float* x, float* y, int count);
void scale_into(double scale, const double* x, double* y, int count);

// Normalization of rows, which are padded(dim) entries apart

/// x̂ = (x − mean x) / √(mean (x − mean x)² + floor) and y = g ∘ x̂ + b (Ba et al. 2016). Without a bias both
/// the mean and b are omitted (Zhang, Sennrich 2019).
template <class Real>
struct RowNorm {
  int rows = 0, dim = 0;
  Real floor = 0;
  const Real* gain = nullptr;  ///< g (padded(dim)), padding zero
  const Real* bias = nullptr;  ///< b (padded(dim)), padding zero, or null
  Real* normal = nullptr;      ///< x (rows, padded(dim)), padding zero; x̂ after the forward pass
  Real* inverse = nullptr;     ///< 1 / √(…), (rows)
};
void normalize_rows(const RowNorm<float>& norm, float* y);
void normalize_rows(const RowNorm<double>& norm, double* y);

/// The backward pass from ∂L/∂y. With ŷ = g ∘ ∂L/∂y, ∂L/∂x = (ŷ − mean ŷ − x̂ mean(ŷ ∘ x̂)) / √(…), without
/// mean ŷ if there is no bias.
template <class Real>
struct RowNormGradient {
  const Real* output = nullptr;  ///< ∂L/∂y (rows, padded(dim)), padding zero
  Real* gain = nullptr;          ///< ∂L/∂g (padded(dim)), written
  Real* bias = nullptr;          ///< ∂L/∂b, if there is a bias
  Real* input = nullptr;         ///< ∂L/∂x (rows, padded(dim)), or null
};
void normalize_rows_backward(const RowNorm<float>& norm, const RowNormGradient<float>& gradient);
void normalize_rows_backward(const RowNorm<double>& norm, const RowNormGradient<double>& gradient);

// Mixtures of ridge experts, for fits of few parameters

enum class RidgeExpert { power, relu, gelu, sigmoid };
enum class RidgeGate { softmax, sigmoid, normalised_sigmoid };
/// Most experts of a RidgeMixture, and the samples of a block, whose arrays fit in the cache.
constexpr int kMostRidgeExperts = 16, kRidgeBlock = 256;

/// f(x) = Σ_j r_j(z) h(a_j·(x, 1)) + Σ_s h(a_s·(x, 1)) with k routed and m shared experts and scores γ_j =
/// g_j·(z, 1), and what a pass over n samples adds up. Samples are the columns of z and x, `stride` entries
/// apart, so that lanes hold samples.
template <class Real>
struct RidgeMixture {
  int samples = 0, dim = 0, components = 0, shared = 0;
  RidgeExpert expert = RidgeExpert::power;
  int power = 1;
  RidgeGate gate = RidgeGate::softmax;
  int selected = 0;                       ///< the softmax is over the largest scores; 0: over all
  const Real *z = nullptr, *x = nullptr;  ///< (d + 1, stride); the last row holds ones
  const Real* y = nullptr;                ///< (stride)
  std::ptrdiff_t stride = 0;              ///< at least padded(samples)
  const Real* router = nullptr;           ///< g (k, d + 1)
  const Real* experts = nullptr;          ///< a (k + m, d + 1)
  Real* scratch = nullptr;                ///< ridge_scratch(dim, components, shared)
  /// Σ_i (f − y) ∂f/∂(g, a), (p) with p = (2 k + m) (d + 1); null: not wanted.
  Real* gradient = nullptr;
  /// The lower triangle of Σ_i ∂f/∂(g, a) ∂f/∂(g, a)^T, (p, p); null: not wanted.
  Real* products = nullptr;
};
/// Returns Σ_i (f(x_i) − y_i)².
float ridge_mixture(const RidgeMixture<float>& mixture);
double ridge_mixture(const RidgeMixture<double>& mixture);
/// Entries of RidgeMixture::scratch.
constexpr std::size_t ridge_scratch(int dim, int components, int shared) {
  return static_cast<std::size_t>(kRidgeBlock) *
         static_cast<std::size_t>(1 + (2 * components + shared) * (dim + 2));
}

// Optimizer steps

/// Stochastic gradient descent with momentum, v ← μ v + g + λ w, w ← w − η v (PyTorch's SGD without
/// dampening).
template <class Real>
struct SgdStep {
  Real learning_rate = 0, momentum = 0, weight_decay = 0;
};
void sgd_step(const SgdStep<float>& step, const float* gradient, float* velocity, float* parameters,
              std::size_t count);
void sgd_step(const SgdStep<double>& step, const double* gradient, double* velocity, double* parameters,
              std::size_t count);

/// `steps` steps of sgd_step with a zero gradient and rate `rates[i]` in step i, with the same bits. v and w
/// stay in registers for all steps. `step.learning_rate` is not used.
void sgd_idle_steps(const SgdStep<float>& step, const float* rates, int steps, float* velocity,
                    float* parameters, std::size_t count);
void sgd_idle_steps(const SgdStep<double>& step, const double* rates, int steps, double* velocity,
                    double* parameters, std::size_t count);

/// Adam (Kingma, Ba 2015), or AdamW (Loshchilov, Hutter 2019) with decoupled decay:
/// g ← g + λ w (coupled) or w ← w − η λ w (decoupled); m ← β1 m + (1−β1) g; v ← β2 v + (1−β2) g²;
/// w ← w − step_size · m / (√v / √(1−β2^t) + ε), with step_size = η / (1−β1^t).
template <class Real>
struct AdamStep {
  Real learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0;
  bool decoupled = false;
  Real step_size = 0;            ///< η / (1 − β1^t)
  Real second_moment_scale = 0;  ///< 1 / √(1 − β2^t)
};
void adam_step(const AdamStep<float>& step, const float* gradient, float* first, float* second,
               float* parameters, std::size_t count);
void adam_step(const AdamStep<double>& step, const double* gradient, double* first, double* second,
               double* parameters, std::size_t count);

}  // namespace moelab::kernels
