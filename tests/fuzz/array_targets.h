#pragma once

/// The reader of .npy files, as targets.h says.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "sim/data/npy.h"
#include "tests/fuzz/property.h"
#include "tests/temporary_folder.h"

namespace moelab {

/// The .npy file of an array.
inline std::string file_of(const std::vector<std::int64_t>& shape, const Matrix& values) {
  return npy_bytes(shape, std::span<const double>(values.data(), static_cast<std::size_t>(values.size())));
}

/// Reads a .npy file: whole, in part, and again after it has been written as float64.
inline bool fuzz_npy(std::string_view bytes) {
  static const TemporaryFolder folder;
  const std::filesystem::path given = folder.path() / "given.npy", rewritten = folder.path() / "again.npy";
  write_anew(given, bytes);
  try {
    const NpyReader array(given, "--probs");
    const Matrix values = array.read(0, array.rows());
    const std::string written = file_of(array.shape(), values);
    const Matrix last = values.bottomRows(1);
    require(file_of({last.size()}, array.read(array.rows() - 1, 1)) == file_of({last.size()}, last),
            "the last row is another when it is read alone");
    write_anew(rewritten, written);
    const NpyReader again(rewritten, "--probs");
    require(file_of(again.shape(), again.read(0, again.rows())) == written, "an array reads back as another");
    try {
      array.read_finite(0, array.rows());
      if (is_integer(array.type())) read_labels(array, 0, array.rows(), kLabelLimit);
    } catch (const UserError&) {  // a right file of wrong values
    }
    return true;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace moelab
