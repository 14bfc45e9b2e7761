#pragma once

#include "sim/base/error.h"
#include "sim/model/router/router.h"

namespace moelab {

/// γ(x) = W h + b, h = relu(dense(z_L)), z_l = relu(conv_l(z_{l−1})), z_0 the image of x (Dikkala et al.
/// 2023, section 3.4). Convolutions are 3 × 3 with zero padding 1 and stride 2 in place of pooling (sides
/// halve, rounded up; Springenberg et al. 2015, "all convolutional"), so any image will do. The experts get
/// the penultimate layer h (n, width) beside the columns after the image, as in the paper, which prints
/// neither depth nor widths. Hidden weights start N(0, 2 / in) with one stream for all layers, output row e
/// N(0, init_scale² / width) with its own stream, biases zero.
Kind cnn_router_kind();

/// The error at "model.router.kind" of data without images; it names the generators that have them.
UserError no_image_error();

/// Throws no_image_error() where the layout has no image.
template <class Real>
std::unique_ptr<Router<Real>> make_cnn_router(const Json& spec, const Layout& layout, int experts);

}  // namespace moelab
