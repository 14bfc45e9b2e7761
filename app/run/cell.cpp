#include "app/run/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "app/run/measurement.h"
#include "sim/base/error.h"
#include "sim/data/contamination.h"
#include "sim/data/problem.h"
#include "sim/train/attacks.h"
#include "sim/train/gradient_error.h"
#include "sim/train/least_squares.h"
#include "sim/train/trainer.h"

namespace moelab {
namespace {

/// Pairs with a smaller gate are skipped in soft training unless the scenario says otherwise: they move the
/// output by at most 1e-8 of an expert's, below float's resolution. Adam divides gradients by their own size,
/// so there every pair counts.
constexpr double kSkipBelow = 1e-8;

/// Samples drawn at a time: a training set is the largest array of a cell, and is kept in one precision only.
constexpr int kDrawnSamples = 4096;

template <class Real>
TrainingSet<Real> draw_training_set(const Problem& problem, const Seeds& seeds, int samples) {
  const Layout layout = problem.layout();
  TrainingSet<Real> set{samples, {}, {}};
  set.x.reserve(static_cast<std::size_t>(samples) * static_cast<std::size_t>(layout.sample_dim()));
  set.y.reserve(static_cast<std::size_t>(samples) * static_cast<std::size_t>(layout.target_dim()));
  Engine engine = seeds.stream(Purpose::train_data);
  for (int first = 0; first < samples; first += kDrawnSamples) {
    const int count = std::min(kDrawnSamples, samples - first);
    const Dataset block = problem.draw(engine, {Purpose::train_data, first, count});
    set.x.insert(set.x.end(), block.x.data(), block.x.data() + block.x.size());
    set.y.insert(set.y.end(), block.y.data(), block.y.data() + block.y.size());
  }
  return set;
}

/// The first `count` rows of the training set, a token a row, (count, d).
Matrix first_rows(const Problem& problem, const Seeds& seeds, int count) {
  const Layout layout = problem.layout();
  const int samples = (count + layout.tokens - 1) / layout.tokens;
  const Dataset data = draw_set(problem, seeds, Purpose::train_data, samples);
  return MatrixView(data.x.data(), samples * layout.tokens, layout.input_dim).topRows(count);
}

/// Test data of its own for a trained model: the main one, whose prefix is empty, or one of "evaluations".
template <class Real>
class Evaluation {
 public:
  Evaluation(const std::string& prefix, const Json& data, const Json& config, const Seeds& seeds,
             const Dataset& train)
      : prefix_(prefix),
        contamination_(data.at("contamination")),
        config_(config),
        seeds_(seeds),
        train_(train),
        problem_(draw_problem(data, seeds)),
        test_(draw_set(*problem_, seeds, Purpose::test_data, data.at("test_samples"))),
        attacked_(test_) {
    contaminate(contamination_, problem_->layout(), seeds_, attacked_.x);
    if (!is_attack(contamination_)) make_measurement();
  }

  /// The metrics of this moment, each name after the prefix and a dot.
  void measure(Model<Real>& model, const TaskLoss<Real>& loss, MetricValues& values) {
    look_at(model, loss);
    const std::string start = prefix_.empty() ? "" : prefix_ + ".";
    for (const auto& [name, value] : measurement_->measure(model)) values[start + name] = value;
  }

  std::vector<SavedArray> arrays(Model<Real>& model) { return measurement_->arrays(model); }
  bool wants(const std::string& group) const { return measurement_->wants(group); }

 private:
  void make_measurement() { measurement_.emplace(config_, seeds_, *problem_, train_, attacked_); }
  /// An attack is one on the model as it is.
  void look_at(Model<Real>& model, const TaskLoss<Real>& loss) {
    if (!is_attack(contamination_)) return;
    attacked_.x = attacked_inputs(contamination_, model, loss, test_, seeds_);
    make_measurement();
  }

  std::string prefix_;
  const Json& contamination_;
  const Json& config_;
  const Seeds seeds_;
  const Dataset& train_;
  std::unique_ptr<Problem> problem_;
  Dataset test_;
  Dataset attacked_;
  std::optional<Measurement<Real>> measurement_;
};

/// The first recorded step at which the metric that the group "convergence" names is at most its target.
void set_steps_to_target(const Json& config, const std::vector<TraceEntry>& trace, MetricValues& values) {
  for (const Json& group : config.at("metrics")) {
    if (group.at("kind") != "convergence") continue;
    for (const TraceEntry& entry : trace) {
      const auto metric = entry.metrics.find(group.at("metric").get<std::string>());
      if (metric == entry.metrics.end() || metric->second > group.at("target").get<double>()) continue;
      values["steps_to_target"] = static_cast<double>(entry.step);
      return;
    }
  }
}

template <class Real>
CellResult run_in(const Json& config, const CellProgress& progress) {
  const Json& data = config.at("data");
  const Json& train_spec = config.at("train");
  const Seeds seeds{config.at("seed").at("root"), config.at("seed").at("index")};
  const std::unique_ptr<Problem> problem = draw_problem(data, seeds);
  const bool population = train_spec.at("gradient") == "population";
  const int train_samples = data.value("train_samples", kMeasuredTrainSamples);

  const double skip_below = rescales_gradients(train_spec.at("optimizer")) ? 0.0 : kSkipBelow;
  Model<Real> model(config.at("model"), problem->layout(), skip_below);
  model.initialize(seeds);
  model.add_losses(AuxiliaryLosses(config.at("loss")));
  if (model.has_router() && config.at("model").at("router").value("init", "") == "train_samples") {
    model.start_router_at(first_rows(*problem, seeds, model.experts()));
  }
  const std::unique_ptr<TaskLoss<Real>> loss = make_task_loss<Real>(config.at("loss").at("task"));
  const Dataset train_data =
      draw_set(*problem, seeds, Purpose::train_data, std::min(kMeasuredTrainSamples, train_samples));
  const Dataset no_train_data;
  std::deque<Evaluation<Real>> evaluations;  // measurements refer into them: they stay where they are
  evaluations.emplace_back("", data, config, seeds, train_data);
  for (const auto& [name, evaluated] : config.at("evaluations").items()) {
    evaluations.emplace_back(name, evaluated, config, seeds, no_train_data);
  }

  CellResult result;
  const auto record = [&](std::int64_t step) {
    MetricValues values;
    for (Evaluation<Real>& evaluation : evaluations) evaluation.measure(model, *loss, values);
    if (population && evaluations.front().wants("gradient")) {
      const GradientError error = population_gradient_error(model, *loss, *problem, train_spec, seeds,
                                                            static_cast<std::uint64_t>(step));
      values["population_gradient_norm"] = error.norm;
      values["population_gradient_standard_error"] = error.standard_error;
    }
    result.trace.push_back({step, std::move(values)});
  };
  const TrainCallbacks callbacks = {record, progress};
  const TrainOutcome outcome = [&]() -> TrainOutcome {
    if (population) {
      PopulationBatches<Real> batches(*problem, train_spec, seeds);
      return train(model, *loss, batches, total_steps(train_spec, 0), train_spec, callbacks);
    }
    const TrainingSet<Real> training = draw_training_set<Real>(*problem, seeds, train_samples);
    if constexpr (std::is_same_v<Real, double>) {
      if (is_least_squares(train_spec)) {
        const FitOutcome fit = fit_least_squares(model, config.at("model"), *loss, training, train_spec,
                                                 problem->true_measure(), seeds, callbacks);
        if (fit.state == TrainState::done && evaluations.front().wants("fit")) {
          result.trace.back().metrics.merge(
              MetricValues{{"fit_converged", fit.converged ? 1.0 : 0.0},
                           {"fit_evaluations", static_cast<double>(fit.evaluations)},
                           {"fit_starts", static_cast<double>(fit.starts)}});
        }
        return {fit.state, fit.evaluations};
      }
    }
    return train(model, *loss, training, train_spec, seeds, callbacks);
  }();
  if (outcome.state == TrainState::interrupted) {
    result.state = CellResult::State::interrupted;
    return result;
  }
  if (outcome.state == TrainState::diverged) {
    result.state = CellResult::State::diverged;
    result.message = fmt::format("not finite after {} steps", outcome.step);
    return result;
  }
  set_steps_to_target(config, result.trace, result.trace.back().metrics);
  result.metrics = result.trace.back().metrics;
  result.arrays = evaluations.front().arrays(model);
  return result;
}

}  // namespace

CellResult run_cell(const Cell& cell, const CellProgress& progress) {
  try {
    const bool in_double = cell.config.at("train").at("precision") == "double";
    return in_double ? run_in<double>(cell.config, progress) : run_in<float>(cell.config, progress);
  } catch (const UserError& error) {
    CellResult result;
    result.state = CellResult::State::failed;
    result.message = error.what();
    return result;
  }
}

}  // namespace moelab
