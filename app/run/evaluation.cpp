#include "app/run/evaluation.h"

#include "sim/train/attacks.h"

namespace moelab {

template <class Real>
Evaluation<Real>::Evaluation(std::string name, const DataOptions& data, const CellOptions& cell,
                             const Problem& problem, const Dataset* train)
    : name_(std::move(name)),
      data_(data),
      cell_(cell),
      problem_(problem),
      train_(train),
      test_(draw_set(problem, cell.seeds, Purpose::test_data, data.test_samples)),
      looked_at_(test_) {
  contaminate(data.contamination, problem.layout(), cell.seeds, looked_at_.x, looked_at_.y);
  if (const TokenMasks masks = masks_of(cell.experiment.loss, problem.layout()))
    mask_tokens(masks, cell.seeds, Purpose::test_data, problem.layout().tokens, looked_at_);
  if (!is_attack()) make_measurement();
}

template <class Real>
void Evaluation<Real>::attack(const Moment<Real>& moment) {
  looked_at_.x = attacked_inputs(data_.contamination, moment.model, moment.objective.task, test_, cell_.seeds,
                                 moment.workspace);
  make_measurement();
}

template <class Real>
void Evaluation<Real>::measure(const Moment<Real>& moment, MetricValues& values) {
  if (is_attack()) attack(moment);
  add(measurement_->measure(moment), values);
}

template <class Real>
void Evaluation<Real>::complete(std::vector<TraceEntry>& trace) {
  if (is_attack()) return;
  for (TraceEntry& entry : trace) add(measurement_->complete(entry.step), entry.metrics);
}

template <class Real>
void Evaluation<Real>::add(const MeasuredValues& measured, MetricValues& values) const {
  for (const auto& [key, value] : measured) {
    MetricKey own = key;
    own.evaluation = name_;
    values[own.text()] = value;
  }
}

template class Evaluation<float>;
template class Evaluation<double>;

}  // namespace moelab
