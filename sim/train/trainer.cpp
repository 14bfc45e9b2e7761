#include "sim/train/trainer.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "sim/base/error.h"
#include "sim/base/numerics.h"
#include "sim/train/minimum_norm.h"
#include "sim/train/optimizer.h"

namespace moelab {
namespace {

double rate_of(const PerGroup& value, ParameterGroup::Role role) {
  return role == ParameterGroup::Role::router ? value.router : value.expert;
}

bool learns_in(const Learns& learns, ParameterGroup::Part part) {
  switch (part) {
    case ParameterGroup::Part::router:
      return learns.router;
    case ParameterGroup::Part::experts:
      return learns.experts || learns.has_frozen_parts();
    case ParameterGroup::Part::layers:
      break;
  }
  return learns.layers;
}

/// A parameter group with its learning rate, weight decay and optimizer.
///
/// If the optimizer can defer, an expert without rows in a batch gets its updates later: when it is next used
/// or when the model is read. Active experts get their updates at once, during the backward pass, while
/// weights and gradient are in the cache. The result is bit-identical to updating every expert at every step.
/// With a specialised router, the cost of a step then follows the number of active experts. Early updates
/// make steps 1.2 to 1.4 times as fast (4096 and 256 experts of width 96).
template <class Real>
class TrainedGroup {
 public:
  TrainedGroup(Model<Real>& model, Workspace<Real>& workspace, const ParameterGroup& range,
               const TrainOptions& options, std::int64_t steps, Optimizer<Real>& optimizer)
      : model_(model),
        workspace_(workspace),
        range_(range),
        learning_rate_(rate_of(*options.lr, range.role)),
        weight_decay_(rate_of(options.weight_decay, range.role)),
        schedule_(options.schedule),
        steps_(steps),
        optimizer_(&optimizer) {
    const bool is_bank = range.role == ParameterGroup::Role::expert && range.layer >= 0;
    if (is_bank && expert_block_size() > 0 && optimizer_->can_defer()) {
      updated_.assign(size(model.network->experts()), 0);
    }
  }

  /// Whether the group updates its experts one by one.
  bool by_expert() const { return !updated_.empty(); }
  int layer() const { return range_.layer; }
  /// Applies update number `step` (0-based) to an active expert, from its gradient.
  void update_expert(std::size_t e, const Real* gradient, std::int64_t step) {
    const std::size_t block = expert_block_size();
    optimizer_->step_part(rate(step), weight_decay_, gradient, parameters(), e * block, block);
    updated_[e] = step + 1;
  }

  /// Returns Σ g² over the group's gradient; scale_gradient() scales this gradient.
  double squared_norm() const { return squared_norm(range_.begin, range_.end); }
  void scale_gradient(Real factor) { scale_gradient(factor, range_.begin, range_.end); }
  /// Divides the gradient of each expert by its norm, or by the sum of the norms of its parts.
  void normalize_experts(bool by_parts) {
    if (range_.role != ParameterGroup::Role::expert || range_.layer < 0) return;
    std::vector<std::size_t> ends = {expert_block_size()};
    if (by_parts) ends = model_.network->mixture(range_.layer).expert_part_ends();
    for (int e = 0; e < model_.network->experts(); ++e) {
      const std::size_t begin = range_.begin + size(e) * expert_block_size();
      double norm = 0;
      std::size_t part = begin;
      for (const std::size_t end : ends) {
        norm += std::sqrt(squared_norm(part, begin + end));
        part = begin + end;
      }
      if (norm == 0) continue;  // an expert without rows
      if (1 / norm <= std::numeric_limits<Real>::max()) {
        scale_gradient(static_cast<Real>(1 / norm), begin, part);
      } else {  // twice, because the factor of a subnormal gradient is too large
        scale_gradient(static_cast<Real>(1 / std::sqrt(norm)), begin, part);
        scale_gradient(static_cast<Real>(1 / std::sqrt(norm)), begin, part);
      }
    }
  }

  /// Applies update number `step` (0-based) from the workspace's gradient.
  void update(std::int64_t step) {
    const Real* gradient = workspace_.gradient.data() + range_.begin;
    if (!by_expert()) return optimizer_->step(rate(step), weight_decay_, gradient, parameters());
    const Routing<Real>& routing = model_.network->mixture_scratch(range_.layer, workspace_).routing();
    for (std::size_t e = 0; e < updated_.size(); ++e) {
      if (updated_[e] > step || routing.pairs_of(static_cast<int>(e)) == 0) continue;
      update_expert(e, gradient + e * expert_block_size(), step);
    }
  }

  /// Applies the deferred updates of expert e, up to `step` updates in all.
  void catch_up(std::size_t e, std::int64_t step) {
    constexpr int kChunk = 64;
    const std::size_t block = expert_block_size();
    while (updated_[e] < step) {
      Real rates[kChunk];
      const int count = static_cast<int>(std::min<std::int64_t>(kChunk, step - updated_[e]));
      for (int i = 0; i < count; ++i) rates[i] = static_cast<Real>(rate(updated_[e] + i));
      optimizer_->idle_steps(rates, count, weight_decay_, parameters(), e * block, block);
      updated_[e] += count;
    }
  }

  void catch_up_active(int active_layer, const Routing<Real>& routing, std::int64_t step) {
    if (active_layer != range_.layer) return;
    for (std::size_t e = 0; e < updated_.size(); ++e) {
      if (routing.pairs_of(static_cast<int>(e)) > 0) catch_up(e, step);
    }
  }
  void catch_up_all(std::int64_t step) {
    for (std::size_t e = 0; e < updated_.size(); ++e) catch_up(e, step);
  }

 private:
  double squared_norm(std::size_t begin, std::size_t end) const {
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i)
      sum += static_cast<double>(workspace_.gradient[i]) * static_cast<double>(workspace_.gradient[i]);
    return sum;
  }
  void scale_gradient(Real factor, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) workspace_.gradient[i] *= factor;
  }
  std::size_t expert_block_size() const { return model_.network->mixture(range_.layer).expert_block_size(); }
  Real* parameters() { return model_.parameters.data() + range_.begin; }
  double rate(std::int64_t step) const { return schedule_.factor(step, steps_) * learning_rate_; }

  Model<Real>& model_;
  Workspace<Real>& workspace_;
  ParameterGroup range_;
  double learning_rate_;
  double weight_decay_;
  Schedule schedule_;
  std::int64_t steps_;
  Optimizer<Real>* optimizer_;
  std::vector<std::int64_t> updated_;  // updates applied to each expert; empty if none is deferred
};

template <class Real>
std::vector<TrainedGroup<Real>> trained_groups(Model<Real>& model, Workspace<Real>& workspace,
                                               const TrainOptions& options, std::int64_t steps,
                                               PhaseCourse<Real>& course) {
  if (!options.lr) throw InvalidOption("train.lr", "missing");
  const std::vector<ParameterGroup>& ranges = model.network->groups();
  course.optimizers.resize(ranges.size());
  std::vector<TrainedGroup<Real>> groups;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (!ranges[i].trainable || !learns_in(course.learns, ranges[i].part)) continue;
    if (is_solved(options) && ranges[i].part == ParameterGroup::Part::experts) continue;
    std::unique_ptr<Optimizer<Real>>& optimizer = course.optimizers[i];
    if (!optimizer) optimizer = make_optimizer<Real>(options.optimizer, ranges[i].end - ranges[i].begin);
    groups.emplace_back(model, workspace, ranges[i], options, steps, *optimizer);
  }
  return groups;
}

/// The expert of the first mixture that computed the most rows of the batch in the workspace.
template <class Real>
int busiest_expert(const Network<Real>& network, Workspace<Real>& workspace) {
  if (!network.has_router()) return 0;
  const Routing<Real>& routing = network.mixture_scratch(0, workspace).routing();
  int busiest = 0;
  for (int e = 1; e < routing.experts; ++e)
    if (routing.pairs_of(e) > routing.pairs_of(busiest)) busiest = e;
  return busiest;
}

/// Scales the gradient of all groups down to norm `most`, if the norm is larger.
template <class Real>
void clip(std::vector<TrainedGroup<Real>>& groups, double most) {
  double squared = 0;
  for (const TrainedGroup<Real>& group : groups) squared += group.squared_norm();
  const double norm = std::sqrt(squared);
  if (!(norm > most)) return;
  for (TrainedGroup<Real>& group : groups) group.scale_gradient(static_cast<Real>(most / norm));
}

}  // namespace

template <class Real>
std::vector<std::size_t> frozen_places(const Network<Real>& network, const Learns& learns) {
  std::vector<std::size_t> frozen;
  if (!learns.has_frozen_parts()) return frozen;
  const ArrayPlaces arrays = array_places(network);
  // "expert_weight_3_layer0" is of layer 3 of the experts of a mixture. Experts of one layer may have no
  // number: "expert_weight_layer0".
  const auto depth_of = [](const std::string& name, std::string_view kind) {
    const std::size_t place = name.find(kind);
    if (place == std::string::npos) return 0;
    const char* const end = name.data() + name.size();
    int depth = 1;
    std::from_chars(std::min(name.data() + place + kind.size() + 1, end), end, depth);
    return depth;
  };
  int last = 1;
  for (const auto& [name, places] : arrays) last = std::max(last, depth_of(name, "expert_weight"));
  for (const auto& [name, places] : arrays) {
    const int of_weight = depth_of(name, "expert_weight");
    // A constant expert is the bias of a last layer.
    const int of_bias = std::max(depth_of(name, "expert_bias"), depth_of(name, "expert_output"));
    if (of_weight == 0 && of_bias == 0) continue;
    if (learns.first_layers && of_weight == 1) continue;
    if (learns.read_outs && (of_weight == last || of_bias == last)) continue;
    frozen.insert(frozen.end(), places.begin(), places.end());
  }
  return frozen;
}
template std::vector<std::size_t> frozen_places(const Network<float>&, const Learns&);
template std::vector<std::size_t> frozen_places(const Network<double>&, const Learns&);

template <class Real>
TrainOutcome train(Model<Real>& model, const Objective<Real>& objective, BatchSource<Real>& batches,
                   std::int64_t steps, const TrainOptions& options, const TrainCallbacks& callbacks,
                   Workspace<Real>& workspace, PhaseCourse<Real>& course) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kBetweenReports{100};
  const std::int64_t interval = record_interval(options, steps);
  const Network<Real>& network = *model.network;
  std::vector<TrainedGroup<Real>> groups = trained_groups(model, workspace, options, steps, course);
  std::optional<MinimumNormSteps<Real>> solver;
  const std::vector<std::size_t> frozen = frozen_places(network, course.learns);
  if (is_solved(options) && learns_in(course.learns, ParameterGroup::Part::experts))
    solver.emplace(options, frozen, model, workspace);
  std::int64_t done = 0;  // updates so far, including deferred ones
  ExpertHooks<Real> hooks;
  hooks.before = [&](int layer, const Routing<Real>& routing) {
    for (TrainedGroup<Real>& group : groups) group.catch_up_active(layer, routing, done);
  };
  const auto by_expert = [](const TrainedGroup<Real>& group) { return group.by_expert(); };
  const bool normalizes = options.expert_norm != TrainOptions::ExpertNorm::none;
  // Clipping needs the norm of the whole gradient, and frozen parts lose theirs, so experts cannot update
  // early.
  if (!options.clip_norm && !normalizes && frozen.empty() &&
      std::any_of(groups.begin(), groups.end(), by_expert)) {
    hooks.after = [&](int layer, int expert, const Real* gradient) {
      for (TrainedGroup<Real>& group : groups) {
        if (group.by_expert() && group.layer() == layer) group.update_expert(size(expert), gradient, done);
      }
    };
  }
  bool stopped = false;
  const auto record = [&] {
    callbacks.record(course.steps + done);
    stopped = callbacks.stop(course.steps + done);
  };
  const auto run = [&]() -> TrainState {
    if (course.phase == 0) record();
    Clock::time_point last_report = Clock::now();
    while (done < steps && !stopped) {
      const int samples = batches.advance();
      network.begin_step(static_cast<double>(done) / static_cast<double>(steps), model.parameters,
                         model.state);
      if (solver) solver->move(batches.samples(), batches.y(), samples, done, steps);
      const double value =
          loss_and_gradient(model, objective, batches.samples(), batches.y(), samples, workspace, &hooks);
      if (!std::isfinite(value)) return TrainState::diverged;
      network.end_step(workspace, model.state);
      for (const std::size_t place : frozen) workspace.gradient[place] = 0;
      for (TrainedGroup<Real>& group : groups)
        if (normalizes) group.normalize_experts(options.expert_norm == TrainOptions::ExpertNorm::parts);
      if (options.clip_norm) clip(groups, *options.clip_norm);
      for (TrainedGroup<Real>& group : groups) group.update(done);
      if (solver) solver->forget();
      ++done;
      if (const std::optional<int> task = batches.finished_task()) {
        for (TrainedGroup<Real>& group : groups) group.catch_up_all(done);
        callbacks.round({course.steps + done, *task, busiest_expert(network, workspace)});
      }
      if (done % interval == 0 || done == steps) {
        for (TrainedGroup<Real>& group : groups) group.catch_up_all(done);
        if (!all_finite<Real>(model.parameters)) return TrainState::diverged;
        record();
      }
      const Clock::time_point now = Clock::now();
      if (now - last_report >= kBetweenReports) {
        last_report = now;
        if (callbacks.progress(static_cast<double>(done) / static_cast<double>(steps)))
          return TrainState::interrupted;
      }
    }
    return TrainState::done;
  };
  const TrainState state = run();
  for (TrainedGroup<Real>& group : groups) group.catch_up_all(done);
  return {state, course.steps + done, stopped && done < steps};
}

template <class Real>
TrainOutcome train(Model<Real>& model, const Objective<Real>& objective, const TrainingSet<Real>& data,
                   const TrainOptions& options, const Seeds& seeds, const TrainCallbacks& callbacks,
                   Workspace<Real>& workspace, PhaseCourse<Real>& course) {
  if (!options.batch_size) throw InvalidOption("train.batch_size", "missing; mini-batches need it");
  SampleBatches<Real> batches(data, model.network->layout(), static_cast<int>(*options.batch_size), seeds,
                              static_cast<std::uint64_t>(course.phase), objective.masks,
                              task_rounds(options, course.tasks, seeds, course.phase));
  return train(model, objective, batches, total_steps(options, data.rows), options, callbacks, workspace,
               course);
}

template TrainOutcome train(Model<float>&, const Objective<float>&, BatchSource<float>&, std::int64_t,
                            const TrainOptions&, const TrainCallbacks&, Workspace<float>&,
                            PhaseCourse<float>&);
template TrainOutcome train(Model<double>&, const Objective<double>&, BatchSource<double>&, std::int64_t,
                            const TrainOptions&, const TrainCallbacks&, Workspace<double>&,
                            PhaseCourse<double>&);
template TrainOutcome train(Model<float>&, const Objective<float>&, const TrainingSet<float>&,
                            const TrainOptions&, const Seeds&, const TrainCallbacks&, Workspace<float>&,
                            PhaseCourse<float>&);
template TrainOutcome train(Model<double>&, const Objective<double>&, const TrainingSet<double>&,
                            const TrainOptions&, const Seeds&, const TrainCallbacks&, Workspace<double>&,
                            PhaseCourse<double>&);

// To add a rule, write a new file that defines <name>_rule() and add a line here.
// clang-format off
#define MOELAB_TRAINING_RULES(entry) \
  entry(sgd_rule)                    \
  entry(adam_rule)                   \
  entry(adamw_rule)                  \
  entry(lbfgs_rule)                  \
  entry(minimum_norm_rule)
// clang-format on

MOELAB_TABLE(TrainingRuleAxis, MOELAB_TRAINING_RULES)

template <class Real>
std::unique_ptr<Optimizer<Real>> make_optimizer(const TrainingRule& rule, std::size_t count) {
  const auto make = rule.entry().make.of<Real>();
  if (!make) throw std::invalid_argument("'" + rule.chosen() + "' fits whole samples and takes no steps");
  return make(rule.options(), count);
}

template std::unique_ptr<Optimizer<float>> make_optimizer(const TrainingRule&, std::size_t);
template std::unique_ptr<Optimizer<double>> make_optimizer(const TrainingRule&, std::size_t);

template <class Real>
void Optimizer<Real>::step_part(double, double, const Real*, Real*, std::size_t, std::size_t) {
  throw std::logic_error("this optimizer cannot defer");
}

template <class Real>
void Optimizer<Real>::idle_steps(const Real*, int, double, Real*, std::size_t, std::size_t) {
  throw std::logic_error("this optimizer cannot defer");
}

template class Optimizer<float>;
template class Optimizer<double>;

}  // namespace moelab
