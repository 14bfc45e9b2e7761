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
  entry(variance_rows_loss)
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

// Balance within sequences: the term `aux` of each sequence, averaged over sequences (DeepSeek-V3,
// sequence-wise).

/// Calls visit(first row, rows) for every sequence. `scratch` holds the sequence's weights (E): E n_j / Σn
/// over its rows.
template <class Real, class Visit>
void for_each_sequence(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch, const Visit& visit) {
  const Routing<Real>& routing = *batch.routing;
  for (int first = 0; first < routing.rows; first += batch.tokens) {
    scratch.weights.assign(size(routing.experts), 0.0);
    double pairs = 0;
    for (int row = first; row < first + batch.tokens; ++row) {
      for_each_active(routing, row, [&](int e) {
        ++scratch.weights[size(e)];
        ++pairs;
      });
    }
    if (pairs == 0) continue;  // no expert serves the sequence
    for (double& weight : scratch.weights) weight *= routing.experts / pairs;
    visit(first, batch.tokens);
  }
}

struct BalanceOfSequences {
  template <class Real>
  static double value(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) {
    const Routing<Real>& routing = *batch.routing;
    double sum = 0;
    for_each_sequence(batch, scratch, [&](int first, int count) {
      for (int row = first; row < first + count; ++row) {
        const Real* const r = batch.probabilities + entries(row, routing.stride);
        for (int e = 0; e < routing.experts; ++e) sum += scratch.weights[size(e)] * static_cast<double>(r[e]);
      }
    });
    return sum / routing.rows;
  }

  template <class Real>
  static void add(const RoutedBatch<Real>& batch, double coefficient,
                  const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch& scratch) {
    const Routing<Real>& routing = *batch.routing;
    for_each_sequence(batch, scratch, [&](int first, int count) {
      for (int row = first; row < first + count; ++row) {
        Real* const gradient = gradients.probabilities + entries(row, routing.stride);
        for (int e = 0; e < routing.experts; ++e) {
          gradient[e] += static_cast<Real>(coefficient * scratch.weights[size(e)] / routing.rows);
        }
      }
    });
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
             "the optimised task loss over outputs: their sum, or their mean, which divides the gradient by "
             "the number of outputs; auxiliary terms are added to either as they are");
  fields.add("mask_share", mask_share, between(1e-6, 1),
             "masked_tokens: share m / s of a sequence's s tokens that are masked, at least one of them, "
             "anew in every training step and once for each test set (default 0.15)");
  coefficients.resize(auxiliary_loss_kinds().size(), 0.0);
  for (std::size_t t = 0; t < auxiliary_loss_kinds().size(); ++t) {
    fields.add(auxiliary_loss_kinds()[t].name, coefficients[t], at_least(0),
               "coefficient of " + auxiliary_loss_kinds()[t].help);
  }
}

AuxiliaryLosses::AuxiliaryLosses(const LossOptions& options) : coefficients_(options.coefficients) {
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
    values.push_back(kind.value.of<Real>()(batch, scratch));
  }
  return values;
}

template <class Real>
double AuxiliaryLosses::weighted_sum(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) const {
  double sum = 0;
  for (const std::size_t t : weighted_) {
    sum += coefficients_[t] * auxiliary_loss_kinds()[t].value.of<Real>()(batch, scratch);
  }
  return sum;
}

template <class Real>
void AuxiliaryLosses::add_gradients(const RoutedBatch<Real>& batch, const AuxiliaryGradients<Real>& gradients,
                                    AuxiliaryScratch& scratch) const {
  for (const std::size_t t : weighted_) {
    if (!array_of(auxiliary_loss_kinds()[t].path, gradients)) continue;
    auxiliary_loss_kinds()[t].add.of<Real>()(batch, coefficients_[t], gradients, scratch);
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
  AuxiliaryLossKind kind = auxiliary_loss<BalanceOfSequences>(
      "aux_sequence",
      "aux of every sequence by itself, averaged (DeepSeek-V3); needs samples of several tokens");
  kind.needs_sequences = true;
  return kind;
}

}  // namespace moelab
