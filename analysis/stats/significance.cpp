#include "analysis/stats/significance.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "sim/base/error.h"

namespace moelab {

RangePValues range_p_values(std::span<const double> values, const Interval& range) {
  if (values.size() < 2) throw InvalidOption("values", "a p value needs at least two");
  const double count = static_cast<double>(values.size());
  const double mean = mean_estimate(values).mean;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double error = std::sqrt(squares / (count - 1) / count);
  const boost::math::students_t_distribution<double> student(count - 1);
  const auto below = [&](double edge) {  // P(T ≤ t(edge))
    if (std::isinf(edge)) return edge > 0 ? 0.0 : 1.0;
    if (error == 0) return mean < edge ? 0.0 : mean > edge ? 1.0 : 0.5;
    return boost::math::cdf(student, (mean - edge) / error);
  };
  const auto above = [&](double edge) {  // P(T ≥ t(edge)), exact in its tail
    if (std::isinf(edge)) return edge > 0 ? 1.0 : 0.0;
    if (error == 0) return mean > edge ? 0.0 : mean < edge ? 1.0 : 0.5;
    return boost::math::cdf(boost::math::complement(student, (mean - edge) / error));
  };
  return {std::min(1.0, 2 * std::max(below(range.high), above(range.low))),
          std::min(1.0, 2 * std::min(above(range.high), below(range.low)))};
}

double sign_p_value(int count, int decidable) {
  if (count < 0 || count > decidable) throw InvalidOption("count", "needs 0 to all of the decidable pairs");
  if (count == 0) return 1;
  const boost::math::binomial_distribution<double> fair(decidable, 0.5);
  return std::min(1.0, 2 * boost::math::cdf(boost::math::complement(fair, count - 1)));
}

std::optional<int> least_count(int from, const std::function<bool(int)>& decides) {
  int low = from, high = from;
  while (!decides(high)) {
    if (high == kMostSeeds) return std::nullopt;
    low = high + 1;
    high = std::min(kMostSeeds, 2 * high);
  }
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (decides(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace moelab
