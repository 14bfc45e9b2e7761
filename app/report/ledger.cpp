#include "app/report/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "analysis/stats/claims.h"
#include "analysis/stats/corrections.h"
#include "app/report/markdown.h"
#include "app/run/durable_file.h"
#include "plots/csv_cell.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

/// Cells' ids are cut to this; `reproduce` takes the beginning of an id.
constexpr std::size_t kIdLetters = 8;
/// What build_name says of runs from before builds were recorded.
constexpr const char* kUnknownBuild = "unknown";

/// The work that a run's source names, up to its year or "(slides)": "Dikkala et al. 2023" of "Dikkala et al.
/// 2023, Fig. 3" and of "after Dikkala et al. 2023, Theorem 2".
std::string work_of(const std::string& source) {
  const std::string after = "after ";
  const std::size_t begin = source.starts_with(after) ? after.size() : 0;
  for (std::size_t i = begin + 1; i < source.size(); ++i) {
    const char before = source[i - 1];
    if (source[i] == ',' && ((before >= '0' && before <= '9') || before == ')'))
      return source.substr(begin, i - begin);
  }
  return source.substr(begin);
}

/// The works in the order of their first runs.
std::vector<std::string> works_of(const Report& report) {
  std::vector<std::string> works;
  for (const ReportedRun& run : report.runs) {
    if (std::find(works.begin(), works.end(), work_of(run.source)) == works.end())
      works.push_back(work_of(run.source));
  }
  return works;
}

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

  void add(const ReportedClaim& claim) {
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

std::string counts_table(const Report& report) {
  std::string text =
      "| source | whose claims | runs | points | claims (families) | reproduced | refuted | equivalent | "
      "inconclusive |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const std::string& work : works_of(report)) {
    int runs = 0;
    std::map<std::string, LedgerCounts, std::greater<>> by_origin;  // the paper's first
    for (const ReportedRun& run : report.runs) {
      if (work_of(run.source) != work) continue;
      ++runs;
      for (const ReportedClaim& claim : run.claims) by_origin[claim.origin].add(claim);
    }
    for (const auto& [origin, counts] : by_origin) {
      text += fmt::format("| [{}](#{}) | {} | {} | {} | {} ({}) | {} | {} | {} | {} |\n", markdown_text(work),
                          anchor(work), markdown_text(origin), runs, counts.points, counts.claims,
                          counts.families.size(), counts.of(Verdict::reproduced), counts.of(Verdict::refuted),
                          counts.of(Verdict::equivalent), counts.of(Verdict::inconclusive));
    }
  }
  return text;
}

/// The p values of all claims that have one, corrected for their number.
class Corrections {
 public:
  explicit Corrections(const Report& report) {
    for (const ReportedRun& run : report.runs)
      for (const ReportedClaim& claim : run.claims)
        if (claim.p_value) {
          claims_.push_back(&claim);
          p_values_.push_back(*claim.p_value);
        }
    holm_ = holm(p_values_);
    benjamini_hochberg_ = benjamini_hochberg(p_values_);
  }

  /// "0.003 (0.2, 0.01)"; empty without one.
  std::string text(const ReportedClaim& claim) const {
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
  std::vector<const ReportedClaim*> claims_;
  std::vector<double> p_values_, holm_, benjamini_hochberg_;
};

/// Both sides and their difference at the decisive point, and how many other points there are.
std::string numbers_text(const ReportedClaim& claim) {
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

std::string claims_table(const std::vector<ReportedClaim>& claims, const Corrections& corrections) {
  if (claims.empty()) return "";
  std::string text =
      "\n| claim | whose | where | verdict | here | paper | p (Holm, BH) | cells |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const ReportedClaim& claim : claims) {
    const std::string statement = claim.statement.empty() ? "" : "; judged: " + claim.statement;
    text += fmt::format("| **{}**: {} | {} | {} | {} | {} | {} | {} | {} |\n", markdown_text(claim.id),
                        markdown_text(claim.text + statement), markdown_text(claim.origin),
                        markdown_text(claim.source), markdown_text(claim.verdict),
                        markdown_text(numbers_text(claim)), markdown_text(claim.reported),
                        corrections.text(claim), claim.cells.size());
  }
  return text;
}

std::string run_text(const ReportedRun& run, const std::string& figure, const Corrections& corrections) {
  std::vector<std::string> sentences;
  for (const std::string& sentence : {run.title, run.source, verdict_counts(run.claims)}) {
    if (!sentence.empty()) sentences.push_back(markdown_text(sentence) + ".");
  }
  std::string text = fmt::format("\n### {}\n\n{} {}, {:.0f} s of processor time", markdown_text(run.name),
                                 fmt::join(sentences, " "), markdown_text(run.state), run.seconds);
  if (run.mixed_builds) {
    text += ". " + markdown_text(run.builds) + "\n";
  } else {
    text += (run.builds == kUnknownBuild ? "" : ", moelab " + markdown_text(run.builds)) + ".\n";
  }
  if (!run.command.empty()) text += fmt::format("\n{}\n", markdown_code_line(run.command));
  if (!figure.empty())
    text += fmt::format("\n![{}]({})\n", markdown_text(run.title), markdown_target(figure));
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

/// A line for each claim, arm and sweep point: the cells of all seeds, those that are not done with their
/// state.
std::string cells_csv(const Report& report) {
  std::string text = "run,claim,arm,at,metric,cells";
  for (const ReportedRun& run : report.runs) {
    for (const ReportedClaim& claim : run.claims) {
      const ReportedCell* last = nullptr;
      for (const ReportedCell& cell : claim.cells) {
        if (!last || cell.arm != last->arm || cell.at != last->at || cell.metric != last->metric) {
          text += fmt::format("\n{},{},{},{},{},", csv_cell(run.name), csv_cell(claim.id), csv_cell(cell.arm),
                              csv_cell(cell.at), csv_cell(cell.metric));
        }
        text += (text.back() == ',' ? "" : " ") + cell.id.substr(0, kIdLetters);
        if (cell.state != "done") text += ":" + cell.state;
        last = &cell;
      }
    }
  }
  return text + "\n";
}

/// The run's first figure that is small enough, copied beside the ledger; the name of the copy, empty where
/// there is none.
std::string copy_figure(const ReportedRun& run, const fs::path& folder, std::vector<fs::path>& written) {
  for (const fs::path& figure : run.drawn) {
    std::error_code none;
    if (!fs::exists(figure, none) || fs::file_size(figure, none) > kLargestFigure) continue;
    const std::string name = anchor(run.name) + "-" + figure.filename().string();
    replace_file(folder / name, read_bytes(figure));
    written.push_back(folder / name);
    return name;
  }
  return "";
}

}  // namespace

const ReportedPoint* decisive_point(const ReportedClaim& claim) {
  if (claim.points.empty()) return nullptr;
  const auto found = std::find_if(claim.points.begin(), claim.points.end(), [&](const ReportedPoint& point) {
    return claim.verdict != "reproduced" && point.verdict == claim.verdict;
  });
  return found == claim.points.end() ? &claim.points.back() : &*found;
}

std::vector<fs::path> write_ledger(const Report& report, const fs::path& file) {
  const fs::path folder = file.parent_path();
  const std::string cells = file.stem().string() + ".cells.csv";
  std::vector<fs::path> written = {file, folder / cells};
  std::string text = fmt::format(
      "# Every claim\n\n"
      "Made by {0}, not edited by hand. `here` holds both sides of a claim, "
      "means over seeds ± half of the 95 % interval, and their paired difference or ratio with its interval: "
      "at the last point, or at the first that keeps a claim from being reproduced. A paper's number stands "
      "beside ours and is never a pass mark. Claims that quote the same words are a family, which is "
      "reproduced where all of them are and refuted where one is. [{1}]({2}) names the cells behind every "
      "claim, with the metric "
      "at their last step; `moelab reproduce DIR CELL` runs one again. Each command was given in the "
      "repository and wrote `runs/`.\n\n",
      markdown_code(fmt::format("moelab report DIR…{} --ledger {}",
                                report.checks.empty() ? "" : " --checks FILE", file.filename().string())),
      markdown_text(cells), markdown_target(cells));
  const Corrections corrections(report);
  text += counts_table(report) + corrections.summary();
  for (const std::string& work : works_of(report)) {
    text += fmt::format("\n## {}\n", markdown_text(work));
    for (const ReportedRun& run : report.runs) {
      if (work_of(run.source) == work) text += run_text(run, copy_figure(run, folder, written), corrections);
    }
  }
  text += checks_table(report.checks);
  replace_file(file, text);
  replace_file(folder / cells, cells_csv(report));
  return written;
}

}  // namespace moelab
