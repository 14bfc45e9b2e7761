#include "app/cli/terminal_output.h"

#include <doctest/doctest.h>

namespace moelab::terminal_output_test {

TEST_CASE("terminal: words of results have a colour, the same words in a sentence do not") {
  CHECK(painted("learned_beats_frozen: reproduced") == "learned_beats_frozen: \x1b[32mreproduced\x1b[0m");
  CHECK(painted("3 reproduced, 1 refuted") == "3 \x1b[32mreproduced\x1b[0m, 1 \x1b[31mrefuted\x1b[0m");
  CHECK(painted("a  missing  b") == "a  \x1b[33mmissing\x1b[0m  b");
  for (const char* const plain :
       {"the paper's claim is refuted there", "  refuted by: a number", "done_cells", "a: doneness", ""})
    CHECK(painted(plain) == plain);
}

TEST_CASE("terminal: lines end at words") {
  CHECK(wrapped("  one two three four five six", 24) == "  one two three four\n    five six");
  CHECK(wrapped("naïve façade naïve façade", 25) == "naïve façade naïve façade");
  for (const char* const whole : {"short", "", "   ", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})
    CHECK(wrapped(whole, 24) == whole);
  const std::string long_word = "a " + std::string(40, 'b') + " c";
  CHECK(wrapped(long_word, 24) == "a\n  " + std::string(40, 'b') + "\n  c");
}

TEST_CASE("terminal: a row of a table breaks at columns, and its last column at words") {
  CHECK(wrapped("320  0.3  1.5", 24) == "320  0.3  1.5");
  CHECK(wrapped("  --name   a text of several words", 24) ==
        "  --name   a text of\n           several words");
  CHECK(wrapped("  a long name here   [1, 2]  end", 24) == "  a long name here\n    [1, 2]  end");
  CHECK(wrapped("0.2781 [0.202, 0.383]  1.398 [0.997, 1.96]", 40) ==
        "0.2781 [0.202, 0.383]\n  1.398 [0.997, 1.96]");
}

TEST_CASE("terminal: the begin of an error or a note has a colour") {
  CHECK(painted("moelab: error: x: missing") == "\x1b[1;31mmoelab: error:\x1b[0m x: missing");
  CHECK(painted("moelab: note: 3 failed") == "\x1b[36mmoelab: note:\x1b[0m 3 failed");
}

}  // namespace moelab::terminal_output_test
