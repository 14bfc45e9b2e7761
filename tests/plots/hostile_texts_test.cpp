/// What every writer of figures, tables and pages makes of texts that are meant to be more than texts.

#include "tests/hostile_texts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "plots/layout.h"
#include "plots/painters/gnuplot.h"
#include "plots/report/report.h"
#include "plots/report/table.h"
#include "sim/base/error.h"
#include "tests/temporary_folder.h"

namespace moelab::hostile_texts_test {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t place = 0; (place = text.find(from, place)) != std::string::npos; place += to.size())
    text.replace(place, from.size(), to);
}

/// A cell as RFC 4180 reads it.
std::string unquoted_cell(std::string cell) {
  if (!cell.starts_with('"')) return cell;
  REQUIRE(cell.size() > 1);
  REQUIRE(cell.ends_with('"'));
  cell = cell.substr(1, cell.size() - 2);
  replace_all(cell, "\"\"", "\"");
  return cell;
}

/// As gnuplot gets a text: its SVG has markup where "&#" or "]]>" stand.
std::string with_joiners(std::string text) {
  replace_all(text, "&#", "&\u2060#");
  replace_all(text, "]]>", "]]\u2060>");
  return text;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t place = 0; (place = text.find(part, place)) != std::string::npos; place += part.size())
    ++count;
  return count;
}

std::string text_of_html(std::string html) {
  for (const auto& [name, letter] :
       {std::pair("&lt;", "<"), std::pair("&gt;", ">"), std::pair("&quot;", "\""), std::pair("&#39;", "'"),
        std::pair("&amp;", "&")})
    replace_all(html, name, letter);
  return html;
}

/// A report in which every text is this one.
Report report_of(const std::string& text) {
  Figure figure;
  figure.id = "loss";
  figure.title = figure.caption = figure.x_label = figure.y_label = text;
  figure.x_categories = {text};
  figure.panels = {{"", {{text, {{0, 1.0, {}, {}, {}}}}}}};
  ReportedRun run;
  const Table table = {{text, text}, {{text, text}}, text};
  run.name = run.title = run.source = run.state = run.command = text;
  run.rates = {table};
  run.builds = {{text, 2}};
  run.builds_note = text;
  run.notes = {text};
  run.summary = run.unfinished = table;
  run.claims = {
      {text, text, text, text, text, {{text, text, text, text, text, text}}, {}, text, text, 7, table}};
  run.forest = ReportedFigure{drawing_of(figure), ""};
  run.figures = {{drawing_of(figure), ""}, {{"f", text, text, text, text, ""}, text}};
  run.provenance = {{text, text}};
  run.cells_csv = run.scenario = text;
  Report report;
  report.title = report.program = text;
  report.runs = {run, run};
  report.checks = {{text, text, text, text, text, text, text, false}};
  return report;
}

}  // namespace

TEST_CASE("gnuplot reads every hostile text back and obeys none") {
  const TemporaryFolder folder;
  std::ofstream script(folder.path() / "texts.gp");
  std::string expected;
  script << "set encoding utf8\nset datafile separator comma\nset print 'texts'\n";
  for (const std::string& text : hostile_texts()) {
    script << "# " << quoted(text) << "\nprint " << quoted(text) << '\n';
    expected += with_joiners(visible_line(text)) + "\n";
  }
  script.close();
  run_gnuplot(folder.path(), "texts.gp");
  CHECK(content_of(folder.path() / "texts") == expected);
  CHECK_FALSE(fs::exists(folder.path() / "obeyed"));
}

TEST_CASE("a text without quotes stands between single quotes as it is") {
  CHECK(quoted("a_b ^{2} @c \"d\" \\") == "'a_b ^{2} @c \"d\" \\'");
  CHECK(quoted("'soft' and 'top1'") == "\"'soft' and 'top1'\"");
}

TEST_CASE("a figure whose title, labels and series are hostile texts is drawn with their letters") {
  const TemporaryFolder folder;
  Figure figure;
  figure.id = "hostile";
  figure.title = "'soft' and 'top1'";
  figure.caption = "'a_b' ^{2} @name \\ \"x\"";
  figure.x_label = "it's `touch obeyed`";
  figure.y_label = "'y'";
  figure.panels.emplace_back();
  for (const std::string& text : hostile_texts())
    figure.panels[0].series.push_back({text, {{1, 1.0, {}, {}, {}}}});
  render(drawing_of(figure), folder.path());
  const std::string drawn = text_of_html(content_of(folder.path() / "hostile.svg"));
  for (const char* text : {"'soft' and 'top1'", "'a_b' ^{2} @name \\ \"x\"", "it's `touch obeyed`",
                           "it''s '''quoted'''", "'a_b' ^{2} @name {/Symbol x} %d \\n \\U+0041"})
    CHECK_MESSAGE(drawn.find(text) != std::string::npos, text);
  CHECK_FALSE(fs::exists(folder.path() / "obeyed"));
  // Entities by number are none of gnuplot's own, and "]]>" ends its own sections alone.
  const std::string svg = content_of(folder.path() / "hostile.svg");
  CHECK(count_of(svg, "&#") == 0);
  CHECK(count_of(svg, "]]>") == count_of(svg, "<![CDATA["));
  for (const char* file : {"hostile.csv", "hostile.gp", "hostile.svg"})
    CHECK_FALSE(commands_terminal(content_of(folder.path() / file)));
  // gnuplot counts the lines of the table.
  const std::string table = content_of(folder.path() / "hostile.csv");
  CHECK(std::count(table.begin(), table.end(), '\n') == 1 + static_cast<long>(hostile_texts().size()));
}

TEST_CASE("a cell of CSV: formulas get an apostrophe, numbers and words stay") {
  for (const char* same : {"learned", "-1", "+1", "-1e-3", "-inf", "a=b", "test_loss_soft", "0.5 + 1", ""})
    CHECK(csv_cell(same) == same);
  CHECK(csv_cell("=1+1") == "'=1+1");
  CHECK(csv_cell("+x") == "'+x");
  CHECK(csv_cell("-x") == "'-x");
  CHECK(csv_cell("--1") == "'--1");
  CHECK(csv_cell("+-1") == "'+-1");
  CHECK(csv_cell("@x") == "'@x");
  CHECK(csv_cell("\tx") == "'\tx");
  CHECK(csv_cell("\rx") == "'\\u000dx");
  CHECK(csv_cell("'x") == "''x");
  CHECK(csv_cell("=\"a\",b") == "\"'=\"\"a\"\",b\"");
  CHECK(csv_cell("a\nb") == "\"a\nb\"");
  CHECK(gnuplot_csv_cell("a\n\"b\"") == "\"a 'b'\"");
}

TEST_CASE("a cell of CSV gives every hostile text back, its control characters written out") {
  for (const std::string& text : hostile_texts()) {
    CAPTURE(text);
    const std::string cell = csv_cell(text), line = gnuplot_csv_cell(text);
    std::string read = unquoted_cell(cell);
    CHECK_FALSE(commands_terminal(cell));
    CHECK((read.empty() || std::string("=+-@\t\r").find(read.front()) == std::string::npos));
    if (read.starts_with('\'')) read.erase(0, 1);
    CHECK(read == visible_text(text));
    CHECK_FALSE(commands_terminal(line));
    CHECK(line.substr(1, line.size() - 2).find_first_of("\"\n") == std::string::npos);
    CHECK((line.size() < 3 || std::string("=+-@\t\r").find(line[1]) == std::string::npos));
  }
}

TEST_CASE("HTML gives every hostile text back, and nothing in it is markup") {
  for (const std::string& text : hostile_texts()) {
    CAPTURE(text);
    const std::string html = html_text(text);
    CHECK(html.find_first_of("<>\"'") == std::string::npos);
    CHECK_FALSE(commands_terminal(html));
    CHECK(text_of_html(html) == visible_text(text));
    CHECK(script_text(text).find('<') == std::string::npos);
  }
}

TEST_CASE("no hostile text of a report becomes markup, a link or a command") {
  for (const std::string& text : hostile_texts()) {
    CAPTURE(text);
    const std::string page = report_html(report_of(text));
    CHECK_FALSE(commands_terminal(page));
    for (const char* markup : {"<script>alert", "<img src=x", "<javascript:"})
      CHECK(page.find(markup) == std::string::npos);
    // The page's links lead into itself.
    for (const std::string start : {"href=\"", "src=\""}) {
      for (std::size_t place = 0; (place = page.find(start, place)) != std::string::npos;) {
        place += start.size();
        const bool is_own = page.compare(place, 4, "#run") == 0 || page.compare(place, 5, "data:") == 0;
        CHECK_MESSAGE(is_own, page.substr(place, 40));
      }
    }
  }
}

}  // namespace moelab::hostile_texts_test
