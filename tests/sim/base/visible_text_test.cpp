#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "tests/hostile_texts.h"

namespace moelab::visible_text_test {

TEST_CASE("visible text: what a terminal obeys is written out, all else stays") {
  CHECK(visible_text("plain, naïve ± ² — 数\n\tend") == "plain, naïve ± ² — 数\n\tend");
  CHECK(visible_text("\x1b[31m\x07\r\x7f") == "\\u001b[31m\\u0007\\u000d\\u007f");
  CHECK(visible_text(std::string_view("a\0b", 3)) == "a\\u0000b");
  CHECK(visible_text("\xc2\x9b"
                     "2J") == "\\u009b2J");
  CHECK(visible_text("\xc2\xa0") == "\xc2\xa0");  // the first character after C1
}

TEST_CASE("visible text: bytes that are no UTF-8 are written out one by one") {
  CHECK(visible_text("\x9b"
                     "2J") == "\\x9b2J");
  CHECK(visible_text("\xe2\x82") == "\\xe2\\x82");
  CHECK(visible_text("\xc0\x9b") == "\\xc0\\x9b");           // ESC in two bytes would be overlong, too
  CHECK(visible_text("\xe0\x82\x9b") == "\\xe0\\x82\\x9b");  // overlong
  CHECK(visible_text("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(visible_text("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
}

TEST_CASE("visible text: no hostile text commands a terminal, and twice is as once") {
  for (const std::string& text : hostile_texts()) {
    CAPTURE(text);
    CHECK_FALSE(commands_terminal(visible_text(text)));
    CHECK(visible_text(visible_text(text)) == visible_text(text));
    CHECK(visible_line(text).find_first_of("\n\t") == std::string::npos);
  }
}

TEST_CASE("visible text: the bytes of a character that is still to be completed are counted") {
  const std::string euro = "\xe2\x82\xac", face = "\xf0\x9f\x98\x80";
  CHECK(unfinished_bytes("") == 0);
  CHECK(unfinished_bytes("a" + euro) == 0);
  CHECK(unfinished_bytes("a" + euro.substr(0, 2)) == 2);
  CHECK(unfinished_bytes(face) == 0);
  for (std::size_t bytes = 1; bytes < 4; ++bytes)
    CHECK(unfinished_bytes("a" + face.substr(0, bytes)) == bytes);
  CHECK(unfinished_bytes("\x9b\x9b\x9b\x9b") == 0);  // nothing that comes makes a character of these
}

}  // namespace moelab::visible_text_test
