#include "app/report/ledger.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "plots/report/table.h"
#include "tests/hostile_texts.h"
#include "tests/temporary_folder.h"

namespace moelab::ledger_test {
namespace {

/// A report with a run and a check in which every text is this one.
Report report_of(const std::string& text) {
  ReportedRun run;
  run.name = run.title = run.source = run.state = run.command = text;
  run.builds = {{text, 2}, {text + text, 3}};
  run.claims = {{text,
                 text,
                 text,
                 text,
                 text,
                 {{text, text, text, text, text, text}},
                 {{text, text, text, "0123456789", "done"}},
                 text,
                 text,
                 0.01,
                 7,
                 {},
                 {}}};
  Report report;
  report.runs = {run};
  report.checks = {{text, text, text, text, text, text, text, false}};
  return report;
}

/// Bars that divide a line of a table into cells.
int bars(const std::string& line) {
  int count = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;  // what follows is a letter
    } else if (line[i] == '|') {
      ++count;
    }
  }
  return count;
}

/// Whether a bracket that no backslash stands before closes a link with this address or a definition of one.
bool has_link_to(const std::string& text, const std::string& address) {
  for (const std::string& link : {"](" + address, "]: " + address}) {
    for (std::size_t at = text.find(link); at != std::string::npos; at = text.find(link, at + 1)) {
      std::size_t backslashes = 0;
      while (backslashes < at && text[at - 1 - backslashes] == '\\') ++backslashes;
      if (backslashes % 2 == 0) return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("Markdown: markup is escaped, words, numbers and intervals stay legible") {
  for (const char* same : {"test_loss_soft", "ratio 0.41 [0.35, 0.48]", "-0.3 ± 0.1", "a ~ b", "5 % & more",
                           "a > b", "2020, Fig. 1", "+1"})
    CHECK(markdown_text(same) == same);
  CHECK(markdown_text("a|b *c* `d` \\ $e$") == "a\\|b \\*c\\* \\`d\\` \\\\ \\$e\\$");
  CHECK(markdown_text("_a_ ~~b~~") == "\\_a\\_ \\~\\~b\\~\\~");
  CHECK(markdown_text("<b> &lt;") == "&lt;b> &amp;lt;");
  CHECK(markdown_text("[a](b)") == "\\[a\\](b)");
  CHECK(markdown_text("[a][b]") == "\\[a\\]\\[b\\]");
  CHECK(markdown_text("a] b [c") == "a\\] b \\[c");
  CHECK(markdown_text("# a") == "\\# a");
  CHECK(markdown_text("- a") == "\\- a");
  CHECK(markdown_text("---") == "\\---");
  CHECK(markdown_text("12. a") == "12\\. a");
  CHECK(markdown_text("    a\nb") == "a b");
  CHECK(markdown_target("a b)(c.svg") == "a%20b%29%28c.svg");
  CHECK(markdown_code("a") == "`a`");
  CHECK(markdown_code("a``b`") == "``` a``b` ```");
}

TEST_CASE("no hostile text of a ledger becomes markup, a link, a row or a command") {
  for (const std::string& text : hostile_texts()) {
    const TemporaryFolder folder;
    CAPTURE(text);
    write_ledger(report_of(text), folder.path() / "ledger.md");
    std::ifstream ledger(folder.path() / "ledger.md");
    int rows = 0;
    for (std::string line; std::getline(ledger, line);) {
      CHECK_FALSE(commands_terminal(line));
      if (line.starts_with("    ")) continue;  // a block of code, where nothing is markup
      CHECK_FALSE(has_link_to(line, "javascript:"));
      CHECK(line.find('<') == std::string::npos);
      CHECK_FALSE(line.starts_with("[1]:"));
      CHECK_FALSE(line.starts_with("touch"));
      if (!line.starts_with("| **")) continue;
      CHECK(bars(line) == (++rows == 1 ? 9 : 7));  // the claim, and the check
    }
    CHECK(rows == 2);
    std::ostringstream cells;
    cells << std::ifstream(folder.path() / "ledger.cells.csv").rdbuf();
    CHECK_FALSE(commands_terminal(cells.str()));
    for (const char* formula : {",=", ",@", "\n=", "\n@", ",+1+", ",-1+"})
      CHECK(cells.str().find(formula) == std::string::npos);
  }
}

TEST_CASE("a ledger counts the paper's claims and ours apart, and corrects for their number") {
  const auto claim = [](const char* id, const char* verdict, const char* text, const char* origin, double p) {
    ReportedClaim made;
    made.id = id;
    made.verdict = verdict;
    made.text = text;
    made.origin = origin;
    made.p_value = p;
    made.points.resize(2);
    return made;
  };
  ReportedRun run;
  run.name = "one";
  run.source = "Somebody 2020, Fig. 1";
  run.claims = {claim("a", "reproduced", "“Falls.” Here: from 1 to 2.", "paper", 0.001),
                claim("b", "refuted", "“Falls.” Here: from 2 to 3.", "paper", 0.02),
                claim("c", "reproduced", "“Rises.”", "paper", 0.03),
                claim("d", "inconclusive", "It rises.", "ours", 0.4)};
  Report report;
  report.runs = {run};
  const TemporaryFolder folder;
  write_ledger(report, folder.path() / "ledger.md");
  std::ostringstream text;
  text << std::ifstream(folder.path() / "ledger.md").rdbuf();
  const auto says = [&](const std::string& part) { return text.str().find(part) != std::string::npos; };
  // Two claims under one sentence are a family, refuted as one of them is.
  CHECK(says("| paper | 1 | 6 | 3 (2) | 2 (1) | 1 (1) | 0 (0) | 0 (0) |"));
  CHECK(says("| ours | 1 | 2 | 1 (1) | 0 (0) | 0 (0) | 0 (0) | 1 (1) |"));
  // Holm: .001 · 4, .02 · 3, .03 · 2 and no less than the one before; Benjamini and Hochberg: .03 · 4/3.
  CHECK(says("0.001 (0.004, 0.004)"));
  CHECK(says("0.02 (0.06, 0.04)"));
  CHECK(says("0.03 (0.06, 0.04)"));
  CHECK(says("Of the 4 claims here with a p value 3 are decided; 1 of these stay so"));
  CHECK(says("at 5 % (Holm), 3 where"));
}

TEST_CASE("a claim's decisive point is the first that decides against it, or else the last") {
  LedgerClaim claim;
  CHECK(decisive_point(claim) == nullptr);
  claim.verdict = "refuted";
  for (const char* verdict : {"reproduced", "refuted", "refuted", "inconclusive"})
    claim.points.push_back({"", verdict, "", "", verdict, ""});
  CHECK(decisive_point(claim) == &claim.points[1]);
  claim.verdict = "inconclusive";
  claim.points.push_back(claim.points.back());
  CHECK(decisive_point(claim) == &claim.points[3]);
  claim.verdict = "reproduced";
  CHECK(decisive_point(claim) == &claim.points[4]);
}

}  // namespace moelab::ledger_test
