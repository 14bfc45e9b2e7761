#include "app/run/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "analysis/metrics/measured_data.h"
#include "app/run/memory.h"
#include "sim/train/least_squares.h"
#include "sim/train/minimum_norm.h"

namespace moelab {
namespace {

/// The maximum number of settings whose problem is drawn and whose model is built for an estimate.
constexpr std::size_t kMaxEstimates = 100;

/// The ridge penalty, in units of settings. It is small next to one finished setting, and it selects among
/// effects that fit equally well.
constexpr double kRidge = 0.1;
constexpr int kRounds = 50;

/// A lower bound on the resolution of timers. It keeps the logarithm finite.
constexpr double kShortestSeconds = 1e-6;

}  // namespace

CellTimes::CellTimes(const Scenario& scenario) {
  std::vector<const Cell*> firsts;
  std::map<std::string, std::size_t> places;  // indices of the effects, by "arm" or "path = value"
  setting_of_.reserve(scenario.cells.size());
  for (const Cell& cell : scenario.cells) {
    const auto [place, added] = setting_of_.try_emplace(cell.id);
    if (!added) continue;  // two arms may have the same cell
    if (firsts.empty() || firsts.back()->arm != cell.arm || firsts.back()->point != cell.point) {
      firsts.push_back(&cell);
      Setting& setting = settings_.emplace_back();
      setting.first = &cell;
      setting.effects = {places.try_emplace(cell.arm, places.size()).first->second};
      for (const auto& [path, value] : cell.point)
        setting.effects.push_back(
            places.try_emplace(path + " = " + value.text(), places.size()).first->second);
    }
    place->second = settings_.size() - 1;
    ++settings_.back().cells;
    ++settings_.back().open;
  }
  effects_ = places.size();
  PassMeter meter;
  const std::size_t looked_at = std::min(settings_.size(), kMaxEstimates);
  std::size_t next = 0;
  for (std::size_t i = 0; i < settings_.size(); ++i) {
    if (i == next * settings_.size() / looked_at) {
      settings_[i].cost = estimated_cost(*firsts[i], meter);
      ++next;
    } else {
      settings_[i].cost = settings_[i - 1].cost;
    }
  }
  fit();
}

void CellTimes::learn(const std::string& cell, const std::string& state, double seconds) {
  const auto found = setting_of_.find(cell);
  if (found == setting_of_.end()) return;
  Setting& setting = settings_[found->second];
  --setting.open;
  if (state != "done" && state != "diverged") return;
  ++learned_;
  ++setting.recorded;
  setting.recorded_seconds += seconds;
  if (state != "done") return;
  ++setting.done;
  setting.done_seconds += seconds;
}

void CellTimes::fit() {
  std::vector<double> effects(effects_, 0), logs;
  std::vector<const Setting*> known;
  for (Setting& setting : settings_) {
    setting.seconds = std::max(setting.cost.seconds, kShortestSeconds);
    if (setting.done == 0) continue;
    known.push_back(&setting);
    logs.push_back(
        std::log(std::max(setting.done_seconds / setting.done, kShortestSeconds) / setting.seconds));
  }
  double mean = 0;
  // Coordinate descent: updates one effect at a time. `logs` holds the residuals.
  std::vector<std::vector<std::size_t>> settings_with(effects_);
  for (std::size_t i = 0; i < known.size(); ++i) {
    for (const std::size_t effect : known[i]->effects) settings_with[effect].push_back(i);
  }
  for (int round = 0; round < kRounds && !known.empty(); ++round) {
    const double shift = std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size());
    for (double& value : logs) value -= shift;
    mean += shift;
    for (std::size_t effect = 0; effect < effects_; ++effect) {
      const std::vector<std::size_t>& own = settings_with[effect];
      double sum = 0;
      for (const std::size_t i : own) sum += logs[i] + effects[effect];
      const double better = sum / (static_cast<double>(own.size()) + kRidge);
      for (const std::size_t i : own) logs[i] -= better - effects[effect];
      effects[effect] = better;
    }
  }
  for (Setting& setting : settings_) {
    if (setting.recorded > 0) {
      setting.seconds = setting.recorded_seconds / setting.recorded;
      continue;
    }
    double log_factor = mean;
    for (const std::size_t effect : setting.effects) log_factor += effects[effect];
    setting.seconds *= std::exp(log_factor);
  }
}

double seconds_on_threads(const std::vector<double>& seconds, int threads, double partial) {
  if (seconds.empty()) return 0;
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  const double count = static_cast<double>(seconds.size());
  const double left = 1 - std::clamp(partial / count, 0.0, 1.0);
  const double running = std::clamp<double>(threads, 1, count);
  const double longest = partial > 0 ? 0 : *std::max_element(seconds.begin(), seconds.end());
  return std::max(sum * left / running, longest);
}

namespace {

/// The seconds of a fit, by the evaluations that its starts and its polishing may take at most. For a single
/// start, only the first attempt counts.
double fit_seconds(const TrainOptions& train, double steps, double samples, int experts) {
  if (!is_least_squares(train)) return 0;
  const bool is_likelihood = train.optimizer.as<LeastSquaresOptions>()->likelihood.has_value();
  double rows = steps * samples;
  if (const std::optional<BestStartOptions> best = many_starts(train.start)) {
    // A polishing step evaluates the loss L about twice. A row of the curvature takes as long as eight
    // evaluations of L. A likelihood computes the curvature over all samples.
    const double curved = is_likelihood ? samples : std::min<double>(kCurvatureRows, samples);
    rows = best->starts * best->evaluations * std::min<double>(best->rows, samples) +
           best->polished * steps * (2 * samples + 8 * curved);
    // A search polishes every start on its rows. Most searches stop long before their most starts.
    if (const auto* const search = train.start->as<SearchStartOptions>()) {
      const double first = std::min<double>(search->rows, samples);
      rows = search->starts / 3.0 * (search->evaluations * first + steps * 4 * first) +
             (search->polished + search->oracle) * steps * (2 * samples + 8 * curved);
    }
  }
  return rows * experts * (is_likelihood ? kNominalLikelihood : kNominalFit);
}

/// The seconds of the Bayes predictions, which are computed once. Each of them reads every number that the
/// problem keeps.
double bayes_seconds(const CellShape& shape, double tests) {
  const DataOptions& data = shape.options.experiment.data;
  const GeneratorKind& kind = data.entry();
  const Matrix one = Matrix::Zero(1, shape.layout.sample_dim());
  if (!kind.kept_numbers || !shape.small_problem->bayes_prediction(one)) return 0;
  return tests * kind.kept_numbers(data.options(), shape.layout) * kNominalBayes;
}

}  // namespace

CellCost estimated_cost(const Cell& cell, PassMeter& meter) {
  const CellShape shape(cell);
  const CellOptions& options = shape.options;
  const DataOptions& data = options.experiment.data;
  const TrainOptions& train = options.experiment.train;
  const Layout& layout = shape.layout;
  const Network<float>& network = shape.network;
  const double parameters = static_cast<double>(network.parameter_count());
  const double rows = shape.batch * layout.tokens;
  const double active =
      network.has_router()
          ? parameters * experts_per_row(options.experiment.model.gating.train, network.experts(), rows) /
                network.experts()
          : parameters;

  const bool population = train.gradient == TrainOptions::Gradient::population;
  const int train_samples = shape.train_samples;
  const double steps = shape.steps, batch = shape.batch;
  const double records = 2 + (train.record_every ? steps / static_cast<double>(*train.record_every) : 10);
  const double tests = data.test_samples * (1.0 + static_cast<double>(options.evaluations.size()));
  const double measured = tests + std::min(train_samples, most_measured_train_samples(data));
  const double tokens = layout.tokens;

  // The rule minimum_norm passes through the network once for each output of a batch.
  const double step_passes = is_solved(train) ? 1 + batch * layout.target_dim() : 1;

  CellCost cost;
  cost.operations = tokens * (6 * active * steps * step_passes * batch + 2 * parameters * records * measured);
  const PassBytes passes = meter.of(shape);
  // Parameters, their gradient and two moments.
  const double moved_parameters = 4.0 * sizeof(float) * static_cast<double>(network.parameter_size());
  // The memory traffic of a fit's steps is part of its seconds.
  const double moving_steps = is_least_squares(train) ? 0 : steps;
  const double moved = moving_steps * (step_passes * passes.step + moved_parameters) +
                       records * measured * passes.measured_sample;
  const double draws = (train_samples + tests + (population ? steps * batch : 0)) *
                       (layout.sample_dim() + layout.target_dim());
  // In double precision, experts and gates call the scalar functions of the C library.
  const double bytes_a_second =
      train.precision == TrainOptions::Precision::in_double ? kNominalDoubleBytes : kNominalBytes;
  cost.seconds = cost.operations / kNominalSpeed + moved / bytes_a_second + draws * kNominalDraw +
                 fit_seconds(train, steps, train_samples, network.experts()) + bayes_seconds(shape, tests);
  // A first estimate of the size. It selects the cells whose memory is measured.
  const double block = std::min<double>(network.block_samples(), measured);
  const double numbers = (measured + train_samples) * (layout.sample_dim() + layout.target_dim());
  cost.size = moved_parameters + passes.step + block * passes.measured_sample + sizeof(double) * numbers;
  return cost;
}

CellCost estimated_cost(const Cell& cell) {
  PassMeter meter;
  CellCost cost = estimated_cost(cell, meter);
  const CellMemory memory = cell_memory(CellShape(cell));
  cost.bytes = memory.peak;
  cost.recorded_bytes = memory.recorded;
  return cost;
}

namespace {

/// Returns the peak memory of the cells without a record. It measures the largest such cell of each arm, for
/// the few arms with the largest cells.
CellMemory largest_memory(const std::vector<CellTimes::Setting>& settings) {
  constexpr std::size_t kMeasured = 3;
  std::map<std::string, const CellTimes::Setting*> by_arm;
  for (const CellTimes::Setting& setting : settings) {
    if (setting.open == 0) continue;
    const CellTimes::Setting*& largest = by_arm[setting.first->arm];
    if (!largest || setting.cost.size > largest->cost.size) largest = &setting;
  }
  std::vector<const CellTimes::Setting*> all;
  for (const auto& [arm, setting] : by_arm) all.push_back(setting);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto* a, const auto* b) { return a->cost.size > b->cost.size; });
  CellMemory most;
  for (std::size_t i = 0; i < std::min(all.size(), kMeasured); ++i) {
    const CellMemory own = cell_memory(CellShape(*all[i]->first));
    most.peak = std::max(most.peak, own.peak);
    most.recorded = std::max(most.recorded, own.recorded);
  }
  return most;
}

}  // namespace

RunCost run_cost(const Scenario& scenario, const Records& records, int threads) {
  CellTimes times(scenario);
  for (const auto& [id, record] : records) times.learn(id, record.state, record.seconds);
  times.fit();

  RunCost cost;
  cost.learned = times.learned();
  const CellMemory memory = largest_memory(times.settings());
  std::vector<double> seconds;
  int unlike = 0;
  double recorded = 0;
  for (const CellTimes::Setting& setting : times.settings()) {
    recorded += setting.cells * memory.recorded;
    if (setting.open == 0) continue;
    seconds.insert(seconds.end(), static_cast<std::size_t>(setting.open), setting.seconds);
    unlike += setting.recorded > 0 ? 0 : setting.open;
  }
  cost.cells = seconds.size();
  cost.seconds = seconds_on_threads(seconds, threads);
  if (seconds.empty()) return cost;
  cost.threads =
      std::clamp(static_cast<int>(std::min<std::size_t>(seconds.size(), 1u << 20)), 1, std::max(threads, 1));
  cost.cell_bytes = memory.peak;
  cost.process_bytes = kProgramBytes + kPlannedCellBytes * static_cast<double>(scenario.cells.size());
  // The process reads the results after the last cell is done.
  cost.bytes = cost.process_bytes + std::max(cost.cell_bytes * cost.threads, recorded);
  if (cost.learned == 0) {
    cost.source = fmt::format("a model of a usual machine: none of the {} is done", counted(unlike, "cell"));
    return cost;
  }
  cost.source = cost.learned == 1 ? "1 cell done" : fmt::format("{} cells done", cost.learned);
  if (unlike > 0)
    cost.source += fmt::format(", and a model for {} at arms and sweep points where none is", unlike);
  return cost;
}

}  // namespace moelab
