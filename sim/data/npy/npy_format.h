#pragma once

/// What the header of a .npy file says: NumPy's format 1.0, 2.0 and 3.0 (NEP 1), read with care.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace moelab {

/// Types of values that are read; all little-endian.
enum class NpyType { float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, boolean };

std::string type_name(NpyType type);  ///< NumPy's name: "float32", "bool"
std::size_t byte_size(NpyType type);  ///< of one value
bool is_integer(NpyType type);        ///< integers and bool

struct NpyFormat {
  NpyType type = NpyType::float64;
  bool fortran_order = false;  ///< the first index runs fastest, instead of the last
  std::vector<std::int64_t> shape;
  std::size_t header_bytes = 0;  ///< where the values begin

  /// Bytes of all values. The product does not overflow: parse_npy_header saw to it.
  std::uint64_t value_bytes() const;
};

/// "(1000, 64)", "(1000,)" or "()", as NumPy writes it.
std::string shape_text(const std::vector<std::int64_t>& shape);

/// A longer header is refused: NumPy writes some 128 bytes for arrays without fields.
constexpr std::size_t kMaxNpyHeader = 1u << 16;

/// Parses the beginning of a file; it may go on after the header. Throws std::runtime_error with a message
/// that completes "the file …": "is not a .npy file: …". Refuses other keys than descr, fortran_order and
/// shape, types that are not read (big-endian, complex, text, objects, fields), more than 32
/// dimensions, and a shape of more than 2^63 − 1 bytes.
NpyFormat parse_npy_header(std::string_view bytes);

}  // namespace moelab
