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

void SyntheticImageOptions::bind(Fields& fields) {
  fields.add("size", size, between(4, 256), "synthetic images: height and width in pixels");
  fields.add("channels", channels, between(1, 16), "synthetic images: channels");
  fields.add("frequencies", frequencies, between(1, 16),
             "synthetic images: highest frequency of a template, in periods");
  fields.add(
      "max_shift", max_shift, between(0, 256),
      "synthetic images: largest shift of the template in each direction, in pixels, around the edges");
  fields.add("contrast", contrast, fraction(),
             "synthetic images: the template's scale is U[1 − contrast, 1 + contrast]");
  fields.add("noise_std", noise_std, at_least(0),
             "synthetic images: deviation of the pixels' noise, the template's mean square being 1");
}

SyntheticImages::SyntheticImages(const SyntheticImageOptions& options, int classes, Engine& engine)
    : shape_{options.channels, options.size, options.size},
      max_shift_(options.max_shift),
      contrast_(options.contrast),
      noise_std_(options.noise_std),
      templates_(Matrix::Zero(classes, shape_.size())) {
  const int plane = shape_.height * shape_.width;
  for (Eigen::Index c = 0; c < templates_.rows(); ++c) {
    for (int channel = 0; channel < shape_.channels; ++channel) {
      add_waves(engine, options.frequencies, shape_.height, &templates_(c, channel * plane));
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
