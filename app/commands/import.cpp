#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <memory>

#include "app/commands/verbs.h"
#include "app/report/claim_results.h"
#include "app/run/durable_file.h"
#include "app/run/imported_arms.h"
#include "sim/base/counted.h"
#include "sim/base/error.h"

namespace moelab {
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

}  // namespace moelab
