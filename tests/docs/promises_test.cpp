/// docs/reliability.md numbers the promises, and names tests of promises and findings: each test has to
/// exist.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "tests/app/run/test_scenario.h"
#include "tests/docs/page_text.h"

namespace moelab::promises_test {
namespace {

namespace fs = std::filesystem;

/// The part of the page from one heading to the next heading of this or a higher level.
std::string section(const std::string& page, const std::string& heading) {
  const std::size_t begin = page.find(heading + "\n");
  REQUIRE(begin != std::string::npos);
  return page.substr(begin, page.find("\n#", begin) - begin);
}

/// Whether a source or folder of tests has this name, or an entry of ctest.
bool is_test(const std::string& name) {
  static const std::string listed = file_text(kRoot / "tests" / "CMakeLists.txt");
  return fs::exists(kRoot / "tests" / (name + ".cpp")) || fs::exists(kRoot / "tests" / name) ||
         fs::exists(kRoot / name) || listed.find("NAME " + name + "\n") != std::string::npos;
}

void check_tests(const std::string& cell) {
  const std::vector<std::string> names = quoted_names(cell);
  CHECK_FALSE(names.empty());
  for (const std::string& name : names) CHECK_MESSAGE(is_test(name), name);
}

}  // namespace

TEST_CASE("promises: each has the next number and tests that exist") {
  int number = 0;
  for (const auto& row : table_rows(section(file_text(kRoot / "docs" / "reliability.md"), "## Promises"))) {
    REQUIRE(row.size() == 3);
    if (number++ == 0) continue;  // the head
    CAPTURE(row[1]);
    CHECK(row[0] == fmt::format("{} ", number - 1));
    check_tests(row[2]);
  }
  CHECK(number > 20);
}

TEST_CASE("findings: each has tests that exist") {
  bool is_head = true;
  for (const auto& row :
       table_rows(section(file_text(kRoot / "docs" / "reliability.md"), "## What was found"))) {
    REQUIRE(row.size() == 3);
    CAPTURE(row[0]);
    if (!is_head) check_tests(row[2]);
    is_head = false;
  }
  CHECK_FALSE(is_head);
}

TEST_CASE("promises: a name of no test is seen") {
  CHECK(is_test("faults/crash_test"));
  CHECK(is_test("generated/sample"));
  CHECK_FALSE(is_test("faults/crush_test"));
}

}  // namespace moelab::promises_test
