/// `moelab table`: means with intervals, ready for a paper.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/run/results.h"
#include "app/scenario/json.h"
#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"

namespace moelab::table_test {
namespace {

struct Tabled : Bench {
  Tabled() { REQUIRE(ask({"run", file, "--out", run}).status == 0); }
};

std::ptrdiff_t lines_of(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

TEST_CASE("a table has a row for each arm and sweep point, and the means of the export's cells") {
  const Tabled tabled;
  const Answer answer =
      ask({"table", tabled.run, "--metric", "test_nmse_soft", "--metric", "cluster_entropy"});
  CHECK(answer.status == 0);
  CHECK(lines_of(answer.out) == 3 + 1 + 4);
  CHECK(
      answer.out.starts_with("test_nmse_soft, geometric mean over seeds [95 % interval]\n"
                             "cluster_entropy, mean over seeds ± half of the 95 % interval\n\n"
                             "arm      data.train_samples  test_nmse_soft"));
  const Json cells = Json::parse(ask({"export", tabled.run, "--json"}).out);
  const Json columns = cells.at("columns");
  const auto column = [&](const char* name) {
    return static_cast<std::size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
  };
  double sum = 0, count = 0;
  for (const Json& row : cells.at("rows")) {
    if (row[column("arm")] != "frozen" || row[column("data.train_samples")] != 40) continue;
    sum += std::log(row[column("test_nmse_soft")].get<double>());
    ++count;
  }
  REQUIRE(count == 2);
  const std::size_t line = answer.out.find("frozen   40 ");
  REQUIRE(line != std::string::npos);
  const double mean = std::exp(sum / count);  // the interval is wide, so few digits are shown
  CHECK((answer.out.find(fmt::format(" {:.0f} [", mean), line) != std::string::npos ||
         answer.out.find(fmt::format(" {:.1f} [", mean), line) != std::string::npos ||
         answer.out.find(fmt::format(" {:.2f} [", mean), line) != std::string::npos));
}

TEST_CASE("a table as JSON goes to the file that --out names") {
  const Tabled tabled;
  const std::string file = tabled.run + "_means.json";
  const Answer answer = ask({"table", tabled.run, "--json", "--out", file});
  CHECK(answer.status == 0);
  CHECK(answer.out.empty());
  CHECK(read_json_file(file) == Json::parse(ask({"table", tabled.run, "--json"}).out));
  CHECK(ask({"table", tabled.run, "--json", "--best"}).status == 2);
}

TEST_CASE("tables come as Markdown, LaTeX and JSON") {
  const Tabled tabled;
  const auto table = [&](const std::string& format) {
    return ask({"table", tabled.run, "--metric", "cluster_entropy", "--format", format}).out;
  };
  CHECK(table("markdown")
            .starts_with("- cluster_entropy, mean over seeds ± half of the 95 % interval\n\n"
                         "| arm | data.train_samples | cluster_entropy |\n|---|---|---|\n| learned | 20 | "));
  const std::string latex = table("latex");
  CHECK(
      latex.starts_with("% cluster_entropy, mean over seeds +- half of the 95 % interval\n\\begin{tabular}"));
  CHECK(latex.find("arm & data.train\\_samples & cluster\\_entropy \\\\\n") != std::string::npos);
  CHECK(latex.find(" $\\pm$ ") != std::string::npos);
  CHECK(latex.find("±") == std::string::npos);
  for (const char* rule : {"\\toprule\n", "\\midrule\n", "\\bottomrule\n"})
    CHECK(latex.find(rule) != std::string::npos);
  const Json json = Json::parse(ask({"table", tabled.run, "--metric", "cluster_entropy", "--json"}).out);
  CHECK(json.at(0).at("metric") == "cluster_entropy");
  CHECK(json.at(0).at("entries").size() == 4);
}

TEST_CASE("numbers are rounded as their intervals are") {
  const auto text = [](double mean, double low, double high) {
    SummaryEntry entry;
    entry.planned = 5;
    entry.estimate = MeanEstimate{mean, 5, Interval{low, high}};
    return rounded_entry_text(entry);
  };
  CHECK(text(0.9133, 0.38, 1.44) == "0.91 ± 0.53");
  CHECK(text(0.087123, 0.054, 0.12) == "0.087 ± 0.033");
  CHECK(text(1234.5, 1000, 1469) == "1234 ± 234");
  CHECK(text(-3.14159, -3.15659, -3.12659) == "-3.142 ± 0.015");
}

TEST_CASE("tables for papers have the scenario's labels and mark the best arm, and CSV has every digit") {
  Json scenario = tiny();
  scenario["labels"] = Json::parse(R"({"learned": "A & B", "data.train_samples": "samples",
                                       "data.train_samples=20": "twenty"})");
  const Bench bench(scenario);
  REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
  const std::string latex = ask({"table", bench.run, "--format", "latex", "--best"}).out;
  CHECK(latex.find("arm & samples & test\\_nmse\\_top1 \\\\\n") != std::string::npos);
  CHECK(latex.find("A \\& B & twenty & ") != std::string::npos);
  const auto count = [](const std::string& text, const std::string& part) {
    int found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  CHECK(count(latex, "\\textbf{") == 2);  // one arm at each of the two points
  CHECK(count(ask({"table", bench.run, "--format", "markdown", "--best"}).out, "**") == 4);
  const std::string csv = ask({"table", bench.run, "--format", "csv", "--metric", "test_nmse_soft"}).out;
  CHECK(
      csv.starts_with("arm,data.train_samples,test_nmse_soft,test_nmse_soft_low,test_nmse_soft_high,"
                      "test_nmse_soft_seeds\nlearned,20,"));
  CHECK(lines_of(csv) == 5);
  CHECK(ask({"table", bench.run, "--format", "csv", "--best"}).status == 2);
}

TEST_CASE("LaTeX: a wide table loses shared values, then has smaller letters, then says how wide it is") {
  Json scenario = tiny();
  const std::string arm = "a linear router that learns";
  scenario["labels"] = {{"learned", arm}, {"data.train_samples", "samples"}};
  const Bench bench(scenario);
  REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
  const auto table = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"table", bench.run, "--format", "latex", "--metric", "test_nmse_soft"});
    return ask(more).out;
  };
  const auto says = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  // At one sweep point: the value stands in a comment, and the letters keep their size.
  const std::string at_one = table({"--at", "data.train_samples=40"});
  CHECK(says(at_one, "% everywhere: samples = 40\n\\begin{tabular}{ll}\n"));
  CHECK_FALSE(says(at_one, "footnotesize"));
  const std::string narrow = table({});
  CHECK(says(narrow, "{\\footnotesize\\setlength{\\tabcolsep}{3pt}%\n\\begin{tabular}{@{}lll@{}}\n"));
  CHECK(narrow.ends_with("\\end{tabular}}\n"));
  CHECK_FALSE(says(narrow, " in wide"));
  const std::string wide =
      table({"--metric", "test_nmse_top1", "--metric", "train_nmse", "--metric", "cluster_entropy"});
  CHECK(says(wide, " in wide, too wide for "));
  CHECK(says(wide, "icml (3.25 in)"));
  CHECK_FALSE(says(wide, "jmlr"));
  // Many metrics of few arms: a row for each metric is narrower.
  const std::string turned = table({"--metric", "test_nmse_top1", "--metric", "train_nmse", "--metric",
                                    "cluster_entropy", "--at", "data.train_samples=40"});
  CHECK(says(turned, ("arm & " + arm + " & frozen").c_str()));
  CHECK(says(turned, "test\\_nmse\\_top1 & "));
  // Others have the width that they need, and all values.
  CHECK(says(ask({"table", bench.run, "--at", "data.train_samples=40"}).out, "data.train_samples"));
}

TEST_CASE("numbers below 0 have the sign of a minus where people read them, and a hyphen in data") {
  Json scenario = tiny();
  scenario["labels"] = {{"data.train_samples=20", "-20"}};
  const Bench bench(scenario);
  REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
  const auto table = [&](const char* format) { return ask({"table", bench.run, "--format", format}).out; };
  CHECK(table("latex").find(" & $-$20 & ") != std::string::npos);
  CHECK(table("latex").find("-20 &") == std::string::npos);
  CHECK(table("csv").find("−") == std::string::npos);
  CHECK(ask({"table", bench.run, "--json"}).out.find("−") == std::string::npos);
}

TEST_CASE("steps that no seed got to are told as a median above the last step") {
  Json scenario = tiny();
  scenario["metrics"].push_back(
      Json::parse(R"({"kind": "convergence", "name": "never", "metric": "test_loss_soft", "target": 1e-9})"));
  const Bench bench(scenario);
  REQUIRE(ask({"run", bench.file, "--out", bench.run}).status == 0);
  const std::string text = ask({"table", bench.run, "--metric", "steps_to_target.never"}).out;
  CHECK(text.find("steps_to_target.never (median over seeds") != std::string::npos);
  CHECK(text.find("above 4 (2 of 2 censored)") != std::string::npos);
  const Json json = Json::parse(ask({"table", bench.run, "--metric", "steps_to_target.never", "--json"}).out);
  CHECK(json.at(0).at("entries")[0].at("above") == 4);
}

TEST_CASE("a table of one sweep point has its rows alone") {
  const Tabled tabled;
  const Answer answer = ask({"table", tabled.run, "--at", "data.train_samples=40"});
  CHECK(answer.status == 0);
  CHECK(lines_of(answer.out) == 2 + 1 + 2);
  CHECK(ask({"table", tabled.run, "--at", "data.train_samples=41"})
            .err.find("--at data.train_samples: unknown value '41'") != std::string::npos);
  CHECK(ask({"table", tabled.run, "--at", "data.train_sample=40"}).err.find("data.train_samples") !=
        std::string::npos);
}

TEST_CASE("a metric or a format that there is not is refused") {
  const Tabled tabled;
  const Answer metric = ask({"table", tabled.run, "--metric", "test_nmse_sof"});
  CHECK(metric.status == 2);
  CHECK(metric.err.find("--metric: unknown metric 'test_nmse_sof'") != std::string::npos);
  const Answer format = ask({"table", tabled.run, "--format", "latexx"});
  CHECK(format.status == 2);
  CHECK(format.err.find("latex") != std::string::npos);
}

}  // namespace
}  // namespace moelab::table_test
