#include "app/report/hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/expression.h"
#include "app/run/cell.h"
#include "app/scenario/cells.h"
#include "app/scenario/checks.h"
#include "sim/train/field_uses.h"

namespace moelab {
namespace {

constexpr int kFewSeeds = 6;
constexpr std::size_t kManyPoints = 8;
/// Standard deviations of features that differ by more make training depend on the largest one alone.
constexpr double kScaleRatio = 1000;

/// The first fixed temperature in a model's options; none if there is none.
std::optional<double> fixed_temperature(const Json& options) {
  if (!options.is_structured()) return std::nullopt;
  for (auto member = options.begin(); member != options.end(); ++member) {
    if (options.is_object() && member.key() == "temperature" && member->is_number())
      return member->get<double>();
    if (const std::optional<double> below = fixed_temperature(*member)) return below;
  }
  return std::nullopt;
}

void add_temperature_hint(const Scenario& scenario, std::vector<std::string>& hints) {
  // Most scenarios name no temperature, and may have many cells.
  if (json_text(scenario.document).find("temperature") == std::string::npos) return;
  const CellOptions* known = nullptr;
  for (const Cell& cell : scenario.cells) {
    if (cell.options.get() == known) continue;
    known = cell.options.get();
    const std::optional<double> fixed = fixed_temperature(options_json(known->experiment.model));
    if (!fixed) continue;
    hints.push_back(fmt::format(
        "arm '{}': the router's temperature {:g} is fixed (a number once was the start of a learned "
        "temperature, which is {{\"start\": {:g}, \"learned\": true}} now)",
        cell.arm, *fixed, *fixed));
    return;
  }
}

void add_seeds_hint(const Scenario& scenario, std::vector<std::string>& hints) {
  std::map<std::string, std::size_t> points;
  int seeds = 0;
  for (const Cell& cell : scenario.cells) {
    seeds = std::max(seeds, cell.seed + 1);
    if (cell.seed == 0) ++points[cell.arm];
  }
  std::size_t most = 0;
  for (const auto& [arm, count] : points) most = std::max(most, count);
  if (scenario.claims.empty() || seeds >= kFewSeeds || most <= kManyPoints) return;
  hints.push_back(
      fmt::format("{} seeds at {} sweep points: a claim at each point is rarely decided with fewer "
                  "than {} seeds; add seeds, or name fewer points in \"at\"",
                  seeds, most, kFewSeeds));
}

/// The standard deviation of each column.
Vector column_deviations(const Matrix& rows) {
  const Eigen::RowVectorXd mean = rows.colwise().mean();
  return ((rows.rowwise() - mean).colwise().squaredNorm() / static_cast<double>(rows.rows())).cwiseSqrt();
}

void add_file_hints(const Scenario& scenario, std::vector<std::string>& hints) {
  if (scenario.cells.empty() || scenario.cells.front().options->experiment.data.chosen() != "file") return;
  const SampledSets sets = last_sampled_sets(scenario.cells.front());
  const Dataset& data = sets.train ? *sets.train : sets.test;
  if (data.y.cols() == 1 && column_deviations(data.y).maxCoeff() == 0)
    hints.push_back("data.targets: all targets are equal; normalised losses have no value");
  const Vector deviations = column_deviations(data.x);
  Eigen::Index largest = 0, least = -1;
  deviations.maxCoeff(&largest);
  for (Eigen::Index i = 0; i < deviations.size(); ++i)
    if (deviations[i] > 0 && (least < 0 || deviations[i] < deviations[least])) least = i;
  if (least < 0 || deviations[largest] <= kScaleRatio * deviations[least]) return;
  hints.push_back(
      fmt::format("data.inputs: column {} varies by {:.2g} and column {} by {:.2g}; routers see the "
                  "largest columns alone, so scale the columns alike",
                  largest, deviations[largest], least, deviations[least]));
}

/// The fields that a cell gives, and whether it reads them.
std::vector<FieldUse> uses_of(const CellOptions& cell) {
  std::vector<FieldUse> uses;
  const auto add = [&](std::vector<FieldUse> more) {
    uses.insert(uses.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  // An evaluation may read a field of the data that training does not read.
  const auto add_evaluations = [&](const NamedData& evaluations) {
    for (const auto& [name, data] : evaluations) {
      std::vector<FieldUse> own = field_uses(data);
      std::erase_if(own, [](const FieldUse& use) { return !use.is_read(); });
      add(std::move(own));
    }
  };
  if (cell.experiment.phases.empty()) add(field_uses(cell.experiment));
  for (std::size_t i = 0; i < cell.experiment.phases.size(); ++i) {
    const CellOptions phase = in_phase(cell, i);
    add(field_uses(phase.experiment));
    add_evaluations(phase.evaluations);
  }
  add_evaluations(cell.evaluations);
  // These metrics have a group's size whatever training adds to its loss.
  const bool has_metric =
      std::any_of(cell.metrics.begin(), cell.metrics.end(),
                  [](const MetricOptions& group) { return group.chosen() == "auxiliary_losses"; });
  if (has_metric) std::erase_if(uses, [](const FieldUse& use) { return use.path == "loss.aux_group"; });
  return uses;
}

/// A field that one cell gives in vain may be there for another cell, so all cells count together.
void add_unread_fields(const Scenario& scenario, std::vector<std::string>& hints) {
  std::set<std::string> read;
  std::map<std::string, FieldUse> unread;
  const CellOptions* known = nullptr;
  for (const Cell& cell : scenario.cells) {
    if (cell.options.get() == known) continue;
    known = cell.options.get();
    for (FieldUse& use : uses_of(*known)) {
      if (use.is_read())
        read.insert(use.what);
      else
        unread.try_emplace(use.what, std::move(use));
    }
  }
  for (const auto& [what, use] : unread)
    if (!read.contains(what)) hints.push_back(fmt::format("{}: {}", use.path, use.unread));
}

/// Groups that the scenario names and that have no value in any cell.
void add_empty_groups(const Scenario& scenario, std::vector<std::string>& hints) {
  if (!scenario.document.contains("metrics")) return;
  std::map<std::string, std::string> missing;
  std::set<std::string> measured;
  const CellOptions* known = nullptr;
  for (const Cell& cell : scenario.cells) {
    if (cell.options.get() == known) continue;
    known = cell.options.get();
    const MeasuredMetrics metrics(*known);
    for (const MetricOptions& group : known->metrics) {
      if (measured.contains(group.chosen())) continue;
      const std::string need = metrics.missing_for(group.entry());
      if (need.empty())
        measured.insert(group.chosen());
      else
        missing.try_emplace(group.chosen(), need);
    }
  }
  for (const auto& [group, need] : missing) {
    if (!measured.contains(group))
      hints.push_back(
          fmt::format("metrics: \"{}\" is given, but it has no value in any cell; it needs {}", group, need));
  }
}

/// The rows of each arm by point and seed.
std::map<std::string, std::map<std::string, const ResultRow*>> rows_by_arm(const ResultTable& table) {
  std::map<std::string, std::map<std::string, const ResultRow*>> rows;
  for (const ResultRow& row : table.rows)
    if (row.state == "done") rows[row.arm].emplace(point_key(row.point) + std::to_string(row.seed), &row);
  return rows;
}

void add_equal_arms(const ResultTable& table, std::vector<std::string>& hints) {
  const auto rows = rows_by_arm(table);
  for (auto one = rows.begin(); one != rows.end(); ++one) {
    for (auto other = std::next(one); other != rows.end(); ++other) {
      if (one->second.size() != other->second.size()) continue;
      const bool is_equal =
          std::equal(one->second.begin(), one->second.end(), other->second.begin(),
                     [](const auto& left, const auto& right) {
                       return left.first == right.first && left.second->metrics == right.second->metrics;
                     });
      if (!is_equal) continue;
      hints.push_back(
          fmt::format("arms '{}' and '{}' have the same results to the last bit: what differs between "
                      "them has no effect",
                      one->first, other->first));
    }
  }
}

/// The metrics of the main table and of the claims.
std::set<std::string> shown_metrics(const RunResults& results) {
  std::set<std::string> names = {main_metric(results.head)};
  const auto add = [&](const ClaimSide& side) {
    if (side.metric.empty()) return;
    for (const std::string& name : Expression::parse(side.metric, "metric").names())
      if (find_metric(name)) names.insert(name);
  };
  for (const Claim& claim : results.head.claims) {
    if (const Comparison* const comparison = std::get_if<Comparison>(&claim.statement)) {
      add(comparison->left);
      add(comparison->right);
    }
    if (const Trend* const trend = std::get_if<Trend>(&claim.statement)) add(trend->side);
  }
  return names;
}

void add_unmoved_metrics(const RunResults& results, std::vector<std::string>& hints) {
  for (const std::string& name : shown_metrics(results)) {
    std::set<double> values;
    std::set<std::string> settings;
    for (const ResultRow& row : results.table.rows) {
      const auto value = row.metrics.find(name);
      if (row.is_copy || row.state != "done" || value == row.metrics.end()) continue;
      values.insert(value->second);
      settings.insert(row.arm + point_key(row.point));
    }
    if (values.size() == 1 && settings.size() > 1)
      hints.push_back(
          fmt::format("{} is {:g} in every cell: no arm and no sweep point moves it", name, *values.begin()));
  }
}

void add_constant_labels(const RunResults& results, std::vector<std::string>& hints) {
  const std::string loss = "test_loss_soft", share = "test_nmse_soft";
  if (std::find(results.metrics.begin(), results.metrics.end(), share) == results.metrics.end()) return;
  const bool lacks_share =
      std::any_of(results.table.rows.begin(), results.table.rows.end(), [&](const ResultRow& row) {
        return row.state == "done" && row.metrics.contains(loss) && !row.metrics.contains(share);
      });
  if (lacks_share)
    hints.push_back(
        "cells have no test_nmse, because their test labels are all equal: the variance that divides "
        "the loss is 0");
}

}  // namespace

std::vector<std::string> scenario_hints(const Scenario& scenario) {
  std::vector<std::string> hints;
  add_temperature_hint(scenario, hints);
  add_seeds_hint(scenario, hints);
  add_file_hints(scenario, hints);
  add_unread_fields(scenario, hints);
  add_empty_groups(scenario, hints);
  return hints;
}

std::vector<std::string> result_hints(const RunResults& results) {
  std::vector<std::string> hints;
  add_equal_arms(results.table, hints);
  add_unmoved_metrics(results, hints);
  add_constant_labels(results, hints);
  return hints;
}

void print_hints(const std::vector<std::string>& hints) {
  for (const std::string& hint : hints) std::cerr << fmt::format("moelab: note: {}\n", hint);
}

}  // namespace moelab
