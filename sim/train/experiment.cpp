#include "sim/train/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "sim/base/error.h"

namespace moelab {
namespace {

/// Samples drawn at a time: a training set is the largest array of a run, and is kept in one precision only.
constexpr int kDrawnSamples = 4096;

/// Data, loss and training of a phase in place of the experiment's own.
ExperimentOptions in_phase(ExperimentOptions options, std::size_t phase) {
  if (phase >= options.phases.size()) return options;
  options.data = options.phases[phase].data;
  options.loss = options.phases[phase].loss;
  options.train = options.phases[phase].train;
  return options;
}

/// A model has one set of gatings: they leave out no pair where a phase's optimizer counts every one, and
/// route as many rows together as the last phase does.
ExperimentOptions prepared(ExperimentOptions options, const Problem* own_problem) {
  own_problem ? check_training(options) : check(options);
  const TrainOptions* shown = &options.train;
  for (const PhaseOptions& phase : options.phases) shown = &phase.train;
  TrainOptions train = *shown;
  for (const PhaseOptions& phase : options.phases) {
    if (default_skip_below(phase.train) < default_skip_below(train)) train.optimizer = phase.train.optimizer;
  }
  options.model = resolved_for(std::move(options.model), train);
  return in_phase(std::move(options), 0);
}

/// The first `count` rows of the training set, a token a row, (count, d).
Matrix first_rows(const Problem& problem, const Seeds& seeds, int count, std::uint64_t stream) {
  const Layout layout = problem.layout();
  const int samples = (count + layout.tokens - 1) / layout.tokens;
  const Dataset data = draw_set(problem, seeds, Purpose::train_data, samples, stream);
  return MatrixView(data.x.data(), samples * layout.tokens, layout.input_dim).topRows(count);
}

template <class Real>
Model<Real> started_model(const ExperimentOptions& options, const Problem& problem, const Seeds& seeds) {
  const auto network = std::make_shared<const Network<Real>>(options.model, problem.layout());
  if (!network->starts_at_train_rows()) return Model<Real>(network, {seeds});
  const Matrix rows = first_rows(problem, seeds, network->experts(), train_stream(options.data));
  return Model<Real>(network, {seeds, &rows});
}

}  // namespace

TokenMasks masks_of(const LossOptions& options, const Layout& layout) {
  constexpr double kShare = 0.15;
  if (!task_loss_kind(options.task).masks_tokens) return {};
  return {options.mask_share.value_or(kShare), layout.vocabulary};
}

template <class Real>
TrainingSet<Real> draw_training_set(const Problem& problem, const Seeds& seeds, int samples,
                                    std::uint64_t stream, bool with_labels) {
  const Layout layout = problem.layout();
  TrainingSet<Real> set{samples, {}, {}};
  set.x.reserve(entries(samples, layout.sample_dim()));
  set.y.reserve(entries(samples, layout.target_dim()));
  Engine engine = seeds.stream(Purpose::train_data, stream);
  for (int first = 0; first < samples; first += kDrawnSamples) {
    const int count = std::min(kDrawnSamples, samples - first);
    const Dataset block = problem.draw(engine, {Purpose::train_data, first, count});
    set.x.insert(set.x.end(), block.x.data(), block.x.data() + block.x.size());
    set.y.insert(set.y.end(), block.y.data(), block.y.data() + block.y.size());
    if (with_labels) set.labels.insert(set.labels.end(), block.cluster.begin(), block.cluster.end());
  }
  return set;
}

template <class Real>
Experiment<Real>::Experiment(ExperimentOptions options, const Seeds& seeds)
    : Experiment(std::move(options), nullptr, seeds) {}

template <class Real>
Experiment<Real>::Experiment(ExperimentOptions options, std::unique_ptr<Problem> problem, const Seeds& seeds)
    : options_(prepared(std::move(options), problem.get())),
      seeds_(seeds),
      problem_(problem ? std::move(problem) : draw_problem(options_.data, seeds)),
      model_(started_model<Real>(options_, *problem_, seeds)),
      task_loss_(make_task_loss<Real>(options_.loss, problem_->layout().vocabulary > 0)),
      objective_({*task_loss_, AuxiliaryLosses(options_.loss), masks_of(options_.loss, problem_->layout())}),
      workspace_(model_.network->make_workspace()) {
  if (!options_.phases.empty()) course_.learns = options_.phases.front().learns;
}

template <class Real>
bool Experiment<Real>::next_phase() {
  const std::size_t next = size(course_.phase) + 1;
  if (next >= options_.phases.size()) return false;
  options_ = in_phase(std::move(options_), next);
  const PhaseOptions& phase = options_.phases[next];
  std::unique_ptr<Problem> problem = draw_problem(options_.data, seeds_);
  if (!problem->layout().has_same_rows(problem_->layout())) {
    throw InvalidOption(fmt::format("phases[{}].data", next),
                        "needs inputs and targets of the shape of those before");
  }
  objective_.reset();
  task_loss_ = make_task_loss<Real>(options_.loss, problem->layout().vocabulary > 0);
  objective_.emplace(Objective<Real>{*task_loss_, AuxiliaryLosses(options_.loss),
                                     masks_of(options_.loss, problem->layout())});
  problem_ = std::move(problem);
  if (!phase.keep_optimizer) course_.optimizers.clear();
  course_.learns = phase.learns;
  course_.phase = static_cast<int>(next);
  return true;
}

template <class Real>
TrainOutcome Experiment<Real>::train(const TrainCallbacks& callbacks) {
  const TrainOptions& options = options_.train;
  if (options_.phases.empty()) course_ = {};  // a training of its own each time
  const auto in_course = [&](TrainOutcome outcome) {
    course_.steps = outcome.step;
    return outcome;
  };
  if (options.gradient == TrainOptions::Gradient::population) {
    PopulationBatches<Real> batches(*problem_, options, seeds_, 0, objective_->masks);
    return in_course(moelab::train(model_, *objective_, batches, total_steps(options, 0), options, callbacks,
                                   workspace_, course_));
  }
  const TrainingSet<Real> data =
      draw_training_set<Real>(*problem_, seeds_, *options_.data.train_samples, train_stream(options_.data),
                              needs_labels(options_.model));
  if (!is_least_squares(options)) {
    return in_course(
        moelab::train(model_, *objective_, data, options, seeds_, callbacks, workspace_, course_));
  }
  if constexpr (std::is_same_v<Real, double>) {
    fit_ = fit_least_squares(model_, options_.model, *objective_, data, options, problem_->true_measure(),
                             seeds_, callbacks, workspace_);
    return {fit_.state, fit_.evaluations};
  } else {
    throw std::invalid_argument("a least-squares fit works in double");
  }
}

template TrainingSet<float> draw_training_set(const Problem&, const Seeds&, int, std::uint64_t, bool);
template TrainingSet<double> draw_training_set(const Problem&, const Seeds&, int, std::uint64_t, bool);
template class Experiment<float>;
template class Experiment<double>;

}  // namespace moelab
