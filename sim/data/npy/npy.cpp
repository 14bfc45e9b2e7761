#include "sim/data/npy/npy.h"

#include <fmt/format.h>

#include <bit>
#include <functional>
#include <numeric>
#include <stdexcept>

namespace moelab {
namespace {

static_assert(std::endian::native == std::endian::little,
              "arrays are written in the machine's own byte order");

template <class Value>
std::string bytes_of(const std::string& type, const std::vector<std::int64_t>& shape,
                     std::span<const Value> values) {
  const std::int64_t size =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<std::int64_t>());
  if (size != static_cast<std::int64_t>(values.size())) {
    throw std::invalid_argument(
        fmt::format("an array of {} values does not have the shape of {}", values.size(), size));
  }
  std::string bytes = npy_header(type, shape);
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return bytes;
}

}  // namespace

std::string npy_header(const std::string& type, const std::vector<std::int64_t>& shape) {
  std::string tuple;
  for (const std::int64_t length : shape) tuple += fmt::format("{}, ", length);
  if (shape.size() > 1) tuple.resize(tuple.size() - 2);
  if (shape.size() == 1) tuple.pop_back();
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, tuple);
  constexpr std::size_t kPreamble = 10;  // magic (6), version (2), header length (2)
  constexpr std::size_t kAlignment = 64;
  const std::size_t used = kPreamble + header.size() + 1;
  header.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header;
}

std::string npy_bytes(const std::vector<std::int64_t>& shape, std::span<const double> values) {
  return bytes_of("<f8", shape, values);
}

std::string npy_bytes(const std::vector<std::int64_t>& shape, std::span<const std::int64_t> values) {
  return bytes_of("<i8", shape, values);
}

}  // namespace moelab
