#include "app/report/ledger.h"

#include <fmt/format.h>

#include <utility>

#include "app/report/ledger_files.h"
#include "app/report/ledger_text.h"
#include "app/run/durable_file.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

/// A file to write, and its content.
using Document = std::pair<fs::path, std::string>;

/// The run's first figure that is small enough; empty where there is none.
fs::path shown_figure(const ReportedRun& run) {
  for (const fs::path& figure : run.drawn) {
    std::error_code none;
    if (fs::exists(figure, none) && fs::file_size(figure, none) <= kLargestFigure) return figure;
  }
  return {};
}

/// Throws UserError where one of two runs would take the other's place.
void check_run_names(const std::vector<ReportedRun>& runs) {
  std::set<std::string> names;
  for (const ReportedRun& run : runs) {
    if (!names.insert(run.name).second) {
      throw UserError("--ledger", fmt::format("got two runs of the name '{}', needs one at most: a ledger "
                                              "holds its runs by name",
                                              run.name));
    }
  }
}

}  // namespace

std::vector<fs::path> write_ledger(const Report& report, const fs::path& file) {
  check_run_names(report.runs);
  const fs::path folder = ledger_runs_folder(file);
  if (report.runs.empty() && report.checks.empty() && !fs::exists(folder)) {
    throw UserError("--ledger",
                    fmt::format("got no run directory, and there is no folder {} with the runs of "
                                "an earlier ledger",
                                folder.string()));
  }
  std::vector<Document> documents;
  Ledger ledger;
  std::set<std::string> given;
  for (const ReportedRun& reported : report.runs) {
    LedgerRun run = as_read(ledger_run(reported));
    const std::string stem = ledger_run_stem(run.name);
    if (const fs::path figure = shown_figure(reported); !figure.empty()) {
      run.figure = stem + "-" + figure.filename().string();
      documents.emplace_back(file.parent_path() / run.figure, read_bytes(figure));
    }
    documents.emplace_back(folder / (stem + ".json"), ledger_run_text(run));
    given.insert(stem);
    ledger.runs.push_back(std::move(run));
  }
  make_folder(folder);
  const FolderLock lock(folder);
  for (LedgerRun& run : read_ledger_runs(file, given)) ledger.runs.push_back(std::move(run));
  if (report.checks.empty()) {
    ledger.checks = read_ledger_checks(file);
  } else {
    ledger.checks = report.checks;
    documents.emplace_back(ledger_checks_file(file), ledger_checks_text(report.checks));
  }
  documents.emplace_back(ledger_cells_file(file), ledger_cells_csv(ledger));
  documents.emplace_back(file, ledger_text(ledger, file));
  std::vector<fs::path> written;
  for (const auto& [place, content] : documents) {
    update_file(place, content);
    written.push_back(place);
  }
  return written;
}

}  // namespace moelab
