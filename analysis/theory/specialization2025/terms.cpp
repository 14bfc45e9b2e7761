#include "analysis/theory/specialization2025/terms.h"

namespace moelab {

double term_value(const std::string& term, const RoutedBatch<double>& batch) {
  AuxiliaryScratch scratch;
  return auxiliary_loss_kinds()[auxiliary_loss_place(term)].value.in_double(batch, scratch);
}

AuxiliaryLosses losses_with(const std::string& term) {
  LossOptions options;
  options.coefficient(term) = 1;
  return AuxiliaryLosses(options);
}

}  // namespace moelab
