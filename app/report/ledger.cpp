#include "app/report/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <functional>
#include <map>
#include <type_traits>
#include <utility>

#include "analysis/stats/claims.h"
#include "analysis/stats/intervals.h"
#include "app/run/results.h"
#include "app/store/durable_file.h"
#include "app/store/record.h"
#include "plots/report/table.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr std::size_t kIdLetters = 8;

std::vector<LedgerCells> ledger_cells(const std::vector<ReportedCell>& cells) {
  std::vector<LedgerCells> groups;
  const ReportedCell* last = nullptr;
  for (const ReportedCell& cell : cells) {
    if (!last || cell.arm != last->arm || cell.at != last->at || cell.metric != last->metric)
      groups.push_back({cell.arm, cell.at, cell.metric, {}});
    const std::string id = cell.id.substr(0, kIdLetters);
    groups.back().cells.push_back(cell.state == "done" ? id : id + ":" + cell.state);
    last = &cell;
  }
  return groups;
}

}  // namespace

LedgerRun ledger_run(const ReportedRun& run) {
  LedgerRun made{run.name,           run.title,           run.source, run.state, run.command, run.seconds,
                 run.training_share, run.measuring_share, {},         "",        {}};
  for (const auto& [name, cells] : run.builds) made.builds.push_back({name, cells});
  for (const ReportedClaim& claim : run.claims) {
    made.claims.push_back({claim.id, claim.verdict, claim.text, claim.source, claim.reported, claim.origin,
                           claim.statement, claim.p_value, claim.seeds_to_decide, claim.points,
                           ledger_cells(claim.cells)});
  }
  return made;
}

const ReportedPoint* decisive_point(const LedgerClaim& claim) {
  if (claim.points.empty()) return nullptr;
  const auto found = std::find_if(claim.points.begin(), claim.points.end(), [&](const ReportedPoint& point) {
    return claim.verdict != "reproduced" && point.verdict == claim.verdict;
  });
  return found == claim.points.end() ? &claim.points.back() : &*found;
}

namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kLargestFigure = 400000;

/// The data of a ledger.
struct Ledger {
  std::vector<LedgerRun> runs;
  std::vector<ReportedCheck> checks;
};

/// A paper or talk that the sources of runs name.
struct LedgerWork {
  std::string name;  ///< the start of its runs' sources, up to a year or "(slides)"
  std::vector<const LedgerRun*> runs;
};

fs::path ledger_runs_folder(const fs::path& ledger) {
  return ledger.parent_path() / (ledger.stem().string() + ".runs");
}

fs::path ledger_checks_file(const fs::path& ledger) {
  return ledger.parent_path() / (ledger.stem().string() + ".checks.json");
}

fs::path ledger_cells_file(const fs::path& ledger) {
  return ledger.parent_path() / (ledger.stem().string() + ".cells.csv");
}

/// The heading of runs whose scenario names no source.
constexpr const char* kNoWork = "Without a source";

/// Returns the work that a run's source names, up to its year or "(slides)": "Dikkala et al. 2023" for
/// "Dikkala et al. 2023, Fig. 3" and for "after Dikkala et al. 2023, Theorem 2".
std::string work_of(const std::string& source) {
  if (source.empty()) return kNoWork;
  const std::string after = "after ";
  const std::size_t begin = source.starts_with(after) ? after.size() : 0;
  for (std::size_t i = begin + 1; i < source.size(); ++i) {
    const char before = source[i - 1];
    if (source[i] == ',' && ((before >= '0' && before <= '9') || before == ')'))
      return source.substr(begin, i - begin);
  }
  return source.substr(begin);
}

/// Returns the works and their runs, sorted by name. Runs without a source come last.
std::vector<LedgerWork> runs_by_work(const Ledger& ledger) {
  std::vector<LedgerWork> works;
  std::map<std::string, std::vector<const LedgerRun*>> by_name;
  for (const LedgerRun& run : ledger.runs) by_name[work_of(run.source)].push_back(&run);
  for (auto& [work, runs] : by_name) {
    std::stable_sort(runs.begin(), runs.end(),
                     [](const LedgerRun* left, const LedgerRun* right) { return left->name < right->name; });
    works.push_back({work, std::move(runs)});
  }
  std::stable_partition(works.begin(), works.end(),
                        [](const LedgerWork& work) { return work.name != kNoWork; });
  return works;
}

Verdict verdict_named(const std::string& name) {
  for (const Verdict verdict : {Verdict::reproduced, Verdict::refuted, Verdict::equivalent}) {
    if (to_string(verdict) == name) return verdict;
  }
  return Verdict::inconclusive;
}

/// Returns the words that identify a claim's family: the first quotation in its text, or else the whole text.
std::string words_of(const std::string& text) {
  const std::size_t end = text.find("”");
  return text.starts_with("“") && end != std::string::npos ? text.substr(0, end) : text;
}

/// Counts claims and families of claims. A family is the claims of one work with the same words (words_of).
struct LedgerCounts {
  int claims = 0, points = 0;
  std::map<std::string, std::vector<Verdict>> families;  ///< by words_of() the claims
  std::map<std::string, int> verdicts;

  void add(const LedgerClaim& claim) {
    ++claims;
    points += static_cast<int>(claim.points.size());
    families[words_of(claim.text)].push_back(verdict_named(claim.verdict));
    ++verdicts[claim.verdict];
  }
  /// Formats the claims and families with a verdict: "12 (5)".
  std::string of(Verdict verdict) const {
    const auto is_such = [&](const auto& family) { return combined_verdict(family.second) == verdict; };
    const auto count = verdicts.find(to_string(verdict));
    return fmt::format("{} ({})", count == verdicts.end() ? 0 : count->second,
                       std::count_if(families.begin(), families.end(), is_such));
  }
};

/// Formats the name of a build.
std::string build_text(const std::string& name) {
  constexpr std::string_view kUnknown = "unknown";  // build_name() of null
  return name == kUnknown ? "a build that was not recorded" : "moelab " + markdown_text(name);
}

/// Lists the builds of the ledger.
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
    std::map<std::string, LedgerCounts, std::greater<>> by_origin;  // the paper's claims first
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

/// Corrects the p values of all claims for the number of claims (Holm, and Benjamini and Hochberg).
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

  /// Returns "0.003 (0.2, 0.01)". Empty without a p value.
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

/// Formats both sides and their difference at the decisive point, and the number of other points.
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
  return text + fmt::format("; of {} points {}", claim.points.size(), counts_text(verdicts));
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

/// Returns "3 reproduced, 1 refuted".
std::string verdicts_text(const std::vector<LedgerClaim>& claims) {
  std::map<std::string, int> counts;
  for (const LedgerClaim& claim : claims) ++counts[claim.verdict];
  return counts_text(counts);
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

/// Returns the Markdown document for `file`:
/// - the builds that made the runs;
/// - the counts of claims by source and origin;
/// - p values corrected for the number of claims;
/// - for each work, its runs with command, time, build, figure and a table of claims;
/// - theorem checks, if there are any.
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

/// Returns CSV with a line for each claim, arm and sweep point. The line has the cells of all seeds. A cell
/// that is not done has its state.
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

constexpr int kVersion = 1;

template <class Given, class Part>
concept Is = std::same_as<std::remove_const_t<Given>, Part>;

// bind() lists the members of each struct once, for writing and for reading.

void bind(auto& visit, Is<ReportedPoint> auto& point) {
  visit("at", point.at);
  visit("left", point.left);
  visit("right", point.right);
  visit("estimate", point.estimate);
  visit("verdict", point.verdict);
  visit("note", point.note);
}

void bind(auto& visit, Is<LedgerCells> auto& group) {
  visit("arm", group.arm);
  visit("at", group.at);
  visit("metric", group.metric);
  visit("cells", group.cells);
}

void bind(auto& visit, Is<LedgerClaim> auto& claim) {
  visit("id", claim.id);
  visit("verdict", claim.verdict);
  visit("origin", claim.origin);
  visit("source", claim.source);
  visit("reported", claim.reported);
  visit("text", claim.text);
  visit("statement", claim.statement);
  visit("p", claim.p_value);
  visit("seeds_to_decide", claim.seeds_to_decide);
  visit("points", claim.points);
  visit("cells", claim.cells);
}

void bind(auto& visit, Is<LedgerBuild> auto& build) {
  visit("name", build.name);
  visit("cells", build.cells);
}

void bind(auto& visit, Is<LedgerRun> auto& run) {
  visit("name", run.name);
  visit("title", run.title);
  visit("source", run.source);
  visit("state", run.state);
  visit("command", run.command);
  visit("seconds", run.seconds);
  visit("training_share", run.training_share);
  visit("measuring_share", run.measuring_share);
  visit("builds", run.builds);
  visit("figure", run.figure);
  visit("claims", run.claims);
}

void bind(auto& visit, Is<ReportedCheck> auto& check) {
  visit("id", check.id);
  visit("source", check.source);
  visit("statement", check.statement);
  visit("predicted", check.predicted);
  visit("measured", check.measured);
  visit("error_bound", check.error_bound);
  visit("verdict", check.verdict);
  visit("expected", check.expected);
}

class LedgerWriter {
 public:
  template <class Value>
  void operator()(const char* name, const Value& value) {
    object_[name] = json_of(value);
  }

  template <class Value>
  static Json json_of(const Value& value) {
    if constexpr (std::is_arithmetic_v<Value> || std::same_as<Value, std::string>) {
      return value;
    } else {
      LedgerWriter part;
      bind(part, value);
      return part.object_;
    }
  }
  template <class Value>
  static Json json_of(const std::optional<Value>& value) {
    return value ? json_of(*value) : Json();
  }
  template <class Value>
  static Json json_of(const std::vector<Value>& values) {
    Json list = Json::array();
    for (const Value& value : values) list.push_back(json_of(value));
    return list;
  }

 private:
  Json object_ = Json::object();
};

/// Reads a struct from JSON. Throws UserError if a member is missing, unknown, or of another type. An
/// optional member may be missing, as in files of earlier builds.
class LedgerReader {
 public:
  template <class Value>
  void operator()(const char* name, Value& value) {
    const auto found = object_.find(name);
    const std::string here = join_path(path_, name);
    if (found == object_.end()) {
      if constexpr (requires { value.reset(); }) return;
      throw UserError(here, "missing");
    }
    read(*found, here, value);
    known_.insert(name);
  }

  template <class Value>
  static void read(const Json& given, const std::string& here, Value& value) {
    if constexpr (std::same_as<Value, std::string>) {
      if (!given.is_string()) refuse(given, here, "a text");
      value = given.get<std::string>();
    } else if constexpr (std::same_as<Value, bool>) {
      if (!given.is_boolean()) refuse(given, here, "true or false");
      value = given.get<bool>();
    } else if constexpr (std::is_integral_v<Value>) {
      if (!given.is_number_integer() || !std::in_range<Value>(given.get<std::int64_t>()))
        refuse(given, here, "a whole number");
      value = given.get<Value>();
    } else if constexpr (std::is_floating_point_v<Value>) {
      if (!given.is_number()) refuse(given, here, "a number");
      value = given.get<Value>();
    } else {
      if (!given.is_object()) refuse(given, here, "an object");
      LedgerReader part(given, here);
      bind(part, value);
      for (const auto& [name, unused] : given.items())
        if (!part.known_.contains(name)) throw UserError(join_path(here, name), "unknown");
    }
  }
  template <class Value>
  static void read(const Json& given, const std::string& here, std::optional<Value>& value) {
    value.reset();
    if (!given.is_null()) read(given, here, value.emplace());
  }
  template <class Value>
  static void read(const Json& given, const std::string& here, std::vector<Value>& values) {
    if (!given.is_array()) refuse(given, here, "a list");
    values.resize(given.size());
    for (std::size_t i = 0; i < given.size(); ++i) read(given[i], join_path(here, i), values[i]);
  }

 private:
  LedgerReader(const Json& object, std::string path) : object_(object), path_(std::move(path)) {}
  [[noreturn]] static void refuse(const Json& given, const std::string& here, const char* needed) {
    throw UserError(here, fmt::format("got {}, needs {}", abbreviated(given), needed));
  }

  const Json& object_;
  std::string path_;
  std::set<std::string> known_;
};

/// Returns the text of a file with the version and `value` under `name`.
template <class Value>
std::string ledger_file_text(const char* name, const Value& value) {
  return sealed_text({{"version", kVersion}, {name, LedgerWriter::json_of(value)}});
}

template <class Value>
Value read_ledger_file(const fs::path& file, const char* name, const std::string& way_out) {
  const Json document = read_sealed(file, way_out);
  Value value;
  try {
    if (!document.contains("version") || !document.contains(name))
      throw UserError("", fmt::format("is no file with the {} of a ledger", name));
    if (document.at("version") != kVersion) {
      throw UserError("version", fmt::format("got {}, but this program reads version {}",
                                             abbreviated(document.at("version")), kVersion));
    }
    LedgerReader::read(document.at(name), name, value);
  } catch (const UserError& error) {
    throw UserError(file.string(), fmt::format("{}{}{}; {}", error.path(), error.path().empty() ? "" : ": ",
                                               error.message(), way_out));
  }
  return value;
}

LedgerRun read_run_file(const fs::path& file) {
  const std::string way_out = "delete it, or give the directory of its run";
  LedgerRun run = read_ledger_file<LedgerRun>(file, "run", way_out);
  const std::string stem = ledger_run_stem(run.name);
  if (file.stem() != stem) {
    throw UserError(file.string(), fmt::format("is the file of run '{}', needs the name {}.json; {}",
                                               run.name, stem, "delete or rename it"));
  }
  return run;
}

/// Returns the run as its file will be read.
LedgerRun as_read(const LedgerRun& run) {
  LedgerRun read;
  LedgerReader::read(Json::parse(json_text(LedgerWriter::json_of(run))), "run", read);
  return read;
}

/// Reads the checks. Empty without the file. Throws UserError as read_ledger_runs does.
std::vector<ReportedCheck> read_ledger_checks(const fs::path& ledger) {
  const fs::path file = ledger_checks_file(ledger);
  if (!fs::exists(file)) return {};
  return read_ledger_file<std::vector<ReportedCheck>>(file, "checks", "delete it, or give --checks FILE");
}

}  // namespace

std::string ledger_run_stem(const std::string& run_name) {
  constexpr std::size_t kLongest = 120;
  const std::string stem = anchor(run_name).substr(0, kLongest);
  if (stem == run_name && !stem.empty()) return stem;
  return fmt::format("{}{}{}", stem, stem.empty() ? "" : "-", checksum(run_name));
}

std::string ledger_run_text(const LedgerRun& run) {
  return ledger_file_text("run", run);
}

std::vector<LedgerRun> read_ledger_runs(const fs::path& ledger, const std::set<std::string>& but) {
  std::vector<fs::path> files;
  const fs::path folder = ledger_runs_folder(ledger);
  if (fs::exists(folder)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const fs::path& file = entry.path();
      const bool is_kept = !but.contains(file.stem().string());
      if (is_kept && file.extension() == ".json" && !is_temporary_name(file.filename().string()))
        files.push_back(file);
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<LedgerRun> runs;
  for (const fs::path& file : files) runs.push_back(read_run_file(file));
  return runs;
}

namespace {

/// The path and the content of a file to write.
using Document = std::pair<fs::path, std::string>;

/// Returns the run's first figure that is small enough. Empty if there is none.
fs::path shown_figure(const ReportedRun& run) {
  for (const fs::path& figure : run.drawn) {
    std::error_code none;
    if (fs::exists(figure, none) && fs::file_size(figure, none) <= kLargestFigure) return figure;
  }
  return {};
}

/// Throws UserError if two runs have the same name, because one would replace the other.
void check_run_names(const std::vector<ReportedRun>& runs) {
  std::set<std::string> names;
  for (const ReportedRun& run : runs) {
    if (!names.insert(run.name).second) {
      throw UserError("--ledger", fmt::format("got two runs of the name '{}', needs one at most: a ledger "
                                              "holds its runs by name",
                                              run.name));
    }
  }
}

}  // namespace

std::vector<fs::path> write_ledger(const Report& report, const fs::path& file) {
  check_run_names(report.runs);
  const fs::path folder = ledger_runs_folder(file);
  if (report.runs.empty() && report.checks.empty() && !fs::exists(folder)) {
    throw UserError("--ledger",
                    fmt::format("got no run directory, and there is no folder {} with the runs of "
                                "an earlier ledger",
                                folder.string()));
  }
  std::vector<Document> documents;
  Ledger ledger;
  std::set<std::string> given;
  for (const ReportedRun& reported : report.runs) {
    LedgerRun run = as_read(ledger_run(reported));
    const std::string stem = ledger_run_stem(run.name);
    if (const fs::path figure = shown_figure(reported); !figure.empty()) {
      run.figure = stem + "-" + figure.filename().string();
      documents.emplace_back(file.parent_path() / run.figure, read_bytes(figure));
    }
    documents.emplace_back(folder / (stem + ".json"), ledger_run_text(run));
    given.insert(stem);
    ledger.runs.push_back(std::move(run));
  }
  make_folder(folder);
  const FolderLock lock(folder);
  for (LedgerRun& run : read_ledger_runs(file, given)) ledger.runs.push_back(std::move(run));
  if (report.checks.empty()) {
    ledger.checks = read_ledger_checks(file);
  } else {
    ledger.checks = report.checks;
    documents.emplace_back(ledger_checks_file(file), ledger_file_text("checks", report.checks));
  }
  documents.emplace_back(ledger_cells_file(file), ledger_cells_csv(ledger));
  documents.emplace_back(file, ledger_text(ledger, file));
  std::vector<fs::path> written;
  for (const auto& [place, content] : documents) {
    update_file(place, content);
    written.push_back(place);
  }
  return written;
}

}  // namespace moelab
