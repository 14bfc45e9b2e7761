#include "app/report/ledger.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "app/scenario/json.h"
#include "plots/report/table.h"
#include "sim/base/error.h"
#include "tests/app/report/ledger_rows.h"
#include "tests/hostile_texts.h"
#include "tests/temporary_folder.h"

namespace moelab::ledger_test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

void write_text(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

Json claim_of(const std::string& id, const std::string& verdict, const std::string& text, const char* origin,
              const Json& p, const char* reading = "main") {
  const Json point = {
      {"at", {{"n", 1}}}, {"estimate", -0.123456789}, {"interval", {-0.2, -0.1}}, {"scale", "log ratio"},
      {"level", 0.95},    {"verdict", verdict}};
  return {{"id", id}, {"verdict", verdict}, {"origin", origin}, {"reading", reading}, {"text", text},
          {"p", p},   {"points", {point}}};
}

LedgerRun run_of(const std::string& name, const std::string& source, const std::vector<Json>& claims) {
  return {{{"run", name}, {"source", source}, {"figure", nullptr}, {"claims", claims}}, {}};
}

/// A run with a claim of each p value.
LedgerRun run_with(const std::string& name, const std::string& source, const std::vector<double>& p_values) {
  std::vector<Json> claims;
  for (const double p : p_values)
    claims.push_back(claim_of("claim" + std::to_string(claims.size()), "reproduced", "It falls.", "ours", p));
  return run_of(name, source, claims);
}

const LedgerRun kFirst = run_with("first", "B 2020, Fig. 1", {0.01}),
                kSecond = run_with("second", "A 2021, Fig. 2", {0.02, 0.04}),
                kThird = run_with("third (quick)", "", {0.03});

/// A folder with a ledger, and what it holds.
struct Book {
  TemporaryFolder folder;
  fs::path ledger = folder.path() / "book", runs = ledger / "runs";

  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> found;
    if (!fs::exists(ledger)) return found;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(ledger))
      if (entry.is_regular_file()) found[fs::relative(entry.path(), ledger)] = text_of(entry.path());
    return found;
  }
  Json claims() const { return rows_of("claims.json"); }
  /// The family of a claim.
  Json family_of(const std::string& id) const {
    for (const Json& claim : claims())
      if (is_text(claim.at("id"), id))
        return rows_of("families.json").at(claim.at("family").get<std::size_t>());
    return {};
  }

  Json rows_of(const std::string& name) const { return moelab::rows_of(read_json_file(ledger / name)); }
};

/// The message of the refusal.
std::string refusal(const std::vector<LedgerRun>& runs, const Book& book) {
  try {
    write_ledger(runs, "", book.ledger);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a ledger that grew run by run, in any order, is that of all runs at once") {
  const Book whole, grown, reversed;
  write_ledger({kFirst, kSecond, kThird}, "", whole.ledger);
  for (const LedgerRun& run : {kFirst, kSecond, kThird}) write_ledger({run}, "", grown.ledger);
  for (const LedgerRun& run : {kThird, kSecond, kFirst}) write_ledger({run}, "", reversed.ledger);
  CHECK(whole.files().size() == 5);  // three runs, their claims, their families
  CHECK(grown.files() == whole.files());
  CHECK(reversed.files() == whole.files());
}

TEST_CASE("claims.json has a row for each claim, and p values corrected for those of all runs") {
  const Book book;
  write_ledger({kFirst}, "", book.ledger);
  CHECK(book.claims() == Json::parse(R"([{"run": "first", "id": "claim0", "origin": "ours", "reading": "main",
    "verdict": "reproduced", "p": 0.01, "p_holm": 0.01, "p_bh": 0.01, "family": 0}])"));
  write_ledger({kSecond}, "", book.ledger);
  const Json claims = book.claims();
  REQUIRE(claims.size() == 3);
  // Holm: 0.01 · 3, 0.02 · 2, 0.04 · 1; Benjamini and Hochberg: 0.01 · 3/1, 0.02 · 3/2, 0.04.
  const auto corrected = [&](std::size_t i, double by_holm, double by_rate) {
    CHECK(claims[i].at("p_holm").get<double>() == doctest::Approx(by_holm));
    CHECK(claims[i].at("p_bh").get<double>() == doctest::Approx(by_rate));
  };
  corrected(0, 0.03, 0.03);
  corrected(1, 0.04, 0.03);
  corrected(2, 0.04, 0.04);
  CHECK(std::ranges::count(text_of(book.ledger / "claims.json"), '\n') == 3 + 3);
}

TEST_CASE("families are judged by main readings, for each work and origin") {
  const Book book;
  write_ledger(
      {run_of("one", "Somebody 2020, Fig. 1",
              {claim_of("a", "reproduced", "“Falls.” Here: from 1 to 2.", "paper", 0.001),
               claim_of("b", "refuted", "“Falls.” Here: by another measure.", "paper", 0.02, "other"),
               claim_of("c", "refuted", "“Rises.”", "paper", 0.03),
               claim_of("g", "excluded", "“Rises.” Here: by sums.", "paper", nullptr, "excluded"),
               claim_of("d", "inconclusive", "“Falls.”", "ours", nullptr)}),
       run_of("two", "after Somebody 2020, Fig. 2",
              {claim_of("e", "reproduced", "“Falls.” Here: later.", "paper", 0.03),
               claim_of("f", "refuted", "“Stays.”", "paper", 0.03, "other")})},
      "", book.ledger);
  for (const char* stem : {"one", "two"})
    CHECK(read_json_file(book.runs / fmt::format("{}.json", stem)).at("work") == "Somebody 2020");
  CHECK(book.rows_of("families.json").size() == 4);
  const auto family = [](const char* origin, const char* reading, const char* verdict) {
    return Json{{"origin", origin}, {"reading", reading}, {"verdict", verdict}};
  };
  for (const char* id : {"a", "b", "e"}) CHECK(book.family_of(id) == family("paper", "main", "reproduced"));
  CHECK(book.family_of("c") == family("paper", "main", "refuted"));
  CHECK(book.family_of("d") == family("ours", "main", "inconclusive"));
  CHECK(book.family_of("f") == family("paper", "other", "refuted"));
  const Json claims = book.claims();
  const auto excluded = std::ranges::find_if(claims, [](const Json& claim) { return claim.at("id") == "g"; });
  CHECK(excluded->at("family").is_null());
}

TEST_CASE("a run given again replaces its own, and a deleted file takes its run away") {
  const Book book, expected;
  write_ledger({kFirst, kSecond}, "", book.ledger);
  const LedgerRun changed = run_with("first", "C 2022", {0.5});
  write_ledger({changed}, "", book.ledger);
  write_ledger({changed, kSecond}, "", expected.ledger);
  CHECK(book.files() == expected.files());

  REQUIRE(fs::remove(book.runs / "first.json"));
  write_ledger({}, "", book.ledger);
  const Book second_alone;
  write_ledger({kSecond}, "", second_alone.ledger);
  CHECK(book.files() == second_alone.files());
}

TEST_CASE("a ledger copies the first figure that is small enough, and keeps its checks") {
  const Book book;
  const fs::path large = book.folder.path() / "large.svg", small = book.folder.path() / "small.svg",
                 checks = book.folder.path() / "checks.json";
  write_text(large, std::string(250'001, ' '));
  write_text(small, "<svg/>");
  write_text(checks,
             R"([{"id": "lemma", "measured": 1.23456789, "details": {"steps": 3}, "curve": [[1, 2]]}])");
  LedgerRun run = kFirst;
  run.figures = {book.folder.path() / "absent.svg", large, small};
  write_ledger({run}, checks, book.ledger);
  CHECK(text_of(book.ledger / "figures" / "first.svg") == "<svg/>");
  CHECK(read_json_file(book.runs / "first.json").at("figure") == "figures/first.svg");
  CHECK(text_of(book.ledger / "checks.json") ==
        "{\"columns\": [\"id\",\"measured\"],\n\"data\": [\n[\"lemma\",1.23457]\n]}\n");
  write_ledger({kSecond}, "", book.ledger);
  CHECK(fs::exists(book.ledger / "checks.json"));
}

TEST_CASE("nothing is written where a run is named twice, or where there is neither run nor check") {
  const Book book;
  CHECK(refusal({kFirst, kSecond, kFirst}, book).find("'first'") != std::string::npos);
  CHECK(refusal({}, book).find("runs") != std::string::npos);
  CHECK(book.files().empty());
}

TEST_CASE("a file that is damaged or of no run is named, and nothing is written") {
  const Book book;
  write_ledger({kFirst, kSecond}, "", book.ledger);
  const fs::path file = book.runs / "first.json";
  const std::string whole = text_of(file);
  const Json document = Json::parse(whole);
  const auto changed = [&](const char* pointer, const Json& value) {
    Json other = document;
    other[Json::json_pointer(pointer)] = value;
    return other.dump();
  };
  for (const std::string& text :
       {std::string(), std::string("{}"), whole.substr(0, whole.size() / 2), changed("/version", 1),
        changed("/run", 3), changed("/run", "second"), changed("/claims", "none"),
        changed("/claims/0", Json::array()), changed("/points/data/0/0", 3)}) {
    CAPTURE(text);
    write_text(file, text);
    const auto before = book.files();
    const std::string refused = refusal({kThird}, book);
    CHECK_MESSAGE(refused.starts_with(file.string()), refused);
    CHECK(book.files() == before);
  }
  // The way out that the message names.
  write_ledger({kFirst}, "", book.ledger);
  CHECK(text_of(file) == whole);
}

TEST_CASE("what is written of a run is read again, whatever its texts") {
  for (const std::string& text : hostile_texts()) {
    CAPTURE(text);
    const Book book;
    write_ledger({run_of(text, text, {claim_of("a", "refuted", text, "ours", 0.25)})}, "", book.ledger);
    const auto before = book.files();
    CHECK(refusal({}, book).empty());
    CHECK(book.files() == before);
    CHECK(refusal({kFirst}, book).empty());
  }
}

TEST_CASE("the file of a run lists its claims, and their points in a table that names their claims") {
  const Book book;
  LedgerRun run = run_with("first", "B 2020", {0.01, 0.02});
  run.entry["builds"] = Json::parse(R"([{"name": "0.2.0", "cells": 4}])");
  run.entry["claims"][1]["points"].push_back({{"verdict", "refuted"}, {"note", "late"}});
  run.entry["claims"][1]["quote"] = "It falls.";
  run.entry["claims"][1]["p"] = nullptr;
  write_ledger({run}, "", book.ledger);
  const Json entry = read_json_file(book.runs / "first.json");
  CHECK(entry.at("builds") == run.entry["builds"]);
  const Json& claims = entry.at("claims");
  REQUIRE(claims.size() == 2);
  CHECK(claims[0].at("reading") == "main");
  CHECK_FALSE(claims[1].contains("quote"));
  CHECK_FALSE(claims[1].contains("p"));
  CHECK(entry.at("points").at("columns") ==
        Json({"claim", "at", "estimate", "interval", "scale", "level", "verdict", "note"}));
  REQUIRE(entry.at("points").at("data").size() == 3);
  CHECK(entry.at("points").at("data")[1][0] == 1);
  CHECK(entry.at("points").at("data")[2] ==
        Json({1, nullptr, nullptr, nullptr, nullptr, nullptr, "refuted", "late"}));
}

TEST_CASE("names of files are those of runs, and differ where these do") {
  CHECK(ledger_run_stem("fig3") == "fig3");
  CHECK(ledger_run_stem("samples_needed-2") == "samples_needed-2");
  std::vector<std::string> names = {"fig3-quick", "fig3 (quick)", "Fig3", "fig3", "a/b",
                                    "ab",         "../b",         "",     "…"};
  names.push_back(std::string(300, 'a'));
  names.push_back(std::string(301, 'a'));
  std::set<std::string> stems;
  for (const std::string& name : names) {
    const std::string stem = ledger_run_stem(name);
    CHECK(stem.size() < 200);
    CHECK(stem.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string::npos);
    stems.insert(stem);
  }
  CHECK(stems.size() == names.size());
}

TEST_CASE("Markdown: markup is escaped, words, numbers and intervals stay legible") {
  for (const char* same : {"test_loss_soft", "ratio 0.41 [0.35, 0.48]", "-0.3 ± 0.1", "a ~ b", "5 % & more",
                           "a > b", "2020, Fig. 1", "+1"})
    CHECK(markdown_text(same) == same);
  CHECK(markdown_text("a|b *c* `d` \\ $e$") == "a\\|b \\*c\\* \\`d\\` \\\\ \\$e\\$");
  CHECK(markdown_text("_a_ ~~b~~") == "\\_a\\_ \\~\\~b\\~\\~");
  CHECK(markdown_text("<b> &lt;") == "&lt;b> &amp;lt;");
  CHECK(markdown_text("[a](b)") == "\\[a\\](b)");
  CHECK(markdown_text("[a][b]") == "\\[a\\]\\[b\\]");
  CHECK(markdown_text("a] b [c") == "a\\] b \\[c");
  CHECK(markdown_text("# a") == "\\# a");
  CHECK(markdown_text("- a") == "\\- a");
  CHECK(markdown_text("---") == "\\---");
  CHECK(markdown_text("12. a") == "12\\. a");
  CHECK(markdown_text("    a\nb") == "a b");
}

}  // namespace moelab::ledger_test
