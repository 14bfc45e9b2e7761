#include "app/run/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "app/metrics/convergence.h"
#include "app/metrics/finite.h"
#include "app/run/evaluation.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// How a least-squares fit ended.
MetricValues fit_metrics(const FitOutcome& fit) {
  return {{"fit_converged", fit.converged ? 1.0 : 0.0},
          {"fit_evaluations", static_cast<double>(fit.evaluations)},
          {"fit_starts", static_cast<double>(fit.starts)}};
}

bool asks_for(const CellOptions& cell, const std::string& group) {
  return std::any_of(cell.metrics.begin(), cell.metrics.end(),
                     [&](const MetricOptions& chosen) { return chosen.chosen() == group; });
}

/// One training run with everything that looks at it.
template <class Real>
class CellRun {
 public:
  explicit CellRun(const CellOptions& cell)
      : cell_(cell),
        experiment_(cell.experiment, cell.seeds),
        train_(draw_set(experiment_.problem(), cell.seeds, Purpose::train_data,
                        std::min(kMeasuredTrainSamples,
                                 cell.experiment.data.train_samples.value_or(kMeasuredTrainSamples)))) {
    evaluations_.emplace_back("", cell.experiment.data, cell, experiment_.problem(), &train_);
    for (const auto& [name, data] : cell.evaluations) {
      problems_.push_back(draw_problem(data, cell.seeds));
      evaluations_.emplace_back(name, data, cell, *problems_.back(), nullptr);
    }
  }

  CellResult run(const CellProgress& progress) {
    CellResult result;
    const auto record = [&](std::int64_t step) {
      TraceEntry entry{step, {}};
      for (Evaluation<Real>& evaluation : evaluations_) evaluation.measure(moment(step), entry.metrics);
      result.trace.push_back(std::move(entry));
    };
    const TrainOutcome outcome = experiment_.train({record, progress});
    if (outcome.state == TrainState::interrupted) {
      result.state = CellResult::State::interrupted;
    } else if (outcome.state == TrainState::diverged) {
      result.state = CellResult::State::diverged;
      result.message = fmt::format("not finite after {} steps", outcome.step);
    } else {
      finish(outcome.step, result);
    }
    return result;
  }

 private:
  Moment<Real> moment(std::int64_t step) {
    return {experiment_.model(), experiment_.objective(), experiment_.workspace(), step};
  }

  void finish(std::int64_t step, CellResult& result) {
    Evaluation<Real>& own = evaluations_.front();
    try {
      if (!own.not_finite().empty()) throw NotFinite(own.not_finite());
      result.arrays = own.arrays(moment(step));
    } catch (const NotFinite& found) {
      result.state = CellResult::State::diverged;
      result.message = fmt::format("{} not finite after {} steps", found.what(), step);
      return;
    }
    MetricValues& last = result.trace.back().metrics;
    if (is_least_squares(cell_.experiment.train) && asks_for(cell_, "fit"))
      last.merge(fit_metrics(experiment_.fit()));
    set_steps_to_target(cell_.metrics, result.trace, last);
    result.metrics = last;
  }

  const CellOptions& cell_;
  Experiment<Real> experiment_;
  Dataset train_;
  std::vector<std::unique_ptr<Problem>> problems_;  // of evaluations
  std::deque<Evaluation<Real>> evaluations_;        // the cell's own first; they stay where they are
};

}  // namespace

CellResult run_cell(const Cell& cell, const CellProgress& progress) {
  return run_experiment(read_cell(cell), progress);
}

CellResult run_experiment(const CellOptions& cell, const CellProgress& progress) {
  try {
    const bool in_double = cell.experiment.train.precision == TrainOptions::Precision::in_double;
    return in_double ? CellRun<double>(cell).run(progress) : CellRun<float>(cell).run(progress);
  } catch (const InvalidOption& error) {
    CellResult result;
    result.state = CellResult::State::failed;
    result.message = error.what();
    return result;
  }
}

}  // namespace moelab
