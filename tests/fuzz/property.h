#pragma once

/// What the readers share.

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string_view>

namespace moelab {

inline void require(bool holds, const char* property) {
  if (!holds) throw std::logic_error(property);
}

/// Removed first: a file that is cut to nothing and written anew goes to the disk at once on some systems.
inline void write_anew(const std::filesystem::path& file, std::string_view bytes) {
  std::filesystem::remove(file);
  std::ofstream(file, std::ios::binary) << bytes;
}

}  // namespace moelab
