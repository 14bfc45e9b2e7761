#include "app/store/record.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace moelab::record_test {
namespace {

Record example() {
  Record record;
  record.cell = "0123abcd";
  record.state = "done";
  record.message = "with \"quotes\" and\na line";
  record.metrics = {
      {"third", 1.0 / 3}, {"tiny", 5e-324}, {"negative_zero", -0.0}, {"large", 1.7976931348623157e308}};
  record.trace = {{0, {{"third", 0.1}}}, {9007199254740992, {{"third", 0.1 + 0.2}}}};
  record.seconds = 1.25;
  record.spent = {1.2, 1, 0.1};
  record.finished_at = "2026-01-31T12:00:00Z";
  return record;
}

}  // namespace

TEST_CASE("record: every bit comes back from one line") {
  const Record record = example();
  const std::string line = record_line(record);
  CHECK(line.find('\n') == std::string::npos);
  const Record read = parse_record_line(line);
  CHECK(read.cell == record.cell);
  CHECK(read.state == record.state);
  CHECK(read.message == record.message);
  CHECK(read.metrics == record.metrics);
  CHECK(std::signbit(read.metrics.at("negative_zero")));
  REQUIRE(read.trace.size() == 2);
  CHECK(read.trace[1].step == 9007199254740992);
  CHECK(read.trace[1].metrics == record.trace[1].metrics);
  CHECK(read.seconds == record.seconds);
  REQUIRE(read.spent);
  CHECK(read.spent->total == record.spent->total);
  CHECK(read.spent->training == record.spent->training);
  CHECK(read.spent->measuring == record.spent->measuring);
  CHECK(read.finished_at == record.finished_at);
}

TEST_CASE("record: numbers that are not finite come back") {
  Record record = example();
  const double infinity = std::numeric_limits<double>::infinity();
  record.metrics = {{"up", infinity}, {"down", -infinity}, {"none", std::nan("")}};
  const Record read = parse_record_line(record_line(record));
  CHECK(read.metrics.at("up") == infinity);
  CHECK(read.metrics.at("down") == -infinity);
  CHECK(std::isnan(read.metrics.at("none")));
  CHECK(same_numbers(record, read));
}

TEST_CASE("record: any changed byte is noticed") {
  const std::string line = record_line(example());
  for (std::size_t i = 0; i < line.size(); ++i) {
    std::string damaged = line;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    CHECK_THROWS_AS(parse_record_line(damaged), std::exception);
  }
  CHECK_THROWS_AS(parse_record_line(line.substr(0, line.size() / 2)), std::exception);
  CHECK_THROWS_AS(parse_record_line(""), std::exception);
}

TEST_CASE("record: the last bit of a number makes a difference, times do not") {
  const Record record = example();
  Record other = record;
  other.seconds = 99;
  other.spent.reset();  // as in journals of earlier builds
  CHECK_FALSE(parse_record_line(record_line(other)).spent);
  other.finished_at = "later";
  CHECK(same_numbers(record, other));
  other.trace[1].metrics["third"] = std::nextafter(other.trace[1].metrics["third"], 1.0);
  CHECK_FALSE(same_numbers(record, other));
  other = record;
  other.state = "diverged";
  CHECK_FALSE(same_numbers(record, other));
}

}  // namespace moelab::record_test
