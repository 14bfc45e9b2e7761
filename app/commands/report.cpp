#include <iostream>

#include "app/commands/verbs.h"
#include "app/json/json.h"
#include "app/report/ledger.h"
#include "app/report/run_report.h"
#include "app/run/durable_file.h"
#include "app/run/run_folder.h"

namespace moelab {
namespace {

int report(const Arguments& arguments) {
  if (!arguments.out.empty()) check_output_file(arguments.out, "--out");
  if (!arguments.ledger.empty()) check_output_file(arguments.ledger, "--ledger");
  std::vector<RunAddress> addresses;
  for (const std::filesystem::path& folder : arguments.directories)
    addresses.emplace_back(folder, arguments.plan);
  const Report runs = make_report(addresses, arguments.checks);
  if (!arguments.ledger.empty()) {
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
  replace_file(file, report_html(runs));
  if (arguments.json) {
    std::cout << json_text({{"file", file.string()}, {"runs", runs.runs.size()}}) << '\n';
  } else {
    std::cout << file.string() << '\n';
  }
  return 0;
}

}  // namespace

Verb report_verb() {
  return {"report", "Write runs as one HTML file: figures, claims, provenance",
          "report runs/fig2a runs/fig2b --out fig2.html", [](Arguments& arguments) -> VerbCall {
            return {
                {{"DIR", &arguments.directories, "run directories, or DIR@ID for one of their plans", true,
                  nullptr, offer_folders},
                 plan_option(arguments),
                 {"--out", &arguments.out, "file to write (default: report.html of the first directory)"},
                 {"--ledger", &arguments.ledger,
                  "write this Markdown file instead: a table of every claim, beside it the cells behind "
                  "each and a figure of each run"},
                 {"--checks", &arguments.checks, "theorem checks to include: what `check --json` answered"},
                 json_option(arguments)},
                [&] { return report(arguments); }};
          }};
}

}  // namespace moelab
