#include "app/report/ledger_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "analysis/stats/claims.h"
#include "analysis/stats/corrections.h"
#include "app/report/ledger_files.h"
#include "app/report/ledger_works.h"
#include "app/report/markdown.h"
#include "plots/csv_cell.h"
#include "sim/base/counted.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

Verdict verdict_named(const std::string& name) {
  for (const Verdict verdict : {Verdict::reproduced, Verdict::refuted, Verdict::equivalent}) {
    if (to_string(verdict) == name) return verdict;
  }
  return Verdict::inconclusive;
}

/// The words that a claim stands under: what its text quotes first, or else the whole.
std::string words_of(const std::string& text) {
  const std::size_t end = text.find("”");
  return text.starts_with("“") && end != std::string::npos ? text.substr(0, end) : text;
}

/// Claims counted, and families of them: those of one work that stand under the same words.
struct LedgerCounts {
  int claims = 0, points = 0;
  std::map<std::string, std::vector<Verdict>> families;  ///< by the words
  std::map<std::string, int> verdicts;

  void add(const LedgerClaim& claim) {
    ++claims;
    points += static_cast<int>(claim.points.size());
    families[words_of(claim.text)].push_back(verdict_named(claim.verdict));
    ++verdicts[claim.verdict];
  }
  /// "12 (5)": claims and families of a verdict.
  std::string of(Verdict verdict) const {
    const auto is_such = [&](const auto& family) { return combined_verdict(family.second) == verdict; };
    const auto count = verdicts.find(to_string(verdict));
    return fmt::format("{} ({})", count == verdicts.end() ? 0 : count->second,
                       std::count_if(families.begin(), families.end(), is_such));
  }
};

/// The program of that name.
std::string build_text(const std::string& name) {
  constexpr std::string_view kUnknown = "unknown";  // what build_name says of what was recorded without one
  return name == kUnknown ? "a build that was not recorded" : "moelab " + markdown_text(name);
}

/// Over how many builds the ledger extends, and which they are.
std::string builds_list(const Ledger& ledger) {
  std::map<std::string, int> runs_of_build;
  for (const LedgerRun& run : ledger.runs)
    for (const LedgerBuild& build : run.builds) ++runs_of_build[build.name];
  if (runs_of_build.empty()) return "";
  if (runs_of_build.size() == 1)
    return fmt::format("\nOne build made all runs: {}.\n", build_text(runs_of_build.begin()->first));
  std::string text =
      fmt::format("\nThe runs extend over {} builds, whose numbers may differ:\n\n", runs_of_build.size());
  for (const auto& [name, runs] : runs_of_build)
    text += fmt::format("- {}: {}\n", build_text(name), counted(runs, "run"));
  return text;
}

std::string counts_table(const Ledger& ledger) {
  std::string text =
      "| source | whose claims | runs | points | claims (families) | reproduced | refuted | equivalent | "
      "inconclusive |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const auto& [work, runs] : runs_by_work(ledger)) {
    std::map<std::string, LedgerCounts, std::greater<>> by_origin;  // the paper's first
    for (const LedgerRun* run : runs)
      for (const LedgerClaim& claim : run->claims) by_origin[claim.origin].add(claim);
    for (const auto& [origin, counts] : by_origin) {
      text += fmt::format("| [{}](#{}) | {} | {} | {} | {} ({}) | {} | {} | {} | {} |\n", markdown_text(work),
                          anchor(work), markdown_text(origin), runs.size(), counts.points, counts.claims,
                          counts.families.size(), counts.of(Verdict::reproduced), counts.of(Verdict::refuted),
                          counts.of(Verdict::equivalent), counts.of(Verdict::inconclusive));
    }
  }
  return text;
}

/// The p values of all claims that have one, corrected for their number.
class Corrections {
 public:
  explicit Corrections(const Ledger& ledger) {
    for (const LedgerRun& run : ledger.runs)
      for (const LedgerClaim& claim : run.claims)
        if (claim.p_value) {
          claims_.push_back(&claim);
          p_values_.push_back(*claim.p_value);
        }
    holm_ = holm(p_values_);
    benjamini_hochberg_ = benjamini_hochberg(p_values_);
  }

  /// "0.003 (0.2, 0.01)"; empty without one.
  std::string text(const LedgerClaim& claim) const {
    const auto found = std::find(claims_.begin(), claims_.end(), &claim);
    if (found == claims_.end()) return "";
    const auto place = static_cast<std::size_t>(found - claims_.begin());
    return fmt::format("{:.2g} ({:.2g}, {:.2g})", p_values_[place], holm_[place], benjamini_hochberg_[place]);
  }

  std::string summary() const {
    if (claims_.empty()) return "";
    constexpr double kError = 0.05;
    int decided = 0, by_holm = 0, by_rate = 0;
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      if (verdict_named(claims_[i]->verdict) == Verdict::inconclusive) continue;
      ++decided;
      by_holm += holm_[i] <= kError;
      by_rate += benjamini_hochberg_[i] <= kError;
    }
    return fmt::format(
        "\nA verdict stands for its claim alone, with an error of 5 %. Of the {} claims here with a p value "
        "{} "
        "are decided; {} of these stay so where the chance of any error among all is held at 5 % (Holm), {} "
        "where the expected share of errors among the decided is (Benjamini and Hochberg).\n",
        claims_.size(), decided, by_holm, by_rate);
  }

 private:
  std::vector<const LedgerClaim*> claims_;
  std::vector<double> p_values_, holm_, benjamini_hochberg_;
};

/// Both sides and their difference at the decisive point, and how many other points there are.
std::string numbers_text(const LedgerClaim& claim) {
  const ReportedPoint* const point = decisive_point(claim);
  if (point == nullptr) return "";
  std::string text =
      fmt::format("{}{} against {}", point->at.empty() ? "" : point->at + ": ", point->left, point->right);
  if (!point->estimate.empty()) text += "; " + point->estimate;
  if (!point->note.empty()) text += fmt::format(" ({})", point->note);
  if (claim.seeds_to_decide) text += fmt::format("; about {} seeds would decide", *claim.seeds_to_decide);
  if (claim.points.size() == 1) return text;
  std::map<std::string, int> verdicts;
  for (const ReportedPoint& other : claim.points) ++verdicts[other.verdict];
  std::vector<std::string> parts;
  for (const auto& [verdict, count] : verdicts) parts.push_back(fmt::format("{} {}", count, verdict));
  return text + fmt::format("; of {} points {}", claim.points.size(), fmt::join(parts, ", "));
}

std::string claims_table(const std::vector<LedgerClaim>& claims, const Corrections& corrections) {
  if (claims.empty()) return "";
  std::string text =
      "\n| claim | whose | where | verdict | here | paper | p (Holm, BH) | cells |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const LedgerClaim& claim : claims) {
    std::size_t cells = 0;
    for (const LedgerCells& group : claim.cells) cells += group.cells.size();
    const std::string statement = claim.statement.empty() ? "" : "; judged: " + claim.statement;
    text += fmt::format("| **{}**: {} | {} | {} | {} | {} | {} | {} | {} |\n", markdown_text(claim.id),
                        markdown_text(claim.text + statement), markdown_text(claim.origin),
                        markdown_text(claim.source), markdown_text(claim.verdict),
                        markdown_text(numbers_text(claim)), markdown_text(claim.reported),
                        corrections.text(claim), cells);
  }
  return text;
}

/// "3 reproduced, 1 refuted".
std::string verdicts_text(const std::vector<LedgerClaim>& claims) {
  std::map<std::string, int> counts;
  for (const LedgerClaim& claim : claims) ++counts[claim.verdict];
  std::vector<std::string> parts;
  for (const auto& [verdict, count] : counts) parts.push_back(fmt::format("{} {}", count, verdict));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string run_text(const LedgerRun& run, const Corrections& corrections) {
  std::vector<std::string> sentences;
  for (const std::string& sentence : {run.title, run.source, verdicts_text(run.claims)}) {
    if (!sentence.empty())
      sentences.push_back(markdown_text(sentence) + (sentence.ends_with('?') ? "" : "."));
  }
  std::string text = fmt::format("\n### {}\n\n{} {}, {:.0f} s of computation", markdown_text(run.name),
                                 fmt::join(sentences, " "), markdown_text(run.state), run.seconds);
  if (run.training_share && run.measuring_share) {
    text += fmt::format(", of which {:.0f} % training and {:.0f} % measuring", 100 * *run.training_share,
                        100 * *run.measuring_share);
  }
  std::vector<std::string> builds;
  for (const LedgerBuild& build : run.builds) {
    builds.push_back(build_text(build.name));
    if (run.builds.size() > 1) builds.back() += fmt::format(" ({} cells)", build.cells);
  }
  text += fmt::format("{}{}.\n", builds.empty() ? "" : ", by ", fmt::join(builds, " and "));
  if (!run.command.empty()) text += fmt::format("\n{}\n", markdown_code_line(run.command));
  if (!run.figure.empty())
    text += fmt::format("\n![{}]({})\n", markdown_text(run.title), markdown_target(run.figure));
  return text + claims_table(run.claims, corrections);
}

std::string checks_table(const std::vector<ReportedCheck>& checks) {
  if (checks.empty()) return "";
  const auto as_expected =
      std::count_if(checks.begin(), checks.end(), [](const ReportedCheck& check) { return check.expected; });
  std::string text = fmt::format(
      "\n## Theorem checks\n\n{} checks, {} with the verdict that is expected of them.\n\n"
      "| check | source | verdict | measured | predicted | error bound |\n|---|---|---|---|---|---|\n",
      checks.size(), as_expected);
  for (const ReportedCheck& check : checks) {
    text +=
        fmt::format("| **{}**: {} | {} | {}{} | {} | {} | {} |\n", markdown_text(check.id),
                    markdown_text(check.statement), markdown_text(check.source), markdown_text(check.verdict),
                    check.expected ? "" : ", not as expected", markdown_text(check.measured),
                    markdown_text(check.predicted), markdown_text(check.error_bound));
  }
  return text;
}

}  // namespace

fs::path ledger_cells_file(const fs::path& ledger) {
  return ledger.parent_path() / (ledger.stem().string() + ".cells.csv");
}

std::string ledger_text(const Ledger& ledger, const fs::path& file) {
  const std::string cells = ledger_cells_file(file).filename().string(),
                    runs = ledger_runs_folder(file).filename().string();
  const Corrections corrections(ledger);
  std::string text = fmt::format(
      "# Every claim\n\n"
      "Made by {0}, not edited by hand, from the files of [{1}]({2}/), one for each run: the command adds "
      "runs or replaces them, and leaves out those whose file was deleted. Works are in the order of their "
      "names, the runs of each, too. `here` holds both sides of a claim, "
      "means over seeds ± half of the 95 % interval, and their paired difference or ratio with its interval: "
      "at the last point, or at the first that keeps a claim from being reproduced. A paper's number stands "
      "beside ours and is never a pass mark. Claims that quote the same words are a family, which is "
      "reproduced where all of them are and refuted where one is. [{3}]({4}) names the cells behind every "
      "claim, with the metric "
      "at their last step; `moelab reproduce DIR CELL` runs one again. Each command was given in the "
      "repository and wrote `runs/`.\n",
      markdown_code(fmt::format("moelab report DIR…{} --ledger {}",
                                ledger.checks.empty() ? "" : " --checks FILE", file.filename().string())),
      markdown_text(runs), markdown_target(runs), markdown_text(cells), markdown_target(cells));
  text += builds_list(ledger) + "\n" + counts_table(ledger) + corrections.summary();
  for (const auto& [work, of_work] : runs_by_work(ledger)) {
    text += fmt::format("\n## {}\n", markdown_text(work));
    for (const LedgerRun* run : of_work) text += run_text(*run, corrections);
  }
  return text + checks_table(ledger.checks);
}

std::string ledger_cells_csv(const Ledger& ledger) {
  std::string text = "run,claim,arm,at,metric,cells\n";
  for (const auto& [work, runs] : runs_by_work(ledger)) {
    for (const LedgerRun* run : runs)
      for (const LedgerClaim& claim : run->claims)
        for (const LedgerCells& group : claim.cells)
          text +=
              fmt::format("{},{},{},{},{},{}\n", csv_cell(run->name), csv_cell(claim.id), csv_cell(group.arm),
                          csv_cell(group.at), csv_cell(group.metric), fmt::join(group.cells, " "));
  }
  return text;
}

}  // namespace moelab
