#include "app/run/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "app/run/results.h"
#include "app/scenario/checks.h"
#include "app/scenario/overrides.h"
#include "plots/kinds/crossing.h"
#include "sim/base/random.h"
#include "sim/train/batches.h"

namespace moelab {
namespace {

std::vector<CrossingColumn> searched_by(const RunResults& results) {
  const std::optional<CrossingSearch>& search = results.head.crossing;
  return search ? crossing_columns(*search, results.table) : std::vector<CrossingColumn>();
}

std::string column_estimate(const CrossingColumn& column) {
  if (!column.estimate) return to_string(column.progress.state);
  const auto end = [](const std::optional<double>& number) {
    return number ? fmt::format("{:.4g}", *number) : "open";
  };
  return fmt::format("{:.4g} [{}, {}]", *column.estimate, end(column.low), end(column.high));
}

}  // namespace

ResultTable recorded_table(const Scenario& scenario, const Records& records) {
  ResultTable table{scenario.arms, scenario.sweep_paths, fixed_numbers(scenario), {}};
  if (scenario.crossing) table.searched_path = scenario.crossing->path;
  for (const Cell& cell : scenario.cells) {
    table.rows.push_back({cell.id, cell.arm, cell.seed, cell.point, "missing", {}, {}});
    const auto record = records.find(cell.id);
    if (record == records.end()) continue;
    table.rows.back().state = record->second.state;
    table.rows.back().metrics = record->second.metrics;
  }
  repeat_unswept(table);
  return table;
}

bool place_points(Scenario& scenario, const Records& records) {
  bool has_placed = false;
  while (scenario.crossing) {
    std::vector<std::vector<Json>> placed;
    for (const std::vector<double>& values :
         placed_values(*scenario.crossing, recorded_table(scenario, records))) {
      placed.emplace_back();
      for (const double value : values) placed.back().push_back(CrossingSearch::value(value));
    }
    if (placed == scenario.crossing->placed) break;
    keep_placed(scenario, std::move(placed));
    has_placed = true;
  }
  return has_placed;
}

SessionOutcome run_and_search(Scenario& scenario, const SessionOptions& options, const CellRunner& runner) {
  int not_restored = 0;
  for (SessionOptions round = options;; round = next_round(round)) {
    SessionOutcome outcome = run_session(scenario, round, runner);
    outcome.not_restored += not_restored;
    not_restored = outcome.not_restored;
    if (outcome.interrupted || outcome.stopped || !scenario.crossing) return outcome;
    if (!place_points(scenario, read_records(options.directory, RecordPart::metrics))) return outcome;
  }
}

bool has_open_search(const RunResults& results) {
  const std::vector<CrossingColumn> columns = searched_by(results);
  return std::any_of(columns.begin(), columns.end(), [](const CrossingColumn& column) {
    return column.progress.state == CrossingState::open;
  });
}

Json crossings_json(const RunResults& results) {
  Json list = Json::array();
  for (const CrossingColumn& column : searched_by(results)) {
    const bool is_bracket = column.progress.state == CrossingState::crosses;
    list.push_back(
        {{"arm", column.arm},
         {"at", point_json(column.at)},
         {"path", results.head.crossing->path},
         {"state", to_string(column.progress.state)},
         {"estimate", optional_json(column.estimate)},
         {"interval",
          column.estimate ? Json::array({optional_json(column.low), optional_json(column.high)}) : Json()},
         {"bracket", is_bracket ? Json::array({column.progress.low, column.progress.high}) : Json()},
         {"points", column.progress.visited.size()},
         {"note", column.note}});
  }
  return list;
}

namespace {

std::string crossings_caption(const CrossingSearch& search) {
  const std::string level =
      search.level ? fmt::format("{:g}", *search.level) : "the mean of " + search.against;
  return fmt::format("where the mean of {} crosses {}: {} and 95 % interval", search.metric, level,
                     search.path);
}

}  // namespace

std::string crossing_coverage_text(const CrossingCoverage& coverage) {
  return fmt::format(
      "Such intervals held the truth in {:.0f} to {:.0f} % of runs whose points share their noise, and in "
      "{:.0f} to {:.0f} % where each point draws its own.",
      coverage.shared.low, coverage.shared.high, coverage.independent.low, coverage.independent.high);
}

Table crossings_table(const RunResults& results) {
  const std::vector<CrossingColumn> columns = searched_by(results);
  if (columns.empty()) return {};
  Table table{{"arm"}, {}, crossings_caption(*results.head.crossing)};
  for (const auto& coordinate : columns.front().at) table.head.push_back(coordinate.first);
  table.head.insert(table.head.end(), {results.head.crossing->path, "points", ""});
  for (const CrossingColumn& column : columns) {
    std::vector<std::string>& row = table.rows.emplace_back(1, column.arm);
    for (const auto& coordinate : column.at) row.push_back(value_text(coordinate.second));
    row.insert(row.end(),
               {column_estimate(column), std::to_string(column.progress.visited.size()), column.note});
  }
  return table;
}

std::string crossings_text(const RunResults& results) {
  const Table table = crossings_table(results);
  if (table.empty()) return "";
  return fmt::format("{}\n{}{}\n", table.caption, text_table(table),
                     crossing_coverage_text(kCrossingCoverage));
}

namespace {

/// Values with few digits are easy to read and to write into a scenario. All digits are used if rounded
/// values repeat.
constexpr int kFewDigits = 3, kAllDigits = 17;
/// After this many repeated draws in a row, the ranges are assumed to have no further values.
constexpr int kRepeatedDraws = 1000;

std::vector<std::vector<Json>> distinct_values(const std::vector<TuneRange>& ranges, int candidates,
                                               int digits) {
  Engine engine = Seeds{kTuningRoot, 0}.stream(Purpose::starts);
  const int dimensions = static_cast<int>(ranges.size());
  QuasiRandom draws(dimensions, engine);
  Matrix shares = draws.uniforms(candidates);
  if (dimensions == 1) {
    for (int i = 0; i < candidates; ++i) shares(i, 0) = static_cast<double>(i) / std::max(1, candidates - 1);
  }
  std::vector<std::vector<Json>> values;
  std::set<std::vector<Json>> known;
  const auto add = [&](const Matrix& from, int row) {
    std::vector<Json> own;
    for (int j = 0; j < dimensions; ++j)
      own.push_back(ranges[static_cast<std::size_t>(j)].at(from(row, j), digits));
    const bool is_new = known.insert(own).second;
    if (is_new) values.push_back(std::move(own));
    return is_new;
  };
  for (int i = 0; i < candidates; ++i) add(shares, i);
  for (int repeated = 0; values.size() < static_cast<std::size_t>(candidates) && repeated < kRepeatedDraws;)
    repeated = add(draws.uniforms(1), 0) ? 0 : repeated + 1;
  return values;
}

}  // namespace

std::vector<Rung> halving_rungs(int candidates) {
  std::vector<Rung> rungs;
  for (int seeds = 1; candidates > 1; seeds *= 3) {
    rungs.push_back({candidates, seeds});
    candidates = std::max(1, candidates / 3);
  }
  return rungs;
}

int trainings_of(const std::vector<Rung>& rungs) {
  int trainings = 0, before = 0;
  for (const Rung& rung : rungs) {
    trainings += rung.candidates * (rung.seeds - before);
    before = rung.seeds;
  }
  return trainings;
}

int candidates_within(int trainings) {
  int most = 0;
  for (int candidates = 2; candidates <= trainings; ++candidates) {
    if (trainings_of(halving_rungs(candidates)) <= trainings) most = candidates;
  }
  return most;
}

std::vector<std::vector<Json>> candidate_values(const std::vector<TuneRange>& ranges, int candidates) {
  for (int digits = kFewDigits;; ++digits) {
    std::vector<std::vector<Json>> values = distinct_values(ranges, candidates, digits);
    if (values.size() == static_cast<std::size_t>(candidates) || digits == kAllDigits) return values;
  }
}

std::vector<std::size_t> best_places(const std::vector<double>& scores, int count) {
  std::vector<std::size_t> places(scores.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(), [&](std::size_t left, std::size_t right) {
    if (std::isnan(scores[left]) || std::isnan(scores[right]))
      return !std::isnan(scores[left]) && std::isnan(scores[right]);
    return scores[left] < scores[right];
  });
  places.resize(std::min(places.size(), static_cast<std::size_t>(count)));
  return places;
}

template <class Real>
double operations_of_step(const Network<Real>& network, const ModelOptions& model, const TrainOptions& train,
                          int train_samples) {
  double parameters = static_cast<double>(network.parameter_count());
  const bool is_population = train.gradient == TrainOptions::Gradient::population;
  const double samples = is_population ? population_rule(train).points
                                       : static_cast<double>(std::min<std::int64_t>(
                                             train.batch_size.value_or(train_samples), train_samples));
  const double rows = samples * network.layout().tokens;
  for (int layer = 0; network.has_router() && layer < network.layers(); ++layer) {
    const double active = experts_per_row(model.gating.train, network.experts(), rows);
    const double idle = std::max(0.0, network.mixture(layer).networks() - active);
    parameters -= static_cast<double>(network.mixture(layer).parameters_per_expert()) * idle;
  }
  return 6 * parameters * rows;
}

bool is_plateau(const std::vector<double>& values, int records, double relative) {
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
               [](double value) { return std::isfinite(value); });
  if (finite.size() <= static_cast<std::size_t>(records)) return false;
  const auto last = finite.end() - records;
  const double before = *std::min_element(finite.begin(), last);
  const double lately = *std::min_element(last, finite.end());
  return before - lately <= relative * std::abs(before);
}

bool StoppingRule::is_reached(const std::vector<TraceEntry>& trace, std::size_t first,
                              std::int64_t steps) const {
  if (!until_) return false;
  if (until_->flops) return operations_ * static_cast<double>(steps) >= *until_->flops;
  const std::string name = until_->looked_at();
  const auto value_at = [&](const TraceEntry& entry) {
    const auto found = entry.metrics.find(name);
    return found == entry.metrics.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
  };
  if (until_->plateau) {
    std::vector<double> values;
    for (std::size_t i = first; i < trace.size(); ++i) values.push_back(value_at(trace[i]));
    return is_plateau(values, until_->plateau->records, until_->plateau->relative);
  }
  if (trace.size() <= first) return false;
  const double value = value_at(trace.back());
  if (until_->rise) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = first; i + 1 < trace.size(); ++i) least = std::min(least, value_at(trace[i]));
    return value >= least && (value <= until_->rise->below || value > least + until_->rise->by);
  }
  return until_->below ? value <= *until_->below : value >= *until_->above;
}

template double operations_of_step(const Network<float>&, const ModelOptions&, const TrainOptions&, int);
template double operations_of_step(const Network<double>&, const ModelOptions&, const TrainOptions&, int);

}  // namespace moelab
