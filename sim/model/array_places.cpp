#include "sim/model/array_places.h"

#include <numeric>

#include "sim/model/model.h"

namespace moelab {

ArrayPlaces array_places(const Json& spec, const Layout& layout) {
  // Each array is read through a model whose parameters are their own places.
  Model<double> numbered(spec, layout, 0.0);
  std::iota(numbered.parameters().begin(), numbered.parameters().end(), 0.0);
  ArrayPlaces places;
  for (const NamedArray<double>& array : numbered.arrays()) {
    places.emplace_back(array.name, std::vector<std::size_t>(array.values.begin(), array.values.end()));
  }
  return places;
}

}  // namespace moelab
