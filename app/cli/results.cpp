#include "app/run/results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
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
#include "plots/style.h"
#include "plots/texts.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

struct ClaimsOptions {
  RunChoice run;
  bool markdown = false, json = false;
  std::string explain;  ///< the id of a claim; empty for none

  void bind(VerbOptions& options) {
    run.bind(options);
    options.add("--explain", &explain, "id of a claim; says in plain sentences how its verdict came about");
    options.add("--markdown", &markdown, "tables of rates as Markdown, in place of claims");
    bind_json(options, json);
  }
};

/// The claim with this id. Throws UserError for an unknown id, with the nearest one.
const ClaimResult& claim_named(const std::vector<ClaimResult>& claims, const std::string& id) {
  const auto found =
      std::find_if(claims.begin(), claims.end(), [&](const ClaimResult& claim) { return claim.id == id; });
  if (found != claims.end()) return *found;
  std::vector<std::string> ids;
  for (const ClaimResult& claim : claims) ids.push_back(claim.id);
  throw UserError("--explain", unknown_name("claim", id, ids));
}

int judge(const ClaimsOptions& options) {
  refuse_beside(options.json && options.markdown, "--markdown", "--json");
  refuse_beside(options.json && !options.explain.empty(), "--explain", "--json");
  refuse_beside(options.markdown && !options.explain.empty(), "--explain", "--markdown");
  const RunAddress run = options.run.address();
  const RunResults results = load_results(run);
  print_notes(results);
  const std::vector<ClaimResult> claims = judge_claims(results, run.directory());
  if (options.markdown) {
    const std::string rates = rates_markdown(results);
    std::cout << (rates.empty() ? "no figure of rates\n" : rates);
  } else if (!options.explain.empty()) {
    const ClaimResult& claim = claim_named(claims, options.explain);
    std::cout << explanation(claim);
    return claim.verdict == Verdict::refuted ? 1 : 0;
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
  std::vector<std::string> names, positive;
  bool ignores_unknown = false;
  bool json = false;

  void bind(VerbOptions& options) {
    run.bind(options);
    options.add("TABLE", &table, "CSV file with the columns seed, every swept path, and metrics",
                {.required = true});
    options.add("--arm", &arm, "name of the arm", {.required = true});
    options.add("--map", &names, "OLD=NEW: the table's column OLD is NEW (repeatable)");
    options.add("--ignore-unknown", &ignores_unknown, "pass over columns that are no metrics");
    options.add("--positive", &positive,
                "NAME: a metric of your own that is above zero, so that ratios are compared (repeatable)");
    bind_json(options, json);
  }
};

ImportRules import_rules(const ImportOptions& options) {
  ImportRules rules;
  rules.ignores_unknown = options.ignores_unknown;
  rules.positive = {options.positive.begin(), options.positive.end()};
  for (const std::string& text : options.names) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      throw UserError("--map", "got '" + text + "', needs OLD=NEW");
    if (!rules.names.emplace(text.substr(0, equals), text.substr(equals + 1)).second)
      throw UserError("--map", "got the column '" + text.substr(0, equals) + "' a second time");
  }
  return rules;
}

/// The bytes of the table. Throws UserError where it is no file.
std::string read_table(const std::filesystem::path& file) {
  if (!std::filesystem::is_regular_file(file))
    throw UserError("TABLE", fmt::format("no file '{}'; needs a CSV file", file.string()));
  return read_bytes(file);
}

int import_table(const ImportOptions& options) {
  const RunAddress run = options.run.address();
  const std::string &arm = options.arm, file = options.table.string();
  const ImportedCounts counts = import_arm(run, arm, read_table(options.table), file, import_rules(options));
  if (!counts.ignored.empty())
    std::cerr << fmt::format("moelab: note: no metrics, passed over: {}\n", fmt::join(counts.ignored, ", "));
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

/// How `table` shows its entries.
struct TableStyle {
  bool has_labels = false;  ///< the scenario's labels in place of names of arms, paths and values
  bool marks_best = false;  ///< the best arm of each sweep point has a mark
};

/// What stands before and after the best entry in a format.
struct BestMark {
  const char *before, *after;
};

std::string label_of(const PlanHead& head, const std::string& name) {
  const auto found = head.labels.find(name);
  return found == head.labels.end() ? name : found->second;
}

/// The places of the entries with the best mean of their sweep point.
std::set<std::size_t> best_entries(const std::vector<SummaryEntry>& entries, bool is_largest) {
  std::map<std::string, std::size_t> best;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].estimate) continue;
    const auto [known, is_new] = best.try_emplace(point_json(entries[i].point).dump(), i);
    const double mean = entries[i].estimate->mean, before = entries[known->second].estimate->mean;
    if (!is_new && (is_largest ? mean > before : mean < before)) known->second = i;
  }
  std::set<std::size_t> places;
  for (const auto& [point, place] : best) places.insert(place);
  return places;
}

/// A row for each arm and sweep point: arm, swept values, metrics.
Table means_table(const RunResults& results, const std::vector<std::string>& metrics, const TableStyle& style,
                  const BestMark& mark) {
  const auto shown = [&](const std::string& name) {
    return style.has_labels ? label_of(results.head, name) : name;
  };
  Table table = {{"arm"}};
  for (const std::string& path : results.table.sweep_paths) table.head.push_back(shown(path));
  for (const std::string& metric : metrics) {
    const std::vector<SummaryEntry> entries = summarize(results.table, metric);
    const std::string head = column_head(entries, metric);
    table.head.push_back(shown(metric) + head.substr(metric.size()));
    table.rows.resize(entries.size());
    const MainMetric main = main_choice(results.head);
    const bool is_largest = metric == main.name ? main.is_maximized : is_larger_better(metric);
    const std::set<std::size_t> best =
        style.marks_best ? best_entries(entries, is_largest) : std::set<std::size_t>();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      std::vector<std::string>& row = table.rows[i];
      if (row.empty()) {
        row.push_back(shown(entries[i].arm));
        for (const auto& [path, value] : entries[i].point) {
          const std::string text = value_text(value), label = shown(path + "=" + text);
          row.push_back(label == path + "=" + text ? text : label);
        }
      }
      const std::string text = rounded_entry_text(entries[i]);
      row.push_back(best.contains(i) ? mark.before + text + mark.after : text);
    }
  }
  return table;
}

/// For other programs: for each metric its mean (or median), the ends of its interval and the number of
/// seeds, with every digit.
std::string means_csv(const RunResults& results, const std::vector<std::string>& metrics) {
  std::vector<std::vector<std::string>> rows = {{"arm"}};
  for (const std::string& path : results.table.sweep_paths) rows.front().push_back(path);
  for (const std::string& metric : metrics) {
    const std::vector<SummaryEntry> entries = summarize(results.table, metric);
    for (const char* ending : {"", "_low", "_high", "_seeds"}) rows.front().push_back(metric + ending);
    rows.resize(entries.size() + 1);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      std::vector<std::string>& row = rows[i + 1];
      if (row.empty()) {
        row.push_back(entries[i].arm);
        for (const auto& coordinate : entries[i].point) row.push_back(value_text(coordinate.second));
      }
      const Json entry = entry_json(entries[i]);
      const auto number = [](const Json& value) { return value.is_number() ? value.dump() : std::string(); };
      const Json interval =
          entry.at("interval").is_array() ? entry.at("interval") : Json::array({nullptr, nullptr});
      row.push_back(number(entries[i].median ? entry.at("median") : entry.at("mean")));
      for (const Json& end : interval) row.push_back(number(end));
      row.push_back(entry.at("count").dump());
    }
  }
  std::string text;
  for (std::vector<std::string>& row : rows) {
    for (std::string& cell : row) cell = csv_cell(cell);
    text += fmt::format("{}\n", fmt::join(row, ","));
  }
  return text;
}

/// Surround the best entry until the table is written, because formats escape their own marks; in no name or
/// number.
constexpr const char *kBestBegins = "⟦", *kBestEnds = "⟧";

/// With dashes that Markdown need not escape.
std::string dashed_markdown(const Table& table, std::size_t) {
  Table dashed = table;
  for (std::vector<std::string>& row : dashed.rows)
    for (std::string& cell : row) cell = cell == "-" ? "–" : with_minus_signs(cell);
  return with_replaced(with_replaced(markdown_table(dashed), kBestBegins, "**"), kBestEnds, "**");
}

/// The width of a cell in Computer Modern in ems. Times is narrower.
double tex_width(const std::string& cell) {
  /// Of the letters from space to tilde, in thousandths; other signs are as wide as ±.
  constexpr std::array<int, 95> kWidths = {
      333, 278, 500, 833, 500, 833, 778, 278, 389, 389, 500, 778, 278, 333, 278, 500, 500, 500,  500,
      500, 500, 500, 500, 500, 500, 500, 278, 278, 778, 778, 778, 472, 778, 750, 708, 722, 764,  681,
      653, 785, 750, 361, 514, 778, 625, 917, 750, 778, 681, 778, 736, 556, 722, 750, 750, 1028, 750,
      750, 611, 278, 500, 278, 500, 360, 278, 500, 556, 444, 556, 444, 306, 500, 556, 278, 306,  528,
      278, 833, 556, 500, 556, 528, 392, 394, 389, 556, 528, 722, 528, 528, 444, 500, 278, 500,  500};
  constexpr double kBold = 1.15;
  const std::string plain = with_replaced(with_replaced(cell, kBestBegins, ""), kBestEnds, "");
  int thousandths = 0;
  for (const char letter : plain)
    if (letter >= ' ' && letter <= '~')
      thousandths += kWidths.at(static_cast<std::size_t>(letter - ' '));
    else if (begins_character(letter))
      thousandths += 778;
  return thousandths / 1000.0 * (plain == cell ? 1 : kBold);
}

/// How a table is set: lengths in TeX's points, and what stands around the tabular.
struct LatexSetting {
  double em, separation;  ///< of the letters, and on both sides of a column
  const char *before, *after, *ends;
};
constexpr LatexSetting kUsualSetting = {10, 6, "", "", ""};
/// Letters of 8 points are wider than eight tenths of the letters of 10 points.
constexpr LatexSetting kNarrowSetting = {8.5, 3, "{\\footnotesize\\setlength{\\tabcolsep}{3pt}%\n", "}",
                                         "@{}"};
constexpr double kTexPointsPerInch = 72.27;

/// The width of the tabular in inches.
double latex_width(const Table& table, const LatexSetting& setting) {
  const double beside = setting.separation * static_cast<double>(2 * table.head.size()) -
                        (*setting.ends == 0 ? 0 : 2 * setting.separation);
  double width = 0;
  for (std::size_t column = 0; column < table.head.size(); ++column) {
    double widest = tex_width(table.head[column]);
    for (const std::vector<std::string>& row : table.rows)
      widest = std::max(widest, tex_width(row.at(column)));
    width += widest * setting.em;
  }
  return (width + beside) / kTexPointsPerInch;
}

/// A tabular of the package booktabs.
std::string tabular(const Table& table, const LatexSetting& setting) {
  const auto line = [](std::vector<std::string> cells) {
    for (std::string& cell : cells)
      cell = with_replaced(with_replaced(latex_text(with_minus_signs(cell)), kBestBegins, "\\textbf{"),
                           kBestEnds, "}");
    return fmt::format("{} \\\\\n", fmt::join(cells, " & "));
  };
  std::string text =
      fmt::format("{0}\\begin{{tabular}}{{{1}{2}{1}}}\n\\toprule\n{3}\\midrule\n", setting.before,
                  setting.ends, std::string(table.head.size(), 'l'), line(table.head));
  for (const std::vector<std::string>& row : table.rows) text += line(row);
  return text + fmt::format("\\bottomrule\n\\end{{tabular}}{}\n", setting.after);
}

/// A column for each row.
Table transposed(const Table& table) {
  Table turned;
  for (std::size_t column = 0; column < table.head.size(); ++column) {
    std::vector<std::string> cells = {table.head[column]};
    for (const std::vector<std::string>& row : table.rows) cells.push_back(row.at(column));
    if (column == 0)
      turned.head = std::move(cells);
    else
      turned.rows.push_back(std::move(cells));
  }
  return turned;
}

/// Removes the swept values that all rows share. Returns a comment with them.
std::string leave_out_shared(Table& table, std::size_t paths) {
  std::vector<std::string> shared;
  for (std::size_t column = paths; column > 0; --column) {
    const std::string value = table.rows.empty() ? "" : table.rows.front().at(column);
    if (!std::ranges::all_of(table.rows, [&](const auto& row) { return row.at(column) == value; })) continue;
    shared.insert(shared.begin(), table.head[column] + " = " + value);
    const auto place = static_cast<std::ptrdiff_t>(column);
    table.head.erase(table.head.begin() + place);
    for (std::vector<std::string>& row : table.rows) row.erase(row.begin() + place);
  }
  return shared.empty() ? "" : fmt::format("% everywhere: {}\n", fmt::join(shared, ", "));
}

/// A tabular that fits a column where it can: without values that all rows share, in smaller letters, or with
/// rows and columns exchanged. A comment names the papers for which it is too wide.
std::string latex_table(const Table& given, std::size_t paths) {
  const double column = style_preset("icml", "style").width.value();
  Table table = given;
  if (latex_width(table, kUsualSetting) <= column) return tabular(table, kUsualSetting);
  std::string notes = leave_out_shared(table, paths);
  const bool is_usual = latex_width(table, kUsualSetting) <= column;
  const LatexSetting& setting = is_usual ? kUsualSetting : kNarrowSetting;
  double width = latex_width(table, setting);
  if (const Table turned = transposed(table); width > column && latex_width(turned, setting) < width) {
    table = turned;
    width = latex_width(table, setting);
  }
  std::vector<std::string> narrower;
  for (const auto& [name, style] : style_presets())
    if (style.caption == CaptionPlace::file && *style.width < width)
      narrower.push_back(fmt::format("{} ({} in)", name, *style.width));
  if (!narrower.empty())
    notes += fmt::format("% {:.1f} in wide, too wide for {}; --metric and --at choose less\n", width,
                         fmt::join(narrower, ", "));
  return notes + tabular(table, setting);
}

/// A TeX comment in ASCII.
std::string latex_note(const std::string& caption) {
  return "% " + with_replaced(caption, "±", "+-") + "\n";
}

/// `note` writes a line that says what a column's numbers are. `mark` surrounds the best entries.
struct TableFormat {
  std::string name;
  std::string (*text)(const Table&,
                      std::size_t paths);  ///< `paths`: how many columns of swept values follow the first
  std::string (*note)(const std::string& caption);
  BestMark mark;
  bool has_labels;
};

const std::vector<TableFormat>& table_formats() {
  static const std::vector<TableFormat> formats = {
      {"text",
       [](const Table& table, std::size_t) { return text_table(table); },
       [](const std::string& caption) { return caption + "\n"; },
       {"", " *"},
       false},
      {"markdown",
       dashed_markdown,
       [](const std::string& caption) { return "- " + caption + "\n"; },
       {kBestBegins, kBestEnds},
       false},
      {"latex", latex_table, latex_note, {kBestBegins, kBestEnds}, true}};
  return formats;
}

/// Numbers for other programs, which have a text of their own.
constexpr const char* kCsv = "csv";

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
  names.emplace_back(kCsv);
  return names;
}

struct TableOptions {
  RunChoice run;
  std::vector<std::string> metrics;  ///< none for the main one
  std::string format = "text";
  bool marks_best = false;
  std::vector<std::string> at;  ///< "path=value"
  std::filesystem::path out;    ///< empty for stdout
  bool json = false;

  void bind(VerbOptions& options) {
    run.bind(options);
    options.add("--metric", &metrics, "a column of its means (repeatable; default: the objective)",
                {.candidates = offer_metrics});
    options.add("--format", &format,
                "text, markdown, latex (booktabs, with the scenario's labels) or csv (every digit)",
                {.check = one_of("format", format_names())});
    options.add("--best", &marks_best, "mark the best arm of each sweep point (bold in markdown and latex)");
    options.add("--at", &at, "path=value: only this sweep point (repeatable)");
    options.add("--out", &out, "file to write instead of stdout");
    bind_json(options, json);
  }
};

int print_means(const TableOptions& options) {
  if (!options.out.empty()) check_written_file(options.out, "--out");
  if (options.marks_best && options.format == kCsv)
    throw UserError("--best", "given with --format csv, which has numbers alone");
  refuse_beside(options.marks_best && options.json, "--best", "--json");
  refuse_beside(options.format != "text" && options.json, "--format", "--json");
  RunResults results = load_results(options.run.address());
  print_notes(results);
  for (const std::string& metric : options.metrics) {
    // An imported arm may have metrics of its user's own.
    const bool is_own = std::ranges::any_of(results.table.rows, [&](const ResultRow& row) {
      return row.cell.starts_with(kImportedCell) && row.metrics.contains(metric);
    });
    if (!is_own) check_metric_name(metric);
    check_measured(metric, {&results, 1});
  }
  keep_rows_at(options.at, results.table);
  std::vector<std::string> metrics = options.metrics;
  if (metrics.empty()) metrics = {main_metric(results.head)};
  if (options.json) {
    Json answer = Json::array();
    for (const std::string& metric : metrics) answer.push_back(summary_json(results.table, metric));
    write_answer(options.out, json_text(answer) + "\n");
    return 0;
  }
  if (options.format == kCsv) {
    write_answer(options.out, means_csv(results, metrics));
    return 0;
  }
  const TableFormat& format = *std::ranges::find(table_formats(), options.format, &TableFormat::name);
  const Table table = means_table(results, metrics, {format.has_labels, options.marks_best}, format.mark);
  write_answer(options.out, table_notes(results.table, metrics, format) +
                                format.text(table, results.table.sweep_paths.size()));
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
