#include <cmath>

#include "sim/model/start.h"

namespace moelab {
namespace {

/// w_e ~ N(0, init_scale² I / d), each row with a stream of its own.
void fill_normal(const Start& start, int expert, double init_scale, std::span<double> row) {
  Engine engine = start.seeds.stream(Purpose::router_init, static_cast<std::uint64_t>(expert));
  const double deviation = init_scale / std::sqrt(static_cast<double>(row.size()));
  for (double& entry : row) entry = deviation * draw_normal(engine);
}

}  // namespace

StartLaw normal_start_law() {
  return {"normal", "N(0, init_scale² I / d)", false, fill_normal};
}

}  // namespace moelab
