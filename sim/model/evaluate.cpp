#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/model/model.h"

namespace moelab {

template <class Real>
std::vector<double> token_losses(const Model<Real>& model, const Gating<Real>& gating,
                                 const SamplesOf<Real>& x, const double* y, int samples,
                                 Workspace<Real>& workspace) {
  std::vector<double> losses;
  losses.reserve(entries(samples, model.network->layout().tokens));
  visit_blocks<Real>(model, gating, x, samples, workspace, [&](int first_row) {
    const View<const Real>& scores = workspace.result;
    const bool is_finite = model.network->has_finite_routing(workspace);
    for (int row = 0; row < scores.rows; ++row) {
      const auto target = static_cast<std::ptrdiff_t>(y[first_row + row]);
      if (target < 0) continue;
      const Real* const f = scores.row(row);
      const double peak = *std::max_element(f, f + scores.columns);
      double sum = 0;
      for (int j = 0; j < scores.columns; ++j) sum += std::exp(static_cast<double>(f[j]) - peak);
      losses.push_back(is_finite ? peak + std::log(sum) - static_cast<double>(f[target])
                                 : std::numeric_limits<double>::quiet_NaN());
    }
  });
  return losses;
}

template std::vector<double> token_losses(const Model<float>&, const Gating<float>&, const SamplesOf<float>&,
                                          const double*, int, Workspace<float>&);
template std::vector<double> token_losses(const Model<double>&, const Gating<double>&,
                                          const SamplesOf<double>&, const double*, int, Workspace<double>&);

}  // namespace moelab
