#include "app/scenario/json.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "sim/base/error.h"
#include "tests/temporary_folder.h"

namespace moelab::json_test {
namespace {

std::string nested_arrays(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') +
         std::string(static_cast<std::size_t>(depth), ']');
}

/// A file that is removed at the end of the test.
struct TemporaryFile {
  TemporaryFolder folder;
  std::filesystem::path path = folder.path() / "moelab_json_test.json";
  explicit TemporaryFile(const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
};

}  // namespace

TEST_CASE("a document keeps its values and the order of its keys") {
  const Json document = parse_json(R"({"b": [1, -2, 2.5, true, null, "x\"y"], "a": {"c": {}}})", "f");
  CHECK(document.dump() == R"({"b":[1,-2,2.5,true,null,"x\"y"],"a":{"c":{}}})");
  CHECK(parse_json(" 3 ", "f") == 3);
}

TEST_CASE("malformed documents are refused at their line and column") {
  struct Row {
    const char* text;
    const char* path;
    const char* message;
  };
  const Row rows[] = {
      {"", "f:1:1", "empty"},
      {" \n\t ", "f:1:1", "empty"},
      {"{\"a\": 1,\n \"b\" 2}", "f:2:6", "expected ':'"},
      {"{\"a\": ", "f:1:7", "unexpected end of input"},
      {"[1 2]", "f:1:4", "expected ']'"},
      {"{} x", "f:1:4", "expected end of input"},
      {"[1,]", "f:1:4", "unexpected ']'"},
      {"{\"a\": NaN}", "f:1:7", "invalid literal"},
      {"{\"a\": Infinity}", "f:1:7", "invalid literal"},
      {"[1e999]", "f:1:6", "got 1e999, needs a number that a double holds"},
      {"[-1e999]", "f:1:7", "got -1e999, needs a number that a double holds"},
      {"[1e-400]", "f:1:7", "got 1e-400, needs a number that a double holds: 0, or at least"},
      {"[-0.01E-400 ]", "f:1:11", "got -0.01E-400, needs a number that a double holds"},
      {"1e-400", "f:1:6", "got 1e-400"},
      {"{\"a\": 1,\n  \"a\": 2}", "f:2:3", "duplicate key 'a'"},
      {"{\"x\\\"y\": 1, \"x\\\"y\": 2}", "f:1:13", "duplicate key"},
      {"{\"é\": 1, \"é\": 2}", "f:1:10", "duplicate key"},
      {"{'a': 1}", "f:1:2", "expected string literal"},
      {"[\"\xff\"]", "f:1:3", "ill-formed UTF-8"},
      {"// note\n{}", "f:1:1", "invalid literal"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    try {
      parse_json(row.text, "f");
      FAIL("accepted");
    } catch (const UserError& error) {
      CHECK(error.path() == row.path);
      CHECK_MESSAGE(error.message().find(row.message) != std::string::npos, error.message());
    }
  }
}

TEST_CASE("numbers that are written as 0, and the smallest that are not, are read") {
  CHECK(parse_json("[0.0, -0.0, 0e-400, 0.00E9]", "f") == Json({0.0, 0.0, 0.0, 0.0}));
  CHECK(parse_json("5e-324", "f").get<double>() == std::numeric_limits<double>::denorm_min());
  CHECK_THROWS_AS(parse_json("1e-400", "f"), NumberOutOfRange);
  CHECK_THROWS_AS(parse_json("1e999", "f"), NumberOutOfRange);
}

TEST_CASE("equal keys of different objects are no duplicates") {
  CHECK_NOTHROW(parse_json(R"([{"a": 1}, {"a": {"a": 2}}])", "f"));
}

TEST_CASE("nesting is limited") {
  CHECK_NOTHROW(parse_json(nested_arrays(kMaxJsonDepth), "f"));
  try {
    parse_json(nested_arrays(kMaxJsonDepth + 1), "f");
    FAIL("accepted");
  } catch (const UserError& error) {
    CHECK(error.path() == "f:1:65");
    CHECK(error.message() == "nested deeper than 64 levels");
  }
  CHECK_THROWS_AS(parse_json(nested_arrays(1000000), "f"), UserError);
}

TEST_CASE("an object of very many keys is read in reasonable time") {
  std::string text = "{";
  constexpr int kKeys = 200000;  // a search through all keys at each would take minutes
  for (int i = 0; i < kKeys; ++i) text += (i ? ",\"" : "\"") + std::to_string(i) + "\":0";
  CHECK(parse_json(text + "}", "f").size() == kKeys);
}

TEST_CASE("files that cannot be scenarios are refused") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  CHECK_THROWS_WITH_AS(read_json_file(folder / "no_such_file.json"), doctest::Contains("no such file"),
                       UserError);
  CHECK_THROWS_WITH_AS(read_json_file(folder), doctest::Contains("is a folder"), UserError);
  {
    const TemporaryFile file("{\"a\": 1}");
    CHECK(read_json_file(file.path).at("a") == 1);
  }
  {
    const TemporaryFile file("{\n  \"a\" 1}");
    CHECK_THROWS_WITH_AS(read_json_file(file.path), doctest::Contains("moelab_json_test.json:2:7"),
                         UserError);
  }
  {
    const TemporaryFile file("");
    std::filesystem::resize_file(file.path, std::uintmax_t{1} << 30);  // sparse: takes no room
    CHECK_THROWS_WITH_AS(read_json_file(file.path), doctest::Contains("larger than 16 MB"), UserError);
  }
}

TEST_CASE("the canonical text depends on the value alone") {
  CHECK(canonical_text(Json::parse(R"({"b": 1.0, "a": [true, null, "x"]})")) ==
        R"({"a":[true,null,"x"],"b":1})");
  CHECK(canonical_text(1.0) == canonical_text(1));
  CHECK(canonical_text(-0.0) == "0");
  CHECK(canonical_text(1e6) == "1000000");
  CHECK(canonical_text(0.1) == "0.1");
  CHECK(canonical_text(1e-300) == "1e-300");
  CHECK(canonical_text(1152921504606846976.0) == canonical_text(std::int64_t{1} << 60));
  CHECK(canonical_text(9223372036854775808.0) == canonical_text(std::uint64_t{1} << 63));
  CHECK(canonical_text(0.1) != canonical_text(std::nextafter(0.1, 1.0)));
  CHECK(canonical_text("1") != canonical_text(1));
  CHECK(canonical_text("a\"b") == R"("a\"b")");
}

TEST_CASE("the canonical text reads back as the same doubles") {
  for (const double value : {1.0 / 3.0, 6.02214076e23, std::numeric_limits<double>::min(),
                             std::numeric_limits<double>::max(), std::numeric_limits<double>::denorm_min()}) {
    CHECK(Json::parse(canonical_text(value)).get<double>() == value);
  }
}

TEST_CASE("long values are abbreviated between characters") {
  CHECK(abbreviated(2.5) == "2.5");
  const std::string text = abbreviated(std::string(1000, 'x'));
  CHECK(text.size() < 70);
  CHECK(text.ends_with("…"));
  for (std::size_t shift = 0; shift < 3; ++shift) {  // € has three bytes: every place of the cut is met
    std::string euros(shift, 'x');
    for (int i = 0; i < 40; ++i) euros += "€";
    CHECK_NOTHROW(Json(abbreviated(euros)).dump());
  }
}

TEST_CASE("paths name keys and elements") {
  CHECK(join_path("", "a") == "a");
  CHECK(join_path("a.b", "c") == "a.b.c");
  CHECK(join_path("a", std::size_t{2}) == "a[2]");
}

}  // namespace moelab::json_test
