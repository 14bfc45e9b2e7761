#pragma once

/// The inner loops of training, compiled for several vector widths and chosen at run time.
///
/// Every output has one accumulator, summed in a fixed order with fused multiply-add; sums over a row run in
/// 16 lanes that are added in a fixed tree. So AVX2 and AVX-512 give the same bits; SSE, which cannot fuse,
/// differs in the last places.
///
/// Rows of matrices that are written or read as vectors are padded to a multiple of kPadding entries. Padding
/// holds zeros where it enters a sum and is never read as a result.

#include <cstddef>
#include <string>
#include <vector>

namespace moelab::kernels {

constexpr int kPadding = 16;
constexpr int padded(int columns) {
  return (columns + kPadding - 1) / kPadding * kPadding;
}

/// The levels that are compiled, lowest first: "sse", "avx2" and "avx512" on x86-64, "neon" on 64-bit ARM.
/// All but "sse" have fused multiply-adds, and give the same bits.
std::vector<std::string> vector_level_names();

/// The level that this processor runs.
std::string vector_level_name();

/// Allows only levels up to `name` from now on. Throws UserError when unknown.
void limit_vector_level(const std::string& name);

/// The environment variable MOELAB_VECTOR_LEVEL limits the level in the same way, from the start of the
/// program; empty is the same as unset. A value that names no level is passed over then, since nothing could
/// catch an error. Throws UserError for such a value: a program calls this before it computes.
void check_vector_level();

/// What a product starts from and what is done to it at the end.
enum class Start { zero, accumulate, bias };
enum class Finish { none, relu, relu_mask };

/// C (m, n) = start + A (m, k) B (k, n), then finish.
/// A[i, p] = a[i · a_row + p · a_column], so a transposed A costs nothing.
/// B is row-major with row stride `b_row`; with `b_transposed`, B[p, j] = b[j · b_row + p].
/// Row strides of C (and of B when not transposed) are at least padded(n).
/// bias (padded(n)) is added to every row; relu_mask zeroes entries where mask[i · c_row + j] ≤ 0.
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

/// probabilities[i] = softmax(scores[i]) over `columns`, stable for any finite scores. Both (rows, stride);
/// padding of `probabilities` becomes zero. In place is allowed.
void softmax_rows(const float* scores, float* probabilities, int rows, int columns, int stride);
void softmax_rows(const double* scores, double* probabilities, int rows, int columns, int stride);

/// The same, and scores[i] ← log softmax(scores[i]), finite where a probability underflows.
void log_softmax_rows(float* scores, float* probabilities, int rows, int columns, int stride);
void log_softmax_rows(double* scores, double* probabilities, int rows, int columns, int stride);

/// score_gradient[i] = r_i ∘ (g_i − Σ_e r_ie g_ie): the softmax's transposed Jacobian. In place is allowed.
void softmax_backward_rows(const float* probabilities, const float* gradient, float* score_gradient, int rows,
                           int columns, int stride);
void softmax_backward_rows(const double* probabilities, const double* gradient, double* score_gradient,
                           int rows, int columns, int stride);

/// found[i] = the index of the (i + 1)-th largest of `count` values, the lower one first among equals, for i
/// < k ≤ count. Entries up to padded(count) are read.
void find_largest(const float* values, int count, int k, int* found);
void find_largest(const double* values, int count, int k, int* found);

/// sums[j] = Σ_i a[i, j] for j < padded(columns), rows in order.
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

/// distances[i] ← Σ_j (x_j − y_ij)² over `count` entries, a multiple of kPadding: by differences, since what
/// ‖x‖² − 2 x·y + ‖y‖² loses may decide.
void squared_distances(const float* x, const RowsOf<const float>& y, int rows, int count, float* distances);
void squared_distances(const double* x, const RowsOf<const double>& y, int rows, int count,
                       double* distances);

/// y_i ← scales[i] · x_i over `count` entries of each row, a multiple of kPadding.
void scale_rows(const RowsOf<const float>& scales, const RowsOf<const float>& x, int rows, int count,
                const RowsOf<float>& y);
void scale_rows(const RowsOf<const double>& scales, const RowsOf<const double>& x, int rows, int count,
                const RowsOf<double>& y);

/// to[i] ← from[order[i]] for rows of `columns` entries, side by side in both. `order` has `known` ≥ `rows`
/// entries, and rows that are still to come are called into the cache on the way.
void copy_rows(const float* from, const int* order, int rows, int known, int columns, float* to);
void copy_rows(const double* from, const int* order, int rows, int known, int columns, double* to);

/// y ← scale · x over `count` entries, a multiple of kPadding.
void scale_into(float scale, const float* x, float* y, int count);
void scale_into(double scale, const double* x, double* y, int count);

}  // namespace moelab::kernels
