#pragma once

/// Claims in the words of a scenario, judged on a table.

#include <functional>
#include <string>

#include "analysis/stats/claims.h"
#include "app/scenario/claim_reader.h"

namespace moelab {

/// What comes of a claim that is written without its id.
inline ClaimResult judged_claim(const std::string& text, const ResultTable& table,
                                const std::function<bool(const std::string&)>& is_positive) {
  Json claim = Json::parse(text);
  claim["id"] = "c";
  return evaluate_claims(read_claims(Json::array({claim})), table, is_positive).at(0);
}

/// Arm a against arm b, a metric, and whatever else.
inline std::string versus(const std::string& metric, const std::string& op, const std::string& more = "") {
  return R"({"left": {"arm": "a", "metric": ")" + metric + R"("}, "op": ")" + op +
         R"(", "right": {"arm": "b", "metric": ")" + metric + R"("})" + more + "}";
}

}  // namespace moelab
