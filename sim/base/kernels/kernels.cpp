#include "sim/base/kernels/kernels.h"

// Three levels are enough on x86-64: the baseline (SSE), AVX2 with FMA, and AVX-512. On ARM there is NEON,
// which has fused multiply-adds, too; vectors of a length that only the processor knows have no place in
// arrays.
#define HWY_DISABLED_TARGETS (HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/base/kernels/kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// Re-included once per level.
#include "sim/base/kernels/kernels-inl.h"
#include "sim/base/kernels/product-inl.h"

#if HWY_ONCE
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/kernels/highway_version.h"
#include "sim/base/kernels/optimizer_steps.h"
#include "sim/base/kernels/row_norm.h"

namespace moelab::kernels {
namespace {

#define MOELAB_EXPORT(name) \
  HWY_EXPORT(name##_float); \
  HWY_EXPORT(name##_double)
MOELAB_EXPORT(multiply);
MOELAB_EXPORT(softmax_rows);
MOELAB_EXPORT(log_softmax_rows);
MOELAB_EXPORT(softmax_backward_rows);
MOELAB_EXPORT(find_largest);
MOELAB_EXPORT(normalize_rows);
MOELAB_EXPORT(normalize_rows_backward);
MOELAB_EXPORT(sum_rows);
MOELAB_EXPORT(add_scaled);
MOELAB_EXPORT(dot);
MOELAB_EXPORT(dot_rows);
MOELAB_EXPORT(squared_distances);
MOELAB_EXPORT(scale_rows);
MOELAB_EXPORT(copy_rows);
MOELAB_EXPORT(scale_into);
MOELAB_EXPORT(sgd_step);
MOELAB_EXPORT(sgd_idle_steps);
MOELAB_EXPORT(adam_step);
#undef MOELAB_EXPORT

struct Level {
  const char* name;
  std::int64_t disabled;
};
#if HWY_ARCH_X86
const Level kLevels[] = {
    {"sse", HWY_AVX2 | HWY_AVX3 | HWY_AVX3_DL}, {"avx2", HWY_AVX3 | HWY_AVX3_DL}, {"avx512", 0}};
#else
const Level kLevels[] = {{"neon", 0}};
#endif

constexpr const char* kLevelVariable = "MOELAB_VECTOR_LEVEL";

/// The variable, read before the first kernel runs. No exception may leave here: it would end every program
/// that uses the library before its main() begins. check_vector_level() refuses what is no level.
[[maybe_unused]] const bool kLimitedByEnvironment = [] {
  const char* name = std::getenv(kLevelVariable);
  for (const Level& level : kLevels) {
    if (name && level.name == std::string_view(name)) hwy::DisableTargets(level.disabled);
  }
  return name != nullptr;
}();

}  // namespace

std::string vector_level_name() {
  const std::int64_t supported = hwy::SupportedTargets();
  // Highway's query resets the choice to all that the processor has, limits forgotten: choose again.
  hwy::GetChosenTarget().Update(supported);
#if HWY_ARCH_X86
  if (supported & HWY_AVX3) return "avx512";
  return supported & HWY_AVX2 ? "avx2" : "sse";
#else
  return "neon";
#endif
}

std::string highway_version() {
  return fmt::format("{}.{}.{}", HWY_MAJOR, HWY_MINOR, HWY_PATCH);
}

std::vector<std::string> vector_level_names() {
  return names_of(kLevels);
}

void limit_vector_level(const std::string& name) {
  for (const Level& level : kLevels) {
    if (name == level.name) return hwy::DisableTargets(level.disabled);
  }
  throw UserError("vector level", unknown_name("vector level", name, vector_level_names()));
}

void check_vector_level() {
  const char* const name = std::getenv(kLevelVariable);
  if (name == nullptr || *name == '\0') return;
  const std::vector<std::string> names = vector_level_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw UserError(kLevelVariable, unknown_name("vector level", name, names));
}

void multiply(const Product<float>& product) {
  HWY_DYNAMIC_DISPATCH(multiply_float)(product);
}
void multiply(const Product<double>& product) {
  HWY_DYNAMIC_DISPATCH(multiply_double)(product);
}

void softmax_rows(const float* scores, float* probabilities, int rows, int columns, int stride) {
  HWY_DYNAMIC_DISPATCH(softmax_rows_float)(scores, probabilities, rows, columns, stride);
}
void softmax_rows(const double* scores, double* probabilities, int rows, int columns, int stride) {
  HWY_DYNAMIC_DISPATCH(softmax_rows_double)(scores, probabilities, rows, columns, stride);
}

void log_softmax_rows(float* scores, float* probabilities, int rows, int columns, int stride) {
  HWY_DYNAMIC_DISPATCH(log_softmax_rows_float)(scores, probabilities, rows, columns, stride);
}
void log_softmax_rows(double* scores, double* probabilities, int rows, int columns, int stride) {
  HWY_DYNAMIC_DISPATCH(log_softmax_rows_double)(scores, probabilities, rows, columns, stride);
}

void softmax_backward_rows(const float* probabilities, const float* gradient, float* score_gradient, int rows,
                           int columns, int stride) {
  HWY_DYNAMIC_DISPATCH(softmax_backward_rows_float)
  (probabilities, gradient, score_gradient, rows, columns, stride);
}
void softmax_backward_rows(const double* probabilities, const double* gradient, double* score_gradient,
                           int rows, int columns, int stride) {
  HWY_DYNAMIC_DISPATCH(softmax_backward_rows_double)
  (probabilities, gradient, score_gradient, rows, columns, stride);
}

void find_largest(const float* values, int count, int k, int* found) {
  HWY_DYNAMIC_DISPATCH(find_largest_float)(values, count, k, found);
}
void find_largest(const double* values, int count, int k, int* found) {
  HWY_DYNAMIC_DISPATCH(find_largest_double)(values, count, k, found);
}

void normalize_rows(const RowNorm<float>& norm, float* y) {
  HWY_DYNAMIC_DISPATCH(normalize_rows_float)(norm, y);
}
void normalize_rows(const RowNorm<double>& norm, double* y) {
  HWY_DYNAMIC_DISPATCH(normalize_rows_double)(norm, y);
}

void normalize_rows_backward(const RowNorm<float>& norm, const RowNormGradient<float>& gradient) {
  HWY_DYNAMIC_DISPATCH(normalize_rows_backward_float)(norm, gradient);
}
void normalize_rows_backward(const RowNorm<double>& norm, const RowNormGradient<double>& gradient) {
  HWY_DYNAMIC_DISPATCH(normalize_rows_backward_double)(norm, gradient);
}

void sum_rows(const float* a, int rows, int columns, std::ptrdiff_t stride, float* sums) {
  HWY_DYNAMIC_DISPATCH(sum_rows_float)(a, rows, columns, stride, sums);
}
void sum_rows(const double* a, int rows, int columns, std::ptrdiff_t stride, double* sums) {
  HWY_DYNAMIC_DISPATCH(sum_rows_double)(a, rows, columns, stride, sums);
}

void add_scaled(float scale, const float* x, float* y, int count) {
  HWY_DYNAMIC_DISPATCH(add_scaled_float)(scale, x, y, count);
}
void add_scaled(double scale, const double* x, double* y, int count) {
  HWY_DYNAMIC_DISPATCH(add_scaled_double)(scale, x, y, count);
}

float dot(const float* x, const float* y, int count) {
  return HWY_DYNAMIC_DISPATCH(dot_float)(x, y, count);
}
double dot(const double* x, const double* y, int count) {
  return HWY_DYNAMIC_DISPATCH(dot_double)(x, y, count);
}

void dot_rows(const RowsOf<const float>& x, const RowsOf<const float>& y, int rows, int count,
              const RowsOf<float>& sums) {
  HWY_DYNAMIC_DISPATCH(dot_rows_float)(x, y, rows, count, sums);
}
void dot_rows(const RowsOf<const double>& x, const RowsOf<const double>& y, int rows, int count,
              const RowsOf<double>& sums) {
  HWY_DYNAMIC_DISPATCH(dot_rows_double)(x, y, rows, count, sums);
}

void squared_distances(const float* x, const RowsOf<const float>& y, int rows, int count, float* distances) {
  HWY_DYNAMIC_DISPATCH(squared_distances_float)(x, y, rows, count, distances);
}
void squared_distances(const double* x, const RowsOf<const double>& y, int rows, int count,
                       double* distances) {
  HWY_DYNAMIC_DISPATCH(squared_distances_double)(x, y, rows, count, distances);
}

void scale_rows(const RowsOf<const float>& scales, const RowsOf<const float>& x, int rows, int count,
                const RowsOf<float>& y) {
  HWY_DYNAMIC_DISPATCH(scale_rows_float)(scales, x, rows, count, y);
}
void scale_rows(const RowsOf<const double>& scales, const RowsOf<const double>& x, int rows, int count,
                const RowsOf<double>& y) {
  HWY_DYNAMIC_DISPATCH(scale_rows_double)(scales, x, rows, count, y);
}

void copy_rows(const float* from, const int* order, int rows, int known, int columns, float* to) {
  HWY_DYNAMIC_DISPATCH(copy_rows_float)(from, order, rows, known, columns, to);
}
void copy_rows(const double* from, const int* order, int rows, int known, int columns, double* to) {
  HWY_DYNAMIC_DISPATCH(copy_rows_double)(from, order, rows, known, columns, to);
}

void scale_into(float scale, const float* x, float* y, int count) {
  HWY_DYNAMIC_DISPATCH(scale_into_float)(scale, x, y, count);
}
void scale_into(double scale, const double* x, double* y, int count) {
  HWY_DYNAMIC_DISPATCH(scale_into_double)(scale, x, y, count);
}

void sgd_step(const SgdStep<float>& step, const float* gradient, float* velocity, float* parameters,
              std::size_t count) {
  HWY_DYNAMIC_DISPATCH(sgd_step_float)(step, gradient, velocity, parameters, count);
}
void sgd_step(const SgdStep<double>& step, const double* gradient, double* velocity, double* parameters,
              std::size_t count) {
  HWY_DYNAMIC_DISPATCH(sgd_step_double)(step, gradient, velocity, parameters, count);
}

void sgd_idle_steps(const SgdStep<float>& step, const float* rates, int steps, float* velocity,
                    float* parameters, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(sgd_idle_steps_float)(step, rates, steps, velocity, parameters, count);
}
void sgd_idle_steps(const SgdStep<double>& step, const double* rates, int steps, double* velocity,
                    double* parameters, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(sgd_idle_steps_double)(step, rates, steps, velocity, parameters, count);
}

void adam_step(const AdamStep<float>& step, const float* gradient, float* first, float* second,
               float* parameters, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(adam_step_float)(step, gradient, first, second, parameters, count);
}
void adam_step(const AdamStep<double>& step, const double* gradient, double* first, double* second,
               double* parameters, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(adam_step_double)(step, gradient, first, second, parameters, count);
}

}  // namespace moelab::kernels
#endif  // HWY_ONCE
