#include <doctest/doctest.h>

#include "app/run/scheduler.h"

namespace moelab::progress_test {

TEST_CASE("progress: clock") {
  CHECK(clock_text(0) == "0:00");
  CHECK(clock_text(59.6) == "1:00");
  CHECK(clock_text(3599) == "59:59");
  CHECK(clock_text(7509) == "2:05:09");
}

TEST_CASE("progress: counts are of the plan, time left is from this session") {
  // 4 earlier cells, 2 of 8 done here and half of two others: 3 of 8 in 60 s leave 5 at 20 s each.
  const BatchProgress progress = {.total = 8, .finished = 2, .failed = 0, .diverged = 1, .partial = 1.0};
  CHECK(progress_line(progress, 4, 60, 0.05) ==
        "cells 6/12  58%  elapsed 1:00  left 1:40  3 cells/min  1 diverged");
  // Where it is known how long the other cells take, that counts.
  CHECK(progress_line(progress, 4, 60, 0.05, 42.0) ==
        "cells 6/12  58%  elapsed 1:00  left 0:42  3 cells/min  1 diverged");
}

TEST_CASE("progress: before any work no time left is made up") {
  CHECK(progress_line({.total = 8}, 0, 1, 0) == "cells 0/8  0%  elapsed 0:01");
}

TEST_CASE("progress: a bar is as long as its share, and lines are cut at words") {
  CHECK(progress_bar(0, 4) == "╌╌╌╌");
  CHECK(progress_bar(0.5, 4) == "━━╌╌");
  CHECK(progress_bar(1, 4) == "━━━━");
  CHECK(progress_bar(2, 3) == "━━━");
  CHECK(cut_line("one two three", 13) == "one two three");
  CHECK(cut_line("one two three", 12) == "one two…");
  CHECK(cut_line("one two three", 8) == "one two…");
  CHECK(cut_line("  one two", 5) == "  on…");
  CHECK(cut_line("ärger über öl", 7) == "ärger…");
  CHECK(cut_line("unbreakable", 5) == "unbr…");
  CHECK(cut_line("a: ratio 1 [2, 3], 6 pairs, inconclusive so far", 36) == "a: ratio 1 [2, 3], 6 pairs…");
  CHECK(cut_line("a: ratio 1 [2, 3], 6 pairs, inconclusive so far", 16) == "a: ratio 1 [2,…");
}

}  // namespace moelab::progress_test
