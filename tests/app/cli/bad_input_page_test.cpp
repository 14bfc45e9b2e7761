/// docs/bad_input.md: bad inputs and what the program answers to each. The page is made of the program's own
/// answers; this test fails when they are no longer the page's. With the environment variable
/// MOELAB_WRITE_PAGES set it writes the page instead.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "sim/data/npy.h"
#include "tests/app/cli/answer.h"
#include "tests/app/cli/bad_inputs.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::bad_input_page_test {
namespace {

namespace fs = std::filesystem;

/// Runs in an empty folder, so that the names of files in messages are short and the same everywhere.
class Workplace {
 public:
  Workplace() : before_(fs::current_path()) { fs::current_path(folder_.path()); }
  ~Workplace() { fs::current_path(before_); }

 private:
  TemporaryFolder folder_;
  fs::path before_;
};

std::string replaced(std::string text, const std::string& part, const std::string& by) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + by.size()))
    text.replace(at, part.size(), by);
  return text;
}

/// The answer's only line without its beginning, as a cell of the page.
std::string cell_of(const std::string& error) {
  const std::string beginning = "moelab: error: ";
  REQUIRE(error.starts_with(beginning));
  REQUIRE(std::count(error.begin(), error.end(), '\n') == 1);
  const std::string line = error.substr(beginning.size(), error.size() - beginning.size() - 1);
  return "`" + replaced(line, "|", "\\|") + "`";
}

/// Asks the program, and checks what every refusal has: status 2, one line, nothing on the standard output,
/// and with --json the same place and reason.
std::string refusal(const BadInput& input) {
  CAPTURE(input.given);
  input.prepare();
  const Answer answer = ask(input.words);
  CHECK(answer.status == 2);
  CHECK(answer.out.empty());
  std::vector<std::string> words = input.words;
  words.push_back("--json");
  const Answer json = ask(words);
  CHECK(json.status == 2);
  CHECK(json.err.empty());
  if (input.takes_json) {
    const Json error = Json::parse(json.out).at("error");
    const std::string path = error.at("path"), message = error.at("message");
    CHECK_FALSE(message.empty());
    const Json first = Json::parse(json.out).at("errors").at(0);
    // An error of syntax has its place in the path.
    const bool is_told =
        path.starts_with("scenario.json:") || message.find(" (written in ") != std::string::npos;
    const std::string place = first.at("line").is_null() || is_told
                                  ? ""
                                  : fmt::format(" (scenario.json:{}:{})", first.at("line").get<int>(),
                                                first.at("column").get<int>());
    CHECK(answer.err == "moelab: error: " + path + (path.empty() ? "" : ": ") + message + place + "\n");
  }
  return cell_of(answer.err);
}

std::string page_text() {
  const Workplace workplace;
  std::string page =
      "# Errors: bad input and the program's answers\n\n"
      "The program refuses bad input before it runs or writes anything. The exit status is 2. A message "
      "names "
      "the place, the given value, the allowed values and the nearest name. The place is a path in the "
      "scenario or an option. Files have a line and a column, too.\n\n"
      "The program reports all errors of a scenario together. Each error has its line. The tables leave out "
      "its beginning, `moelab: error: `.\n\n"
      "With `--json` the answer is `{\"error\": {\"path\": …, \"message\": …}, \"errors\": […]}`. Each entry "
      "of `errors` has `path`, `line`, `column`, `message`, `given`, `allowed` and `nearest`.\n\n"
      "The program's answers make this page. The test `bad_input_page` fails when they change. After an "
      "intended change, `MOELAB_WRITE_PAGES=1 ctest --preset test -R bad_input_page` writes the page "
      "again.\n";
  for (const auto& [title, inputs] : bad_inputs()) {
    page += "\n## " + title + "\n\n| given | answer |\n|---|---|\n";
    for (const BadInput& input : inputs) page += "| " + input.given + " | " + refusal(input) + " |\n";
  }
  return page;
}

}  // namespace

TEST_CASE("bad input: the page holds what the program answers") {
  const fs::path file = fs::path(MOELAB_TEST_DATA) / "../docs/bad_input.md";
  const std::string page = page_text();
  if (std::getenv("MOELAB_WRITE_PAGES") != nullptr) std::ofstream(file) << page;
  std::istringstream stands(file_text(file)), answered(page);
  for (std::string expected, found; std::getline(answered, found);) {
    std::getline(stands, expected);
    CHECK(found == expected);
    expected.clear();
  }
  CHECK(file_text(file) == page);
}

}  // namespace moelab::bad_input_page_test
