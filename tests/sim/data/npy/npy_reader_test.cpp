#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "sim/base/error.h"
#include "sim/data/npy.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::npy_reader_test {
namespace {

namespace fs = std::filesystem;

/// Written by NumPy: tests/sim/data/npy/files/make.py.
const fs::path kFiles = fs::path(MOELAB_TEST_DATA) / "sim/data/npy/files";

double expected(NpyType type, std::int64_t i, std::int64_t j) {
  const std::int64_t base = 10 * i + j;
  const bool odd = (i + j) % 2 == 1;
  if (type == NpyType::boolean) return odd ? 1 : 0;
  const bool has_sign = !type_name(type).starts_with("uint");
  return static_cast<double>(odd && has_sign ? -base : base);
}

void check_values(const NpyReader& array, std::int64_t first, std::int64_t count) {
  const Matrix values = array.read(first, count);
  REQUIRE(values.rows() == count);
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = 0; j < array.row_size(); ++j)
      CHECK(values(i, j) == expected(array.type(), first + i, j));
  }
}

/// The message that opening a file of these bytes ends with.
std::string refusal(const fs::path& file) {
  try {
    const NpyReader array(file, "--probs");
  } catch (const UserError& error) {
    CHECK(error.path() == "--probs");
    CHECK(error.message().find("'" + file.string() + "'") != std::string::npos);
    return error.message();
  }
  return "accepted";
}

std::string refusal_of_bytes(const std::string& bytes) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "x.npy";
  std::ofstream(file, std::ios::binary) << bytes;
  return refusal(file);
}

/// A file of format 1.0 with any text as its header.
std::string with_header(const std::string& header, const std::string& values) {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + values;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("npy reader: every type, order and format version of NumPy's own files, whole and in part") {
  for (const char* name : {"float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8",
                           "uint16", "uint32", "uint64", "bool"}) {
    CAPTURE(name);
    const NpyReader array(kFiles / (std::string(name) + ".npy"), "x");
    CHECK(type_name(array.type()) == name);
    CHECK(array.shape() == std::vector<std::int64_t>{4, 6});
    check_values(array, 0, 4);
    check_values(array, 1, 2);
  }
  for (const char* name : {"fortran", "fortran_3d", "version_2", "version_3", "vector", "big_endian",
                           "big_endian_fortran", "big_endian_integers"}) {
    CAPTURE(name);
    const NpyReader array(kFiles / (std::string(name) + ".npy"), "x");
    check_values(array, 0, 4);
    check_values(array, 3, 1);
  }
  const NpyReader cube(kFiles / "fortran_3d.npy", "x");
  CHECK(cube.shape() == std::vector<std::int64_t>{4, 2, 3});
  CHECK(cube.row_size() == 6);
  CHECK(NpyReader(kFiles / "vector.npy", "x").row_size() == 1);
  CHECK_THROWS_AS(cube.read(3, 2), std::out_of_range);
  CHECK_THROWS_AS(cube.read(-1, 1), std::out_of_range);
}

TEST_CASE("npy reader: arrays in memory read like their files, in either order") {
  const std::vector<float> values = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  MemoryArray memory{{.type = NpyType::float32, .shape = {2, 3, 2}},
                     reinterpret_cast<const char*>(values.data())};
  const NpyReader rows(memory, "x");
  CHECK(rows.row_size() == 6);
  CHECK(rows.read(1, 1)(0, 2) == 8);
  memory.format.fortran_order = true;
  CHECK(NpyReader(memory, "x").read(1, 1)(0, 1) == 7);  // [1, 0, 1] = 1 + 2·(0 + 3·1)
  CHECK_THROWS_WITH_AS(rows.refuse("is wrong"), "x: the array is wrong", UserError);
  memory.format.shape = {};
  CHECK_THROWS_AS(NpyReader(memory, "x"), UserError);
  memory.format.shape = {0, 3};
  CHECK_THROWS_AS(NpyReader(memory, "x"), UserError);
}

TEST_CASE("npy reader: integers as they are, floating-point numbers refused as labels") {
  const NpyReader array(kFiles / "int64.npy", "--labels");
  CHECK(array.read_integers(1, 1) == std::vector<std::int64_t>{-10, 11, -12, 13, -14, 15});
  const NpyReader floats(kFiles / "float32.npy", "--labels");
  CHECK_THROWS_AS(floats.read_integers(0, 1), UserError);
}

TEST_CASE("npy reader: big-endian arrays in memory and transposed, and integers of 2^63 and more") {
  const NpyReader file(kFiles / "big_endian_integers.npy", "x");
  const NpyReader turned = file.transposed({1, 0});
  CHECK(turned.shape() == std::vector<std::int64_t>{6, 4});
  CHECK(turned.read_integers(1, 1) == std::vector<std::int64_t>{-1, 11, -21, 31});
  CHECK(turned.read(5, 1)(0, 2) == -25);
  const std::vector<std::uint64_t> values = {3, std::numeric_limits<std::uint64_t>::max()};
  const NpyReader large(
      MemoryArray{{.type = NpyType::uint64, .shape = {2}}, reinterpret_cast<const char*>(values.data())},
      "--labels");
  CHECK(large.read(0, 2)(1, 0) == std::ldexp(1.0, 64));
  CHECK(large.read_integers(0, 1) == std::vector<std::int64_t>{3});
  CHECK_THROWS_WITH_AS(large.read_integers(0, 2),
                       "--labels: the array holds 18446744073709551615 in row 1; needs integers below 2^63",
                       UserError);
}

TEST_CASE(
    "npy reader: slices of an array read like the same part of all values, from a file and from memory") {
  // Slices of one row of 40,000 entries take several pieces, those of 3 entries many runs in a piece.
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{5, 4, 3}, {2, 3, 40000}, {40000, 2, 3}, {3, 1, 5}}) {
    const std::int64_t rows = shape[0], layers = shape[1], width = shape[2];
    std::vector<double> values(static_cast<std::size_t>(rows * layers * width));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "x.npy";
    std::ofstream(file, std::ios::binary) << npy_bytes(shape, std::span<const double>(values));
    const MemoryArray memory{{NpyType::float64, false, shape, 0},
                             reinterpret_cast<const char*>(values.data())};
    for (const NpyReader& array : {NpyReader(file, "x"), NpyReader(memory, "x")}) {
      for (std::int64_t layer = 0; layer < layers; ++layer) {
        const NpyReader slice = array.slice(1, layer, {rows, width}, "slice");
        const std::int64_t first = rows / 3;
        const Matrix read = slice.read(first, rows - first);
        const Matrix flat = slice.reshaped({rows * width, 1}).read(first * width + 1, 1);
        CHECK(flat(0, 0) == static_cast<double>((first * layers + layer) * width + 1));
        bool is_equal = true;
        for (std::int64_t i = 0; i < read.rows(); ++i) {
          for (std::int64_t j = 0; j < width; ++j)
            is_equal =
                is_equal && read(i, j) == static_cast<double>(((first + i) * layers + layer) * width + j);
        }
        CHECK(is_equal);
      }
    }
  }
}

TEST_CASE("npy reader: labels outside their range, with row and column") {
  const auto message_of = [](const char* name, std::int64_t first, std::int64_t limit) {
    const NpyReader array(kFiles / name, "--labels");
    try {
      read_labels(array, first, 4 - first, limit);
    } catch (const UserError& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  CHECK(message_of("uint16.npy", 0, 36) == "accepted");
  CHECK(contains(message_of("uint16.npy", 0, 35), "holds 35 in row 3, column 5; labels are 0 to 34"));
  CHECK(contains(message_of("int8.npy", 1, kLabelLimit), "holds -10 in row 1, column 0; labels are 0 to"));
  CHECK(contains(message_of("vector.npy", 0, kLabelLimit), "holds -10 in row 1;"));
}

TEST_CASE("npy reader: entries that are not finite, with their place") {
  const TemporaryFolder folder;
  std::vector<double> values(12, 0.5);
  values[7] = std::nan("");
  const auto message_of = [&](const std::vector<std::int64_t>& shape) {
    const fs::path file = folder.path() / "x.npy";
    std::ofstream(file, std::ios::binary) << npy_bytes(shape, std::span<const double>(values));
    try {
      NpyReader(file, "x").read_finite(1, shape.front() - 1);
    } catch (const UserError& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  CHECK(contains(message_of({3, 4}), "holds nan in row 1, column 3; needs finite numbers"));
  CHECK(contains(message_of({12}), "holds nan in row 7;"));
  CHECK(contains(message_of({2, 3, 2}), "holds nan in [1, 0, 1];"));
  values[7] = -INFINITY;
  CHECK(contains(message_of({3, 4}), "holds -inf in row 1, column 3"));
  values[7] = 0;
  CHECK(message_of({3, 4}) == "accepted");
}

TEST_CASE("npy reader: NumPy's files of other kinds are refused") {
  const std::vector<std::pair<const char*, const char*>> refused = {
      {"object.npy", "holds Python objects (type '|O')"}, {"fields.npy", "holds a structured type"},
      {"complex.npy", "holds complex numbers"},           {"text.npy", "holds text (type '<U2')"},
      {"no_rows.npy", "has no rows: shape (0, 3)"},       {"no_columns.npy", "has no entries: shape (3, 0)"},
      {"scalar.npy", "is a single value, shape ()"},      {"archive.npz", "is a zip archive"}};
  for (const auto& [name, message] : refused) {
    const std::string found = refusal(kFiles / ("refused_" + std::string(name)));
    CHECK_MESSAGE(contains(found, message), found);
  }
  CHECK(contains(refusal(kFiles / "refused_object.npy"),
                 "float16, float32, float64, int8 to int64, uint8 to uint64"));
}

TEST_CASE("npy reader: missing, foreign, truncated and longer files") {
  const TemporaryFolder folder;
  CHECK(contains(refusal(folder.path() / "none.npy"), "no file"));
  CHECK(contains(refusal(folder.path()), "is no file"));
  CHECK(contains(refusal_of_bytes(""), "is empty"));
  CHECK(contains(refusal_of_bytes("x,y\n1,2\n"), "is not a .npy file: it begins with 'x,y?1,'"));
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  const std::string whole = npy_bytes({2, 3}, std::span<const double>(values));
  CHECK(refusal_of_bytes(whole) == "accepted");
  // Whatever is cut off, the file is refused.
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK(refusal_of_bytes(whole.substr(0, size)) != "accepted");
  CHECK(contains(refusal_of_bytes(whole.substr(0, whole.size() - 1)),
                 "is truncated: 47 bytes of values, (2, 3) of float64 needs 48"));
  CHECK(contains(refusal_of_bytes(whole + "??"), "has 2 bytes after its values"));
  std::string version = whole;
  version[6] = 4;
  CHECK(contains(refusal_of_bytes(version), "has .npy format 4.0"));
}

TEST_CASE("npy reader: headers that NumPy reads, too") {
  const std::string one(8, '\0');
  for (const char* header : {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }\n",
                             "{\"shape\":(1,1,),'fortran_order':True,\"descr\":\"<f8\"}",
                             " { 'shape' : ( 1L , ) , 'descr' : '<f8' , 'fortran_order' : False , } \n"}) {
    CHECK(refusal_of_bytes(with_header(header, one)) == "accepted");
  }
}

TEST_CASE("npy reader: malformed headers") {
  std::string many = "{'descr': '<f8', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < 33; ++i) many += "1, ";
  const std::vector<std::string> headers = {
      "", "{", "{}", "[]", "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), } x",
      "{'descr': '<f8', 'fortran_order': False}",
      "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'shape': (1,)}",
      "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'extra': (1,)}",
      "{'descr': '<f8', 'fortran_order': 0, 'shape': (1,)}",
      "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
      "{'descr': '<f8', 'fortran_order': False, 'shape': (1.0,)}",
      "{'descr': '<f8', 'fortran_order': False, 'shape': 1}",
      "{'descr': '<f8', 'fortran_order': False, 'shape': (1 1)}",
      "{'descr': '<f8, 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '', 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '<f12', 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '=f8', 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,)}",
      // 2^61 · 2^61 · … of 8 bytes: a product that wraps to a small number.
      "{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693952, 8)}",
      "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", many + ")}",
      std::string(5000, '(')};
  for (const std::string& header : headers) {
    CAPTURE(header);
    CHECK(refusal_of_bytes(with_header(header, std::string(8, '\0'))) != "accepted");
  }
  // A header length that no array without fields needs.
  std::string long_header("\x93NUMPY\x02\x00\xff\xff\xff\x7f", 12);
  CHECK(contains(refusal_of_bytes(long_header + "{"), "has a header of 2147483647 bytes"));
}

}  // namespace moelab::npy_reader_test
