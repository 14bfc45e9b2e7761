#pragma once

/// CIFAR-100 in its binary version (Krizhevsky 2009): train.bin of 50000 and test.bin of 10000 records, each
/// 1 byte coarse label, 1 byte fine label, 3072 bytes of pixels (red, green, blue planes of 32 × 32, by
/// rows).

#include <cstdint>
#include <filesystem>
#include <vector>

#include "sim/data/file_contents.h"
#include "sim/data/layout.h"

namespace moelab {

constexpr ImageShape kCifarImage{3, 32, 32};
constexpr int kCifarClasses = 100;

struct CifarImages {
  std::vector<int> labels;           ///< (n) fine labels
  std::vector<std::uint8_t> pixels;  ///< (n, 3072)
  int count() const { return static_cast<int>(labels.size()); }
};

/// Records of a file by its length alone. Throws UserError at "data.path" where the file is missing, empty,
/// or not a whole number of records long.
std::int64_t count_cifar_records(const std::filesystem::path& file);

/// The records of the first `classes` fine labels, in the order of the file. Throws UserError at "data.path"
/// like count_cifar_records and for a label of 100 or more; EnvironmentError where the file cannot be read or
/// does not hold `content` any more.
CifarImages read_cifar(const std::filesystem::path& file, int classes,
                       std::shared_ptr<const FileContent> content = nullptr);

/// Mean and standard deviation of each channel over a set of images; 1 for a channel without variation.
struct ChannelMoments {
  std::vector<double> mean;
  std::vector<double> deviation;
};
ChannelMoments channel_moments(const CifarImages& images);

}  // namespace moelab
