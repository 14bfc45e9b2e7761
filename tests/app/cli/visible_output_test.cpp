#include <doctest/doctest.h>

#include <sstream>

#include "app/cli/command_line.h"
#include "app/scenario/json.h"
#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/hostile_texts.h"

namespace moelab::visible_output_test {
namespace {

/// What arrives of texts that are written one after the other.
std::string arrived(const std::vector<std::string>& parts) {
  std::ostringstream stream;
  {
    const VisibleOutput visible(stream);
    for (const std::string& part : parts) stream << part;
  }
  return stream.str();
}

}  // namespace

TEST_CASE("visible output: no text commands the terminal, however it is cut") {
  for (const std::string& text : hostile_texts()) {
    CAPTURE(text);
    const std::string whole = arrived({text});
    CHECK_FALSE(commands_terminal(whole));
    for (std::size_t cut = 0; cut <= text.size(); ++cut)
      CHECK(arrived({text.substr(0, cut), text.substr(cut)}) == whole);
  }
}

TEST_CASE("visible output: single characters and long texts arrive whole, and the stream is given back") {
  std::ostringstream stream;
  const std::streambuf* const before = stream.rdbuf();
  std::string text;
  while (text.size() < 200000) text += "1.5,naïve\n";
  {
    const VisibleOutput visible(stream);
    for (const char letter : std::string("é\x1b")) stream.put(letter);
    stream << text << std::flush;
  }
  CHECK(stream.str() == "é\\u001b" + text);
  CHECK(stream.rdbuf() == before);
}

TEST_CASE("visible output: JSON means the same") {
  for (const std::string& text : hostile_texts()) {
    const std::string json = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
    CHECK(Json::parse(arrived({json})) == Json::parse(json));
  }
}

TEST_CASE("visible output: what the program prints of words, files and scenarios goes through it") {
  const std::string escape =
      "\x1b]0;x\x07\xc2\x9b"
      "2J";
  Json scenario = tiny();
  scenario["title"] = escape;
  scenario["arms"] = {{"learned", Json::object()}, {"b" + escape, {{"model.router.trainable", false}}}};
  scenario["claims"] = Json::array({{{"id", "claim"},
                                     {"text", "text " + escape},
                                     {"source", escape},
                                     {"reported", escape},
                                     {"left", {{"arm", "learned"}, {"metric", "test_loss_soft"}}},
                                     {"op", "<"},
                                     {"right", {{"arm", "b" + escape}, {"metric", "test_loss_soft"}}}}});
  const Bench bench(scenario);
  REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
  const std::vector<std::vector<std::string>> calls = {
      {escape},
      {"run", escape},
      {"run", bench.file, "--set", escape + "=1"},
      {"run", bench.file, "--profile", escape},
      {"run", bench.file, "--out", bench.run},
      {"claims", bench.run},
      {"claims", bench.run, "--json"},
      {"status", bench.run},
      {"status", (bench.folder.path() / escape).string()},
      {"export", bench.run},
      {"reproduce", bench.run, escape},
  };
  for (const std::vector<std::string>& words : calls) {
    const Answer answer = ask(words);
    CAPTURE(answer.out + answer.err);
    CHECK_FALSE((answer.out + answer.err).empty());
    CHECK_FALSE(commands_terminal(answer.out));
    CHECK_FALSE(commands_terminal(answer.err));
  }
  CHECK(ask({"claims", bench.run}).out.find("text \\u001b]0;x\\u0007\\u009b2J") != std::string::npos);
  // A table is the same on the screen as in a file.
  const std::filesystem::path file = bench.folder.path() / "cells.csv";
  REQUIRE(ask({"export", bench.run, "--out", file.string()}).status == 0);
  std::ostringstream written;
  written << std::ifstream(file).rdbuf();
  CHECK(ask({"export", bench.run}).out == written.str());
}

}  // namespace moelab::visible_output_test
