#pragma once

/// Weighted regressions of ln e on functions of n.

#include <vector>

#include "analysis/stats/rates.h"

namespace moelab {

struct Line {
  double slope = 0, intercept = 0;
};

/// The weighted regression of y on x.
Line regress(const std::vector<double>& x, const std::vector<double>& y, const std::vector<double>& weights);

/// 1 / v(n), see estimate_rate(); all equal where no variance is known, or all are zero.
std::vector<double> size_weights(const RateData& data);

}  // namespace moelab
