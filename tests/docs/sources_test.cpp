/// The pages of docs/papers, and docs/questions/index.md, name scenarios, claims and checks: each has to
/// exist, and none may be left out.

#include <doctest/doctest.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "analysis/theory/check.h"
#include "app/scenario/arms.h"
#include "app/scenario/claim_reader.h"
#include "app/scenario/json.h"
#include "tests/app/run/test_scenario.h"
#include "tests/docs/page_text.h"

namespace moelab::sources_test {
namespace {

namespace fs = std::filesystem;

struct Named {
  std::string name;
  bool is_mentioned = false;
};

/// Marks what the pattern, with `*` for any letters, names; false where that is nothing.
bool mention(const std::string& pattern, std::vector<Named>& names) {
  bool any = false;
  for (Named& named : names) {
    if (fnmatch(pattern.c_str(), named.name.c_str(), 0) != 0) continue;
    named.is_mentioned = any = true;
  }
  return any;
}

/// Arms and claims of a scenario and of the scenario that it extends.
Json arms_and_claims(const fs::path& scenario) {
  const Json own = read_json_file(scenario);
  Json whole = own.contains("extends")
                   ? arms_and_claims(scenario.parent_path() / own.at("extends").get<std::string>())
                   : Json({{"arms", Json::object()}, {"claims", Json::array()}});
  whole["arms"].update(own.value("arms", Json::object()));
  if (own.contains("claims")) whole["claims"] = own.at("claims");
  return whole;
}

std::vector<Named> claims_of(const fs::path& scenario) {
  std::vector<Named> claims;
  const Json read = arms_and_claims(scenario);
  std::vector<std::string> arms;
  for (const WrittenArm& arm : written_arms(read.at("arms"))) arms.push_back(arm.name);
  for (const Json& claim : expand_claims(read.at("claims"), arms).claims) claims.push_back({claim.at("id")});
  return claims;
}

std::vector<Named> checks_of(const std::string& work) {
  std::vector<Named> names;
  for (const Check& check : checks()) {
    if (check.id.starts_with(work + ".")) names.push_back({check.id});
  }
  return names;
}

}  // namespace

TEST_CASE("sources: a page for each folder of scenarios names all its claims and all checks, and no others") {
  int pages = 0;
  for (const auto& folder : fs::directory_iterator(kRoot / "scenarios")) {
    const std::string work = folder.path().filename().string();
    CAPTURE(work);
    const fs::path place = work == "questions" ? "questions/index.md" : "papers/" + work + ".md";
    const std::string page = file_text(kRoot / "docs" / place);
    REQUIRE_FALSE(page.empty());
    ++pages;
    std::map<std::string, std::vector<Named>> claims;
    for (const auto& file : fs::directory_iterator(folder))
      claims[file.path().filename().string()] = claims_of(file.path());
    std::vector<Named> checks = checks_of(work);

    for (const std::vector<std::string>& row : table_rows(page)) {
      const std::vector<std::string> named =
          row.size() > 1 ? quoted_names(row[1]) : std::vector<std::string>{};
      if (named.empty()) continue;  // a head
      if (!named[0].ends_with(".json")) {
        for (const std::string& check : named) {
          CAPTURE(check);
          const bool is_one = mention(check, checks), are_several = mention(check + ".*", checks);
          CHECK((is_one || are_several));
        }
        continue;
      }
      CAPTURE(named[0]);
      REQUIRE(claims.contains(named[0]));
      for (const std::string& claim : quoted_names(row.at(2))) {
        CAPTURE(claim);
        CHECK(mention(claim, claims[named[0]]));
      }
    }
    for (const auto& [given_scenario, list] : claims) {
      const auto& scenario = given_scenario;
      CAPTURE(scenario);
      for (const Named& claim : list) CHECK_MESSAGE(claim.is_mentioned, claim.name);
    }
    for (const Named& check : checks) CHECK_MESSAGE(check.is_mentioned, check.name);
  }
  CHECK(pages == 16);
}

TEST_CASE("sources: no two scenarios have one name, which names their run in the results") {
  std::map<std::string, fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "scenarios")) {
    if (entry.path().extension() != ".json") continue;
    const std::string name = read_json_file(entry.path()).at("name").get<std::string>();
    const fs::path& first = files.try_emplace(name, entry.path()).first->second;
    CHECK_MESSAGE(first == entry.path(), name, " names ", first.string(), " and ", entry.path().string());
  }
  CHECK(files.size() > 80);
}

}  // namespace moelab::sources_test
