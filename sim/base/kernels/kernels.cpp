#include "sim/base/kernels/kernels.h"

#include "sim/base/kernels/levels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/base/kernels/kernels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// Re-included once per level.
#include "sim/base/kernels/mixture-inl.h"
#include "sim/base/kernels/optimizer-inl.h"
#include "sim/base/kernels/product-inl.h"
#include "sim/base/kernels/rows-inl.h"

// Every kernel NAME for a number type T, which its template NAME_of<T> computes.
#ifndef MOELAB_KERNELS
// clang-format off
#define MOELAB_KERNELS(entry, T)                                                                                \
  entry(void, multiply, T, (const Product<T>& product), (product))                                              \
  entry(void, softmax_rows, T, (const T* scores, T* probabilities, int rows, int columns, int stride),          \
        (scores, probabilities, rows, columns, stride))                                                         \
  entry(void, log_softmax_rows, T, (T* scores, T* probabilities, int rows, int columns, int stride),            \
        (scores, probabilities, rows, columns, stride))                                                         \
  entry(void, softmax_backward_rows, T,                                                                         \
        (const T* probabilities, const T* gradient, T* score_gradient, int rows, int columns, int stride),      \
        (probabilities, gradient, score_gradient, rows, columns, stride))                                       \
  entry(void, find_largest, T, (const T* values, int count, int k, int* found), (values, count, k, found))      \
  entry(void, normalize_rows, T, (const RowNorm<T>& norm, T* y), (norm, y))                                     \
  entry(void, normalize_rows_backward, T, (const RowNorm<T>& norm, const RowNormGradient<T>& gradient),         \
        (norm, gradient))                                                                                       \
  entry(void, sum_rows, T, (const T* a, int rows, int columns, std::ptrdiff_t stride, T* sums),                 \
        (a, rows, columns, stride, sums))                                                                       \
  entry(void, add_scaled, T, (T scale, const T* x, T* y, int count), (scale, x, y, count))                      \
  entry(void, scale_into, T, (T scale, const T* x, T* y, int count), (scale, x, y, count))                      \
  entry(T, dot, T, (const T* x, const T* y, int count), (x, y, count))                                          \
  entry(void, dot_rows, T,                                                                                      \
        (const RowsOf<const T>& x, const RowsOf<const T>& y, int rows, int count, const RowsOf<T>& sums),       \
        (x, y, rows, count, sums))                                                                              \
  entry(void, squared_distances, T,                                                                             \
        (const T* x, const RowsOf<const T>& y, int rows, int count, T* distances), (x, y, rows, count, distances)) \
  entry(void, scale_rows, T,                                                                                    \
        (const RowsOf<const T>& scales, const RowsOf<const T>& x, int rows, int count, const RowsOf<T>& y),     \
        (scales, x, rows, count, y))                                                                            \
  entry(void, copy_rows, T, (const T* from, const int* order, int rows, int known, int columns, T* to),         \
        (from, order, rows, known, columns, to))                                                                \
  entry(T, ridge_mixture, T, (const RidgeMixture<T>& mixture), (mixture))                                       \
  entry(void, sgd_step, T,                                                                                      \
        (const SgdStep<T>& step, const T* gradient, T* velocity, T* parameters, std::size_t count),             \
        (step, gradient, velocity, parameters, count))                                                          \
  entry(void, sgd_idle_steps, T,                                                                                \
        (const SgdStep<T>& step, const T* rates, int steps, T* velocity, T* parameters, std::size_t count),     \
        (step, rates, steps, velocity, parameters, count))                                                      \
  entry(void, adam_step, T,                                                                                     \
        (const AdamStep<T>& step, const T* gradient, T* first, T* second, T* parameters, std::size_t count),    \
        (step, gradient, first, second, parameters, count))
// clang-format on
#endif

// The functions of one level, as the dispatch tables hold them.
HWY_BEFORE_NAMESPACE();
namespace moelab::kernels::HWY_NAMESPACE {
#define MOELAB_DEFINE(result, name, T, parameters, arguments) \
  result name##_##T parameters {                              \
    return name##_of<T> arguments;                            \
  }
MOELAB_KERNELS(MOELAB_DEFINE, float)
MOELAB_KERNELS(MOELAB_DEFINE, double)
#undef MOELAB_DEFINE
}  // namespace moelab::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "sim/base/error.h"

namespace moelab::kernels {
namespace {

struct Level {
  const char* name;
  std::int64_t disabled;
};
#if HWY_ARCH_X86
const Level kLevels[] = {
    {"sse", HWY_AVX2 | MOELAB_BETTER_THAN(HWY_AVX2)}, {"avx2", MOELAB_BETTER_THAN(HWY_AVX2)}, {"avx512", 0}};
#else
const Level kLevels[] = {{"neon", 0}};
#endif

constexpr const char* kLevelVariable = "MOELAB_VECTOR_LEVEL";

/// Reads the variable before the first kernel runs. An exception here would end every program that uses the
/// library before its main() begins. So check_vector_level() refuses unknown levels.
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
  // Highway's query forgets the limits and resets the choice to all levels of the processor. Choose again.
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

// The calls, each to the level that was chosen.
#define MOELAB_DISPATCH(result, name, T, parameters, arguments) \
  HWY_EXPORT(name##_##T);                                       \
  result name parameters {                                      \
    return HWY_DYNAMIC_DISPATCH(name##_##T) arguments;          \
  }
MOELAB_KERNELS(MOELAB_DISPATCH, float)
MOELAB_KERNELS(MOELAB_DISPATCH, double)
#undef MOELAB_DISPATCH

}  // namespace moelab::kernels
#endif  // HWY_ONCE
