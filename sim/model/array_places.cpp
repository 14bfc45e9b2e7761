#include "sim/model/array_places.h"

namespace moelab {

template <class Real>
ArrayPlaces array_places(const Network<Real>& network) {
  // Arrays are read through parameters that hold their own places: two digits, since a float counts to 2^24.
  constexpr std::size_t kDigit = std::size_t{1} << 20;
  AlignedVector<Real> low(network.parameter_size()), high(network.parameter_size());
  for (std::size_t i = 0; i < low.size(); ++i) {
    const std::size_t digit = i / kDigit;
    low[i] = static_cast<Real>(i % kDigit);
    high[i] = static_cast<Real>(digit);
  }
  ArrayPlaces places;
  const std::vector<NamedArray<Real>> of_high = network.arrays(high);
  for (const NamedArray<Real>& array : network.arrays(low)) {
    std::vector<std::size_t> own;
    for (std::size_t i = 0; i < array.values.size(); ++i) {
      own.push_back(static_cast<std::size_t>(of_high[places.size()].values[i]) * kDigit +
                    static_cast<std::size_t>(array.values[i]));
    }
    places.emplace_back(array.name, std::move(own));
  }
  return places;
}

template ArrayPlaces array_places(const Network<float>&);
template ArrayPlaces array_places(const Network<double>&);

}  // namespace moelab
