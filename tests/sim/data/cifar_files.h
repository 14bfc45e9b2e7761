#pragma once

/// Small files in CIFAR-100's binary layout.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <vector>

#include "sim/data/image_clusters.h"
#include "tests/temporary_folder.h"

namespace moelab {

/// Pixel `p` of the image with that mark: tells images, and pixels of an image, apart.
inline std::uint8_t marked_pixel(int mark, int p) {
  return static_cast<std::uint8_t>((31 * mark + 7 * p + p / 1024 * 50) % 251);
}

/// One record for each label: coarse byte 255 − label, fine byte, pixels marked by `first_mark` + its place.
inline void write_records(const std::filesystem::path& file, const std::vector<int>& labels, int first_mark) {
  std::ofstream stream(file, std::ios::binary);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    stream.put(static_cast<char>(255 - labels[i])).put(static_cast<char>(labels[i]));
    for (int p = 0; p < kCifarImage.size(); ++p) {
      stream.put(static_cast<char>(marked_pixel(first_mark + static_cast<int>(i), p)));
    }
  }
}

}  // namespace moelab
