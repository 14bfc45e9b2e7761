#include "sim/loss/auxiliary_losses.h"

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

struct TermText {
  const char* name;
  const char* help;
};

constexpr TermText kTexts[kAuxiliaryTerms] = {
    {"aux", "balance, E Σ_j f_j P_j: f_j the share of active pairs, P_j the mean probability"},
    {"aux_unnormalised", "balance as printed, Σ_j f_j p_j: sums over the batch (Guo et al. 2025, Eq. 2)"},
    {"gshard", "balance, (1/E) Σ_j f_j P_j with first choices f_j (GShard)"},
    {"switch", "balance, E Σ_j f_j P_j with first choices f_j (Switch Transformer)"},
    {"z", "mean of logsumexp(γ)² (ST-MoE)"},
    {"orthogonality", "mean over rows of Σ_{j≠k} ‖projection of x̃_j on x̃_k‖², outputs of active experts"},
    {"orthogonality_cosine", "mean over rows of Σ_{j≠k} cos²(x̃_j, x̃_k), blind to the outputs' lengths"},
    {"variance", "−mean over experts of the variance of gates over rows (Guo et al. 2025, L_v / n)"},
    {"variance_probabilities", "the same of the full softmax r"},
};

std::size_t place(int row, int stride) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(stride);
}

/// Calls visit(expert) for the active experts of a row, in no particular order.
template <class Real, class Visit>
void for_each_active(const Routing<Real>& routing, int row, const Visit& visit) {
  if (routing.every_pair) {
    for (int e = 0; e < routing.experts; ++e) visit(e);
    return;
  }
  const int begin = row == 0 ? 0 : routing.row_ends[static_cast<std::size_t>(row) - 1];
  for (int at = begin; at < routing.row_ends[static_cast<std::size_t>(row)]; ++at) {
    visit(routing.row_experts[static_cast<std::size_t>(at)]);
  }
}

/// The balance terms as Σ_j weight_j P_j: what weighs the mean probabilities.
template <class Real>
struct BalanceWeights {
  const std::vector<double>&active, &first_choice;  // n_j and c_j, (E)
  double pairs = 0;

  BalanceWeights(const RoutedBatch<Real>& batch, std::vector<double>& active_rows,
                 std::vector<double>& first_choices)
      : active(active_rows), first_choice(first_choices) {
    const Routing<Real>& routing = *batch.routing;
    active_rows.resize(static_cast<std::size_t>(routing.experts));
    first_choices.assign(active.size(), 0.0);
    for (int e = 0; e < routing.experts; ++e) {
      active_rows[static_cast<std::size_t>(e)] = routing.pairs_of(e);
      pairs += routing.pairs_of(e);
    }
    for (int row = 0; row < routing.rows; ++row) {
      const Real* const r = batch.probabilities + place(row, routing.stride);
      ++first_choices[static_cast<std::size_t>(std::max_element(r, r + routing.experts) - r)];
    }
  }

  double weight(AuxiliaryTerm term, std::size_t e, int rows) const {
    const double experts = static_cast<double>(active.size());
    switch (term) {
      case AuxiliaryTerm::aux:
        return experts * active[e] / pairs;
      case AuxiliaryTerm::aux_unnormalised:
        return active[e];
      case AuxiliaryTerm::gshard:
        return first_choice[e] / rows / experts;
      case AuxiliaryTerm::switch_transformer:
        return experts * first_choice[e] / rows;
      default:
        return 0;
    }
  }
};

constexpr AuxiliaryTerm kBalanceTerms[] = {AuxiliaryTerm::aux, AuxiliaryTerm::aux_unnormalised,
                                           AuxiliaryTerm::gshard, AuxiliaryTerm::switch_transformer};

template <class Real>
void column_means(const Real* values, const Routing<Real>& routing, std::vector<double>& means) {
  means.assign(static_cast<std::size_t>(routing.experts), 0.0);
  for (int row = 0; row < routing.rows; ++row) {
    const Real* const line = values + place(row, routing.stride);
    for (std::size_t e = 0; e < means.size(); ++e) means[e] += static_cast<double>(line[e]);
  }
  for (double& mean : means) mean /= routing.rows;
}

/// −(1/(nE)) Σ_ij (a_ij − ā_j)², and its gradient times `coefficient`, added where `gradient` is not null.
template <class Real>
double variance_term(const Real* values, const Routing<Real>& routing, double coefficient,
                     std::vector<double>& means, Real* gradient) {
  column_means(values, routing, means);
  const double scale = 1.0 / (static_cast<double>(routing.rows) * routing.experts);
  double total = 0;
  for (int row = 0; row < routing.rows; ++row) {
    for (int e = 0; e < routing.experts; ++e) {
      const std::size_t at = place(row, routing.stride) + static_cast<std::size_t>(e);
      const double deviation = static_cast<double>(values[at]) - means[static_cast<std::size_t>(e)];
      total += deviation * deviation;
      if (gradient) gradient[at] += static_cast<Real>(-2 * coefficient * scale * deviation);
    }
  }
  return -scale * total;
}

template <class Real>
double log_sum_exp(const Real* scores, int count) {
  const double largest = static_cast<double>(*std::max_element(scores, scores + count));
  double sum = 0;
  for (int e = 0; e < count; ++e) sum += std::exp(static_cast<double>(scores[e]) - largest);
  return largest + std::log(sum);
}

/// Calls visit(row, a, b) for every two active experts of a row. `active` is scratch.
template <class Real, class Visit>
void for_each_output_pair(const RoutedBatch<Real>& batch, std::vector<int>& active, const Visit& visit) {
  const Routing<Real>& routing = *batch.routing;
  for (int row = 0; row < routing.rows; ++row) {
    active.clear();
    for_each_active(routing, row, [&](int e) { active.push_back(e); });
    for (std::size_t a = 0; a < active.size(); ++a) {
      for (std::size_t b = a + 1; b < active.size(); ++b) visit(row, active[a], active[b]);
    }
  }
}

/// (x_a·x_b)² (1/q_a + 1/q_b) with q = ‖x‖² + ε, or 2 (x_a·x_b)² / (q_a q_b): the two ordered pairs at once.
struct PairTerm {
  double product, norm_a, norm_b;
  double projection() const { return product * product * (1 / norm_a + 1 / norm_b); }
  double cosine() const { return 2 * product * product / (norm_a * norm_b); }
};

template <class Real>
PairTerm pair_term(const Real* a, const Real* b, int stride) {
  return {static_cast<double>(kernels::dot(a, b, stride)),
          static_cast<double>(kernels::dot(a, a, stride)) + kOrthogonalityGuard,
          static_cast<double>(kernels::dot(b, b, stride)) + kOrthogonalityGuard};
}

}  // namespace

std::string auxiliary_loss_name(AuxiliaryTerm term) {
  return kTexts[static_cast<std::size_t>(term)].name;
}

std::vector<Field> auxiliary_loss_fields() {
  std::vector<Field> fields;
  for (const TermText& text : kTexts) {
    fields.push_back({text.name, Shape::real_at_least(0), std::string("coefficient of ") + text.help, 0.0});
  }
  return fields;
}

AuxiliaryLosses::AuxiliaryLosses(const Json& loss) {
  for (std::size_t t = 0; t < kAuxiliaryTerms; ++t) coefficients_[t] = loss.at(kTexts[t].name);
}

bool AuxiliaryLosses::empty() const {
  return std::all_of(coefficients_.begin(), coefficients_.end(), [](double c) { return c == 0; });
}

bool AuxiliaryLosses::reads_outputs() const {
  return coefficient(AuxiliaryTerm::orthogonality) > 0 ||
         coefficient(AuxiliaryTerm::orthogonality_cosine) > 0;
}

bool AuxiliaryLosses::reads_probabilities() const {
  return coefficient(AuxiliaryTerm::variance_probabilities) > 0 ||
         std::any_of(std::begin(kBalanceTerms), std::end(kBalanceTerms),
                     [&](AuxiliaryTerm term) { return coefficient(term) > 0; });
}

double AuxiliaryLosses::weighted_sum(const AuxiliaryValues& values) const {
  double sum = 0;
  for (std::size_t t = 0; t < kAuxiliaryTerms; ++t) sum += coefficients_[t] * values[t];
  return sum;
}

template <class Real>
AuxiliaryValues AuxiliaryLosses::values(const RoutedBatch<Real>& batch) {
  const Routing<Real>& routing = *batch.routing;
  AuxiliaryValues values{};
  const auto value = [&](AuxiliaryTerm term) -> double& { return values[static_cast<std::size_t>(term)]; };
  const BalanceWeights<Real> weights(batch, active_rows_, first_choices_);
  column_means(batch.probabilities, routing, means_);
  for (const AuxiliaryTerm term : kBalanceTerms) {
    for (std::size_t e = 0; e < means_.size(); ++e) {
      value(term) += weights.weight(term, e, routing.rows) * means_[e];
    }
  }
  for (int row = 0; row < routing.rows; ++row) {
    const double lse = log_sum_exp(batch.scores + place(row, routing.stride), routing.experts);
    value(AuxiliaryTerm::z) += lse * lse / routing.rows;
  }
  value(AuxiliaryTerm::variance) = variance_term<Real>(routing.gates, routing, 0, means_, nullptr);
  value(AuxiliaryTerm::variance_probabilities) =
      variance_term<Real>(batch.probabilities, routing, 0, means_, nullptr);
  if (!batch.pair_outputs) return values;
  const auto output = [&](int row, int e) {
    return batch.pair_outputs + place(row * routing.experts + e, batch.output_stride);
  };
  for_each_output_pair(batch, active_of_row_, [&](int row, int a, int b) {
    const PairTerm pair = pair_term(output(row, a), output(row, b), batch.output_stride);
    value(AuxiliaryTerm::orthogonality) += pair.projection() / routing.rows;
    value(AuxiliaryTerm::orthogonality_cosine) += pair.cosine() / routing.rows;
  });
  return values;
}

template <class Real>
void AuxiliaryLosses::add_gradients(const RoutedBatch<Real>& batch,
                                    const AuxiliaryGradients<Real>& gradients) {
  const Routing<Real>& routing = *batch.routing;
  if (gradients.gates && coefficient(AuxiliaryTerm::variance) > 0) {
    variance_term(routing.gates, routing, coefficient(AuxiliaryTerm::variance), means_, gradients.gates);
  }
  if (gradients.probabilities) {
    if (coefficient(AuxiliaryTerm::variance_probabilities) > 0) {
      variance_term(batch.probabilities, routing, coefficient(AuxiliaryTerm::variance_probabilities), means_,
                    gradients.probabilities);
    }
    const BalanceWeights<Real> weights(batch, active_rows_, first_choices_);
    for (int e = 0; e < routing.experts; ++e) {
      double slope = 0;
      for (const AuxiliaryTerm term : kBalanceTerms) {
        slope += coefficient(term) * weights.weight(term, static_cast<std::size_t>(e), routing.rows);
      }
      const Real step = static_cast<Real>(slope / routing.rows);
      for (int row = 0; row < routing.rows; ++row) {
        gradients.probabilities[place(row, routing.stride) + static_cast<std::size_t>(e)] += step;
      }
    }
  }
  if (gradients.scores && coefficient(AuxiliaryTerm::z) > 0) {
    for (int row = 0; row < routing.rows; ++row) {
      const double lse = log_sum_exp(batch.scores + place(row, routing.stride), routing.experts);
      kernels::add_scaled(static_cast<Real>(2 * coefficient(AuxiliaryTerm::z) * lse / routing.rows),
                          batch.probabilities + place(row, routing.stride),
                          gradients.scores + place(row, routing.stride), routing.stride);
    }
  }
  if (!gradients.pair_outputs || !reads_outputs()) return;
  const double projection = coefficient(AuxiliaryTerm::orthogonality) / routing.rows;
  const double cosine = coefficient(AuxiliaryTerm::orthogonality_cosine) / routing.rows;
  for_each_output_pair(batch, active_of_row_, [&](int row, int a, int b) {
    const std::size_t at_a = place(row * routing.experts + a, batch.output_stride);
    const std::size_t at_b = place(row * routing.experts + b, batch.output_stride);
    const Real* const x_a = batch.pair_outputs + at_a;
    const Real* const x_b = batch.pair_outputs + at_b;
    const PairTerm pair = pair_term(x_a, x_b, batch.output_stride);
    const double both = pair.norm_a * pair.norm_b;
    // The slope along the other output, and along the own one (which is a denominator).
    const double other =
        2 * pair.product * (projection * (1 / pair.norm_a + 1 / pair.norm_b) + cosine * 2 / both);
    const double square = 2 * pair.product * pair.product;
    const double own_a =
        -square * (projection / (pair.norm_a * pair.norm_a) + cosine * 2 / (both * pair.norm_a));
    const double own_b =
        -square * (projection / (pair.norm_b * pair.norm_b) + cosine * 2 / (both * pair.norm_b));
    kernels::add_scaled(static_cast<Real>(other), x_b, gradients.pair_outputs + at_a, batch.output_stride);
    kernels::add_scaled(static_cast<Real>(own_a), x_a, gradients.pair_outputs + at_a, batch.output_stride);
    kernels::add_scaled(static_cast<Real>(other), x_a, gradients.pair_outputs + at_b, batch.output_stride);
    kernels::add_scaled(static_cast<Real>(own_b), x_b, gradients.pair_outputs + at_b, batch.output_stride);
  });
}

template AuxiliaryValues AuxiliaryLosses::values(const RoutedBatch<float>&);
template AuxiliaryValues AuxiliaryLosses::values(const RoutedBatch<double>&);
template void AuxiliaryLosses::add_gradients(const RoutedBatch<float>&, const AuxiliaryGradients<float>&);
template void AuxiliaryLosses::add_gradients(const RoutedBatch<double>&, const AuxiliaryGradients<double>&);

}  // namespace moelab
