#include "sim/data/synthetic_images.h"

#include <cmath>
#include <numbers>

namespace moelab {
namespace {

/// One wave of each direction: (k, l) and (−k, −l) are the same.
bool is_first_of_pair(int k, int l) {
  return k > 0 || (k == 0 && l > 0);
}

void add_waves(Engine& engine, int frequencies, int size, double* plane) {
  for (int k = 0; k <= frequencies; ++k) {
    for (int l = -frequencies; l <= frequencies; ++l) {
      if (!is_first_of_pair(k, l)) continue;
      const double cosine = draw_normal(engine), sine = draw_normal(engine);
      for (int i = 0; i < size; ++i) {
        for (int j = 0; j < size; ++j) {
          const double phase = 2 * std::numbers::pi * (k * i + l * j) / size;
          plane[i * size + j] += cosine * std::cos(phase) + sine * std::sin(phase);
        }
      }
    }
  }
}

}  // namespace

SyntheticImages::SyntheticImages(const Json& data, Engine& engine)
    : shape_{data.at("channels"), data.at("size"), data.at("size")},
      max_shift_(data.at("max_shift")),
      contrast_(data.at("contrast")),
      noise_std_(data.at("noise_std")),
      templates_(Matrix::Zero(data.at("classes").get<int>(), shape_.size())) {
  const int plane = shape_.height * shape_.width;
  for (Eigen::Index c = 0; c < templates_.rows(); ++c) {
    for (int channel = 0; channel < shape_.channels; ++channel) {
      add_waves(engine, data.at("frequencies"), shape_.height, &templates_(c, channel * plane));
    }
    templates_.row(c) /= std::sqrt(templates_.row(c).squaredNorm() / shape_.size());
  }
}

void SyntheticImages::draw(Engine& engine, int label, double* pixels) const {
  const int size = shape_.height;
  const auto draw_shift = [&] {
    const int shift = (draw_index(engine, 2 * max_shift_ + 1) - max_shift_) % size;
    return shift < 0 ? shift + size : shift;
  };
  const int down = draw_shift(), right = draw_shift();
  const double scale = 1 + contrast_ * (2 * draw_uniform(engine) - 1);
  const double deviation = std::sqrt(1 + contrast_ * contrast_ / 3 + noise_std_ * noise_std_);
  boost::random::normal_distribution<double> normal;
  const double* plane = &templates_(label, 0);
  for (int channel = 0; channel < shape_.channels; ++channel, plane += size * size) {
    for (int i = 0; i < size; ++i) {
      for (int j = 0; j < size; ++j) {
        const double value = plane[(i + down) % size * size + (j + right) % size];
        *pixels++ = (scale * value + noise_std_ * normal(engine)) / deviation;
      }
    }
  }
}

}  // namespace moelab
