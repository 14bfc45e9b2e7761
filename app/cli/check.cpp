#include "app/cli/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "app/cli/completion.h"
#include "app/run/figures.h"
#include "app/run/results.h"
#include "app/scenario/json.h"
#include "app/store/durable_file.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

bool names_check(const std::string& name, const std::string& id) {
  return id == name || id.starts_with(name + ".");
}

/// The beginnings of ids that end in a short name: "dikkala2023.theorem2" for "theorem2".
std::vector<std::string> long_names(const std::string& name, const std::vector<Check>& table) {
  std::vector<std::string> found;
  for (const Check& check : table) {
    const std::size_t at = ("." + check.id + ".").find("." + name + ".");
    if (name.empty() || at == std::string::npos) continue;
    const std::string whole = check.id.substr(0, at + name.size());
    if (std::find(found.begin(), found.end(), whole) == found.end()) found.push_back(whole);
  }
  return found;
}

/// Every name that names_check accepts: the ids and their beginnings, in order.
std::vector<std::string> all_names(const std::vector<Check>& table) {
  std::vector<std::string> names;
  for (const Check& check : table) {
    for (std::size_t dot = check.id.find('.'); true; dot = check.id.find('.', dot + 1)) {
      const std::string name = check.id.substr(0, dot);
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      if (dot == std::string::npos) break;
    }
  }
  return names;
}

/// Names the nearest check, by its whole id or without the paper, and the papers.
std::string unknown_check(const std::string& name, const std::vector<Check>& table) {
  std::vector<std::string> papers, names = all_names(table);
  for (const std::string& whole : all_names(table)) {
    const std::size_t dot = whole.find('.');
    if (dot == std::string::npos)
      papers.push_back(whole);
    else
      names.push_back(whole.substr(dot + 1));
  }
  const std::string nearest = nearest_name(name, names);
  return fmt::format("unknown check '{}'{} moelab check --list shows all {} checks. Allowed: {}", name,
                     nearest.empty() ? ";" : fmt::format("; did you mean '{}'?", nearest), table.size(),
                     fmt::join(papers, ", "));
}

struct RelationText {
  const char* name;
  const char* must;  ///< in "must … the prediction"
};

RelationText text_of(Relation relation) {
  if (relation == Relation::equal) return {"equal", "be"};
  return relation == Relation::at_most ? RelationText{"at most", "be at most"}
                                       : RelationText{"at least", "be at least"};
}

/// "measured 2.27, must be 0, give or take 4 (4 standard errors)".
std::string comparison_text(const CheckFinding& finding) {
  const std::string bound =
      finding.error_bound == 0 ? "" : fmt::format(", give or take {:.2g}", finding.error_bound);
  const std::string origin = finding.error_origin.empty() ? "" : fmt::format(" ({})", finding.error_origin);
  return fmt::format("measured {:.6g}, must {} {:.6g}{}{}", finding.measured, text_of(finding.relation).must,
                     finding.predicted, bound, origin);
}

/// A check in words: verdict and id, the statement with its source, and the numbers.
std::string finding_text(const Check& check, const CheckFinding& finding) {
  const CheckVerdict verdict = verdict_of(finding);
  std::string text = fmt::format("{}: {}", check.id, to_string(verdict));
  if (verdict != check.expected) text += fmt::format(", NOT AS EXPECTED ({})", to_string(check.expected));
  if (verdict == check.expected && verdict != CheckVerdict::holds) text += ", as expected";
  text += fmt::format("\n  {} ({})\n  {}\n", check.statement, check.source, comparison_text(finding));
  for (const Hypothesis& hypothesis : finding.hypotheses) {
    if (!hypothesis.met)
      text += fmt::format("  not met: {}; found {:.6g}\n", hypothesis.text, hypothesis.value);
  }
  return text;
}

/// What a measurement must be for the check to fail.
std::string refutation(const CheckFinding& finding) {
  const double low = finding.predicted - finding.error_bound, high = finding.predicted + finding.error_bound;
  if (finding.relation == Relation::at_most) return fmt::format("a measurement above {:.6g}", high);
  if (finding.relation == Relation::at_least) return fmt::format("a measurement below {:.6g}", low);
  return finding.error_bound == 0 ? fmt::format("any measurement but {:.6g}", finding.predicted)
                                  : fmt::format("a measurement outside [{:.6g}, {:.6g}]", low, high);
}

/// The hypotheses, how the statement is measured, and what would refute it.
std::string explanation(const CheckFinding& finding) {
  std::string text = finding.hypotheses.empty() ? "  hypotheses: none\n" : "  hypotheses:\n";
  for (const Hypothesis& hypothesis : finding.hypotheses)
    text += fmt::format("    {}: {}, found {:.6g}\n", hypothesis.text, hypothesis.met ? "met" : "not met",
                        hypothesis.value);
  text += fmt::format("  error bound {:.2g}: {}\n  refuted by: {}\n", finding.error_bound,
                      finding.error_origin.empty() ? "none is needed" : finding.error_origin,
                      refutation(finding));
  if (!finding.details.empty()) text += "  measured on the way:\n";
  for (const auto& [name, value] : finding.details) text += fmt::format("    {}: {:.6g}\n", name, value);
  return text;
}

std::string findings_text(const std::vector<const Check*>& chosen, const std::vector<CheckFinding>& findings,
                          bool explains) {
  std::string text;
  int different = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const CheckVerdict verdict = verdict_of(findings[i]);
    const bool is_expected = verdict == chosen[i]->expected;
    different += is_expected ? 0 : 1;
    text += finding_text(*chosen[i], findings[i]);
    if (explains || !is_expected || verdict == CheckVerdict::hypotheses_not_met)
      text += explanation(findings[i]);
  }
  return fmt::format("{}\n{}, {} not as expected\n", text, counted(chosen.size(), "check"), different);
}

Candidates offer_checks(const std::string&) {
  Candidates candidates;
  for (const std::string& name : all_names(checks())) {
    const auto named =
        std::find_if(checks().begin(), checks().end(), [&](const Check& check) { return check.id == name; });
    candidates.words.push_back({name, named == checks().end() ? "all that begin so" : named->statement});
  }
  return candidates;
}

void list_checks(const std::vector<const Check*>& chosen, bool json) {
  Json list = Json::array();
  for (const Check* check : chosen) {
    if (json) {
      list.push_back(check_json(*check));
    } else {
      std::cout << fmt::format("{} ({}; expected: {})\n  {}\n", check->id, check->source,
                               to_string(check->expected), check->statement);
    }
  }
  if (json) std::cout << list.dump(2) << '\n';
}

}  // namespace

Json check_json(const Check& check) {
  return {{"id", check.id},
          {"source", check.source},
          {"statement", check.statement},
          {"expected", to_string(check.expected)}};
}

Json finding_json(const Check& check, const CheckFinding& finding) {
  Json hypotheses = Json::array();
  for (const Hypothesis& hypothesis : finding.hypotheses)
    hypotheses.push_back({{"text", hypothesis.text}, {"value", hypothesis.value}, {"met", hypothesis.met}});
  Json details = Json::object();
  for (const auto& [name, value] : finding.details) details[name] = value;
  Json curve = Json::array();
  for (const auto& [x, y] : finding.curve.points) curve.push_back({x, y});
  return {{"id", check.id},
          {"source", check.source},
          {"statement", check.statement},
          {"hypotheses", std::move(hypotheses)},
          {"relation", text_of(finding.relation).name},
          {"predicted", finding.predicted},
          {"measured", finding.measured},
          {"error_bound", finding.error_bound},
          {"error_origin", finding.error_origin},
          {"expected", to_string(check.expected)},
          {"verdict", to_string(verdict_of(finding))},
          {"details", std::move(details)},
          {"curve", std::move(curve)}};
}

std::vector<const Check*> chosen_checks(const std::vector<Check>& table,
                                        const std::vector<std::string>& given) {
  std::vector<std::string> names;
  for (const std::string& name : given) {
    const auto fits = [&](const Check& check) { return names_check(name, check.id); };
    if (std::any_of(table.begin(), table.end(), fits)) {
      names.push_back(name);
      continue;
    }
    const std::vector<std::string> longer = long_names(name, table);
    if (longer.empty()) throw UserError("ID", unknown_check(name, table));
    if (longer.size() > 1)
      throw UserError("ID",
                      fmt::format("'{}' is the name of several checks: {}", name, fmt::join(longer, ", ")));
    names.push_back(longer.front());
  }
  std::vector<const Check*> chosen;
  for (const Check& check : table) {
    const auto fits = [&](const std::string& name) { return names_check(name, check.id); };
    if (names.empty() || std::any_of(names.begin(), names.end(), fits)) chosen.push_back(&check);
  }
  return chosen;
}

std::vector<CheckFinding> run_checks(const std::vector<const Check*>& chosen, const CheckEffort& effort,
                                     int threads) {
  std::vector<CheckFinding> findings(chosen.size());
  run_in_parallel(chosen.size(), threads, "checks",
                  [&](std::size_t i) { findings[i] = chosen[i]->run(effort); });
  return findings;
}

void CheckOptions::bind(VerbOptions& options) {
  constexpr int kMaximumSeeds = 10000;
  options.add("ID", &ids, "checks, or beginnings such as dikkala2023 (default: all)",
              {.candidates = offer_checks});
  options.add("--list", &listing, "list the checks without running them");
  options.add("--explain", &explains,
              "say of each check which hypotheses it has, how it is measured and what would refute it");
  options.add("--seeds", &seeds, "multiplies the random repetitions (default: 1)",
              {.check = whole_number(1, kMaximumSeeds)});
  options.add("--figures", &figures, "folder for figures of the measured slopes",
              {.candidates = offer_files(Candidates::Files::folders)});
  bind_threads(options, threads, kCheckThreads);
  bind_json(options, json);
}

int answer_checks(const std::vector<Check>& table, const CheckOptions& options) {
  const std::vector<const Check*> chosen = chosen_checks(table, options.ids);
  if (options.listing) {
    refuse_beside(!options.figures.empty(), "--figures", "--list");
    refuse_beside(options.explains, "--explain", "--list");
    list_checks(chosen, options.json);
    return 0;
  }
  if (!options.figures.empty()) check_output_folder(options.figures, "--figures");
  CheckEffort effort;
  effort.seeds = options.seeds;
  const std::vector<CheckFinding> findings = run_checks(chosen, effort, thread_count(options.threads));
  bool expected = true;
  Json list = Json::array();
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    expected = expected && verdict_of(findings[i]) == chosen[i]->expected;
    list.push_back(finding_json(*chosen[i], findings[i]));
    if (options.explains) list.back()["refuted_by"] = refutation(findings[i]);
  }
  std::cout << (options.json ? list.dump(2) + "\n" : findings_text(chosen, findings, options.explains));
  if (!options.figures.empty()) {
    std::vector<std::filesystem::path> files;
    for (const RatePanels& figure : check_figures(chosen, findings))
      publish_drawing(drawing_of(figure), options.figures, options.figures, files);
    std::cerr << (files.empty() ? "moelab: note: none of these checks has a curve to draw\n"
                                : figures_text(files));
  }
  return expected ? 0 : 1;
}

namespace {

int check_theorems(const CheckOptions& options) {
  return answer_checks(checks(), options);
}

}  // namespace

Verb check_verb() {
  return make_verb("check", "Check theorems numerically; status 1 when a verdict is unexpected",
                   "check dikkala2023.theorem4", check_theorems);
}

namespace {

/// The parts of an id "first.row.column.last"; a missing part is empty.
struct Place {
  std::string figure, row, column;

  explicit Place(const std::string& id) {
    const std::size_t first = id.find('.'), last = id.rfind('.');
    figure = id.substr(0, first) + "-" + id.substr(last + 1);
    if (last <= first) return;
    const std::string between = id.substr(first + 1, last - first - 1);
    const std::size_t dot = between.find('.');
    row = between.substr(0, dot);
    if (dot != std::string::npos) column = between.substr(dot + 1);
  }
};

/// The index of a name in a list. Adds the name where it is missing.
std::size_t index_of(const std::string& name, std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

/// The curve, and through its first point the power law with the slope that the check measured.
RateLine line_of(const CheckFinding& finding) {
  const auto [first_x, first_y] = finding.curve.points.front();
  RateLine line{finding.curve.name, {}, fmt::format("{:.2f}", finding.measured)};
  for (const auto& [x, y] : finding.curve.points)
    line.points.push_back({x, y, {}, {}, first_y * std::pow(x / first_x, finding.measured)});
  return line;
}

}  // namespace

std::vector<RatePanels> check_figures(const std::vector<const Check*>& chosen,
                                      const std::vector<CheckFinding>& findings) {
  std::vector<RatePanels> figures;
  std::vector<std::vector<std::pair<Place, const CheckFinding*>>> places;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const CheckFinding& finding = findings[i];
    if (finding.curve.points.empty()) continue;
    const Place place(chosen[i]->id);
    auto figure = std::find_if(figures.begin(), figures.end(),
                               [&](const RatePanels& known) { return known.id == place.figure; });
    if (figure == figures.end()) {
      figure = figures.insert(figures.end(), RatePanels{});
      figure->id = place.figure;
      figure->title = finding.curve.title;
      figure->caption =
          "Numbers in the panels: the slope that the check found, drawn through the first point.";
      figure->x_label = finding.curve.x_label;
      figure->y_label = finding.curve.y_label;
      figure->references = {{1, "slope 1"}, {2, "slope 2"}};
      places.emplace_back();
    }
    index_of(place.row, figure->rows);
    index_of(place.column, figure->columns);
    places[static_cast<std::size_t>(figure - figures.begin())].emplace_back(place, &finding);
  }
  for (std::size_t f = 0; f < figures.size(); ++f) {
    RatePanels& figure = figures[f];
    figure.panels.resize(figure.rows.size() * figure.columns.size());
    for (const auto& [place, finding] : places[f]) {
      const std::size_t row = index_of(place.row, figure.rows),
                        column = index_of(place.column, figure.columns);
      figure.panels[row * figure.columns.size() + column].push_back(line_of(*finding));
    }
  }
  return figures;
}

}  // namespace moelab
