#include "sim/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace moelab {
namespace {

double rate_of(const Json& value, ParameterGroup::Role role) {
  if (!value.is_object()) return value.get<double>();
  return value.at(role == ParameterGroup::Role::router ? "router" : "expert").get<double>();
}

/// A parameter group with its rates and its optimizer.
///
/// Where the optimizer allows, updates of experts that no row of a batch reached are put off until the expert
/// is next used or the model is looked at; the bits are those of an update at every step. Behind a
/// specialised router a step then follows the active experts: outside the router's product it takes 3.2 times
/// as long with 4096 experts of width 96 as with 256, and 11.6 times with an update at every step.
template <class Real>
class TrainedGroup {
 public:
  TrainedGroup(Model<Real>& model, const ParameterGroup& range, const Json& train, std::int64_t steps)
      : model_(model),
        range_(range),
        learning_rate_(rate_of(train.at("lr"), range.role)),
        weight_decay_(rate_of(train.at("weight_decay"), range.role)),
        schedule_(train.at("schedule")),
        steps_(steps),
        optimizer_(make_optimizer<Real>(train.at("optimizer"), range.end - range.begin)) {
    const bool is_bank = range.role == ParameterGroup::Role::expert && range.layer >= 0;
    if (is_bank && layer().expert_block_size() > 0 && optimizer_->can_defer()) {
      updated_.assign(static_cast<std::size_t>(model.experts()), 0);
    }
  }

  /// The update number `step` (0-based) from the model's gradient.
  void update(std::int64_t step) {
    const Real* gradient = model_.gradient().data() + range_.begin;
    if (updated_.empty()) return optimizer_->step(rate(step), weight_decay_, gradient, parameters());
    const std::size_t block = layer().expert_block_size();
    for (std::size_t e = 0; e < updated_.size(); ++e) {
      if (layer().routing().pairs_of(static_cast<int>(e)) == 0) continue;
      optimizer_->step_part(rate(step), weight_decay_, gradient, parameters(), e * block, block);
      updated_[e] = step + 1;
    }
  }

  /// Brings expert e to the state after `step` updates.
  void catch_up(std::size_t e, std::int64_t step) {
    constexpr int kChunk = 64;
    const std::size_t block = layer().expert_block_size();
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
  const MoeLayer<Real>& layer() const { return model_.layer(range_.layer); }
  Real* parameters() { return model_.parameters().data() + range_.begin; }
  double rate(std::int64_t step) const { return schedule_factor(schedule_, step, steps_) * learning_rate_; }

  Model<Real>& model_;
  ParameterGroup range_;
  double learning_rate_;
  double weight_decay_;
  const Json& schedule_;
  std::int64_t steps_;
  std::unique_ptr<Optimizer<Real>> optimizer_;
  std::vector<std::int64_t> updated_;  // updates applied to each expert; empty where none is put off
};

template <class Real>
std::vector<TrainedGroup<Real>> trained_groups(Model<Real>& model, const Json& train, std::int64_t steps) {
  std::vector<TrainedGroup<Real>> groups;
  for (const ParameterGroup& range : model.groups()) {
    if (range.trainable) groups.emplace_back(model, range, train, steps);
  }
  return groups;
}

}  // namespace

std::int64_t total_steps(const Json& train, int train_samples) {
  if (train.contains("steps")) return train.at("steps").get<std::int64_t>();
  const std::int64_t batch =
      std::min<std::int64_t>(train.at("batch_size").get<std::int64_t>(), train_samples);
  return train.at("epochs").get<std::int64_t>() * ((train_samples + batch - 1) / batch);
}

std::int64_t record_interval(const Json& train, std::int64_t steps) {
  return train.value("record_every", std::max<std::int64_t>(1, steps / 10));
}

template <class Real>
TrainOutcome train(Model<Real>& model, const TaskLoss<Real>& loss, BatchSource<Real>& batches,
                   std::int64_t steps, const Json& train, const TrainCallbacks& callbacks) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kBetweenReports{100};
  const std::int64_t interval = record_interval(train, steps);
  std::vector<TrainedGroup<Real>> groups = trained_groups(model, train, steps);
  std::int64_t done = 0;  // updates so far, those put off included
  model.before_experts([&](int layer, const Routing<Real>& routing) {
    for (TrainedGroup<Real>& group : groups) group.catch_up_active(layer, routing, done);
  });
  const auto finite = [&] {
    return std::all_of(model.parameters().begin(), model.parameters().end(),
                       [](Real w) { return std::isfinite(w); });
  };
  const auto run = [&]() -> TrainState {
    callbacks.record(0);
    Clock::time_point last_report = Clock::now();
    while (done < steps) {
      const int rows = batches.advance();
      model.set_progress(static_cast<double>(done) / static_cast<double>(steps));
      const double value = model.loss_and_gradient(batches.x(), batches.y(), rows, loss);
      if (!std::isfinite(value)) return TrainState::diverged;
      for (TrainedGroup<Real>& group : groups) group.update(done);
      ++done;
      if (done % interval == 0 || done == steps) {
        for (TrainedGroup<Real>& group : groups) group.catch_up_all(done);
        if (!finite()) return TrainState::diverged;
        callbacks.record(done);
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
  model.before_experts(nullptr);
  return {state, done};
}

template <class Real>
TrainOutcome train(Model<Real>& model, const TaskLoss<Real>& loss, const TrainingSet<Real>& data,
                   const Json& spec, const Seeds& seeds, const TrainCallbacks& callbacks) {
  SampleBatches<Real> batches(data, model.layout(), spec.at("batch_size"), seeds);
  return train(model, loss, batches, total_steps(spec, data.rows), spec, callbacks);
}

template TrainOutcome train(Model<float>&, const TaskLoss<float>&, BatchSource<float>&, std::int64_t,
                            const Json&, const TrainCallbacks&);
template TrainOutcome train(Model<double>&, const TaskLoss<double>&, BatchSource<double>&, std::int64_t,
                            const Json&, const TrainCallbacks&);
template TrainOutcome train(Model<float>&, const TaskLoss<float>&, const TrainingSet<float>&, const Json&,
                            const Seeds&, const TrainCallbacks&);
template TrainOutcome train(Model<double>&, const TaskLoss<double>&, const TrainingSet<double>&, const Json&,
                            const Seeds&, const TrainCallbacks&);

}  // namespace moelab
