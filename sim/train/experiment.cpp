#include "sim/train/experiment.h"

#include <algorithm>
#include <stdexcept>
#include <type_traits>

namespace moelab {
namespace {

/// Samples drawn at a time: a training set is the largest array of a run, and is kept in one precision only.
constexpr int kDrawnSamples = 4096;

ExperimentOptions prepared(ExperimentOptions options) {
  check(options);
  options.model = resolved_for(std::move(options.model), options.train);
  return options;
}

/// The first `count` rows of the training set, a token a row, (count, d).
Matrix first_rows(const Problem& problem, const Seeds& seeds, int count) {
  const Layout layout = problem.layout();
  const int samples = (count + layout.tokens - 1) / layout.tokens;
  const Dataset data = draw_set(problem, seeds, Purpose::train_data, samples);
  return MatrixView(data.x.data(), samples * layout.tokens, layout.input_dim).topRows(count);
}

template <class Real>
Model<Real> started_model(const ModelOptions& options, const Problem& problem, const Seeds& seeds) {
  const auto network = std::make_shared<const Network<Real>>(options, problem.layout());
  if (!network->starts_at_train_rows()) return Model<Real>(network, {seeds});
  const Matrix rows = first_rows(problem, seeds, network->experts());
  return Model<Real>(network, {seeds, &rows});
}

}  // namespace

template <class Real>
TrainingSet<Real> draw_training_set(const Problem& problem, const Seeds& seeds, int samples) {
  const Layout layout = problem.layout();
  TrainingSet<Real> set{samples, {}, {}};
  set.x.reserve(entries(samples, layout.sample_dim()));
  set.y.reserve(entries(samples, layout.target_dim()));
  Engine engine = seeds.stream(Purpose::train_data);
  for (int first = 0; first < samples; first += kDrawnSamples) {
    const int count = std::min(kDrawnSamples, samples - first);
    const Dataset block = problem.draw(engine, {Purpose::train_data, first, count});
    set.x.insert(set.x.end(), block.x.data(), block.x.data() + block.x.size());
    set.y.insert(set.y.end(), block.y.data(), block.y.data() + block.y.size());
  }
  return set;
}

template <class Real>
Experiment<Real>::Experiment(ExperimentOptions options, const Seeds& seeds)
    : options_(prepared(std::move(options))),
      seeds_(seeds),
      problem_(draw_problem(options_.data, seeds)),
      model_(started_model<Real>(options_.model, *problem_, seeds)),
      task_loss_(make_task_loss<Real>(options_.loss.task)),
      objective_{*task_loss_, AuxiliaryLosses(options_.loss)},
      workspace_(model_.network->make_workspace()) {}

template <class Real>
TrainOutcome Experiment<Real>::train(const TrainCallbacks& callbacks) {
  const TrainOptions& options = options_.train;
  if (options.gradient == TrainOptions::Gradient::population) {
    PopulationBatches<Real> batches(*problem_, options, seeds_);
    return moelab::train(model_, objective_, batches, total_steps(options, 0), options, callbacks,
                         workspace_);
  }
  const TrainingSet<Real> data = draw_training_set<Real>(*problem_, seeds_, *options_.data.train_samples);
  if (!is_least_squares(options)) {
    return moelab::train(model_, objective_, data, options, seeds_, callbacks, workspace_);
  }
  if constexpr (std::is_same_v<Real, double>) {
    fit_ = fit_least_squares(model_, options_.model, objective_, data, options, problem_->true_measure(),
                             seeds_, callbacks, workspace_);
    return {fit_.state, fit_.evaluations};
  } else {
    throw std::invalid_argument("a least-squares fit works in double");
  }
}

template TrainingSet<float> draw_training_set(const Problem&, const Seeds&, int);
template TrainingSet<double> draw_training_set(const Problem&, const Seeds&, int);
template class Experiment<float>;
template class Experiment<double>;

}  // namespace moelab
