#pragma once

/// Clusters that are classes of images (Dikkala et al. 2023, section 3.4).

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/options.h"
#include "sim/base/random.h"
#include "sim/data/file_contents.h"
#include "sim/data/layout.h"
#include "sim/data/problem.h"

namespace moelab {

// Synthetic images: smooth random templates, shifted, scaled and noisy

struct SyntheticImageOptions {
  int size = 16;  ///< height and width in pixels
  int channels = 3;
  int frequencies = 2;  ///< highest frequency of a template, in periods
  int max_shift = 2;    ///< in each direction, in pixels
  double contrast = 0.5;
  double noise_std = 1;

  void bind(Fields& fields);
};

/// A template is a random trigonometric polynomial, independent for each class and channel,
///   T_c(i, j) = Σ_{|k|, |l| ≤ F} a_kl cos φ + b_kl sin φ,  φ = 2π (k i + l j) / size,  a, b ~ N(0, 1),
/// scaled to mean square one over pixels and channels. F is `frequencies`; the constant (0, 0) is left out.
/// An image of class c is
///   (s T_c(i + u, j + v) + σ g_ij) / √(E s² + σ²),  s ~ U[1 − contrast, 1 + contrast],  g ~ N(0, 1),
/// with cyclic shifts u, v ~ U{−max_shift, …, max_shift} and σ = `noise_std`. Pixels have mean zero and mean
/// square one.
class SyntheticImages {
 public:
  /// The first k templates do not depend on the number of classes.
  SyntheticImages(const SyntheticImageOptions& options, int classes, Engine& engine);

  const ImageShape& shape() const { return shape_; }
  /// An image of class `label`, (channels, height, width).
  void draw(Engine& engine, int label, double* pixels) const;

 private:
  ImageShape shape_;
  int max_shift_;
  double contrast_;
  double noise_std_;
  Matrix templates_;  ///< (classes, pixels)
};

namespace image_clusters {

/// y = W_c v,  rows of W_c ~ N(0, I / vector_dim).
struct LinearTarget {
  int dim = 1;
  void bind(Fields& fields) { bind_outputs(fields, dim); }
};
struct Targets : TargetAxis {
  static const std::vector<TargetKind>& table();
};

}  // namespace image_clusters

/// x = [image ; v],  v ~ N(0, I_vector_dim),  y = W_c v for the image's class c, rows of W_c ~ N(0, I /
/// vector_dim). The label is c. Without the class the best prediction is 0 up to the mean of W, with an nmse
/// of about one.
///
/// Images are synthetic with uniform c, or with `path` from CIFAR-100: training images from train.bin, all
/// others from test.bin. Each problem has its own random order of each file, and no image is twice in a set.
/// Pixels are standardised by the mean and deviation of their channel over the training images of the used
/// classes. The paper prints neither vector_dim nor the scale of w.
struct ImageClustersOptions {
  int classes = 100;  ///< k; for CIFAR-100 the first k fine labels
  int vector_dim = 32;
  OneOf<image_clusters::Targets> target = image_clusters::LinearTarget{};
  std::optional<std::string> path = std::nullopt;  ///< folder with CIFAR-100's train.bin and test.bin
  SyntheticImageOptions synthetic = {};            ///< no effect with a path

  void bind(Fields& fields);
};

// CIFAR-100 in its binary version (Krizhevsky 2009): train.bin with 50000 and test.bin with 10000 records. A
// record has 1 byte coarse label, 1 byte fine label and 3072 bytes of pixels (red, green, blue planes of 32 ×
// 32, by rows).

constexpr ImageShape kCifarImage{3, 32, 32};
constexpr int kCifarClasses = 100;

struct CifarImages {
  std::vector<int> labels;           ///< (n) fine labels
  std::vector<std::uint8_t> pixels;  ///< (n, 3072)
  int count() const { return static_cast<int>(labels.size()); }
};

/// The number of records, from the length of the file. Throws UserError at "data.path" if the file is
/// missing, empty, or not a whole number of records long.
std::int64_t count_cifar_records(const std::filesystem::path& file);

/// The records of the first `classes` fine labels, in the order of the file. Throws UserError at "data.path"
/// like count_cifar_records and for a label of 100 or more. Throws EnvironmentError if the file cannot be
/// read or no longer holds `content`.
CifarImages read_cifar(const std::filesystem::path& file, int classes,
                       std::shared_ptr<const FileContent> content = nullptr);

/// Mean and standard deviation of each channel over a set of images. The deviation of a constant channel
/// is 1.
struct ChannelMoments {
  std::vector<double> mean;
  std::vector<double> deviation;
};
ChannelMoments channel_moments(const CifarImages& images);

}  // namespace moelab
