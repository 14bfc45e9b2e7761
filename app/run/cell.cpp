#include "app/run/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <deque>
#include <memory>

#include "analysis/metrics/measured_data.h"
#include "analysis/metrics/metric_groups.h"
#include "analysis/metrics/voronoi.h"
#include "app/run/measurement.h"
#include "app/run/memory.h"
#include "app/run/search.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// Drawn and normalised labels have a variance of about 1.
constexpr double kLargeVariance = 100;

/// A learning rate of a cell, with its path.
struct Rate {
  std::string path;
  double value = 0;
};

Rate largest_rate(const Scenario& scenario) {
  Rate largest;
  const auto take = [&](const std::string& path, double value) {
    if (value > largest.value) largest = {path, value};
  };
  for (const Cell& cell : scenario.cells) {
    const std::optional<PerGroup>& rate = cell.options->experiment.train.lr;
    if (!rate) continue;
    const bool is_one = rate->expert == rate->router;
    take(is_one ? "train.lr" : "train.lr.expert", rate->expert);
    take("train.lr.router", rate->router);
  }
  return largest;
}

/// Returns the largest variance of the test labels: loss ÷ normalised loss at the first record. 0 if unknown.
double largest_label_variance(const ResultTable& table) {
  double largest = 0;
  for (const ResultRow& row : table.rows) {
    if (row.trace.empty()) continue;
    const MetricValues& first = row.trace.front().metrics;
    const auto loss = first.find("test_loss_soft"), share = first.find("test_nmse_soft");
    if (loss == first.end() || share == first.end()) continue;
    const double variance = loss->second / share->second;
    if (std::isfinite(variance)) largest = std::max(largest, variance);
  }
  return largest;
}

}  // namespace

std::string divergence_hint(const Scenario& scenario, const ResultTable& table) {
  std::string hint = "every cell diverged; try ";
  const Rate rate = largest_rate(scenario);
  const double variance = largest_label_variance(table);
  if (rate.value > 0)
    hint += fmt::format("a learning rate ten times smaller (the largest here is {} = {:g}), then ", rate.path,
                        rate.value);
  hint += "smaller inputs and targets";
  if (variance > 0) {
    hint += fmt::format(" (the labels' variance is {:.2g}{})", variance,
                        variance > kLargeVariance ? ", scale them to about 1" : "");
  }
  return hint + " or smaller starting weights (init_scale)";
}

namespace {

/// Describes how a least-squares fit ended.
MetricValues fit_metrics(const FitOutcome& fit) {
  MetricValues values = {{"fit_converged", fit.converged ? 1.0 : 0.0},
                         {"fit_evaluations", static_cast<double>(fit.evaluations)},
                         {"fit_starts", static_cast<double>(fit.starts)}};
  if (fit.minima) {
    values["fit_minima"] = fit.minima->distinct;
    values["fit_near_minima"] = fit.minima->near;
    values["fit_near_diameter"] = fit.minima->diameter;
  }
  if (fit.search) {
    values["fit_best_found"] = fit.search->times_best;
    values["fit_settled"] = fit.search->is_settled ? 1.0 : 0.0;
  }
  if (fit.search && fit.search->oracle_gap) {
    values["fit_oracle_gap"] = *fit.search->oracle_gap;
    values["fit_worse_than_oracle"] = *fit.search->oracle_gap > kOracleTolerance ? 1.0 : 0.0;
  }
  return values;
}

/// Compares a maximum-likelihood fit with the true mixing measure.
MetricValues likelihood_metrics(const FitOutcome& fit, const MixingMeasure* truth) {
  if (!fit.mixture || !fit.likelihood_gain) return {};
  MetricValues values = {{"likelihood_gain", *fit.likelihood_gain}};
  const MixtureComponents fitted = components_of(fit.mixture->measure), own = components_of(*truth);
  const GaussianErrors errors = gaussian_errors(fitted, fit.mixture->variance, own, truth->variance,
                                                voronoi_errors(fitted, own, false));
  if (errors.loss) values["gaussian_voronoi_loss"] = *errors.loss;
  if (errors.exact) values["variance_error_exact"] = *errors.exact;
  if (errors.over) values["variance_error_over"] = *errors.over;
  return values;
}

bool asks_for(const CellOptions& cell, const std::string& group) {
  return std::any_of(cell.metrics.begin(), cell.metrics.end(),
                     [&](const MetricOptions& chosen) { return chosen.chosen() == group; });
}

/// Adds the processor seconds of its thread over its lifetime to a sum.
class Timed {
 public:
  explicit Timed(double& sum) : sum_(sum) {}
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;
  ~Timed() { sum_ += now() - start_; }

 private:
  static double now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  double& sum_;
  double start_ = now();
};

/// Runs the training of one cell and measures it.
template <class Real>
class CellRun {
 public:
  explicit CellRun(const CellOptions& cell) : cell_(cell), experiment_(cell.experiment, cell.seeds) {
    look_at_phase();
  }

  CellResult run(const CellProgress& progress) {
    CellResult result = run_phases(progress);
    result.spent = spent_;
    return result;
  }

 private:
  CellResult run_phases(const CellProgress& progress) {
    CellResult result;
    MetricValues of_phases;
    for (bool is_last = false; !is_last;) {
      const TrainOutcome outcome = train_phase(progress, result);
      if (outcome.state == TrainState::interrupted) {
        result.state = CellResult::State::interrupted;
        return result;
      }
      if (outcome.state == TrainState::diverged) {
        result.state = CellResult::State::diverged;
        result.message = fmt::format("not finite after {} steps", outcome.step);
        return result;
      }
      measure_last(outcome.step, result.trace);
      is_last = phase_ + 1 >= phases();
      if (phase_ < cell_.experiment.phases.size()) {
        complete(result.trace);
        for (const auto& [name, value] : result.trace.back().metrics)
          of_phases[cell_.experiment.phases[phase_].name + "." + name] = value;
      }
      if (is_last) {
        finish(outcome.step, of_phases, result);
      } else {
        go_on();
      }
    }
    return result;
  }

  std::size_t phases() const { return std::max<std::size_t>(1, cell_.experiment.phases.size()); }

  Moment<Real> moment(std::int64_t step) {
    return {experiment_.model(), experiment_.objective(), experiment_.workspace(), step};
  }

  /// Draws the data on which the current phase is measured.
  void look_at_phase() {
    const Timed timed(spent_.measuring);
    own_ = in_phase(cell_, phase_);
    const DataOptions& data = own_.experiment.data;
    train_ = draw_set(
        experiment_.problem(), cell_.seeds, Purpose::train_data,
        std::min(most_measured_train_samples(data), data.train_samples.value_or(kMeasuredTrainSamples)),
        train_stream(data));
    const Layout layout = experiment_.problem().layout();
    if (const TokenMasks masks = masks_of(own_.experiment.loss, layout))
      mask_tokens(masks, cell_.seeds, Purpose::train_data, layout.tokens, train_);
    evaluations_.emplace_back("", data, own_, experiment_.problem(), &train_);
    for (const auto& [name, evaluated] : own_.evaluations) {
      problems_.push_back(draw_problem(evaluated, cell_.seeds));
      if (!problems_.back()->layout().has_same_rows(layout))
        throw InvalidOption("evaluations." + name,
                            "needs inputs and targets of the shape of those trained on");
      evaluations_.emplace_back(name, evaluated, own_, *problems_.back(), nullptr);
    }
  }

  void go_on() {
    evaluations_.clear();
    problems_.clear();
    experiment_.next_phase();
    ++phase_;
    look_at_phase();
  }

  TrainOutcome train_phase(const CellProgress& progress, CellResult& result) {
    const TrainOptions& train = own_.experiment.train;
    const double operations = operations_of_step(*experiment_.model().network, cell_.experiment.model, train,
                                                 own_.experiment.data.train_samples.value_or(0));
    const StoppingRule rule(train.until, operations);
    const std::size_t first = result.trace.size();
    const auto record = [&](std::int64_t step) {
      const Timed timed(spent_.measuring);
      begin_memory_stage(MemoryStage::record);
      TraceEntry entry{step, {}};
      for (Evaluation<Real>& evaluation : evaluations_) evaluation.measure(moment(step), entry.metrics);
      if (asks_for(cell_, "training")) {
        entry.metrics["train_steps"] = static_cast<double>(step);
        entry.metrics["train_flops"] = operations_ + operations * static_cast<double>(step - steps_);
      }
      result.trace.push_back(std::move(entry));
      begin_memory_stage(MemoryStage::step);
    };
    bool is_reached = false;
    const auto stop = [&](std::int64_t step) {
      return is_reached = rule.is_reached(result.trace, first, step - steps_);
    };
    const auto share = [&](double of_phase) {
      return progress((static_cast<double>(phase_) + of_phase) / static_cast<double>(phases()));
    };
    const auto round = [&](const FinishedRound& finished) {
      const Timed timed(spent_.measuring);
      for (Evaluation<Real>& evaluation : evaluations_)
        evaluation.after_round(moment(finished.step), finished);
    };
    const double measured = spent_.measuring;
    const TrainOutcome outcome = [&] {
      const Timed timed(spent_.training);
      return experiment_.train({record, share, stop, round});
    }();
    spent_.training -= spent_.measuring - measured;
    operations_ += operations * static_cast<double>(outcome.step - steps_);
    steps_ = outcome.step;
    if (train.until && !result.trace.empty())
      result.trace.back().metrics["until_reached"] = is_reached ? 1 : 0;
    return outcome;
  }

  /// Adds the metrics that are measured at the last record of a phase alone.
  void measure_last(std::int64_t step, std::vector<TraceEntry>& trace) {
    const Timed timed(spent_.measuring);
    for (Evaluation<Real>& evaluation : evaluations_)
      evaluation.measure_last(moment(step), trace.back().metrics);
  }

  /// Adds metrics that need the last record to all records.
  void complete(std::vector<TraceEntry>& trace) {
    const Timed timed(spent_.measuring);
    for (Evaluation<Real>& evaluation : evaluations_) evaluation.complete(trace);
  }

  void finish(std::int64_t step, const MetricValues& of_phases, CellResult& result) {
    const Timed timed(spent_.measuring);
    begin_memory_stage(MemoryStage::finish);
    Evaluation<Real>& own = evaluations_.front();
    try {
      if (!own.not_finite().empty()) throw NotFinite(own.not_finite());
      result.arrays = own.take_arrays(moment(step));
    } catch (const NotFinite& found) {
      result.state = CellResult::State::diverged;
      result.message = fmt::format("{} not finite after {} steps", found.what(), step);
      return;
    }
    if (cell_.experiment.phases.empty()) complete(result.trace);  // phases have completed their own records
    MetricValues& last = result.trace.back().metrics;
    if (is_least_squares(own_.experiment.train) && asks_for(cell_, "fit"))
      last.merge(fit_metrics(experiment_.fit()));
    if (asks_for(cell_, "likelihood"))
      last.merge(likelihood_metrics(experiment_.fit(), experiment_.problem().true_measure()));
    set_steps_to_target(cell_.metrics, result.trace, last);
    result.metrics = last;
    for (const auto& [name, value] : of_phases) result.metrics[name] = value;
  }

  const CellOptions& cell_;
  Experiment<Real> experiment_;
  std::size_t phase_ = 0;
  TimeSpent spent_;
  std::int64_t steps_ = 0;  // steps of the previous phases
  double operations_ = 0;   // operations of the previous phases
  CellOptions own_;         // options of the current phase
  Dataset train_;
  std::vector<std::unique_ptr<Problem>> problems_;  // problems of the evaluations
  std::deque<Evaluation<Real>> evaluations_;  // first the cell's own data; a deque keeps addresses stable
};

}  // namespace

CellResult run_cell(const Cell& cell, const CellProgress& progress) {
  CellResult result = run_experiment(options_of(cell), progress);
  constexpr std::size_t kLargeHoles = 8'000'000;  // less costs time in small cells, and matters little
  return_holes(kLargeHoles);
  return result;
}

CellResult run_experiment(const CellOptions& cell, const CellProgress& progress) {
  try {
    const bool in_double = cell.experiment.train.precision == TrainOptions::Precision::in_double;
    double total = 0;
    CellResult result = [&] {
      const Timed timed(total);
      return in_double ? CellRun<double>(cell).run(progress) : CellRun<float>(cell).run(progress);
    }();
    result.spent.total = total;
    return result;
  } catch (const InvalidOption& error) {
    CellResult result;
    result.state = CellResult::State::failed;
    result.message = error.what();
    return result;
  }
}

namespace {

/// The sets of a phase, or of a cell without phases.
SampledSets sets_of(const DataOptions& data, const Cell& cell, const std::string& prefix) {
  const Seeds seeds = cell.seeds();
  const std::unique_ptr<Problem> problem = draw_problem(data, seeds);
  SampledSets sets;
  sets.prefix = prefix;
  sets.layout = problem->layout();
  if (data.train_samples)
    sets.train = draw_set(*problem, seeds, Purpose::train_data, *data.train_samples, train_stream(data));
  sets.test = draw_set(*problem, seeds, Purpose::test_data, data.test_samples);
  contaminate(data.contamination, sets.layout, seeds, sets.test.x, sets.test.y);
  if (data.contamination.entry().is_attack()) sets.attack = data.contamination.entry().name;
  return sets;
}

}  // namespace

std::vector<SampledSets> sampled_sets(const Cell& cell) {
  std::vector<SampledSets> sets;
  const std::vector<PhaseOptions>& phases = cell.options->experiment.phases;
  for (std::size_t i = 0; i + 1 < phases.size(); ++i)
    sets.push_back(sets_of(phases[i].data, cell, phases[i].name + "."));
  sets.push_back(last_sampled_sets(cell));
  return sets;
}

SampledSets last_sampled_sets(const Cell& cell) {
  return sets_of(last_data(*cell.options), cell, "");
}

}  // namespace moelab
