#pragma once

/// Clusters that are classes of images (Dikkala et al. 2023, section 3.4).

#include <optional>
#include <string>
#include <vector>

#include "sim/data/choices.h"
#include "sim/data/problem.h"
#include "sim/data/synthetic_images.h"

namespace moelab {

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

/// x = [image ; v],  v ~ N(0, I_vector_dim), label the image's class c,  y = W_c v, rows of W_c ~ N(0, I /
/// vector_dim). The best prediction without the class, y = 0 up to the mean of W, has an nmse of about one.
///
/// Images are synthetic (synthetic_images.h), c uniform; or, with `path`, those of CIFAR-100 (cifar.h):
/// training images from train.bin, all others from test.bin, each file in a random order of the problem's own
/// and no image twice in a set, pixels less the mean of their channel over the training images of the classes
/// used, by its standard deviation. The paper prints neither vector_dim nor the scale of w.
struct ImageClustersOptions {
  int classes = 100;  ///< k; of CIFAR-100 the first k fine labels
  int vector_dim = 32;
  OneOf<image_clusters::Targets> target = image_clusters::LinearTarget{};
  std::optional<std::string> path = std::nullopt;  ///< folder with CIFAR-100's train.bin and test.bin
  SyntheticImageOptions synthetic = {};            ///< without effect where there is a path

  void bind(Fields& fields);
};

}  // namespace moelab
