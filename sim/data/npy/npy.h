#pragma once

/// Arrays in NumPy's file format, version 1.0: magic, header, then the values in C order, little-endian.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace moelab {

/// The header of an array of `shape`; `type` is "<f8" (double) or "<i8" (64-bit integer). Its length is a
/// multiple of 64 bytes, so that the values are aligned when the file is mapped.
std::string npy_header(const std::string& type, const std::vector<std::int64_t>& shape);

/// A whole file. The shape's product must be the number of values (throws std::invalid_argument).
std::string npy_bytes(const std::vector<std::int64_t>& shape, std::span<const double> values);
std::string npy_bytes(const std::vector<std::int64_t>& shape, std::span<const std::int64_t> values);

}  // namespace moelab
