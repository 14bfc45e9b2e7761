#include "app/run/stopping.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/train/batches.h"

namespace moelab {

template <class Real>
double operations_of_step(const Network<Real>& network, const ModelOptions& model, const TrainOptions& train,
                          int train_samples) {
  double parameters = static_cast<double>(network.parameter_count());
  const bool is_population = train.gradient == TrainOptions::Gradient::population;
  const double samples = is_population ? population_rule(train).points
                                       : static_cast<double>(std::min<std::int64_t>(
                                             train.batch_size.value_or(train_samples), train_samples));
  const double rows = samples * network.layout().tokens;
  for (int layer = 0; network.has_router() && layer < network.layers(); ++layer) {
    const double active = experts_per_row(model.gating.train, network.experts(), rows);
    const double idle = std::max(0.0, network.mixture(layer).networks() - active);
    parameters -= static_cast<double>(network.mixture(layer).parameters_per_expert()) * idle;
  }
  return 6 * parameters * rows;
}

bool is_plateau(const std::vector<double>& values, int records, double relative) {
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
               [](double value) { return std::isfinite(value); });
  if (finite.size() <= static_cast<std::size_t>(records)) return false;
  const auto last = finite.end() - records;
  const double before = *std::min_element(finite.begin(), last);
  const double lately = *std::min_element(last, finite.end());
  return before - lately <= relative * std::abs(before);
}

bool StoppingRule::is_reached(const std::vector<TraceEntry>& trace, std::size_t first,
                              std::int64_t steps) const {
  if (!until_) return false;
  if (until_->flops) return operations_ * static_cast<double>(steps) >= *until_->flops;
  const std::string name = until_->looked_at();
  const auto value_at = [&](const TraceEntry& entry) {
    const auto found = entry.metrics.find(name);
    return found == entry.metrics.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
  };
  if (until_->plateau) {
    std::vector<double> values;
    for (std::size_t i = first; i < trace.size(); ++i) values.push_back(value_at(trace[i]));
    return is_plateau(values, until_->plateau->records, until_->plateau->relative);
  }
  if (trace.size() <= first) return false;
  const double value = value_at(trace.back());
  return until_->below ? value <= *until_->below : value >= *until_->above;
}

template double operations_of_step(const Network<float>&, const ModelOptions&, const TrainOptions&, int);
template double operations_of_step(const Network<double>&, const ModelOptions&, const TrainOptions&, int);

}  // namespace moelab
