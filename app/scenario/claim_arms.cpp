#include "app/scenario/claim_arms.h"

#include <charconv>

#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr std::string_view kPlaceholder = "{arm}";

std::string with_arm(std::string text, const std::string& arm) {
  for (std::size_t at = text.find(kPlaceholder); at != std::string::npos;
       at = text.find(kPlaceholder, at + arm.size()))
    text.replace(at, kPlaceholder.size(), arm);
  return text;
}

}  // namespace

std::string ExpandedClaims::path_in_scenario(const std::string& path) const {
  constexpr std::string_view kStart = "claims[";
  if (!path.starts_with(kStart)) return path;
  std::size_t place = 0;
  const char* const begin = path.data() + kStart.size();
  const auto [end, error] = std::from_chars(begin, path.data() + path.size(), place);
  if (error != std::errc() || place >= places.size()) return path;
  return join_path("claims", places[place]) + path.substr(static_cast<std::size_t>(end - path.data()) + 1);
}

ExpandedClaims expand_claims(const Json& claims) {
  ExpandedClaims expanded;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Json& claim = claims[i];
    const auto add = [&](Json one) {
      expanded.claims.push_back(std::move(one));
      expanded.places.push_back(i);
    };
    const bool is_comparison = claim.contains("left");
    if (!is_comparison && claim.contains("arm") == claim.contains("arms")) {
      throw UserError(join_path(join_path("claims", i), "arm"),
                      claim.contains("arm") ? "given beside 'arms'; needs one or the other"
                                            : "missing; a claim needs 'arm' or 'arms'");
    }
    if (is_comparison || claim.contains("arm")) {
      add(claim);
      continue;
    }
    for (const Json& name : claim.at("arms")) {
      Json one = claim;
      one.erase("arms");
      const std::string arm = name.get<std::string>(), id = claim.at("id").get<std::string>();
      one["arm"] = arm;
      one["id"] = id.find(kPlaceholder) == std::string::npos ? id + "_" + arm : with_arm(id, arm);
      if (claim.contains("text")) one["text"] = with_arm(claim.at("text").get<std::string>(), arm);
      add(std::move(one));
    }
  }
  return expanded;
}

}  // namespace moelab
