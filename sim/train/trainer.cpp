#include "sim/train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace moelab {
namespace {

/// Batches of an epoch in random order, rows copied into contiguous arrays.
template <class Real>
class Batches {
 public:
  Batches(const TrainingSet<Real>& data, int input_dim, int output_dim, int batch_size, const Seeds& seeds)
      : data_(data),
        input_dim_(input_dim),
        output_dim_(output_dim),
        batch_size_(std::min(batch_size, data.rows)),
        engine_(seeds.stream(Purpose::batch_order)),
        order_(static_cast<std::size_t>(data.rows)),
        next_(order_.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    x_.resize(static_cast<std::size_t>(batch_size_) * static_cast<std::size_t>(input_dim));
    y_.resize(static_cast<std::size_t>(batch_size_) * static_cast<std::size_t>(output_dim));
  }

  /// Moves to the next batch and returns its number of rows.
  int advance() {
    if (next_ == order_.size()) {
      shuffle(engine_, order_);
      next_ = 0;
    }
    const int rows = static_cast<int>(std::min(static_cast<std::size_t>(batch_size_), order_.size() - next_));
    for (int i = 0; i < rows; ++i) {
      const std::ptrdiff_t row = order_[next_ + static_cast<std::size_t>(i)];
      std::copy_n(data_.x.data() + row * input_dim_, input_dim_, x_.data() + i * input_dim_);
      std::copy_n(data_.y.data() + row * output_dim_, output_dim_, y_.data() + i * output_dim_);
    }
    next_ += static_cast<std::size_t>(rows);
    return rows;
  }
  const Real* x() const { return x_.data(); }
  const Real* y() const { return y_.data(); }

 private:
  const TrainingSet<Real>& data_;
  int input_dim_;
  int output_dim_;
  int batch_size_;
  Engine engine_;
  std::vector<int> order_;
  std::size_t next_;
  AlignedVector<Real> x_;
  AlignedVector<Real> y_;
};

/// A parameter group with its rates and its optimizer.
template <class Real>
struct TrainedGroup {
  ParameterGroup range;
  double learning_rate = 0;
  double weight_decay = 0;
  std::unique_ptr<Optimizer<Real>> optimizer;
};

double rate_of(const Json& value, const char* group) {
  return value.is_object() ? value.at(group).get<double>() : value.get<double>();
}

template <class Real>
std::vector<TrainedGroup<Real>> trained_groups(const Model<Real>& model, const Json& train) {
  std::vector<TrainedGroup<Real>> groups;
  for (const auto& [name, range] :
       {std::pair{"router", model.router_group()}, {"expert", model.expert_group()}}) {
    if (!range.trainable || range.begin == range.end) continue;
    groups.push_back({range, rate_of(train.at("lr"), name), rate_of(train.at("weight_decay"), name),
                      make_optimizer<Real>(train.at("optimizer"), range.end - range.begin)});
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
TrainOutcome train(Model<Real>& model, const TaskLoss<Real>& loss, const TrainingSet<Real>& data,
                   const Json& train, const Seeds& seeds, const TrainCallbacks& callbacks) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kBetweenReports{100};
  const std::int64_t steps = total_steps(train, data.rows);
  const std::int64_t interval = record_interval(train, steps);
  Batches<Real> batches(data, model.input_dim(), model.output_dim(), train.at("batch_size").get<int>(),
                        seeds);
  std::vector<TrainedGroup<Real>> groups = trained_groups(model, train);
  const auto finite = [&] {
    return std::all_of(model.parameters().begin(), model.parameters().end(),
                       [](Real w) { return std::isfinite(w); });
  };

  callbacks.record(0);
  Clock::time_point last_report = Clock::now();
  for (std::int64_t step = 0; step < steps; ++step) {
    const int rows = batches.advance();
    const double value = model.loss_and_gradient(batches.x(), batches.y(), rows, loss);
    if (!std::isfinite(value)) return {TrainState::diverged, step};
    const double factor = schedule_factor(train.at("schedule"), step, steps);
    for (TrainedGroup<Real>& group : groups) {
      group.optimizer->step(factor * group.learning_rate, group.weight_decay,
                            model.gradient().data() + group.range.begin,
                            model.parameters().data() + group.range.begin);
    }
    const std::int64_t done = step + 1;
    if (done % interval == 0 || done == steps) {
      if (!finite()) return {TrainState::diverged, done};
      callbacks.record(done);
    }
    const Clock::time_point now = Clock::now();
    if (now - last_report >= kBetweenReports) {
      last_report = now;
      if (callbacks.progress(static_cast<double>(done) / static_cast<double>(steps))) {
        return {TrainState::interrupted, done};
      }
    }
  }
  return {TrainState::done, steps};
}

template TrainOutcome train(Model<float>&, const TaskLoss<float>&, const TrainingSet<float>&, const Json&,
                            const Seeds&, const TrainCallbacks&);
template TrainOutcome train(Model<double>&, const TaskLoss<double>&, const TrainingSet<double>&, const Json&,
                            const Seeds&, const TrainCallbacks&);

}  // namespace moelab
