#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/data/image_clusters.h"

namespace moelab::synthetic_images_test {
namespace {

/// Means of thousands of draws lie within this many standard errors (two-sided level 6e-7 each).
constexpr double kStandardErrors = 5;
/// Sums of a few hundred terms of order one.
constexpr double kRounding = 1e-12;

/// Without shifts, contrast and noise.
constexpr SyntheticImageOptions kStill{
    .size = 8, .channels = 2, .frequencies = 2, .max_shift = 0, .contrast = 0, .noise_std = 0};

SyntheticImages images_of(const SyntheticImageOptions& options, int classes = 6) {
  Engine engine = Seeds{1, 0}.stream(Purpose::problem, 1);
  return {options, classes, engine};
}

SyntheticImageOptions shifted(int max_shift) {
  SyntheticImageOptions options = kStill;
  options.max_shift = max_shift;
  return options;
}

/// `count` images of class 0, (count, pixels).
Matrix drawn(const SyntheticImages& images, int count, int label = 0) {
  Engine engine = Seeds{2, 0}.stream(Purpose::train_data);
  Matrix pixels(count, images.shape().size());
  for (int i = 0; i < count; ++i) images.draw(engine, label, &pixels(i, 0));
  return pixels;
}

TEST_CASE("templates are smooth, of mean zero and mean square one in all, and one for each class") {
  const SyntheticImages images = images_of(kStill);
  for (int c = 0; c < 6; ++c) {
    const Matrix pixels = drawn(images, 2, c);
    CHECK(pixels.row(0) == pixels.row(1));
    CHECK(std::abs(pixels.row(0).squaredNorm() / 128 - 1) < kRounding);
    if (c > 0) CHECK((pixels.row(0) - drawn(images, 1, c - 1).row(0)).norm() > 1);
    for (int channel = 0; channel < 2; ++channel) {
      CHECK(std::abs(pixels.row(0).segment(64 * channel, 64).sum()) < 128 * kRounding);
      // No wave beyond the highest frequency, 2 of a possible 4.
      double beyond = 0, within = 0;
      for (int k = 0; k <= 4; ++k) {
        double cosine = 0, sine = 0;
        for (int i = 0; i < 8; ++i) {
          for (int j = 0; j < 8; ++j) {
            const double phase = 2 * M_PI * k * j / 8;
            cosine += pixels(0, 64 * channel + 8 * i + j) * std::cos(phase);
            sine += pixels(0, 64 * channel + 8 * i + j) * std::sin(phase);
          }
        }
        (k > 2 ? beyond : within) += std::hypot(cosine, sine);
      }
      CHECK(beyond < 128 * kRounding);
      CHECK(within > 1);
    }
  }
}

TEST_CASE("the first classes do not depend on how many there are") {
  const SyntheticImages few = images_of(kStill, 3), many = images_of(kStill, 50);
  for (int c = 0; c < 3; ++c) CHECK(drawn(few, 1, c) == drawn(many, 1, c));
}

TEST_CASE("shifts move the template around the edges, each of (2 m + 1)² equally often") {
  constexpr int kShift = 2, kCount = 20000;
  const Matrix still = drawn(images_of(kStill), 1);
  const Matrix moved = drawn(images_of(shifted(kShift)), kCount);
  std::vector<double> counts;
  for (int u = -kShift; u <= kShift; ++u) {
    for (int v = -kShift; v <= kShift; ++v) {
      Matrix expected(1, 128);
      for (int channel = 0; channel < 2; ++channel) {
        for (int i = 0; i < 8; ++i) {
          for (int j = 0; j < 8; ++j) {
            expected(0, 64 * channel + 8 * i + j) =
                still(0, 64 * channel + 8 * ((i + u + 8) % 8) + (j + v + 8) % 8);
          }
        }
      }
      counts.push_back(0);
      for (int row = 0; row < kCount; ++row) {
        counts.back() += (moved.row(row) - expected.row(0)).cwiseAbs().maxCoeff() < kRounding ? 1 : 0;
      }
    }
  }
  const double share = 1 / 25.0, error = std::sqrt(kCount * share * (1 - share));
  double total = 0;
  for (const double count : counts) {
    total += count;
    CHECK(std::abs(count - kCount * share) < kStandardErrors * error);
    CHECK(std::abs(count - kCount * 0.05) > kStandardErrors * error);  // a fifth more of them would be seen
  }
  CHECK(total == kCount);
  // A shift larger than the image goes around it more than once.
  CHECK(drawn(images_of(shifted(256)), 100).allFinite());
}

TEST_CASE("contrast and noise: pixels are (s T + σ g) / √(E s² + σ²)") {
  constexpr int kCount = 4000;
  constexpr double kContrast = 0.6, kNoise = 0.8;
  const Matrix still = drawn(images_of(kStill), 1);
  SyntheticImageOptions noisy = kStill;
  noisy.contrast = kContrast;
  noisy.noise_std = kNoise;
  const Matrix pixels =
      drawn(images_of(noisy), kCount) * std::sqrt(1 + kContrast * kContrast / 3 + kNoise * kNoise);
  // The projection on T (mean square one) is s + σ g / √128; the rest is noise alone.
  const Vector scales = pixels * still.row(0).transpose() / 128;
  const Matrix rest = pixels - scales * still.row(0);
  const double own = kContrast * kContrast / 3 + kNoise * kNoise / 128;
  const auto errors_off = [&](const Vector& values, double mean, double deviation) {
    return std::abs(values.mean() - mean) / (deviation / std::sqrt(static_cast<double>(values.size())));
  };
  CHECK(errors_off(scales, 1, std::sqrt(own)) < kStandardErrors);
  const Vector squares = (scales.array() - 1).square();
  CHECK(errors_off(squares, own, own) < kStandardErrors);
  CHECK(errors_off(squares, own * 1.2, own) > kStandardErrors);
  const double noise = kNoise * kNoise;
  CHECK(std::abs(rest.squaredNorm() / (127.0 * kCount) - noise) <
        kStandardErrors * noise * std::sqrt(2 / (127.0 * kCount)));
  CHECK(scales.minCoeff() < 0.6);
  CHECK(scales.maxCoeff() > 1.4);
}

}  // namespace
}  // namespace moelab::synthetic_images_test
