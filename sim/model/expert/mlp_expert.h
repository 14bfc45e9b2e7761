#pragma once

#include "sim/model/expert/expert.h"

namespace moelab {

/// expert_e(x) = MLP_e(x), ReLU hidden layers, biases (Dikkala et al. 2023, section 3.1: depth 3, width 96).
struct MlpExpertOptions {
  int depth = 3;  ///< weight matrices
  int width = 96;
  double init_scale = 1.0;
  void bind(Fields& fields);
};

/// For other kinds whose experts are MLPs.
template <class Real>
std::unique_ptr<ExpertBank<Real>> make_mlp_bank(const MlpExpertOptions& options,
                                                const ExpertSetting& setting);

}  // namespace moelab
