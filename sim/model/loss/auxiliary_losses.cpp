#include <stdexcept>
#include <type_traits>

#include "sim/base/error.h"
#include "sim/model/loss/auxiliary_loss.h"
#include "sim/model/loss/task_loss.h"

// Adding a term is a new file that defines <name>_loss() and a line here. Metrics have the same order.
// clang-format off
#define MOELAB_AUXILIARY_LOSSES(entry) \
  entry(aux)                           \
  entry(aux_unnormalised)              \
  entry(gshard)                        \
  entry(switch)                        \
  entry(z)                             \
  entry(orthogonality)                 \
  entry(orthogonality_cosine)          \
  entry(variance)                      \
  entry(variance_probabilities)
// clang-format on

namespace moelab {

#define MOELAB_DECLARE(name) AuxiliaryLossKind name##_loss();
MOELAB_AUXILIARY_LOSSES(MOELAB_DECLARE)
#undef MOELAB_DECLARE

namespace {

std::vector<AuxiliaryLossKind>& kinds() {
#define MOELAB_CALL(name) name##_loss(),
  static std::vector<AuxiliaryLossKind> table = {MOELAB_AUXILIARY_LOSSES(MOELAB_CALL)};
#undef MOELAB_CALL
  return table;
}

template <class Real>
double value_of(const AuxiliaryLossKind& kind, const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) {
  if constexpr (std::is_same_v<Real, float>) {
    return kind.value_float(batch, scratch);
  } else {
    return kind.value_double(batch, scratch);
  }
}

template <class Real>
void add(const AuxiliaryLossKind& kind, const RoutedBatch<Real>& batch, double coefficient,
         const AuxiliaryGradients<Real>& gradients, AuxiliaryScratch& scratch) {
  if constexpr (std::is_same_v<Real, float>) {
    kind.add_float(batch, coefficient, gradients, scratch);
  } else {
    kind.add_double(batch, coefficient, gradients, scratch);
  }
}

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

}  // namespace

const std::vector<AuxiliaryLossKind>& auxiliary_loss_kinds() {
  return kinds();
}

void add_auxiliary_loss_kind(AuxiliaryLossKind kind) {
  kinds().push_back(std::move(kind));
}

LossOptions::LossOptions() : coefficients(kinds().size(), 0.0) {}

double& LossOptions::coefficient(const std::string& name) {
  coefficients.resize(kinds().size(), 0.0);
  std::vector<std::string> names;
  for (std::size_t t = 0; t < kinds().size(); ++t) {
    if (kinds()[t].name == name) return coefficients[t];
    names.push_back(kinds()[t].name);
  }
  throw std::invalid_argument(unknown_name("auxiliary loss", name, names));
}

void LossOptions::bind(Fields& fields) {
  fields.add_name("task", task, task_loss_names(), "task loss: summed over outputs, averaged over rows");
  coefficients.resize(kinds().size(), 0.0);
  for (std::size_t t = 0; t < kinds().size(); ++t) {
    fields.add(kinds()[t].name, coefficients[t], at_least(0), "coefficient of " + kinds()[t].help);
  }
}

AuxiliaryLosses::AuxiliaryLosses(const LossOptions& options) : coefficients_(options.coefficients) {
  coefficients_.resize(kinds().size(), 0.0);
  for (std::size_t t = 0; t < coefficients_.size(); ++t) {
    if (coefficients_[t] != 0) weighted_.push_back(t);
  }
}

bool AuxiliaryLosses::reads(AuxiliaryPath path) const {
  for (const std::size_t t : weighted_) {
    if (kinds()[t].path == path) return true;
  }
  return false;
}

template <class Real>
std::vector<double> AuxiliaryLosses::values(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) const {
  std::vector<double> values;
  for (const AuxiliaryLossKind& kind : kinds()) values.push_back(value_of(kind, batch, scratch));
  return values;
}

template <class Real>
double AuxiliaryLosses::weighted_sum(const RoutedBatch<Real>& batch, AuxiliaryScratch& scratch) const {
  double sum = 0;
  for (const std::size_t t : weighted_) sum += coefficients_[t] * value_of(kinds()[t], batch, scratch);
  return sum;
}

template <class Real>
void AuxiliaryLosses::add_gradients(const RoutedBatch<Real>& batch, const AuxiliaryGradients<Real>& gradients,
                                    AuxiliaryScratch& scratch) const {
  for (const std::size_t t : weighted_) {
    if (array_of(kinds()[t].path, gradients)) add(kinds()[t], batch, coefficients_[t], gradients, scratch);
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

}  // namespace moelab
