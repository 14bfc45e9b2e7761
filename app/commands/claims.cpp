#include <algorithm>
#include <iostream>

#include "app/commands/verbs.h"
#include "app/report/claim_results.h"
#include "app/report/rates_markdown.h"
#include "app/run/crossing_run.h"
#include "app/run/rate_results.h"
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

}  // namespace moelab
