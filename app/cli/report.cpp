#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <thread>

#include "app/cli/verbs.h"
#include "app/report/ledger.h"
#include "app/run/figures.h"
#include "app/run/results.h"
#include "app/run/scheduler.h"
#include "app/run/search.h"
#include "app/scenario/json.h"
#include "app/store/durable_file.h"
#include "app/store/run_folder.h"
#include "plots/kinds/figure_kind.h"
#include "sim/base/error.h"
#include "sim/base/folder.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

struct PlotOptions {
  RunChoice run;
  std::string style;
  bool json = false;

  void bind(VerbOptions& options) {
    run.bind(options);
    options.add(
        "--style", &style,
        "width, font, title and caption of all figures: a paper at neurips (5.5 in wide), icml (3.25 in) "
        "or jmlr (6 in), slides, or screen",
        {.check = one_of("style", style_names())});
    bind_json(options, json);
  }
};

int plot(const PlotOptions& options) {
  const RunAddress run = options.run.address();
  const RunResults results = load_results(run);
  print_notes(results);
  const FigureStyle style = options.style.empty() ? FigureStyle() : style_preset(options.style, "--style");
  std::vector<fs::path> figures = draw_figures(results, run.directory(), style);
  for (fs::path& file : draw_claims(results, run.directory(), style)) figures.push_back(std::move(file));
  if (options.json) {
    print_files(figures, true);
  } else {
    std::cout << figures_text(figures);
  }
  return 0;
}

/// A text that changes when the content of a page may have changed: the sizes and times of the files.
std::string page_state(const std::vector<RunAddress>& addresses) {
  std::string state;
  std::error_code none;
  for (const RunAddress& address : addresses) {
    const fs::path& directory = address.directory();
    for (const fs::path& folder : {directory, directory / "journal", directory / "imported"}) {
      for (const fs::path& file : entries_of(folder)) {
        const fs::directory_entry entry(file, none);
        const std::string name = file.filename().string();
        if (!entry.is_regular_file(none) || is_temporary_name(name) || name == "report.html") continue;
        state += fmt::format("{} {} {}\n", entry.path().string(), entry.file_size(none),
                             entry.last_write_time(none).time_since_epoch().count());
      }
    }
  }
  return state;
}

/// Whether every planned cell is recorded and no search is open. Missing rows of imported arms do not count,
/// since no run adds them.
bool are_complete(const std::vector<RunAddress>& addresses) {
  for (const RunAddress& address : addresses) {
    const RunResults results = load_results(address, RecordPart::metrics);
    for (const ResultRow& row : results.table.rows)
      if (row.state == "missing" && !row.cell.starts_with(kImportedCell)) return false;
    if (has_open_search(results)) return false;
  }
  return true;
}

/// Writes the page whenever the runs have changed, until they are complete at two looks in a row. A run that
/// searches or decides claims may plan further cells after the first look.
void follow_runs(const std::vector<RunAddress>& addresses, const fs::path& checks, const fs::path& file) {
  constexpr std::chrono::seconds kPoll{1};
  std::string shown;
  for (int complete = 0; complete < 2;) {
    const std::string state = page_state(addresses);
    if (state != shown) replace_file(file, report_html(make_report(addresses, checks)));
    shown = state;
    complete = are_complete(addresses) && page_state(addresses) == shown ? complete + 1 : 0;
    if (complete < 2) std::this_thread::sleep_for(kPoll);
  }
}

struct ReportOptions {
  RunsChoice runs;
  std::filesystem::path out;     ///< empty for report.html of the first folder
  std::filesystem::path ledger;  ///< a folder of results as data in place of the page
  bool follow = false;           ///< until the runs are complete
  std::filesystem::path checks;  ///< an answer of check --json
  bool json = false;

  void bind(VerbOptions& options) {
    runs.bind(options, "run folders, or DIR@ID for one of their plans", false);
    options.add("--out", &out, "file to write (default: report.html of the first folder)");
    options.add("--ledger", &ledger,
                "add the runs to this folder of JSON files, or replace them there; without DIR, make "
                "claims.json from the folder's runs alone");
    options.add("--follow", &follow, "write the page again as cells finish, until the runs are complete");
    options.add("--checks", &checks,
                "theorem checks to include: a file with the answer of `check --json`; a ledger keeps its "
                "earlier checks");
    bind_json(options, json);
  }
};

int write_ledger_of(const ReportOptions& options, const std::vector<RunAddress>& addresses) {
  if (!options.checks.empty()) make_report({}, options.checks);  // refuses a file without checks
  std::vector<LedgerRun> runs;
  for (const RunAddress& address : addresses) runs.push_back(ledger_run(address));
  const std::vector<fs::path> files = write_ledger(std::move(runs), options.checks, options.ledger);
  if (options.json) {
    print_json({{"files", file_names(files)}, {"runs", addresses.size()}});
  } else {
    print_files(files, false);
  }
  return 0;
}

int write_report(const ReportOptions& options) {
  const bool to_ledger = !options.ledger.empty();
  refuse_beside(to_ledger && options.follow, "--follow", "--ledger");
  refuse_beside(to_ledger && !options.out.empty(), "--out", "--ledger");
  if (options.runs.directories.empty() && !to_ledger)
    throw UserError("DIR", "missing; only --ledger goes without a run folder");
  if (!options.out.empty()) check_written_file(options.out, "--out");
  if (to_ledger) check_output_folder(options.ledger, "--ledger");
  std::vector<RunAddress> addresses;
  for (const fs::path& folder : options.runs.directories) addresses.emplace_back(folder, options.runs.plan);
  if (to_ledger) return write_ledger_of(options, addresses);
  const RunAddress& first = addresses.front();
  const fs::path file =
      !options.out.empty() ? options.out : first.directory() / find_plan(first).outputs / "report.html";
  if (options.follow) {
    exit_when_interrupted();
    follow_runs(addresses, options.checks, file);
  } else {
    replace_file(file, report_html(make_report(addresses, options.checks)));
  }
  if (options.json) {
    print_json({{"file", file.string()}, {"runs", addresses.size()}});
  } else {
    print_files({file}, false);
  }
  return 0;
}

}  // namespace

Verb plot_verb() {
  return make_verb("plot", "Draw the scenario's figures again, and a figure of each claim",
                   "plot runs/fig2a-quick", plot);
}

Verb report_verb() {
  return make_verb("report", "Write runs as one HTML file: figures, claims, provenance",
                   "report runs/fig2a runs/fig2b --out fig2.html", write_report);
}

}  // namespace moelab
