#pragma once

/// Lemma 1 of Nielsen et al. 2025: ‖δμ‖²_M ≥ ‖δμ‖² for M = diag(1/s) of mean 1, δμ the difference of two
/// cluster means. With mean 1, ‖δμ‖²_M − ‖δμ‖² = d Cov_q(m_q, δμ_q²), the covariance over features: it holds
/// if and only if Cov ≥ 0, that is for clusters that are separated along the features on which they are
/// tight, as the paper assumes in words. Without that it fails more often than not.

#include <functional>

#include "analysis/theory/acmoe2025/instances.h"

namespace moelab {

/// The diagonal of M from the dispersions of a cluster.
using MetricRule = std::function<Vector(const Vector& dispersion)>;

/// The largest |‖δμ‖²_M − ‖δμ‖² − d Cov_q(m, δμ²)| relative to ‖δμ‖²_M + ‖δμ‖², over log s ~ N(0, a²),
/// a = 1/4, 1/2, 1, 2 and δμ ~ N(0, I).
CheckFinding check_separation_criterion(const CheckEffort& effort, const MetricRule& rule = inverse_weights);

/// The share of instances with ‖δμ‖_M ≥ ‖δμ‖ where the tighter of two features is always the one with the
/// larger |δμ_q|.
CheckFinding check_separated_where_tight(const CheckEffort& effort, const MetricRule& rule = inverse_weights);

/// The share of instances with ‖δμ‖_M < ‖δμ‖ for dispersions and differences that know nothing of each other:
/// d = 8, log s ~ N(0, spread²), δμ ~ N(0, I).
CheckFinding check_separation_failures(const CheckEffort& effort, double spread, double predicted,
                                       const MetricRule& rule = inverse_weights);

}  // namespace moelab
