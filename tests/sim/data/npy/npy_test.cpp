#include "sim/data/npy.h"

#include <doctest/doctest.h>

#include <cstring>
#include <stdexcept>

namespace moelab::npy_test {

TEST_CASE("npy: the bytes of a 2 × 3 array of doubles") {
  const std::vector<double> values = {1, 2, 3, 4, 5, -0.5};
  const std::string bytes = npy_bytes({2, 3}, std::span<const double>(values));
  CHECK(bytes.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
  // 118 + the 10 bytes before the header make 128, a multiple of 64.
  CHECK(static_cast<int>(bytes[8]) == 118);
  CHECK(static_cast<int>(bytes[9]) == 0);
  const std::string dictionary = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
  CHECK(bytes.substr(10, dictionary.size()) == dictionary);
  CHECK(bytes.substr(10 + dictionary.size(), 117 - dictionary.size()) ==
        std::string(117 - dictionary.size(), ' '));
  CHECK(bytes[127] == '\n');
  REQUIRE(bytes.size() == 128 + 6 * 8);
  double last = 0;
  std::memcpy(&last, bytes.data() + 128 + 5 * 8, 8);
  CHECK(last == -0.5);
  // 1.0 is 3ff0000000000000, its lowest byte first.
  CHECK(bytes.substr(128, 8) == std::string("\0\0\0\0\0\0\xf0\x3f", 8));
}

TEST_CASE("npy: one dimension keeps Python's comma, integers their type") {
  const std::vector<std::int64_t> labels = {258, -1};
  const std::string bytes = npy_bytes({2}, std::span<const std::int64_t>(labels));
  CHECK(bytes.find("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }") == 10);
  CHECK(bytes.substr(128, 8) == std::string("\x02\x01\0\0\0\0\0\0", 8));
  CHECK(bytes.substr(136, 8) == std::string(8, '\xff'));
}

TEST_CASE("npy: a scalar, an empty array, and a shape that does not fit") {
  const std::vector<double> one = {7};
  CHECK(npy_bytes({}, std::span<const double>(one)).find("'shape': (), }") != std::string::npos);
  CHECK(npy_bytes({0, 4}, std::span<const double>()).size() == 128);
  CHECK_THROWS_AS(npy_bytes({2}, std::span<const double>(one)), std::invalid_argument);
}

}  // namespace moelab::npy_test
