#include "analysis/metrics/variance.h"

#include <fmt/core.h>

#include "sim/base/error.h"

namespace moelab {

void ScoreVariance::add(const Eigen::Ref<const Matrix>& scores) {
  if (scores.rows() == 0) return;
  if (rows_ == 0) {
    origin_ = scores.row(0).transpose();
    sums_ = Vector::Zero(scores.cols());
    squares_ = Vector::Zero(scores.cols());
  }
  if (scores.cols() != origin_.size())
    throw InvalidOption("probs",
                        fmt::format("{} columns, but there are {} experts", scores.cols(), origin_.size()));
  Vector shifted(scores.cols());
  const double experts = static_cast<double>(scores.cols());
  for (Eigen::Index i = 0; i < scores.rows(); ++i) {
    shifted = scores.row(i).transpose() - origin_;
    sums_ += shifted;
    squares_.array() += shifted.array().square();
    const double mean = scores.row(i).sum() / experts;
    row_variances_ += (scores.row(i).array() - mean).square().sum() / experts;
  }
  rows_ += scores.rows();
}

Vector ScoreVariance::mean_shift() const {
  if (rows_ == 0) throw InvalidOption("probs", "empty; variances of scores need at least one row");
  return sums_ / static_cast<double>(rows_);
}

double ScoreVariance::routing_variance_eq42() const {
  const Vector mean = mean_shift() + origin_;
  return (mean.array() - 1.0 / static_cast<double>(mean.size())).square().mean();
}

double ScoreVariance::score_variance() const {
  const Vector mean = mean_shift();
  return (squares_.array() / static_cast<double>(rows_) - mean.array().square()).mean();
}

double ScoreVariance::score_row_variance() const {
  mean_shift();
  return row_variances_ / static_cast<double>(rows_);
}

}  // namespace moelab
