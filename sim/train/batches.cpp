#include "sim/train/batches.h"

#include <algorithm>
#include <numeric>

#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"

namespace moelab {
template <class Real>
SampleBatches<Real>::SampleBatches(const TrainingSet<Real>& data, const Layout& layout, int batch_size,
                                   const Seeds& seeds, std::uint64_t stream, const TokenMasks& masks)
    : data_(data),
      input_dim_(static_cast<std::size_t>(layout.sample_dim())),
      output_dim_(static_cast<std::size_t>(layout.target_dim())),
      tokens_(static_cast<std::size_t>(layout.tokens)),
      batch_size_(static_cast<std::size_t>(std::min(batch_size, data.rows))),
      engine_(seeds.stream(Purpose::batch_order, stream)),
      order_(static_cast<std::size_t>(data.rows)),
      next_(order_.size()) {
  std::iota(order_.begin(), order_.end(), 0);
  this->x_.resize(batch_size_ * input_dim_);
  this->y_.resize(batch_size_ * output_dim_);
  if (!data.labels.empty()) this->labels_.resize(batch_size_ * tokens_);
  this->mask_by(masks, layout, seeds.stream(Purpose::masks, stream));
}

template <class Real>
int SampleBatches<Real>::advance() {
  if (next_ == order_.size()) {
    shuffle(engine_, order_);
    next_ = 0;
  }
  const std::size_t rows = std::min(batch_size_, order_.size() - next_);
  const int* const order = order_.data() + next_;
  const int known = static_cast<int>(order_.size() - next_);
  const auto copy = [&](const std::vector<Real>& from, std::size_t columns, Real* to) {
    kernels::copy_rows(from.data(), order, static_cast<int>(rows), known, static_cast<int>(columns), to);
  };
  copy(data_.x, input_dim_, this->x_.data());
  copy(data_.y, output_dim_, this->y_.data());
  for (std::size_t i = 0; i < rows && !this->labels_.empty(); ++i) {
    const std::size_t row = static_cast<std::size_t>(order[i]);
    std::copy_n(data_.labels.data() + row * tokens_, tokens_, this->labels_.data() + i * tokens_);
  }
  next_ += rows;
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
                                           const Seeds& seeds, std::uint64_t stream, const TokenMasks& masks)
    : problem_(problem), engine_(seeds.stream(Purpose::population, stream)) {
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
  if (!quasi_random_) return problem_.draw(engine_, {Purpose::population, drawn_, points_});
  if (drawn_ > 0) quasi_random_->restart(engine_);
  return problem_.map_uniforms(quasi_random_->uniforms(points_));
}

template <class Real>
int PopulationBatches<Real>::advance() {
  if (drawn_ > 0 && !redraw_) return points_;
  const Dataset rule = draw();
  drawn_ += points_;
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
