#include "sim/train/batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

/// Whether all labels of a sample are the task.
bool is_of_task(const int* labels, std::size_t count, int task) {
  return std::all_of(labels, labels + count, [&](int label) { return label == task; });
}

/// Draws samples until `count` of them are of the task, and keeps these.
Dataset draw_of_task(const Problem& problem, Engine& engine, int task, int count, std::int64_t& drawn) {
  constexpr int kMostBlocks = 10000;
  const std::size_t labels = size(problem.layout().labels);
  Dataset kept{
      Matrix(count, problem.layout().sample_dim()), Matrix(count, problem.layout().target_dim()), {}};
  int rows = 0;
  for (int block = 0; rows < count; ++block) {
    if (block == kMostBlocks) {
      throw InvalidOption("train.rounds",
                          fmt::format("found fewer than {} samples of cluster {} among {}", count, task,
                                      static_cast<std::int64_t>(kMostBlocks) * count));
    }
    const Dataset drawn_block = problem.draw(engine, {Purpose::population, drawn, count});
    drawn += count;
    for (int i = 0; i < count && rows < count; ++i) {
      const int* const own = drawn_block.cluster.data() + size(i) * labels;
      if (!is_of_task(own, labels, task)) continue;
      kept.x.row(rows) = drawn_block.x.row(i);
      kept.y.row(rows) = drawn_block.y.row(i);
      kept.cluster.insert(kept.cluster.end(), own, own + labels);
      ++rows;
    }
  }
  return kept;
}

}  // namespace

TaskRounds::TaskRounds(const RoundOptions& options, int tasks, Engine engine)
    : options_(options), tasks_(tasks), engine_(std::move(engine)) {}

void TaskRounds::advance() {
  const std::int64_t round = step_++ / options_.steps;
  if ((step_ - 1) % options_.steps != 0) return;
  const auto place = static_cast<std::size_t>(round % tasks_);
  switch (options_.order) {
    case RoundOptions::Order::uniform:
      task_ = draw_index(engine_, tasks_);
      return;
    case RoundOptions::Order::cycle:
      task_ = static_cast<int>(place);
      return;
    case RoundOptions::Order::shuffled:
      if (place == 0) order_ = draw_permutation(engine_, tasks_);
      task_ = order_[place];
  }
}

std::optional<TaskRounds> task_rounds(const TrainOptions& options, int tasks, const Seeds& seeds, int phase) {
  if (!options.rounds) return std::nullopt;
  // The orders of batches have the streams from 0 on.
  const std::uint64_t stream = std::numeric_limits<std::uint64_t>::max() - static_cast<std::uint64_t>(phase);
  return TaskRounds(*options.rounds, tasks, seeds.stream(Purpose::batch_order, stream));
}

template <class Real>
SampleBatches<Real>::SampleBatches(const TrainingSet<Real>& data, const Layout& layout, int batch_size,
                                   const Seeds& seeds, std::uint64_t stream, const TokenMasks& masks,
                                   std::optional<TaskRounds> rounds)
    : data_(data),
      input_dim_(static_cast<std::size_t>(layout.sample_dim())),
      output_dim_(static_cast<std::size_t>(layout.target_dim())),
      tokens_(static_cast<std::size_t>(layout.tokens)),
      batch_size_(static_cast<std::size_t>(std::min(batch_size, data.rows))),
      engine_(seeds.stream(Purpose::batch_order, stream)) {
  this->rounds_ = std::move(rounds);
  for (int row = 0; row < data.rows; ++row) {
    const int* const labels = this->rounds_ ? data.labels.data() + entries(row, layout.labels) : nullptr;
    const std::size_t order = labels ? size(*labels) : 0;
    if (labels && !is_of_task(labels, size(layout.labels), *labels)) continue;
    if (orders_.size() <= order) orders_.resize(order + 1);
    orders_[order].rows.push_back(row);
  }
  for (Order& order : orders_) order.next = order.rows.size();
  const bool is_empty =
      std::all_of(orders_.begin(), orders_.end(), [](const Order& order) { return order.rows.empty(); });
  if (this->rounds_ && is_empty)
    throw InvalidOption("train.rounds", "given, needs training samples that have one true cluster each");
  this->x_.resize(batch_size_ * input_dim_);
  this->y_.resize(batch_size_ * output_dim_);
  if (!data.labels.empty()) this->labels_.resize(batch_size_ * tokens_);
  this->mask_by(masks, layout, seeds.stream(Purpose::masks, stream));
}

template <class Real>
int SampleBatches<Real>::advance() {
  if (this->rounds_) this->rounds_->advance();
  const auto place = [&] { return this->rounds_ ? size(this->rounds_->task()) : 0; };
  // A round whose task has no training sample is passed over.
  while (place() >= orders_.size() || orders_[place()].rows.empty()) {
    while (!this->rounds_->is_last_step()) this->rounds_->advance();
    this->rounds_->advance();
  }
  auto& [all, next] = orders_[place()];
  if (next == all.size()) {
    shuffle(engine_, all);
    next = 0;
  }
  const std::size_t rows = std::min(batch_size_, all.size() - next);
  const int* const order = all.data() + next;
  const int known = static_cast<int>(all.size() - next);
  const auto copy = [&](const std::vector<Real>& from, std::size_t columns, Real* to) {
    kernels::copy_rows(from.data(), order, static_cast<int>(rows), known, static_cast<int>(columns), to);
  };
  copy(data_.x, input_dim_, this->x_.data());
  copy(data_.y, output_dim_, this->y_.data());
  for (std::size_t i = 0; i < rows && !this->labels_.empty(); ++i) {
    const std::size_t row = static_cast<std::size_t>(order[i]);
    std::copy_n(data_.labels.data() + row * tokens_, tokens_, this->labels_.data() + i * tokens_);
  }
  next += rows;
  this->mask(static_cast<int>(rows));
  return static_cast<int>(rows);
}

PopulationRule population_rule(const TrainOptions& options) {
  const PopulationRule defaults;
  return {options.points.value_or(defaults.points), options.rule.value_or(defaults.rule),
          options.redraw.value_or(defaults.redraw)};
}

void check_uniform_map(const Problem& problem) {
  if (problem.uniforms_per_sample() > 0) return;
  throw InvalidOption("train.rule",
                      "got 'quasi_monte_carlo', but data.generator has no map from uniform variables; "
                      "'monte_carlo' works with every generator");
}

template <class Real>
PopulationBatches<Real>::PopulationBatches(const Problem& problem, const TrainOptions& options,
                                           const Seeds& seeds, std::uint64_t stream, const TokenMasks& masks,
                                           std::optional<TaskRounds> rounds)
    : problem_(problem), engine_(seeds.stream(Purpose::population, stream)) {
  this->rounds_ = std::move(rounds);
  const PopulationRule rule = population_rule(options);
  points_ = rule.points;
  redraw_ = rule.redraw;
  if (rule.rule == TrainOptions::Rule::quasi_monte_carlo) {
    check_uniform_map(problem);
    quasi_random_ = std::make_unique<QuasiRandom>(problem.uniforms_per_sample(), engine_);
  }
  const Layout layout = problem.layout();
  const std::size_t points = static_cast<std::size_t>(points_);
  this->x_.resize(points * static_cast<std::size_t>(layout.sample_dim()));
  this->y_.resize(points * static_cast<std::size_t>(layout.target_dim()));
  this->mask_by(masks, layout, seeds.stream(Purpose::masks, stream));
}

template <class Real>
Dataset PopulationBatches<Real>::draw() {
  if (this->rounds_) {
    this->rounds_->advance();
    return draw_of_task(problem_, engine_, this->rounds_->task(), points_, drawn_);
  }
  if (!quasi_random_) return problem_.draw(engine_, {Purpose::population, drawn_, points_});
  if (drawn_ > 0) quasi_random_->restart(engine_);
  return problem_.map_uniforms(quasi_random_->uniforms(points_));
}

template <class Real>
int PopulationBatches<Real>::advance() {
  if (drawn_ > 0 && !redraw_) return points_;
  const Dataset rule = draw();
  if (!this->rounds_) drawn_ += points_;
  this->labels_ = rule.cluster;
  std::transform(rule.x.data(), rule.x.data() + rule.x.size(), this->x_.data(),
                 [](double value) { return static_cast<Real>(value); });
  std::transform(rule.y.data(), rule.y.data() + rule.y.size(), this->y_.data(),
                 [](double value) { return static_cast<Real>(value); });
  this->mask(points_);
  return points_;
}

template class SampleBatches<float>;
template class SampleBatches<double>;
template class PopulationBatches<float>;
template class PopulationBatches<double>;

}  // namespace moelab
