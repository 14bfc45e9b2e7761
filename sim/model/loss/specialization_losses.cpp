/// Losses on the similarity of the outputs x̃ of a row's active experts (Guo et al. 2025).

#include "sim/base/kernels/kernels.h"
#include "sim/model/loss/auxiliary_loss.h"

namespace moelab {
namespace {

/// Two outputs of a row: x_a·x_b, and q = ‖x‖² + ε of each.
struct OutputPair {
  double product, norm_a, norm_b;
};

/// The pair's contribution to the term, for both orders, and its slopes: along the other output and along the
/// output itself (through the denominator).
struct PairSlopes {
  double other, own_a, own_b;
};

/// (x_a·x_b)² (1/q_a + 1/q_b): 1/n times L_o.
struct Projection {
  static double value(const OutputPair& pair) {
    return pair.product * pair.product * (1 / pair.norm_a + 1 / pair.norm_b);
  }
  static PairSlopes slopes(const OutputPair& pair, double scale) {
    const double square = 2 * pair.product * pair.product;
    return {2 * pair.product * (scale * (1 / pair.norm_a + 1 / pair.norm_b)),
            -square * (scale / (pair.norm_a * pair.norm_a)), -square * (scale / (pair.norm_b * pair.norm_b))};
  }
};

/// 2 (x_a·x_b)² / (q_a q_b), which does not depend on the outputs' lengths.
struct Cosine {
  static double value(const OutputPair& pair) {
    return 2 * pair.product * pair.product / (pair.norm_a * pair.norm_b);
  }
  static PairSlopes slopes(const OutputPair& pair, double scale) {
    const double both = pair.norm_a * pair.norm_b;
    const double square = 2 * pair.product * pair.product;
    return {2 * pair.product * (scale * 2 / both), -square * (scale * 2 / (both * pair.norm_a)),
            -square * (scale * 2 / (both * pair.norm_b))};
  }
};

template <class Real>
OutputPair output_pair(const Real* a, const Real* b, int stride) {
  return {static_cast<double>(kernels::dot(a, b, stride)),
          static_cast<double>(kernels::dot(a, a, stride)) + kOrthogonalityGuard,
          static_cast<double>(kernels::dot(b, b, stride)) + kOrthogonalityGuard};
}

/// Calls visit(place of x_a, place of x_b) in x̃ for every two active experts of every row.
template <class Real, class Visit>
void for_each_output_pair(const RoutedBatch<Real>& batch, std::vector<int>& active, const Visit& visit) {
  const Routing<Real>& routing = *batch.routing;
  const auto place = [&](int row, int e) { return entries(row * routing.experts + e, batch.output_stride); };
  for (int row = 0; row < routing.rows; ++row) {
    active.clear();
    for_each_active(routing, row, [&](int e) { active.push_back(e); });
    for (std::size_t a = 0; a < active.size(); ++a) {
      for (std::size_t b = a + 1; b < active.size(); ++b) visit(place(row, active[a]), place(row, active[b]));
    }
  }
}

/// Calls visit() for every two outputs in a group of K, with K the mean number of active experts per row. The
/// groups cut the list of all active pairs, which is sorted by expert and then by row.
template <class Real, class Visit>
void for_each_listed_pair(const RoutedBatch<Real>& batch, std::vector<int>& listed, const Visit& visit) {
  const Routing<Real>& routing = *batch.routing;
  listed.clear();
  for_each_pair(routing, [&](int row, int e) { listed.push_back(row * routing.experts + e); });
  if (routing.rows == 0) return;
  const std::size_t group = std::max<std::size_t>(1, listed.size() / size(routing.rows));
  const auto place = [&](std::size_t at) { return entries(listed[at], batch.output_stride); };
  for (std::size_t a = 0; a < listed.size(); ++a) {
    const std::size_t end = std::min(listed.size(), (a / group + 1) * group);
    for (std::size_t b = a + 1; b < end; ++b) visit(place(a), place(b));
  }
}

/// The pairs of outputs that a term sums over.
struct OfRow {
  template <class Real, class Visit>
  static void for_each(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch, const Visit& visit) {
    for_each_output_pair(batch, scratch.active, visit);
  }
};
struct OfList {
  template <class Real, class Visit>
  static void for_each(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch, const Visit& visit) {
    for_each_listed_pair(batch, scratch.active, visit);
  }
};

template <class Term, class Pairs = OfRow>
struct Orthogonality {
  template <class Real>
  static double value(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) {
    double value = 0;
    if (!batch.pair_outputs) return value;
    Pairs::for_each(batch, scratch, [&](std::size_t a, std::size_t b) {
      value += Term::value(output_pair(batch.pair_outputs + a, batch.pair_outputs + b, batch.output_stride)) /
               batch.routing->rows;
    });
    return value;
  }
  template <class Real>
  static void add(const RoutedBatch<Real>& batch, double coefficient,
                  const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch& scratch) {
    const double scale = coefficient / batch.routing->rows;
    const int stride = batch.output_stride;
    Pairs::for_each(batch, scratch, [&](std::size_t a, std::size_t b) {
      const Real* const x_a = batch.pair_outputs + a;
      const Real* const x_b = batch.pair_outputs + b;
      const PairSlopes slopes = Term::slopes(output_pair(x_a, x_b, stride), scale);
      kernels::add_scaled(static_cast<Real>(slopes.other), x_b, gradients.pair_outputs + a, stride);
      kernels::add_scaled(static_cast<Real>(slopes.own_a), x_a, gradients.pair_outputs + a, stride);
      kernels::add_scaled(static_cast<Real>(slopes.other), x_a, gradients.pair_outputs + b, stride);
      kernels::add_scaled(static_cast<Real>(slopes.own_b), x_b, gradients.pair_outputs + b, stride);
    });
  }
};

/// −(1/(nE)) Σ_ij (a_ij − ā_j)². Adds its gradient times `coefficient` to `gradient` unless this is null.
template <class Real>
double variance_term(const Real* values, const Routing<Real>& routing, double coefficient,
                     std::vector<double>& means, Real* gradient) {
  column_means(values, routing, means);
  const double scale = 1.0 / (static_cast<double>(routing.rows) * routing.experts);
  double total = 0;
  for (int row = 0; row < routing.rows; ++row) {
    for (int e = 0; e < routing.experts; ++e) {
      const std::size_t at = entries(row, routing.stride) + size(e);
      const double deviation = static_cast<double>(values[at]) - means[size(e)];
      total += deviation * deviation;
      if (gradient) gradient[at] += static_cast<Real>(-2 * coefficient * scale * deviation);
    }
  }
  return -scale * total;
}

/// The variance of the gates: 1/n times L_v of Guo et al. 2025.
struct VarianceOfGates {
  template <class Real>
  static double sum(const RoutedBatch<Real>& batch, double coefficient,
                    const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch& scratch) {
    return variance_term(batch.routing->gates, *batch.routing, coefficient, scratch.means, gradients.gates);
  }
};

/// The variance of r.
struct VarianceOfProbabilities {
  template <class Real>
  static double sum(const RoutedBatch<Real>& batch, double coefficient,
                    const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch& scratch) {
    return variance_term(batch.probabilities, *batch.routing, coefficient, scratch.means,
                         gradients.probabilities);
  }
};

/// −(1/n) Σ_i Var_j(r_ij), with E − 1 in the denominator of the variance.
struct VarianceOfRows {
  template <class Real>
  static double sum(const RoutedBatch<Real>& batch, double coefficient,
                    const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch& /*scratch*/) {
    const Routing<Real>& routing = *batch.routing;
    if (routing.experts < 2 || routing.rows == 0) return 0;
    const double scale = 1.0 / (static_cast<double>(routing.rows) * (routing.experts - 1));
    double total = 0;
    for (int row = 0; row < routing.rows; ++row) {
      const std::size_t at = entries(row, routing.stride);
      const Real* const r = batch.probabilities + at;
      double mean = 0;
      for (int e = 0; e < routing.experts; ++e) mean += static_cast<double>(r[e]) / routing.experts;
      for (int e = 0; e < routing.experts; ++e) {
        const double deviation = static_cast<double>(r[e]) - mean;
        total += deviation * deviation;
        if (!gradients.probabilities) continue;
        gradients.probabilities[at + size(e)] += static_cast<Real>(-2 * coefficient * scale * deviation);
      }
    }
    return -scale * total;
  }
};

}  // namespace

AuxiliaryLossKind orthogonality_loss() {
  return auxiliary_loss<Orthogonality<Projection>>(
      "orthogonality", "mean over rows of Σ_{j≠k} ‖projection of x̃_j on x̃_k‖², outputs of active experts",
      AuxiliaryPath::pair_outputs);
}
AuxiliaryLossKind orthogonality_listed_loss() {
  return auxiliary_loss<Orthogonality<Projection, OfList>>(
      "orthogonality_listed",
      "orthogonality, grouped by K from the list of active pairs by expert, not by row (code of Guo et al. "
      "2025)",
      AuxiliaryPath::pair_outputs);
}
AuxiliaryLossKind orthogonality_cosine_loss() {
  return auxiliary_loss<Orthogonality<Cosine>>(
      "orthogonality_cosine", "mean over rows of Σ_{j≠k} cos²(x̃_j, x̃_k), blind to the outputs' lengths",
      AuxiliaryPath::pair_outputs);
}

AuxiliaryLossKind variance_loss() {
  return auxiliary_loss<ValueAndGradient<VarianceOfGates>>(
      "variance", "−mean over experts of the variance of gates over rows (Guo et al. 2025, L_v / n)",
      AuxiliaryPath::gates);
}
AuxiliaryLossKind variance_probabilities_loss() {
  return auxiliary_loss<ValueAndGradient<VarianceOfProbabilities>>(
      "variance_probabilities", "−(1/nE) Σ_ie (r_ie − mean r_e)², of the full softmax");
}
AuxiliaryLossKind variance_rows_loss() {
  return auxiliary_loss<ValueAndGradient<VarianceOfRows>>(
      "variance_rows",
      "−mean over rows of the variance of r over experts, ddof 1 (released code of Guo et al. 2025)");
}

}  // namespace moelab
