#pragma once

/// Clusters that are classes of images (Dikkala et al. 2023, section 3.4).

#include "sim/data/problem.h"

namespace moelab {

/// x = [image ; v],  v ~ N(0, I_vector_dim), label the image's class c,  y = W_c v, rows of W_c ~ N(0, I /
/// vector_dim). The best prediction without the class, y = 0 up to the mean of W, has an nmse of about one.
///
/// Images are synthetic (synthetic_images.h), c uniform; or, with `path`, those of CIFAR-100 (cifar.h):
/// training images from train.bin, all others from test.bin, each file in a random order of the problem's own
/// and no image twice in a set, pixels less the mean of their channel over the training images of the classes
/// used, by its standard deviation. The paper prints neither vector_dim nor the scale of w.
const Kind& image_clusters_kind();

/// With a path: throws UserError at "data.path" unless both files are whole and have an image for each
/// sample, at "data.classes" beyond CIFAR-100's.
void check_image_files(const Json& data);

std::unique_ptr<Problem> draw_image_clusters(const Json& data, const Seeds& seeds);

}  // namespace moelab
