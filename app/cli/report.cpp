#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <thread>

#include "app/cli/verbs.h"
#include "app/figures/figure_kind.h"
#include "app/report/ledger.h"
#include "app/report/run_report.h"
#include "app/run/scheduler.h"
#include "app/run/search.h"
#include "app/scenario/json.h"
#include "app/store/durable_file.h"
#include "app/store/run_folder.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

/// The state of a run directory that a page depends on: records and plans only grow, other files are few.
std::string page_state(const std::vector<RunAddress>& addresses) {
  std::string state;
  for (const RunAddress& address : addresses) {
    const fs::path& directory = address.directory();
    for (const fs::path& folder : {directory, directory / "journal", directory / "imported"}) {
      std::error_code none;
      for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
        const std::string name = entry.path().filename().string();
        if (!entry.is_regular_file(none) || is_temporary_name(name) || name == "report.html") continue;
        state += fmt::format("{} {} {}\n", entry.path().string(), entry.file_size(none),
                             entry.last_write_time(none).time_since_epoch().count());
      }
    }
  }
  return state;
}

/// Whether every planned cell is recorded, and no search asks for further ones. What an imported arm lacks,
/// no run adds.
bool are_complete(const std::vector<RunAddress>& addresses) {
  for (const RunAddress& address : addresses) {
    const RunResults results = load_results(address, RecordPart::metrics);
    for (const ResultRow& row : results.table.rows)
      if (row.state == "missing" && !row.cell.starts_with(kImportedCell)) return false;
    for (const Json& crossing : crossings_json(results))
      if (crossing.at("state") == "open") return false;
  }
  return true;
}

/// Writes the page whenever the runs have changed, until they are complete at two looks: between them a run
/// that is decided or searches may have planned further cells.
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

int report(const Arguments& arguments) {
  for (const auto& [option, is_given] :
       {std::pair("--follow", arguments.follow), std::pair("--out", !arguments.out.empty())}) {
    if (is_given && !arguments.ledger.empty()) throw UserError(option, "given beside --ledger");
  }
  if (arguments.directories.empty() && arguments.ledger.empty())
    throw UserError("DIR", "missing; only --ledger goes without a run directory");
  if (!arguments.out.empty()) check_written_file(arguments.out, "--out");
  if (!arguments.ledger.empty()) check_written_file(arguments.ledger, "--ledger");
  std::vector<RunAddress> addresses;
  for (const std::filesystem::path& folder : arguments.directories)
    addresses.emplace_back(folder, arguments.plan);
  if (!arguments.ledger.empty()) {
    const Report runs = make_report(addresses, arguments.checks);
    const std::vector<std::filesystem::path> written = write_ledger(runs, arguments.ledger);
    Json files = Json::array();
    for (const std::filesystem::path& each : written) files.push_back(each.string());
    if (arguments.json) {
      std::cout << json_text({{"files", files}, {"runs", runs.runs.size()}}) << '\n';
    } else {
      for (const Json& each : files) std::cout << each.get<std::string>() << '\n';
    }
    return 0;
  }
  const std::filesystem::path file =
      !arguments.out.empty()
          ? arguments.out
          : addresses.front().directory() / find_plan(addresses.front()).outputs / "report.html";
  if (arguments.follow) {
    exit_when_interrupted();
    follow_runs(addresses, arguments.checks, file);
  } else {
    replace_file(file, report_html(make_report(addresses, arguments.checks)));
  }
  if (arguments.json) {
    std::cout << json_text({{"file", file.string()}, {"runs", addresses.size()}}) << '\n';
  } else {
    std::cout << file.string() << '\n';
  }
  return 0;
}

}  // namespace

Verb report_verb() {
  return {
      "report", "Write runs as one HTML file: figures, claims, provenance",
      "report runs/fig2a runs/fig2b --out fig2.html", [](Arguments& arguments) -> VerbCall {
        return {
            {{"DIR", &arguments.directories, "run directories, or DIR@ID for one of their plans", false,
              nullptr, offer_folders},
             plan_option(arguments),
             {"--out", &arguments.out, "file to write (default: report.html of the first directory)"},
             {"--ledger", &arguments.ledger,
              "add the runs to this Markdown file instead, or replace them in it: every claim, the cells "
              "behind each, a figure of each run. It is made from a file for each run in LEDGER.runs; "
              "without DIR, from these alone"},
             {"--follow", &arguments.follow, "write the page anew as cells end, until the runs are complete"},
             {"--checks", &arguments.checks,
              "theorem checks to include: what `check --json` answered; a ledger keeps those it has"},
             json_option(arguments)},
            [&] { return report(arguments); }};
      }};
}

}  // namespace moelab
