#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "app/run/session.h"
#include "tests/hostile_texts.h"
#include "tests/temporary_folder.h"

namespace moelab::shell_word_test {

TEST_CASE("shell word: ordinary words stay as they are") {
  for (const char* word : {"run", "runs/fig2a-quick", "--set", "model.experts=32", "0,1", "50%"})
    CHECK(shell_word(word) == word);
  CHECK(shell_word("") == "''");
  CHECK(shell_word("~/x y") == "'~/x y'");
}

TEST_CASE("shell word: sh reads every hostile text back and obeys none") {
  const TemporaryFolder folder;
  const std::filesystem::path script = folder.path() / "script.sh", out = folder.path() / "out";
  for (const std::string& text : hostile_texts()) {
    CAPTURE(text);
    // Twice, so that a word which ends too early or late shifts the other.
    std::ofstream(script) << "cd " << shell_word(folder.path().string()) << "\nprintf '<%s>' "
                          << shell_word(text) << ' ' << shell_word(text) << " > out\n";
    REQUIRE(std::system(("sh " + shell_word(script.string())).c_str()) == 0);
    std::ostringstream got;
    got << std::ifstream(out, std::ios::binary).rdbuf();
    CHECK(got.str() == "<" + text + "><" + text + ">");
    CHECK_FALSE(std::filesystem::exists(folder.path() / "obeyed"));
  }
}

}  // namespace moelab::shell_word_test
