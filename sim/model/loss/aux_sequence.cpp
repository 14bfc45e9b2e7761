/// Balance within sequences: the term `aux` of every sequence by itself, averaged (DeepSeek-V3,
/// sequence-wise).

#include "sim/model/loss/auxiliary_terms.h"

namespace moelab {
namespace {

/// Calls visit(first row, rows) for every sequence, with weights (E) of its own in `scratch`: E n_j / Σn over
/// its rows.
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
    if (pairs == 0) continue;  // no expert serves it
    for (double& weight : scratch.weights) weight *= routing.experts / pairs;
    visit(first, batch.tokens);
  }
}

template <class Real>
double sequence_value(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) {
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
void add_sequence(const RoutedBatch<Real>& batch, double coefficient,
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

}  // namespace

AuxiliaryLossKind aux_sequence_loss() {
  AuxiliaryLossKind kind{
      "aux_sequence",
      "aux of every sequence by itself, averaged (DeepSeek-V3); needs samples of several tokens",
      AuxiliaryPath::probabilities,
      {sequence_value<float>, sequence_value<double>},
      {add_sequence<float>, add_sequence<double>}};
  kind.needs_sequences = true;
  return kind;
}

}  // namespace moelab
