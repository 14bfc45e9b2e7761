#include "sim/data/token_masks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace moelab {

template <class Real>
void mask_tokens(const TokenMasks& masks, Engine& engine, int samples, int tokens, Real* x, Real* y) {
  const int masked = std::max(1, static_cast<int>(std::lround(masks.share * tokens)));
  std::vector<std::size_t> places(static_cast<std::size_t>(tokens));
  for (int sample = 0; sample < samples; ++sample, x += tokens, y += tokens) {
    std::fill_n(y, tokens, static_cast<Real>(kNoTarget));
    std::iota(places.begin(), places.end(), std::size_t{0});
    for (int i = 0; i < masked; ++i) {
      const int other = i + draw_index(engine, tokens - i);
      std::swap(places[static_cast<std::size_t>(i)], places[static_cast<std::size_t>(other)]);
      const std::size_t place = places[static_cast<std::size_t>(i)];
      y[place] = std::exchange(x[place], static_cast<Real>(masks.mask));
    }
  }
}

void mask_tokens(const TokenMasks& masks, const Seeds& seeds, Purpose set, int tokens, Dataset& data) {
  const std::uint64_t purpose = static_cast<std::uint64_t>(set);
  Seeds own = seeds;
  if ((seeds.shared >> purpose & 1) != 0) own.share(Purpose::masks);
  // Training has the streams from 0 on.
  Engine engine = own.stream(Purpose::masks, std::numeric_limits<std::uint64_t>::max() - purpose);
  mask_tokens(masks, engine, static_cast<int>(data.x.rows()), tokens, data.x.data(), data.y.data());
}

template void mask_tokens(const TokenMasks&, Engine&, int, int, float*, float*);
template void mask_tokens(const TokenMasks&, Engine&, int, int, double*, double*);

}  // namespace moelab
