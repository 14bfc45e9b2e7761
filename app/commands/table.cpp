#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <set>

#include "app/commands/verbs.h"
#include "app/metrics/metric_groups.h"
#include "app/report/markdown.h"
#include "app/run/durable_file.h"
#include "app/run/summary.h"
#include "app/scenario/overrides.h"
#include "app/scenario/sweep_values.h"
#include "sim/base/error.h"

namespace moelab {
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
