#include "sim/base/error.h"

#include <doctest/doctest.h>

#include "tests/hostile_texts.h"

namespace moelab::error_test {

TEST_CASE("the nearest name is the allowed one with the fewest edits") {
  const std::vector<std::string> routers = {"linear", "mlp", "cosine"};
  CHECK(nearest_name("linaer", routers) == "linear");  // a swap of neighbours is one edit
  CHECK(nearest_name("cosin", routers) == "cosine");
  CHECK(nearest_name("mpl", routers) == "mlp");
  CHECK(nearest_name("linear", routers) == "linear");
}

TEST_CASE("capitals are no edits") {
  CHECK(nearest_name("SGD", {"adam", "sgd"}) == "sgd");
  CHECK(nearest_name("run", {"RUN", "rin"}) == "RUN");
  CHECK(unknown_name("loss", "MSE", {"mse", "huber"}) ==
        "unknown loss 'MSE'; did you mean 'mse'? Allowed: mse, huber");
}

TEST_CASE("no name is near when more than half of the given one would have to change") {
  CHECK(nearest_name("xyz", {"linear", "mlp"}).empty());
  CHECK(nearest_name("", {"mlp"}).empty());
  CHECK(nearest_name("k", {"p"}).empty());
  CHECK(nearest_name(std::string(1 << 20, 'a'), {"aa"}).empty());
  CHECK(nearest_name("test_loss", {"fact_loss", "test_loss_soft"}) == "test_loss_soft");
  CHECK(nearest_name("best_lost", {"test_loss", "best_lost_of"}) == "best_lost_of");
  CHECK(nearest_name("linar", {"linear", "linar_one"}) == "linear");  // one edit is a slip
  CHECK(nearest_name("abcd", {"abxy"}) == "abxy");                    // two edits of four: still within half
  CHECK(nearest_name("abc", {"axy"}).empty());                        // two edits of three: beyond
}

TEST_CASE("an unknown name is answered with the nearest and all allowed ones") {
  CHECK(unknown_name("router", "linaer", {"linear", "mlp"}) ==
        "unknown router 'linaer'; did you mean 'linear'? Allowed: linear, mlp");
  CHECK(unknown_name("router", "zzz", {"linear", "mlp"}) == "unknown router 'zzz'; allowed: linear, mlp");
  CHECK(unknown_name("profile", "quick", {}) == "unknown profile 'quick'; allowed: none");
  std::vector<std::string> many(40, "name");
  for (int i = 0; i < 40; ++i) many[static_cast<std::size_t>(i)] += std::to_string(i);
  CHECK(unknown_name("metric", "nmae7", many).ends_with(", name38, name39"));
  many.push_back("loss");
  CHECK(unknown_name("metric", "nmae7", many) ==
        "unknown metric 'nmae7'; did you mean 'name7'? Allowed: name7, name0, name1, name2, name3, name4, "
        "name5, "
        "name6, name8, name9, … (41 in all)");
}

TEST_CASE("a user error says where and what") {
  const UserError error("data.clusters", "got 0, needs a whole number of at least 1");
  CHECK(std::string(error.what()) == "data.clusters: got 0, needs a whole number of at least 1");
  CHECK(std::string(UserError("", "empty").what()) == "empty");
}

}  // namespace moelab::error_test

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
