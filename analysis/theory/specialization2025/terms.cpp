#include "analysis/theory/specialization2025/terms.h"

#include <stdexcept>

namespace moelab {

double term_value(const std::string& term, const RoutedBatch<double>& batch) {
  AuxiliaryScratch scratch;
  for (const AuxiliaryLossKind& kind : auxiliary_loss_kinds()) {
    if (kind.name == term) return kind.value_double(batch, scratch);
  }
  throw std::invalid_argument("there is no auxiliary loss '" + term + "'");
}

AuxiliaryLosses losses_with(const std::string& term) {
  LossOptions options;
  options.coefficient(term) = 1;
  return AuxiliaryLosses(options);
}

}  // namespace moelab
