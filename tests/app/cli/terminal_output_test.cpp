#include "app/cli/terminal_output.h"

#include <doctest/doctest.h>

namespace moelab::terminal_output_test {

TEST_CASE("terminal: words of results have a colour, the same words in a sentence do not") {
  CHECK(painted("learned_beats_frozen: reproduced") == "learned_beats_frozen: \x1b[32mreproduced\x1b[0m");
  CHECK(painted("3 reproduced, 1 refuted") == "3 \x1b[32mreproduced\x1b[0m, 1 \x1b[31mrefuted\x1b[0m");
  CHECK(painted("a  missing  b") == "a  \x1b[33mmissing\x1b[0m  b");
  for (const char* const plain : {"the paper's claim is refuted there", "done_cells", "a: doneness", ""})
    CHECK(painted(plain) == plain);
}

TEST_CASE("terminal: lines end at words, and tables stay whole") {
  CHECK(wrapped("  one two three four five six", 24) == "  one two three four\n    five six");
  CHECK(wrapped("naïve façade naïve façade", 25) == "naïve façade naïve façade");
  for (const char* const whole : {"short", "", "a long row  of a table  with columns in it", "   ",
                                  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})
    CHECK(wrapped(whole, 24) == whole);
  const std::string long_word = "a " + std::string(40, 'b') + " c";
  CHECK(wrapped(long_word, 24) == "a\n  " + std::string(40, 'b') + "\n  c");
}

}  // namespace moelab::terminal_output_test
