#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "app/report/ledger.h"
#include "app/scenario/json.h"
#include "app/store/durable_file.h"
#include "sim/base/error.h"
#include "tests/hostile_texts.h"
#include "tests/temporary_folder.h"

namespace moelab::ledger_files_test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

void write_text(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

/// A run with a claim of each p value.
ReportedRun run_of(const std::string& name, const std::string& source, const std::vector<double>& p_values,
                   const std::string& build = "1.0") {
  ReportedRun run;
  run.name = name;
  run.source = source;
  run.state = "2 cells: 2 done";
  run.seconds = 1.5;
  run.builds = {{build, 2}};
  for (const double p : p_values) {
    ReportedClaim claim;
    claim.id = "claim" + std::to_string(run.claims.size());
    claim.verdict = "reproduced";
    claim.origin = "ours";
    claim.p_value = p;
    claim.points = {{"n = 1", "1 ± 0.1", "2", "ratio 0.5", "reproduced", ""}};
    claim.cells = {{"a", "n = 1", "loss", "0123456789", "done"},
                   {"a", "n = 1", "loss", "abcdef0123", "failed"}};
    run.claims.push_back(claim);
  }
  return run;
}

Report report_of(std::vector<ReportedRun> runs, std::vector<ReportedCheck> checks = {}) {
  Report report;
  report.runs = std::move(runs);
  report.checks = std::move(checks);
  return report;
}

const ReportedRun kFirst = run_of("first", "B 2020, Fig. 1", {0.01}),
                  kSecond = run_of("second", "A 2021, Fig. 2", {0.02, 0.04}, "2.0"),
                  kThird = run_of("third (quick)", "", {0.03});
const ReportedCheck kCheck = {"lemma", "A 2021", "It holds.", "1", "1.01", "0.1", "holds", true};

/// A folder with a ledger, and what it holds.
struct Book {
  TemporaryFolder folder;
  fs::path ledger = folder.path() / "book" / "README.md";
  fs::path runs = folder.path() / "book" / "README.runs";

  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> found;
    if (!fs::exists(ledger.parent_path())) return found;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(ledger.parent_path()))
      if (entry.is_regular_file()) found[fs::relative(entry.path(), folder.path())] = text_of(entry.path());
    return found;
  }
  bool says(const std::string& part) const { return text_of(ledger).find(part) != std::string::npos; }
};

/// The message of the refusal.
std::string refusal(const Report& report, const Book& book) {
  try {
    write_ledger(report, book.ledger);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("ledger files: what a run's time was spent on, where its records tell") {
  ReportedRun run = run_of("timed", "Paper", {0.01});
  run.training_share = 0.914;
  run.measuring_share = 0.052;
  const Book book;
  write_ledger(report_of({run, run_of("untimed", "Paper", {0.01})}), book.ledger);
  CHECK(book.says("2 s of computation, of which 91 % training and 5 % measuring, by moelab 1.0."));
  CHECK(book.says("2 s of computation, by moelab 1.0."));

  // A file of an earlier build, which has no such members.
  const fs::path file = book.runs / "timed.json";
  Json document = parse_sealed(text_of(file));
  document.at("run").erase("training_share");
  write_text(file, sealed_text(document));
  CHECK(refusal(Report(), book).empty());
  CHECK_FALSE(book.says("91 %"));
}

TEST_CASE("a ledger that grew run by run, in any order, is that of all runs at once") {
  const Book whole, grown, reversed;
  write_ledger(report_of({kFirst, kSecond, kThird}, {kCheck}), whole.ledger);
  for (const Report& report : {report_of({kFirst}, {kCheck}), report_of({kSecond}), report_of({kThird})})
    write_ledger(report, grown.ledger);
  for (const Report& report : {report_of({kThird}), report_of({kSecond}), report_of({kFirst}, {kCheck})})
    write_ledger(report, reversed.ledger);
  CHECK(whole.files().size() == 6);
  CHECK(grown.files() == whole.files());
  CHECK(reversed.files() == whole.files());

  // Works and their runs by name; what has no source last.
  const std::string text = text_of(whole.ledger);
  const std::size_t a = text.find("\n## A 2021\n\n### second\n"), b = text.find("\n## B 2020\n\n### first\n"),
                    none = text.find("\n## Without a source\n\n### third (quick)\n");
  CHECK(a < b);
  CHECK(b < none);
  CHECK(none < text.size());
  CHECK(whole.says(
      "extend over 2 builds, whose numbers may differ:\n\n- moelab 1.0: 2 runs\n- moelab 2.0: 1 run\n"));
  CHECK(whole.says("2 s of computation, by moelab 2.0.\n"));
  CHECK(whole.says("| **lemma**: It holds. |"));
}

TEST_CASE("p values are corrected for those of all runs, kept ones included") {
  const Book book;
  write_ledger(report_of({kFirst}), book.ledger);
  CHECK(book.says("| 0.01 (0.01, 0.01) |"));
  write_ledger(report_of({kSecond}), book.ledger);
  // Holm: .01 · 3, .02 · 2, .04 · 1; Benjamini and Hochberg: .01 · 3/1, .02 · 3/2, .04.
  CHECK(book.says("| 0.01 (0.03, 0.03) |"));
  CHECK(book.says("| 0.02 (0.04, 0.03) |"));
  CHECK(book.says("| 0.04 (0.04, 0.04) |"));
  CHECK(book.says("Of the 3 claims here with a p value"));
}

TEST_CASE("a run given again replaces its own, a deleted file takes its run away, checks stay") {
  const Book book, expected;
  write_ledger(report_of({kFirst, kSecond}, {kCheck}), book.ledger);
  const ReportedRun changed = run_of("first", "C 2022", {0.5});
  write_ledger(report_of({changed}), book.ledger);
  write_ledger(report_of({changed, kSecond}, {kCheck}), expected.ledger);
  CHECK(book.files() == expected.files());

  REQUIRE(fs::remove(book.runs / "first.json"));
  write_ledger(Report(), book.ledger);
  const Book second_alone;
  write_ledger(report_of({kSecond}, {kCheck}), second_alone.ledger);
  CHECK(book.files() == second_alone.files());

  ReportedCheck other = kCheck;
  other.id = "theorem";
  write_ledger(report_of({}, {other}), book.ledger);
  CHECK(book.says("**theorem**"));
  CHECK_FALSE(book.says("**lemma**"));
  CHECK(book.says("### second\n"));
}

TEST_CASE("nothing is written where a run is named twice, or where there is neither run nor check") {
  const Book book;
  CHECK(refusal(report_of({kFirst, kSecond, kFirst}), book).find("'first'") != std::string::npos);
  CHECK(refusal(Report(), book).find("README.runs") != std::string::npos);
  CHECK(book.files().empty());
  // A ledger of an earlier form has no files of its runs: it is not emptied by chance.
  fs::create_directories(book.ledger.parent_path());
  write_text(book.ledger, "# Every claim\n");
  CHECK_FALSE(refusal(Report(), book).empty());
  CHECK(text_of(book.ledger) == "# Every claim\n");
}

TEST_CASE("a file that is damaged or not of a ledger is named, and nothing is written") {
  const Book book;
  write_ledger(report_of({kFirst, kSecond}, {kCheck}), book.ledger);
  const fs::path file = book.runs / "first.json", checks = book.ledger.parent_path() / "README.checks.json";
  const std::string whole = text_of(file);
  Json document = parse_sealed(whole);
  const auto changed = [&](const char* pointer, const Json& value) {
    Json other = document;
    other[Json::json_pointer(pointer)] = value;
    return sealed_text(other);
  };
  const auto without = [&](const char* member) {
    Json other = document;
    other.at("run").erase(member);
    return sealed_text(other);
  };
  std::string flipped = whole;
  flipped[whole.find("0.01")] = '9';
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "damaged"},
      {"{}", "damaged"},
      {whole.substr(0, whole.size() / 2), "damaged"},
      {flipped, "damaged"},
      {sealed_text({{"id", "a plan"}}), "is no file with the run of a ledger"},
      {text_of(checks), "is no file with the run of a ledger"},
      {changed("/version", 2), "version: got 2, but this program reads version 1"},
      {changed("/run", 3), "run: got 3, needs an object"},
      {changed("/run/name", 3), "run.name: got 3, needs a text"},
      {changed("/run/seconds", "1"), "run.seconds: got \"1\", needs a number"},
      {changed("/run/builds/0/cells", 1.5), "run.builds[0].cells: got 1.5, needs a whole number"},
      {changed("/run/builds/0/cells", 1e15), "run.builds[0].cells: got 1e+15, needs a whole number"},
      {changed("/run/claims", "none"), "run.claims: got \"none\", needs a list"},
      {changed("/run/claims/0/points/0/left", nullptr),
       "run.claims[0].points[0].left: got null, needs a text"},
      {changed("/run/claims/0/cells/0/cells/1", 7), "run.claims[0].cells[0].cells[1]: got 7, needs a text"},
      {changed("/run/color", "red"), "run.color: unknown"},
      {without("command"), "run.command: missing"},
      {changed("/run/name", "second"), "is the file of run 'second', needs the name second.json"}};
  for (const auto& [text, needed] : bad) {
    const auto& message = needed;
    CAPTURE(message);
    write_text(file, text);
    const auto before = book.files();
    for (const Report& report : {Report(), report_of({kThird}), report_of({kSecond}, {kCheck})}) {
      const std::string refused = refusal(report, book);
      CHECK_MESSAGE(refused.find(message) != std::string::npos, refused);
      CHECK(refused.starts_with(file.string() + ": "));
    }
    CHECK(book.files() == before);
  }
  // The way out that the message names.
  write_ledger(report_of({kFirst}), book.ledger);
  CHECK(text_of(file) == whole);

  write_text(checks, whole);
  CHECK(refusal(report_of({kThird}), book).find("is no file with the checks of a ledger") !=
        std::string::npos);
  write_text(checks, "[]");
  CHECK(refusal(report_of({kThird}), book).starts_with(checks.string() + ": damaged"));
  CHECK(refusal(report_of({kThird}, {kCheck}), book).empty());
}

TEST_CASE("files that are no JSON files stay beside those of runs") {
  const Book book;
  write_ledger(report_of({kFirst}), book.ledger);
  write_text(book.runs / "notes.txt", "mine");
  write_text(book.runs / "first.json~", "of an editor");
  CHECK(refusal(report_of({kSecond}), book).empty());
  CHECK(text_of(book.runs / "notes.txt") == "mine");
}

TEST_CASE("what is written of a run is read again, whatever its texts") {
  for (const std::string& text : hostile_texts()) {
    CAPTURE(text);
    const Book book;
    ReportedRun run = run_of(text, text, {0.25});
    run.title = run.command = run.claims[0].text = run.claims[0].reported = text;
    run.claims[0].p_value.reset();
    run.claims[0].seeds_to_decide = 12;
    write_ledger(report_of({run}), book.ledger);
    const std::vector<LedgerRun> read = read_ledger_runs(book.ledger, {});
    REQUIRE(read.size() == 1);
    CHECK(ledger_run_text(read[0]) == ledger_run_text(ledger_run(run)));
    CHECK(read[0].seconds == 1.5);
    CHECK_FALSE(read[0].claims[0].p_value);
    CHECK(read[0].claims[0].seeds_to_decide == 12);
    CHECK(read[0].claims[0].cells[0].cells == std::vector<std::string>{"01234567", "abcdef01:failed"});
    const auto before = book.files();
    write_ledger(Report(), book.ledger);
    CHECK(book.files() == before);
  }
}

TEST_CASE("names of files are those of runs, and differ where these do") {
  CHECK(ledger_run_stem("fig3") == "fig3");
  CHECK(ledger_run_stem("samples_needed-2") == "samples_needed-2");
  std::vector<std::string> names = {"fig3-quick", "fig3 (quick)", "Fig3", "fig3", "a/b",
                                    "ab",         "../b",         "",     "…"};
  names.push_back(std::string(300, 'a'));
  names.push_back(std::string(301, 'a'));
  std::set<std::string> stems;
  for (const std::string& name : names) {
    const std::string stem = ledger_run_stem(name);
    CHECK(stem.size() < 200);
    CHECK(stem.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string::npos);
    stems.insert(stem);
  }
  CHECK(stems.size() == names.size());
}

}  // namespace moelab::ledger_files_test
