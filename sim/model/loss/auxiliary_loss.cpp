#include "sim/model/loss/auxiliary_loss.h"

#include <stdexcept>

#include "sim/base/error.h"
#include "sim/model/loss/task_loss.h"

// To add a term, write a new file that defines <name>_loss() and add a line here. Metrics follow this order.
// clang-format off
#define MOELAB_AUXILIARY_LOSSES(entry) \
  entry(aux_loss)                      \
  entry(aux_unnormalised_loss)         \
  entry(gshard_loss)                   \
  entry(switch_loss)                   \
  entry(z_loss)                        \
  entry(orthogonality_loss)            \
  entry(orthogonality_cosine_loss)     \
  entry(variance_loss)                 \
  entry(variance_probabilities_loss)   \
  entry(importance_loss)               \
  entry(importance_probabilities_loss) \
  entry(routing_entropy_loss)          \
  entry(mutual_information_loss)       \
  entry(aux_sequence_loss)             \
  entry(load_loss)                     \
  entry(orthogonality_listed_loss)     \
  entry(variance_rows_loss)            \
  entry(aux_mixed_loss)                \
  entry(locality_loss)                 \
  entry(history_loss)                  \
  entry(history_code_loss)             \
  entry(class_scores_loss)
// clang-format on

namespace moelab {
namespace {

template <class Real>
const Real* array_of(AuxiliaryPath path, const AuxiliaryGradients<Real>& gradients) {
  switch (path) {
    case AuxiliaryPath::gates:
      return gradients.gates;
    case AuxiliaryPath::probabilities:
      return gradients.probabilities;
    case AuxiliaryPath::scores:
      return gradients.scores;
    case AuxiliaryPath::pair_outputs:
      return gradients.pair_outputs;
  }
  return nullptr;
}

// Balance within groups of rows: the term `aux` of each group, averaged over rows. Σ_g (n_g / n) aux_g =
// aux + E Σ_e Cov_g(f_ge, P_ge) for groups of equal size.

template <class Real>
int groups_of(const RoutedBatch<Real>& batch) {
  const int sequences = batch.routing->rows / batch.tokens;
  return std::max(1, (sequences + batch.group - 1) / batch.group);
}

/// Groups of consecutive sequences (DeepSeek-V3, sequence-wise).
struct OfConsecutiveSequences {
  template <class Real>
  static int group(const RoutedBatch<Real>& batch, int row) {
    return row / batch.tokens / batch.group;
  }
};

/// Groups of as many rows, which take their tokens from all sequences in turn: token t of sequence i is in
/// group (i + t) mod G.
struct OfAllSequences {
  template <class Real>
  static int group(const RoutedBatch<Real>& batch, int row) {
    return (row / batch.tokens + row % batch.tokens) % groups_of(batch);
  }
};

template <class Groups>
struct BalanceOfGroups {
  template <class Real>
  static double value(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) {
    const Routing<Real>& routing = *batch.routing;
    write_weights(batch, scratch);
    double sum = 0;
    for (int row = 0; row < routing.rows; ++row) {
      const Real* const r = batch.probabilities + entries(row, routing.stride);
      const double* const weights = weights_of(batch, scratch, row);
      for (int e = 0; e < routing.experts; ++e) sum += weights[e] * static_cast<double>(r[e]);
    }
    return sum / routing.rows;
  }

  template <class Real>
  static void add(const RoutedBatch<Real>& batch, double coefficient,
                  const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch& scratch) {
    const Routing<Real>& routing = *batch.routing;
    write_weights(batch, scratch);
    for (int row = 0; row < routing.rows; ++row) {
      Real* const gradient = gradients.probabilities + entries(row, routing.stride);
      const double* const weights = weights_of(batch, scratch, row);
      for (int e = 0; e < routing.experts; ++e)
        gradient[e] += static_cast<Real>(coefficient * weights[e] / routing.rows);
    }
  }

 private:
  template <class Real>
  static double* weights_of(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch, int row) {
    return scratch.weights.data() + entries(Groups::group(batch, row), batch.routing->experts);
  }

  /// weights (G, E) ← E n_gj / Σ_j n_gj, n_gj the rows of group g that activate expert j. A group that no
  /// expert serves keeps zeros.
  template <class Real>
  static void write_weights(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) {
    const Routing<Real>& routing = *batch.routing;
    const int groups = groups_of(batch);
    scratch.weights.assign(entries(groups, routing.experts), 0.0);
    scratch.means.assign(size(groups), 0.0);
    for (int row = 0; row < routing.rows; ++row) {
      double& pairs = scratch.means[size(Groups::group(batch, row))];
      double* const weights = weights_of(batch, scratch, row);
      for_each_active(routing, row, [&](int e) {
        ++weights[e];
        ++pairs;
      });
    }
    for (int g = 0; g < groups; ++g) {
      const double pairs = scratch.means[size(g)];
      if (pairs == 0) continue;
      double* const weights = scratch.weights.data() + entries(g, routing.experts);
      for (int e = 0; e < routing.experts; ++e) weights[e] *= routing.experts / pairs;
    }
  }
};

}  // namespace

MOELAB_TABLE(AuxiliaryLossAxis, MOELAB_AUXILIARY_LOSSES)

std::size_t auxiliary_loss_place(const std::string& name) {
  for (std::size_t t = 0; t < auxiliary_loss_kinds().size(); ++t) {
    if (auxiliary_loss_kinds()[t].name == name) return t;
  }
  throw std::invalid_argument(unknown_name("auxiliary loss", name, names_of(auxiliary_loss_kinds())));
}

LossOptions::LossOptions() : coefficients(auxiliary_loss_kinds().size(), 0.0) {}

double& LossOptions::coefficient(const std::string& name) {
  coefficients.resize(auxiliary_loss_kinds().size(), 0.0);
  return coefficients[auxiliary_loss_place(name)];
}

void LossOptions::bind(Fields& fields) {
  fields.add_name("task", task, task_loss_names(), "task loss: summed over outputs, averaged over rows");
  fields.add("reduction", reduction, {"sum", "mean"},
             "the task loss over outputs: their sum, or their mean, which divides its gradient by the number "
             "of outputs; auxiliary terms stay");
  fields.add("mask_share", mask_share, between(1e-6, 1),
             "masked_tokens: share m / s of a sequence's tokens that are masked, at least one; new in every "
             "training step (default 0.15)");
  coefficients.resize(auxiliary_loss_kinds().size(), 0.0);
  for (std::size_t t = 0; t < auxiliary_loss_kinds().size(); ++t) {
    fields.add(auxiliary_loss_kinds()[t].name, coefficients[t], at_least(0),
               "coefficient of " + auxiliary_loss_kinds()[t].help);
  }
  fields.add("aux_group", aux_group, at_least(1),
             "sequences of a group of aux_sequence, and tokens of a group of aux_mixed in sequences");
}

AuxiliaryLosses::AuxiliaryLosses(const LossOptions& options)
    : coefficients_(options.coefficients), group_(options.aux_group) {
  coefficients_.resize(auxiliary_loss_kinds().size(), 0.0);
  for (std::size_t t = 0; t < coefficients_.size(); ++t) {
    if (coefficients_[t] != 0) weighted_.push_back(t);
  }
}

bool AuxiliaryLosses::reads(AuxiliaryPath path) const {
  for (const std::size_t t : weighted_) {
    if (auxiliary_loss_kinds()[t].path == path) return true;
  }
  return false;
}

template <class Real>
std::vector<double> AuxiliaryLosses::values(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) const {
  std::vector<double> values;
  for (const AuxiliaryLossKind& kind : auxiliary_loss_kinds()) {
    values.push_back(kind.value.of<Real>()(grouped(batch), scratch));
  }
  return values;
}

template <class Real>
double AuxiliaryLosses::weighted_sum(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) const {
  double sum = 0;
  for (const std::size_t t : weighted_) {
    sum += coefficients_[t] * auxiliary_loss_kinds()[t].value.of<Real>()(grouped(batch), scratch);
  }
  return sum;
}

template <class Real>
void AuxiliaryLosses::add_gradients(const RoutedBatch<Real>& batch, const AuxiliaryGradients<Real>& gradients,
                                    AuxiliaryScratch& scratch) const {
  for (const std::size_t t : weighted_) {
    if (!array_of(auxiliary_loss_kinds()[t].path, gradients)) continue;
    auxiliary_loss_kinds()[t].add.of<Real>()(grouped(batch), coefficients_[t], gradients, scratch);
  }
}

template std::vector<double> AuxiliaryLosses::values(const RoutedBatch<float>&, AuxiliaryScratch&) const;
template std::vector<double> AuxiliaryLosses::values(const RoutedBatch<double>&, AuxiliaryScratch&) const;
template double AuxiliaryLosses::weighted_sum(const RoutedBatch<float>&, AuxiliaryScratch&) const;
template double AuxiliaryLosses::weighted_sum(const RoutedBatch<double>&, AuxiliaryScratch&) const;
template void AuxiliaryLosses::add_gradients(const RoutedBatch<float>&, const AuxiliaryGradients<float>&,
                                             AuxiliaryScratch&) const;
template void AuxiliaryLosses::add_gradients(const RoutedBatch<double>&, const AuxiliaryGradients<double>&,
                                             AuxiliaryScratch&) const;

AuxiliaryLossKind aux_sequence_loss() {
  AuxiliaryLossKind kind = auxiliary_loss<BalanceOfGroups<OfConsecutiveSequences>>(
      "aux_sequence",
      "aux of each sequence, or of each group of loss.aux_group sequences, averaged (DeepSeek-V3); "
      "needs samples of several tokens");
  kind.needs_sequences = true;
  return kind;
}
AuxiliaryLossKind aux_mixed_loss() {
  AuxiliaryLossKind kind = auxiliary_loss<BalanceOfGroups<OfAllSequences>>(
      "aux_mixed",
      "aux of groups as in aux_sequence, whose tokens come from all sequences in turn, "
      "averaged; needs samples of several tokens");
  kind.needs_sequences = true;
  return kind;
}

}  // namespace moelab
