#include "sim/model/router/cluster_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/feature_weights.h"

namespace moelab {
namespace {

/// The share of a cluster's largest dispersion below which one is rounding.
constexpr double kNoSpread = 1e-12;
/// Standard deviation of an entry of a random M.
constexpr double kRandomDeviation = 0.5;

/// Entries first, first + step, … before `end`, as many of them as are not 0, get mean 1.
void give_mean_one(std::span<double> weights, std::size_t first, std::size_t step, std::size_t end) {
  double sum = 0, counted = 0;
  for (std::size_t i = first; i < end; i += step) {
    sum += weights[i];
    if (weights[i] > 0) ++counted;
  }
  for (std::size_t i = first; i < end && counted > 0; i += step) weights[i] *= counted / sum;
}

void weigh_together(const ClusterWeighting& weighting, std::span<const double> dispersions, std::size_t dim,
                    std::span<double> weights) {
  for (std::size_t first = 0; first < weights.size(); first += dim) {
    const std::span<const double> own = dispersions.subspan(first, dim);
    const double least_counted = kNoSpread * *std::max_element(own.begin(), own.end());
    for (std::size_t q = 0; q < dim; ++q) {
      weights[first + q] = own[q] > least_counted ? 1 / (own[q] + weighting.guard) : 0;
    }
  }
  switch (weighting.normalize) {
    case ClusterWeighting::Normalize::features:
      for (std::size_t first = 0; first < weights.size(); first += dim)
        give_mean_one(weights, first, 1, first + dim);
      break;
    case ClusterWeighting::Normalize::clusters:
      for (std::size_t q = 0; q < dim; ++q) give_mean_one(weights, q, dim, weights.size());
      break;
    case ClusterWeighting::Normalize::global:
      give_mean_one(weights, 0, 1, weights.size());
      break;
  }
  for (double& weight : weights) {
    if (weight == 0) weight = 1;
  }
}

}  // namespace

void weigh_clusters(const ClusterWeighting& weighting, std::span<const double> dispersions, std::size_t dim,
                    std::span<double> weights) {
  if (!std::all_of(dispersions.begin(), dispersions.end(), [](double s) { return std::isfinite(s); })) {
    std::fill(weights.begin(), weights.end(), std::numeric_limits<double>::quiet_NaN());
    return;
  }
  if (weighting.normalize == ClusterWeighting::Normalize::features && weighting.guard == 0) {
    for (std::size_t first = 0; first < weights.size(); first += dim)
      inverse_dispersion_weights(dispersions.subspan(first, dim), weights.subspan(first, dim));
  } else {
    weigh_together(weighting, dispersions, dim, weights);
  }
  if (!weighting.clip) return;
  for (double& weight : weights) weight = std::min(weight, *weighting.clip);
}

void draw_cluster_weights(Engine& engine, std::size_t dim, std::span<double> weights) {
  for (std::size_t first = 0; first < weights.size(); first += dim) {
    const std::span<double> own = weights.subspan(first, dim);
    double sum = 0;
    for (double& weight : own) {
      weight = std::max(0.0, 1 + kRandomDeviation * draw_normal(engine));
      sum += weight;
    }
    for (double& weight : own) {
      if (sum > 0) weight *= static_cast<double>(dim) / sum;
    }
  }
}

}  // namespace moelab
