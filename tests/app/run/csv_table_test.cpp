#include <doctest/doctest.h>

#include "app/store/export.h"
#include "plots/report/table.h"
#include "sim/base/error.h"

namespace moelab::csv_table_test {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string refusal(const std::string& text) {
  try {
    parse_csv(text, "a.csv");
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("csv table: quotes, line ends, empty fields, a byte-order mark") {
  const CsvTable table = parse_csv(
      "\xef\xbb\xbf"
      "a,\"b,c\"\r\n1,\"two \"\"2\"\"\nlines\"\r\n,\n",
      "a.csv");
  CHECK(table.columns == std::vector<std::string>{"a", "b,c"});
  CHECK(table.rows == Rows{{"1", "two \"2\"\nlines"}, {"", ""}});
  CHECK(parse_csv("a\n1", "a.csv").rows == Rows{{"1"}});
  CHECK(parse_csv("a,b\n", "a.csv").rows.empty());
  CHECK(parse_csv("a,b\n1,2\n\n", "a.csv").rows == Rows{{"1", "2"}});
}

TEST_CASE("csv table: reads back what csv_cell writes") {
  for (const std::string text :
       {"plain", "=1+1", "'quoted", "-x", "-1.5", "a,b", "say \"hi\"", "two\nlines"}) {
    CAPTURE(text);
    CHECK(parse_csv("a,b\n" + csv_cell(text) + ",1\n", "a.csv").rows.at(0).at(0) == text);
  }
}

TEST_CASE("csv table: what is refused, with its line") {
  CHECK(refusal("") == "a.csv: is empty; needs a head with the names of its columns");
  CHECK(refusal("a,b\n1,2\n1,2,3\n") == "a.csv:3: has 3 fields, the head 2");
  CHECK(refusal("a,b\n\"1\n2\",2\n1\n") == "a.csv:4: has 1 fields, the head 2");
  CHECK(refusal("a,b\n1,\"2") == "a.csv:2: has a quote that is not closed");
  CHECK(refusal("a,b\n1,2\"3\"\n") == "a.csv:2: has a quote inside a field that does not begin with one");
  CHECK(refusal("a,b\n1,\"2\"3\n") == "a.csv:2: has text behind a quoted field");
  CHECK(refusal("a,a\n") == "a.csv:1: has the column 'a' twice");
  CHECK(refusal("a,\n") == "a.csv:1: has a column without a name");
}

}  // namespace moelab::csv_table_test
