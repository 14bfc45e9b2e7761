/// The verbs that work on run directories: compare, reproduce, verify, report, shares.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "plots/report/table.h"
#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/app/report/ledger_rows.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::store_verbs_test {
namespace {

namespace fs = std::filesystem;

Json saving() {
  Json scenario = tiny();
  scenario["save"] = {"routing"};
  scenario["title"] = "A <small> run & its \"title\"";
  scenario["notes"] = {"Nothing was chosen."};
  scenario["claims"] =
      Json::parse(R"([{"id": "learned_better", "left": {"arm": "learned", "metric": "test_loss_soft"},
    "op": "<", "right": {"arm": "frozen", "metric": "test_loss_soft"}, "reported": "</script>"}])");
  scenario["figures"] = Json::parse(R"([{"id": "loss", "x": "data.train_samples", "y": "test_loss_soft"}])");
  return scenario;
}

/// A finished run of all cells, without figures.
struct Finished : Bench {
  explicit Finished(const Json& scenario) : Bench(scenario) {
    for (const char* share : {"0/2", "1/2"})
      REQUIRE(ask({"run", file, "--out", run, "--share", share}).status == 0);
  }
  Json export_rows() const { return Json::parse(ask({"export", run, "--json"}).out).at("rows"); }
};

TEST_CASE("shares of a run add up to the run, each cell once") {
  const Finished shared(tiny());
  const Bench whole;
  REQUIRE(ask({"run", whole.file, "--out", whole.run}).status == 0);
  CHECK(ask({"export", shared.run}).out == ask({"export", whole.run}).out);
  CHECK(std::distance(fs::directory_iterator(fs::path(shared.run) / "journal"), {}) == 2);
  for (const char* wrong : {"2/2", "-1/2", "1", "a/b", "0/0", "0/2x", " 0/2", "0/+2", "0/99999999999"}) {
    const Answer answer = ask({"run", whole.file, "--out", whole.run, std::string("--share=") + wrong});
    CHECK(answer.status == 2);
    CHECK(answer.err.find("--share") != std::string::npos);
  }
}

TEST_CASE("run --seeds adds seeds, and the plan keeps them") {
  const Bench bench;
  REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
  const auto rows = [&] { return Json::parse(ask({"export", bench.run, "--json"}).out).at("rows").size(); };
  const auto to_run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"plan", bench.file, "--out", bench.run, "--json"});
    return Json::parse(ask(words).out).at("to_run").get<int>();
  };
  CHECK(to_run({"--seeds", "2..4"}) == 12);
  CHECK(rows() == 8);
  REQUIRE(ask({"run", bench.file, "--out", bench.run, "--seeds", "2..4"}).status == 0);
  CHECK(rows() == 20);
  const std::string grown = ask({"export", bench.run}).out;

  const Bench at_once;
  REQUIRE(ask({"run", at_once.file, "--out", at_once.run, "--set", "seeds.count=5"}).status == 0);
  CHECK(grown == ask({"export", at_once.run}).out);

  REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
  CHECK(ask({"export", bench.run}).out == grown);
  CHECK(to_run({"--seeds", "5"}) == 4);
  CHECK(to_run({"--seeds", "0..4"}) == 0);
  REQUIRE(ask({"run", bench.file, "--out", bench.run, "--set", "seeds.count=1"}).status == 0);
  CHECK(rows() == 4);

  const Answer gap = ask({"plan", at_once.file, "--out", bench.run, "--seeds", "6..8"});
  CHECK(gap.status == 2);
  CHECK(gap.err.find("--seeds: got '6..8', but the run has seeds 0 … 4, so that the next is 5") !=
        std::string::npos);
  for (const char* wrong : {"a", "3..", "..3", "4..3", "-1", "2..3x", "1,2"}) {
    const Answer answer = ask({"plan", bench.file, std::string("--seeds=") + wrong});
    CHECK(answer.status == 2);
    CHECK(answer.err.find("--seeds") != std::string::npos);
  }
}

TEST_CASE("reproduce finds a cell by the beginning of its id, and a changed number or array") {
  const Finished finished(saving());
  const std::string cell = finished.export_rows()[3][0];
  const Answer same = ask({"reproduce", finished.run, cell.substr(0, 12)});
  CHECK(same.status == 0);
  CHECK(same.out.find("identical") != std::string::npos);
  CHECK(Json::parse(ask({"reproduce", finished.run, cell, "--json"}).out).at("identical") == true);
  CHECK(ask({"reproduce", finished.run, "no-such"}).status == 2);

  const fs::path array = fs::path(finished.run) / "cells" / cell / "test_probs.npy";
  std::string bytes = file_text(array);
  bytes.back() ^= 1;
  std::ofstream(array, std::ios::binary) << bytes;
  const Answer differs = ask({"reproduce", finished.run, cell});
  CHECK(differs.status == 1);
  CHECK(differs.out.find("test_probs.npy") != std::string::npos);
}

TEST_CASE("verify reads everything and names what is damaged") {
  const Finished finished(saving());
  CHECK(ask({"verify", finished.run}).status == 0);
  CHECK(Json::parse(ask({"verify", finished.run, "--json"}).out).at("problems").empty());
  const std::string cell = finished.export_rows()[0][0];
  const fs::path array = fs::path(finished.run) / "cells" / cell / "test_probs.npy";
  fs::resize_file(array, fs::file_size(array) - 3);
  const fs::path journal = fs::directory_iterator(fs::path(finished.run) / "journal")->path();
  // In the record of another cell: of a cell without a record no array is known.
  std::string text = file_text(journal);
  std::size_t line = 0;
  while (text.substr(line, text.find('\n', line) - line).find(cell) != std::string::npos)
    line = text.find('\n', line) + 1;
  text.at(line + 40) ^= 1;
  std::ofstream(journal, std::ios::binary) << text;
  const Answer damaged = ask({"verify", finished.run});
  CHECK(damaged.status == 1);
  CHECK(damaged.out.find("test_probs.npy") != std::string::npos);
  CHECK(damaged.out.find(journal.filename().string() + ":") != std::string::npos);
}

TEST_CASE("verify holds arrays against their records") {
  const Finished finished(saving());
  const std::string cell = finished.export_rows()[0][0];
  const fs::path folder = fs::path(finished.run) / "cells" / cell;
  std::ofstream(folder / ".test_probs.npy.17-1.tmp") << "left by a killed process";
  fs::create_directories(fs::path(finished.run) / "cells" / "0123456789abcdef");  // of an interrupted cell
  CHECK(ask({"verify", finished.run}).status == 0);
  std::string bytes = file_text(folder / "test_probs.npy");
  bytes.back() ^= 1;  // a whole array of other numbers
  std::ofstream(folder / "test_probs.npy", std::ios::binary) << bytes;
  CHECK(ask({"verify", finished.run}).out.find("test_probs.npy: other bytes than were recorded") !=
        std::string::npos);
  fs::remove(folder / "test_probs.npy");
  CHECK(ask({"verify", finished.run}).out.find("test_probs.npy: missing") != std::string::npos);
  CHECK(ask({"verify", finished.run}).status == 1);
}

TEST_CASE("compare puts means and verdicts of two runs side by side") {
  const Finished left(saving()), right(saving());
  const Json answer = Json::parse(ask({"compare", left.run, right.run, "--json"}).out);
  CHECK(answer.at("metric") == "test_loss_soft");
  REQUIRE(answer.at("rows").size() == 4);
  for (const Json& row : answer.at("rows")) {
    REQUIRE(row.at("values").size() == 2);
    CHECK(row.at("values")[0] == row.at("values")[1]);
    CHECK(row.at("values")[0].at("count") == 2);
  }
  CHECK(answer.at("claims")[0].at("id") == "learned_better");
  CHECK(ask({"compare", left.run, right.run}).out.find("frozen, data.train_samples = 40") !=
        std::string::npos);
  CHECK(ask({"compare", left.run}).status == 2);
  CHECK(ask({"compare", left.run, right.run, "--metric", "test_los_soft"}).err.find("'test_loss_soft'") !=
        std::string::npos);
}

TEST_CASE("a report is one page whose texts are escaped and whose data is JSON") {
  const Finished finished(saving());
  const fs::path page = fs::path(finished.run) / "page.html";
  REQUIRE(ask({"report", finished.run, "--out", page.string()}).status == 0);
  const std::string html = file_text(page);
  CHECK(html.starts_with("<!doctype html>"));
  CHECK(html.find("A &lt;small&gt; run &amp; its &quot;title&quot;") != std::string::npos);
  CHECK(html.find("<small>") == std::string::npos);
  CHECK(html.find("learned_better") != std::string::npos);
  CHECK(html.find("Nothing was chosen.") != std::string::npos);
  // The name of SVG's elements is no address that is visited.
  const std::string name_of_svg = "http://www.w3.org/2000/svg";
  std::string without_name = html;
  without_name.erase(without_name.find(name_of_svg), name_of_svg.size());
  for (const char* outside : {"http://", "https://", "src=", "@import"})
    CHECK(without_name.find(outside) == std::string::npos);
  // What the page shows is in it as CSV: every cell, and each figure's points.
  CHECK(html.find("download=\"tiny.csv\" href=\"data:text/csv;charset=utf-8,cell,arm,seed,") !=
        std::string::npos);
  CHECK(html.find("download=\"loss.csv\" href=\"data:text/csv;charset=utf-8,series,x,mean,") !=
        std::string::npos);
  const std::string opening = "<script type=\"application/json\">";
  // The first script draws the claims.
  const std::size_t start = html.find(opening, html.find(opening) + 1) + opening.size();
  const Json figure = Json::parse(html.substr(start, html.find("</script>", start) - start));
  REQUIRE(figure.at("panels").size() == 1);
  const Json series = figure.at("panels")[0].at("series");
  REQUIRE(series.size() == 2);
  CHECK(series[0].at("points").size() == 2);
  CHECK(series[0].at("points")[0].at("mean").is_number());
}

TEST_CASE("a ledger has a file for each run with its claims, and a copy of the first figure") {
  Json scenario = saving();
  scenario["source"] = "A et al. 2020, Fig. 1";
  const Bench bench(scenario);
  REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
  const fs::path ledger = bench.folder.path() / "book";
  CHECK(ask({"report", bench.run, bench.run, "--ledger", ledger.string()}).status == 2);
  CHECK_FALSE(fs::exists(ledger));
  const Json answer = Json::parse(ask({"report", bench.run, "--ledger", ledger.string(), "--json"}).out);
  CHECK(answer.at("runs") == 1);
  CHECK(answer.at("files").size() == 4);  // the figure, the run, all claims, their families
  CHECK(file_text(ledger / "figures" / "tiny.svg") ==
        file_text(fs::path(bench.run) / "figures" / "loss.svg"));
  const Json run = read_json_file(ledger / "runs" / "tiny.json");
  CHECK(run.at("title") == "A <small> run & its \"title\"");
  CHECK(run.at("source") == "A et al. 2020, Fig. 1");
  CHECK(run.at("states") == Json({{"done", 8}}));
  CHECK(run.at("builds").size() == 1);
  CHECK(run.at("figure") == "figures/tiny.svg");
  const std::string command = run.at("command");
  CHECK(command.starts_with("moelab run "));
  CHECK(command.find("--out") == std::string::npos);
  const Json& judged = run.at("claims");
  REQUIRE(judged.size() == 1);
  const Json& claim = judged[0];
  CHECK(claim.at("id") == "learned_better");
  CHECK(claim.at("origin") == "ours");
  CHECK(claim.at("reading") == "main");
  CHECK(claim.at("verdict") == "inconclusive");  // two seeds decide nothing
  CHECK(claim.at("reported") == "</script>");
  CHECK(run.at("points").at("data").size() == 2);
  // Without directories the list of claims is made anew from the files of the runs.
  const std::string claims = file_text(ledger / "claims.json");
  CHECK(Json::parse(claims).at("data")[0][0] == "tiny");
  fs::remove(ledger / "claims.json");
  CHECK(ask({"report", "--ledger", ledger.string()}).status == 0);
  CHECK(file_text(ledger / "claims.json") == claims);
  fs::remove(ledger / "runs" / "tiny.json");
  CHECK(ask({"report", "--ledger", ledger.string()}).status == 0);
  CHECK(read_json_file(ledger / "claims.json").at("data").empty());
  CHECK(ask({"report"}).err.find("DIR") != std::string::npos);
}

TEST_CASE("report and ledger take what check --json answered, with its statements") {
  const Finished finished(saving());
  const fs::path folder = finished.folder.path(), checks = folder / "checks.json";
  std::ofstream(checks) << ask({"check", "acmoe2025.lemma3", "--json"}).out;
  const fs::path ledger = folder / "ledger", page = folder / "page.html";
  REQUIRE(ask({"report", finished.run, "--checks", checks.string(), "--ledger", ledger.string()}).status ==
          0);
  REQUIRE(ask({"report", finished.run, "--checks", checks.string(), "--out", page.string()}).status == 0);
  const std::string html = file_text(page);
  CHECK(html.find("Theorem checks") != std::string::npos);
  const Json answer = read_json_file(checks), kept = read_json_file(ledger / "checks.json");
  REQUIRE(answer.size() == 2);
  REQUIRE(kept.at("data").size() == 2);
  for (std::size_t i = 0; i < answer.size(); ++i) {
    for (std::size_t field = 0; field < kept.at("columns").size(); ++field) {
      const std::string name = kept.at("columns")[field];
      if (name == "id" || name == "statement" || name == "verdict")
        CHECK(kept.at("data")[i][field] == answer[i].at(name));
    }
    CHECK(html.find(">" + answer[i].at("id").get<std::string>() + "</td>") != std::string::npos);
  }
  std::ofstream(checks) << "[{\"id\": 1}]";
  CHECK(ask({"report", finished.run, "--checks", checks.string(), "--out", page.string()}).status == 2);
  CHECK(ask({"report", finished.run, "--checks", checks.string(), "--ledger", ledger.string()}).status == 2);
}

}  // namespace
}  // namespace moelab::store_verbs_test
