/// moelab_fma_peak [MB]: prints one line of JSON with the multiply-adds per second that one core reaches on
/// independent accumulators in registers, at the vector level of the kernels. Without fused multiply-add
/// (level sse) it uses a multiplication and an addition. With a number of megabytes it also copies one half
/// of them to the other and prints the bytes read and written per second.

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "app/scenario/json.h"
#include "sim/base/kernels/kernels.h"

namespace {

/// Enough chains to hide four cycles of latency on two units, few enough for 16 registers.
constexpr int kChains = 12;
constexpr int kRounds = 100'000;
constexpr int kMeasurements = 20;

// Values decay towards 0.5 and stay normal numbers. The sum is returned so that the compiler keeps the loop.
constexpr float kFactor = 0.5f;
constexpr float kTerm = 0.25f;

/// Defines a function of the chains; `prefix` names the intrinsics of a width.
#define MOELAB_CHAINS(function, level, Vector, prefix, multiply_add)                     \
  __attribute__((target(level))) float function() {                                      \
    const Vector factor = prefix##_set1_ps(kFactor), term = prefix##_set1_ps(kTerm);     \
    Vector sums[kChains];                                                                \
    for (int i = 0; i < kChains; ++i) sums[i] = prefix##_set1_ps(static_cast<float>(i)); \
    for (int round = 0; round < kRounds; ++round) {                                      \
      _Pragma("GCC unroll 12") for (int i = 0; i < kChains; ++i) sums[i] =               \
          multiply_add(sums[i], factor, term);                                           \
    }                                                                                    \
    for (int i = 1; i < kChains; ++i) sums[0] = prefix##_add_ps(sums[0], sums[i]);       \
    return prefix##_cvtss_f32(sums[0]);                                                  \
  }
#define MOELAB_MULTIPLY_ADD(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)

// clang-format off
MOELAB_CHAINS(chains_avx512, "avx512f", __m512, _mm512, _mm512_fmadd_ps)
MOELAB_CHAINS(chains_avx2, "avx2,fma", __m256, _mm256, _mm256_fmadd_ps)
MOELAB_CHAINS(chains_sse, "sse2", __m128, _mm, MOELAB_MULTIPLY_ADD)
// clang-format on

using Clock = std::chrono::steady_clock;

/// The best of several copies of half of `megabytes`, in 10^9 bytes per second.
double copied_gigabytes(double megabytes) {
  const std::size_t half = static_cast<std::size_t>(std::max(megabytes, 0.1) * 1e6 / 2);
  std::vector<char> from(half, 1), to(half, 2);
  const int repeats = static_cast<int>(1 + 1e8 / static_cast<double>(half));
  double best = 0;
  for (int i = 0; i < kMeasurements; ++i) {
    const Clock::time_point start = Clock::now();
    for (int repeat = 0; repeat < repeats; ++repeat) {
      std::memcpy(to.data(), from.data(), half);
      from[static_cast<std::size_t>(repeat) % half] = to[half / 2];
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, 2.0 * static_cast<double>(half) * repeats / seconds / 1e9);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string level = moelab::kernels::vector_level_name();
  const int width = level == "avx512" ? 16 : level == "avx2" ? 8 : 4;
  float (*chains)() = level == "avx512" ? chains_avx512 : level == "avx2" ? chains_avx2 : chains_sse;
  volatile float kept = chains();
  double best = 0;
  for (int i = 0; i < kMeasurements; ++i) {
    const Clock::time_point start = Clock::now();
    for (int repeat = 0; repeat < 10; ++repeat) kept = chains();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, 2.0 * width * kChains * kRounds * 10 / seconds / 1e9);
  }
  (void)kept;
  moelab::Json result = {{"vector_level", level}, {"peak_gflops", best}};
  if (argc > 1) result["copied_gigabytes"] = copied_gigabytes(std::stod(argv[1]));
  std::cout << result.dump() << '\n';
}
