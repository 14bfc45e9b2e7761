#include "app/run/evaluation.h"

#include "sim/train/attacks.h"

namespace moelab {

template <class Real>
Evaluation<Real>::Evaluation(std::string prefix, const DataOptions& data, const CellOptions& cell,
                             const Problem& problem, const Dataset* train)
    : prefix_(std::move(prefix)),
      contamination_(data.contamination),
      cell_(cell),
      problem_(problem),
      train_(train),
      test_(draw_set(problem, cell.seeds, Purpose::test_data, data.test_samples)),
      looked_at_(test_) {
  contaminate(contamination_, problem.layout(), cell.seeds, looked_at_.x);
  if (!contamination_.entry().is_attack()) make_measurement();
}

template <class Real>
void Evaluation<Real>::attack(const Moment<Real>& moment) {
  looked_at_.x = attacked_inputs(contamination_, moment.model, moment.objective.task, test_, cell_.seeds,
                                 moment.workspace);
  make_measurement();
}

template <class Real>
void Evaluation<Real>::measure(const Moment<Real>& moment, MetricValues& values) {
  if (contamination_.entry().is_attack()) attack(moment);
  const std::string start = prefix_.empty() ? "" : prefix_ + ".";
  for (const auto& [name, value] : measurement_->measure(moment)) values[start + name] = value;
}

template class Evaluation<float>;
template class Evaluation<double>;

}  // namespace moelab
