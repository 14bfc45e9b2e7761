/// moelab_fma_peak: the multiply-adds per second that one core reaches on independent accumulators in
/// registers, at the vector level that the kernels use, as one line of JSON. Without fused multiply-add
/// (level sse) a multiplication and an addition take its place.

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "app/json/json.h"
#include "sim/base/kernels/kernels.h"

namespace {

/// Enough chains to hide four cycles of latency on two units, few enough for 16 registers.
constexpr int kChains = 12;
constexpr int kRounds = 100'000;
constexpr int kMeasurements = 20;

// Values decay towards 0.5 and stay normal numbers. The sum is returned so that the loop is kept.
constexpr float kFactor = 0.5f;
constexpr float kTerm = 0.25f;

__attribute__((target("avx512f"))) float chains_avx512() {
  const __m512 factor = _mm512_set1_ps(kFactor), term = _mm512_set1_ps(kTerm);
  __m512 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_fmadd_ps(sums[i], factor, term);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  return _mm512_cvtss_f32(sums[0]);
}

__attribute__((target("avx2,fma"))) float chains_avx2() {
  const __m256 factor = _mm256_set1_ps(kFactor), term = _mm256_set1_ps(kTerm);
  __m256 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm256_fmadd_ps(sums[i], factor, term);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = _mm256_add_ps(sums[0], sums[i]);
  return _mm256_cvtss_f32(sums[0]);
}

float chains_sse() {
  const __m128 factor = _mm_set1_ps(kFactor), term = _mm_set1_ps(kTerm);
  __m128 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm_set1_ps(static_cast<float>(i));
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm_add_ps(_mm_mul_ps(sums[i], factor), term);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = _mm_add_ps(sums[0], sums[i]);
  return _mm_cvtss_f32(sums[0]);
}

}  // namespace

int main() {
  using Clock = std::chrono::steady_clock;
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
  const moelab::Json result = {{"vector_level", level}, {"peak_gflops", best}};
  std::cout << result.dump() << '\n';
}
