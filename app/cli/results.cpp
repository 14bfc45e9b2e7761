#include "app/run/results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include "analysis/metrics/metric_groups.h"
#include "app/cli/completion.h"
#include "app/report/claim_results.h"
#include "app/run/figures.h"
#include "app/run/search.h"
#include "app/scenario/overrides.h"
#include "app/store/durable_file.h"
#include "app/store/export.h"
#include "app/store/imported_arms.h"
#include "plots/report/table.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

struct ClaimsOptions {
  RunChoice run;
  bool markdown = false, json = false;

  void bind(VerbOptions& options) {
    run.bind(options);
    options.add("--markdown", &markdown, "tables of rates as Markdown, in place of claims");
    bind_json(options, json);
  }
};

int judge(const ClaimsOptions& options) {
  refuse_beside(options.json && options.markdown, "--markdown", "--json");
  const RunAddress run = options.run.address();
  const RunResults results = load_results(run);
  print_notes(results);
  const std::vector<ClaimResult> claims = judge_claims(results, run.directory());
  if (options.markdown) {
    const std::string rates = rates_markdown(results);
    std::cout << (rates.empty() ? "no figure of rates\n" : rates);
  } else if (options.json) {
    Json list = Json::array();
    for (const ClaimResult& claim : claims) list.push_back(to_json(claim));
    print_json(list);
  } else {
    std::cout << claims_text(claims);
    if (const std::string crossings = crossings_text(results); !crossings.empty())
      std::cout << '\n' << crossings;
    if (const std::string rates = rates_text(results); !rates.empty()) std::cout << '\n' << rates;
  }
  const auto refuted = [](const ClaimResult& claim) { return claim.verdict == Verdict::refuted; };
  return std::any_of(claims.begin(), claims.end(), refuted) ? 1 : 0;
}

struct ExportOptions {
  RunChoice run;
  bool trace = false;
  std::filesystem::path out;  ///< empty for stdout
  bool json = false;

  void bind(VerbOptions& options) {
    run.bind(options);
    options.add("--trace", &trace, "one row per cell and recorded step");
    options.add("--out", &out, "file to write instead of stdout");
    bind_json(options, json);
  }
};

int export_results(const ExportOptions& options) {
  const bool to_file = !options.out.empty();
  if (to_file) check_written_file(options.out, "--out");
  const RunResults results =
      load_results(options.run.address(), options.trace ? RecordPart::all : RecordPart::metrics);
  print_notes(results);
  if (to_file || !options.json) write_answer(options.out, export_csv(results, options.trace, metric_names()));
  if (options.json) {
    const ExportTable table = export_table(results, options.trace, metric_names());
    Json answer = {{"columns", table.columns}, {"rows", table.rows}};
    if (to_file) answer = {{"file", options.out.string()}, {"rows", table.rows.size()}};
    print_json(answer, 1);
  }
  return 0;
}

struct ImportOptions {
  RunChoice run;
  std::filesystem::path table;
  std::string arm;
  bool json = false;

  void bind(VerbOptions& options) {
    run.bind(options);
    options.add("TABLE", &table, "CSV file with the columns seed, every swept path, and metrics",
                {.required = true});
    options.add("--arm", &arm, "name of the arm", {.required = true});
    bind_json(options, json);
  }
};

/// The bytes of the table. Throws UserError where it is no file.
std::string read_table(const std::filesystem::path& file) {
  if (!std::filesystem::is_regular_file(file))
    throw UserError("TABLE", fmt::format("no file '{}'; needs a CSV file", file.string()));
  return read_bytes(file);
}

int import_table(const ImportOptions& options) {
  const RunAddress run = options.run.address();
  const std::string &arm = options.arm, file = options.table.string();
  const ImportedCounts counts = import_arm(run, arm, read_table(options.table), file);
  if (!counts.passed_over.empty()) {
    std::cerr << fmt::format("moelab: note: passed over of {}: {}; every row is one of the arm '{}'\n", file,
                             fmt::join(counts.passed_over, ", "), arm);
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
  if (options.json) {
    print_json({{"arm", arm},
                {"plan", results.id},
                {"rows", counts.rows},
                {"missing", counts.missing},
                {"replaced", counts.replaced},
                {"claims", std::move(judged)}});
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

/// Keeps the rows at these values of swept paths. Throws UserError for a value that no row has.
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

/// A row for each arm and sweep point: arm, swept values, metrics.
Table means_table(const ResultTable& results, const std::vector<std::string>& metrics) {
  Table table = {{"arm"}};
  table.head.insert(table.head.end(), results.sweep_paths.begin(), results.sweep_paths.end());
  for (const std::string& metric : metrics) {
    const std::vector<SummaryEntry> entries = summarize(results, metric);
    table.head.push_back(column_head(entries, metric));
    table.rows.resize(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      std::vector<std::string>& row = table.rows[i];
      if (row.empty()) {
        row.push_back(entries[i].arm);
        for (const auto& coordinate : entries[i].point) row.push_back(value_text(coordinate.second));
      }
      row.push_back(entry_text(entries[i]));
    }
  }
  return table;
}

/// With dashes that Markdown need not escape.
std::string dashed_markdown(const Table& table) {
  Table dashed = table;
  for (std::vector<std::string>& row : dashed.rows)
    std::replace(row.begin(), row.end(), std::string("-"), std::string("–"));
  return markdown_table(dashed);
}

std::string with_replaced(std::string text, const std::string& part, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += by.size())
    text.replace(at, part.size(), by);
  return text;
}

/// The text with the special characters of TeX escaped.
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
  return with_replaced(std::move(escaped), "±", "$\\pm$");
}

std::string latex_table(const Table& table) {
  const auto line = [](std::vector<std::string> cells) {
    for (std::string& cell : cells) cell = latex_text(cell);
    return fmt::format("{} \\\\\n", fmt::join(cells, " & "));
  };
  std::string text = fmt::format("\\begin{{tabular}}{{{}}}\n\\hline\n{}\\hline\n",
                                 std::string(table.head.size(), 'l'), line(table.head));
  for (const std::vector<std::string>& row : table.rows) text += line(row);
  return text + "\\hline\n\\end{tabular}\n";
}

/// A TeX comment in ASCII.
std::string latex_note(const std::string& caption) {
  return "% " + with_replaced(caption, "±", "+-") + "\n";
}

/// `note` writes a line that says what a column's numbers are.
struct TableFormat {
  std::string name;
  std::string (*text)(const Table&);
  std::string (*note)(const std::string& caption);
};

const std::vector<TableFormat>& table_formats() {
  static const std::vector<TableFormat> formats = {
      {"text", text_table, [](const std::string& caption) { return caption + "\n"; }},
      {"markdown", dashed_markdown, [](const std::string& caption) { return "- " + caption + "\n"; }},
      {"latex", latex_table, latex_note}};
  return formats;
}

/// A line for each metric that says what its column shows.
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

struct TableOptions {
  RunChoice run;
  std::vector<std::string> metrics;  ///< none for the main one
  std::string format = "text";
  std::vector<std::string> at;  ///< "path=value"
  std::filesystem::path out;    ///< empty for stdout
  bool json = false;

  void bind(VerbOptions& options) {
    run.bind(options);
    options.add("--metric", &metrics, "a column of its means (repeatable; default: the first figure's)",
                {.candidates = offer_metrics});
    options.add("--format", &format, "text, markdown or latex", {.check = one_of("format", format_names())});
    options.add("--at", &at, "path=value: only this sweep point (repeatable)");
    options.add("--out", &out, "file to write instead of stdout");
    bind_json(options, json);
  }
};

int print_means(const TableOptions& options) {
  for (const std::string& metric : options.metrics) check_metric_name(metric);
  if (!options.out.empty()) check_written_file(options.out, "--out");
  RunResults results = load_results(options.run.address());
  print_notes(results);
  for (const std::string& metric : options.metrics) check_measured(metric, {&results, 1});
  keep_rows_at(options.at, results.table);
  std::vector<std::string> metrics = options.metrics;
  if (metrics.empty()) metrics = {main_metric(results.head)};
  if (options.json) {
    Json answer = Json::array();
    for (const std::string& metric : metrics) answer.push_back(summary_json(results.table, metric));
    print_json(answer);
    return 0;
  }
  const auto format = std::find_if(table_formats().begin(), table_formats().end(),
                                   [&](const TableFormat& known) { return known.name == options.format; });
  const std::string text =
      table_notes(results.table, metrics, *format) + format->text(means_table(results.table, metrics));
  write_answer(options.out, text);
  return 0;
}

}  // namespace

Verb claims_verb() {
  return make_verb("claims", "Test the scenario's claims; status 1 when one is refuted",
                   "claims runs/fig2a-quick", judge);
}

Verb export_verb() {
  return make_verb("export", "Print the results as CSV, one row per cell",
                   "export runs/fig2a-quick --trace --out trace.csv", export_results);
}

Verb import_verb() {
  return make_verb("import", "Add results of your own training, seed by seed, as an arm of a run",
                   "import runs/fig2a-quick results.csv --arm mine", import_table);
}

Verb table_verb() {
  return make_verb("table", "Print means of metrics with intervals, a row for each arm and sweep point",
                   "table runs/gates --metric test_loss_eval --metric dead_experts --format latex",
                   print_means);
}

}  // namespace moelab
