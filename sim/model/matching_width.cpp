#include "sim/model/matching_width.h"

namespace moelab {

void set_matching_width(MlpExpertOptions& network, int input_dim, int output_dim, std::size_t target) {
  if (network.depth == 1) return;  // one matrix from inputs to outputs, whatever the width
  const auto count_at = [&](int width) {
    network.width = width;
    return make_expert_bank<float>(network, {input_dim, output_dim, 1})->parameters_per_expert();
  };
  int low = 1;
  int high = 2;
  while (count_at(high) < target) high *= 2;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (count_at(middle) <= target ? low : high) = middle;
  }
  const std::size_t below = count_at(low);
  const std::size_t above = count_at(high);
  const std::size_t miss_below = below > target ? below - target : target - below;
  const std::size_t miss_above = above > target ? above - target : target - above;
  network.width = miss_above < miss_below ? high : low;
}

}  // namespace moelab
