#pragma once

#include <vector>

#include "sim/base/error.h"
#include "sim/model/router/router.h"

namespace moelab {

/// γ(x) = W h + b, h = relu(dense(z_L)), z_l = relu(conv_l(z_{l−1})), z_0 the image x (Dikkala et al. 2023,
/// section 3.4). Convolutions are 3 × 3 with zero padding 1 and stride 2 in place of pooling (sides halve,
/// rounded up; Springenberg et al. 2015, "all convolutional"), so any image will do. The experts get the
/// penultimate layer h (n, width) beside the columns after the image, as in the paper, which prints neither
/// depth nor widths. Hidden weights start N(0, 2 / in) with one stream for all layers, output row e
/// N(0, init_scale² / width) with its own stream, biases zero.
///
/// Arrays: "router_weight_1" (channels, channels of the image, 3, 3), "router_bias_1" (channels), …, then
/// those of the two dense layers.
struct CnnRouterOptions {
  bool trainable = true;
  double init_scale = 1.0;
  std::vector<int> channels = {16, 32};
  int width = 64;
  void bind(Fields& fields);
};

/// The error at "model.router.kind" of data without images; it names the generators that have them.
InvalidOption no_image_error(const std::string& router = "cnn");

}  // namespace moelab
