#pragma once

/// Banks of experts with others beside them.

#include "sim/model/expert/expert.h"

namespace moelab {

/// The same with `count` null experts after its own (MoE++'s zero experts): f_e(x) = 0, so that a row that
/// selects one is computed by fewer networks, and with renormalised gates the others' gates are as much
/// smaller. Routings have E + count experts.
template <class Real>
std::unique_ptr<ExpertBank<Real>> with_null_experts(std::unique_ptr<ExpertBank<Real>> bank,
                                                    const ExpertSetting& setting, int count);

/// The same with `count` experts that serve every row, no gate before them (DeepSeekMoE):
/// f(x) = Σ_e gate_e(x) f_e(x) + Σ_s f_s(x). They start from streams of their own. Arrays "shared_…".
template <class Real>
std::unique_ptr<ExpertBank<Real>> with_shared_experts(std::unique_ptr<ExpertBank<Real>> bank,
                                                      const ExpertOptions& expert,
                                                      const ExpertSetting& setting, int count);

}  // namespace moelab
