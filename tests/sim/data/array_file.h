#pragma once

/// Files of arrays for tests.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

#include "sim/data/npy.h"

namespace moelab {

/// Writes an array of two columns that `shift` tells from others, and its folder.
inline void write_array(const std::filesystem::path& file, std::int64_t rows, double shift) {
  std::vector<double> values(static_cast<std::size_t>(rows * 2));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = shift + static_cast<double>(i % 7);
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << npy_bytes({rows, 2}, std::span<const double>(values));
}

}  // namespace moelab
