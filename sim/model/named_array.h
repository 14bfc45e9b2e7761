#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace moelab {

/// A named array of parameters, padding removed, for saving.
template <class Real>
struct NamedArray {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<Real> values;
};

}  // namespace moelab
