#include "app/run/results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <set>

#include "analysis/metrics/metric_groups.h"
#include "app/cli/verbs.h"
#include "app/report/claim_results.h"
#include "app/report/markdown.h"
#include "app/run/figures.h"
#include "app/run/search.h"
#include "app/scenario/overrides.h"
#include "app/store/durable_file.h"
#include "app/store/export.h"
#include "app/store/imported_arms.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

int judge(const RunAddress& run, bool json, bool markdown) {
  if (json && markdown) throw UserError("--markdown", "given beside --json");
  const RunResults results = load_results(run);
  print_notes(results);
  const std::vector<ClaimResult> claims = judge_claims(results, run.directory());
  if (markdown) {
    const std::string rates = rates_markdown(results);
    std::cout << (rates.empty() ? "no figure of rates\n" : rates);
  } else if (json) {
    Json list = Json::array();
    for (const ClaimResult& claim : claims) list.push_back(to_json(claim));
    std::cout << list.dump(2) << '\n';
  } else {
    std::cout << claims_text(claims);
    if (const std::string crossings = crossings_text(results); !crossings.empty())
      std::cout << '\n' << crossings;
    if (const std::string rates = rates_text(results); !rates.empty()) std::cout << '\n' << rates;
  }
  const auto refuted = [](const ClaimResult& claim) { return claim.verdict == Verdict::refuted; };
  return std::any_of(claims.begin(), claims.end(), refuted) ? 1 : 0;
}

}  // namespace

Verb claims_verb() {
  return {"claims", "Judge the scenario's claims; status 1 when one is refuted", "claims runs/fig2a-quick",
          [](Arguments& arguments) -> VerbCall {
            const Option markdown = {"--markdown", &arguments.markdown,
                                     "tables of rates as Markdown, in place of claims"};
            return {joined(directory_options(arguments), {{markdown, json_option(arguments)}}),
                    [&] { return judge(run_address(arguments), arguments.json, arguments.markdown); }};
          }};
}

namespace {

int write_table(const Arguments& arguments) {
  const bool to_file = !arguments.out.empty();
  if (to_file) check_written_file(arguments.out, "--out");
  const RunResults results =
      load_results(run_address(arguments), arguments.trace ? RecordPart::all : RecordPart::metrics);
  print_notes(results);
  if (to_file || !arguments.json) {
    const std::string csv = export_csv(results, arguments.trace, metric_names());
    if (to_file) {
      replace_file(arguments.out, csv);
    } else {
      std::cout << csv;
    }
  }
  if (arguments.json) {
    const ExportTable table = export_table(results, arguments.trace, metric_names());
    Json answer = {{"columns", table.columns}, {"rows", table.rows}};
    if (to_file) answer = {{"file", arguments.out.string()}, {"rows", table.rows.size()}};
    std::cout << json_text(answer, 1) << '\n';
  }
  return 0;
}

}  // namespace

Verb export_verb() {
  return {"export", "Print the results as CSV, one row per cell",
          "export runs/fig2a-quick --trace --out trace.csv", [](Arguments& arguments) -> VerbCall {
            return {joined(directory_options(arguments),
                           {{{"--trace", &arguments.trace, "one row per cell and recorded step"},
                             {"--out", &arguments.out, "file to write instead of stdout"},
                             json_option(arguments)}}),
                    [&] { return write_table(arguments); }};
          }};
}

namespace {

int draw(const RunAddress& run, bool json) {
  const RunResults results = load_results(run);
  print_notes(results);
  std::vector<std::filesystem::path> figures = draw_figures(results, run.directory());
  for (std::filesystem::path& file : draw_claims(results, run.directory()))
    figures.push_back(std::move(file));
  if (json) {
    Json files = Json::array();
    for (const std::filesystem::path& file : figures) files.push_back(file.string());
    std::cout << json_text({{"files", files}}) << '\n';
  } else {
    std::cout << figures_text(figures);
  }
  return 0;
}

}  // namespace

Verb plot_verb() {
  return {"plot", "Draw the scenario's figures again, and one of each claim", "plot runs/fig2a-quick",
          [](Arguments& arguments) -> VerbCall {
            return {joined(directory_options(arguments), {{json_option(arguments)}}),
                    [&] { return draw(run_address(arguments), arguments.json); }};
          }};
}

namespace {

/// The bytes of a table that the user names.
std::string read_table(const std::filesystem::path& file) {
  if (!std::filesystem::is_regular_file(file))
    throw UserError("TABLE", fmt::format("no file '{}'; needs a CSV file", file.string()));
  return read_bytes(file);
}

int import_table(const Arguments& arguments, const std::filesystem::path& file, const std::string& arm) {
  const RunAddress run = run_address(arguments);
  const ImportedCounts counts = import_arm(run, arm, read_table(file), file.string());
  if (!counts.passed_over.empty()) {
    std::cerr << fmt::format("moelab: note: passed over of {}: {}; every row is one of the arm '{}'\n",
                             file.string(), fmt::join(counts.passed_over, ", "), arm);
  }
  const RunResults results = load_results(run);
  print_notes(results);
  Json judged = Json::array();
  std::vector<ClaimResult> own;
  for (const ClaimResult& claim : judge_claims(results, run.directory())) {
    if (!claim.id.ends_with("@" + arm)) continue;
    judged.push_back(to_json(claim));
    own.push_back(claim);
  }
  if (arguments.json) {
    const Json answer = {{"arm", arm},
                         {"plan", results.plan.at("id")},
                         {"rows", counts.rows},
                         {"missing", counts.missing},
                         {"replaced", counts.replaced},
                         {"claims", std::move(judged)}};
    std::cout << json_text(answer) << '\n';
  } else {
    std::cout << fmt::format(
        "{}: {} imported{}{}\n\n{}\nfigures with it: moelab plot {}\n", arm, counted(counts.rows, "row"),
        counts.replaced ? " in place of those before" : "",
        counts.missing > 0 ? fmt::format(", {} of the plan's seeds and sweep points missing", counts.missing)
                           : "",
        claims_text(own), run.directory().string());
  }
  return 0;
}

}  // namespace

Verb import_verb() {
  return {"import", "Add results of your own training, seed by seed, as an arm of a run",
          "import runs/fig2a-quick results.csv --arm mine", [](Arguments& arguments) -> VerbCall {
            struct Imported {
              std::filesystem::path file;
              std::string arm;
            };
            const auto given = std::make_shared<Imported>();
            return {joined(directory_options(arguments),
                           {{{"TABLE", &given->file,
                              "CSV file with the columns seed, every swept path, and metrics", true},
                             {"--arm", &given->arm, "name of the arm", true},
                             json_option(arguments)}}),
                    [given, &arguments] { return import_table(arguments, given->file, given->arm); }};
          }};
}

namespace {

using TableRows = std::vector<std::vector<std::string>>;

/// What the verb takes beside a run directory.
struct TableRequest {
  std::vector<std::string> metrics;  ///< none for the main one
  std::string format = "text";
  std::vector<std::string> at;  ///< "path=value"
};

/// Leaves the rows at these values of swept paths.
void keep_rows_at(const std::vector<std::string>& at, ResultTable& table) {
  for (const Override& given : read_settings(at, "--at")) {
    if (const std::string reason = one_of("swept path", table.sweep_paths)(given.path); !reason.empty())
      throw UserError(given.place, reason);
    const SweepPoint where = read_point(Json{{given.path, read_written_value(given.value)}});
    std::vector<ResultRow> found;
    std::copy_if(table.rows.begin(), table.rows.end(), std::back_inserter(found),
                 [&](const ResultRow& row) { return row.is_at(where); });
    if (found.empty()) {
      std::set<std::string> values;
      for (const ResultRow& row : table.rows) values.insert(value_text(*row.coordinate(given.path)));
      throw UserError(given.place,
                      unknown_name("value", abbreviated(given.value), {values.begin(), values.end()}));
    }
    table.rows = std::move(found);
  }
}

/// A row for each arm and sweep point, the head first: arm, swept values, metrics.
TableRows table_rows(const RunResults& results, const std::vector<std::string>& metrics) {
  TableRows rows(1, {"arm"});
  for (const std::string& path : results.table.sweep_paths) rows[0].push_back(path);
  for (const std::string& metric : metrics) {
    const bool is_first = rows.size() == 1;
    const std::vector<SummaryEntry> entries = summarize(results.table, metric);
    rows[0].push_back(column_head(entries, metric));
    std::size_t line = 0;
    for (const SummaryEntry& entry : entries) {
      ++line;
      if (is_first) {
        rows.push_back({entry.arm});
        for (const auto& coordinate : entry.point) rows.back().push_back(value_text(coordinate.second));
      }
      rows[line].push_back(entry_text(entry));
    }
  }
  return rows;
}

/// With dashes that Markdown need not escape.
std::string dashed_markdown(const TableRows& rows) {
  TableRows dashed = rows;
  for (std::vector<std::string>& row : dashed)
    std::replace(row.begin(), row.end(), std::string("-"), std::string("–"));
  return markdown_table(dashed);
}

/// What TeX would take for markup, written out.
std::string latex_text(const std::string& text) {
  static const std::map<char, std::string> escapes = {{'&', "\\&"},
                                                      {'%', "\\%"},
                                                      {'$', "\\$"},
                                                      {'#', "\\#"},
                                                      {'_', "\\_"},
                                                      {'{', "\\{"},
                                                      {'}', "\\}"},
                                                      {'~', "\\textasciitilde{}"},
                                                      {'^', "\\textasciicircum{}"},
                                                      {'\\', "\\textbackslash{}"}};
  std::string escaped;
  for (const char c : text) {
    const auto found = escapes.find(c);
    escaped += found == escapes.end() ? std::string(1, c) : found->second;
  }
  const std::string sign = "±";
  for (std::size_t at = 0; (at = escaped.find(sign, at)) != std::string::npos;)
    escaped.replace(at, sign.size(), "$\\pm$");
  return escaped;
}

std::string latex_table(const TableRows& rows) {
  std::string text = fmt::format("\\begin{{tabular}}{{{}}}\n\\hline\n", std::string(rows[0].size(), 'l'));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t column = 0; column < rows[i].size(); ++column)
      text += (column > 0 ? " & " : "") + latex_text(rows[i][column]);
    text += i == 0 ? " \\\\\n\\hline\n" : " \\\\\n";
  }
  return text + "\\hline\n\\end{tabular}\n";
}

/// A comment of letters that every TeX reads.
std::string latex_note(const std::string& caption) {
  const std::string sign = "±";
  std::string text = caption;
  for (std::size_t at = 0; (at = text.find(sign, at)) != std::string::npos;)
    text.replace(at, sign.size(), "+-");
  return "% " + text + "\n";
}

/// `note` writes a line that says what a column's numbers are.
struct TableFormat {
  std::string name;
  std::string (*text)(const TableRows&);
  std::string (*note)(const std::string& caption);
};

const std::vector<TableFormat>& table_formats() {
  static const std::vector<TableFormat> formats = {
      {"text", aligned_columns, [](const std::string& caption) { return caption + "\n"; }},
      {"markdown", dashed_markdown, [](const std::string& caption) { return "- " + caption + "\n"; }},
      {"latex", latex_table, latex_note}};
  return formats;
}

/// What the numbers of each column are, above the table.
std::string table_notes(const ResultTable& table, const std::vector<std::string>& metrics,
                        const TableFormat& format) {
  std::string notes;
  for (const std::string& metric : metrics) notes += format.note(summary_caption(table, metric));
  return notes + (format.name == "latex" ? "" : "\n");
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const TableFormat& format : table_formats()) names.push_back(format.name);
  return names;
}

int print_means(const Arguments& arguments, const TableRequest& request) {
  for (const std::string& metric : request.metrics) {
    if (!find_metric(metric)) throw UserError("--metric", unknown_name("metric", metric, metric_names()));
  }
  if (!arguments.out.empty()) check_written_file(arguments.out, "--out");
  RunResults results = load_results(run_address(arguments));
  print_notes(results);
  for (const std::string& metric : request.metrics) check_measured(metric, {&results, 1});
  keep_rows_at(request.at, results.table);
  std::vector<std::string> metrics = request.metrics;
  if (metrics.empty()) metrics = {main_metric(results.plan)};
  if (arguments.json) {
    Json answer = Json::array();
    for (const std::string& metric : metrics) answer.push_back(summary_json(results.table, metric));
    std::cout << json_text(answer) << '\n';
    return 0;
  }
  const auto format = std::find_if(table_formats().begin(), table_formats().end(),
                                   [&](const TableFormat& known) { return known.name == request.format; });
  const std::string text =
      table_notes(results.table, metrics, *format) + format->text(table_rows(results, metrics));
  if (arguments.out.empty()) {
    std::cout << text;
  } else {
    replace_file(arguments.out, text);
  }
  return 0;
}

}  // namespace

Verb table_verb() {
  return {"table", "Print means of metrics with intervals, a row for each arm and sweep point",
          "table runs/gates --metric test_loss_eval --metric dead_experts --format latex",
          [](Arguments& arguments) -> VerbCall {
            const auto request = std::make_shared<TableRequest>();
            return {joined(directory_options(arguments),
                           {{{"--metric", &request->metrics,
                              "a column of its means (repeatable; default: the first figure's)", false,
                              nullptr, offer_metrics},
                             {"--format", &request->format, "text, markdown or latex", false,
                              one_of("format", format_names())},
                             {"--at", &request->at, "path=value: this sweep point alone (repeatable)"},
                             {"--out", &arguments.out, "file to write instead of stdout"},
                             json_option(arguments)}}),
                    [&arguments, request] { return print_means(arguments, *request); }};
          }};
}

}  // namespace moelab
