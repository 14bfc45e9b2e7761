#pragma once

/// Files that hold arrays with names: .npy (one array without a name), .npz and .safetensors. A pickle is
/// never loaded.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/data/npy.h"

namespace moelab {

/// An array of an array file. Its values are read when `open` is called.
struct NamedArray {
  std::string name;
  std::function<NpyReader()> open;
  /// Texts of NumPy's types <U and |S, one for each entry. None where the array holds something else.
  std::function<std::optional<std::vector<std::string>>()> texts;
};

/// The arrays of a .npy, .npz or .safetensors file in the file's order. `place` is the option that names the
/// file; `stored_as` says what 16-bit integers stand for. Throws UserError for other files, with the way out
/// for a pickle; EnvironmentError where reading fails.
std::vector<NamedArray> array_file(const std::filesystem::path& file, const std::string& place,
                                   std::optional<NpyType> stored_as);

/// The bytes of a base64 text. None where it is no base64.
std::optional<std::string> from_base64(std::string_view text);

/// Reads a whole file of the user. Throws UserError where it is missing or no regular file.
std::string read_given_file(const std::filesystem::path& file, const std::string& place);

/// Whether the beginning of the file is one of a .npy, .npz or .safetensors file, or of a pickle.
bool is_array_file(const std::filesystem::path& file, const std::string& place);

}  // namespace moelab
