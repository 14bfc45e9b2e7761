#pragma once

/// Kernels at every vector level of this machine against exact results.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/kernels/kernels.h"
#include "sim/base/random.h"

namespace moelab::kernels {

template <class T>
constexpr double kEpsilon = static_cast<double>(std::numeric_limits<T>::epsilon());

/// Restores the level that the test found.
class LevelGuard {
 public:
  ~LevelGuard() { limit_vector_level(found_); }

 private:
  std::string found_ = vector_level_name();
};

/// The levels of this machine, lowest first; says so when some cannot be tried.
inline const std::vector<std::string>& levels() {
  static const std::vector<std::string> available = [] {
    const LevelGuard guard;
    std::vector<std::string> names;
    for (const std::string& name : vector_level_names()) {
      limit_vector_level(name);
      if (vector_level_name() == name) {
        names.push_back(name);
      } else {
        MESSAGE("this processor has no " << name << ": that level is not tested here");
      }
    }
    return names;
  }();
  return available;
}

template <class T>
AlignedVector<T> normal_values(Engine& engine, std::size_t count) {
  AlignedVector<T> values(count);
  for (T& value : values) value = static_cast<T>(draw_normal(engine));
  return values;
}

template <class T>
bool same_bytes(const AlignedVector<T>& left, const AlignedVector<T>& right) {
  return left.size() == right.size() && std::memcmp(left.data(), right.data(), left.size() * sizeof(T)) == 0;
}

/// The largest |value − exact| / bound; a NaN counts as infinite.
template <class T>
double worst_error(const AlignedVector<T>& values, const std::vector<double>& exact,
                   const std::vector<double>& bound) {
  double worst = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double error = std::abs(static_cast<double>(values[i]) - exact[i]);
    if (!(error <= bound[i])) worst = std::max(worst, bound[i] > 0 ? error / bound[i] : INFINITY);
    if (std::isnan(error)) worst = INFINITY;
  }
  return worst;
}

/// Runs a kernel at every level: within the bound of the exact result at each, and the levels with fused
/// multiply-add equal to the last bit.
template <class T>
void check_levels(const std::string& kernel, const std::function<AlignedVector<T>()>& run,
                  const std::vector<double>& exact, const std::vector<double>& bound) {
  const LevelGuard guard;
  AlignedVector<T> fused;
  for (const std::string& level : levels()) {
    CAPTURE(kernel);
    CAPTURE(level);
    limit_vector_level(level);
    const AlignedVector<T> values = run();
    CHECK(worst_error(values, exact, bound) <= 1.0);
    if (level == "sse") continue;
    if (!fused.empty()) CHECK(same_bytes(values, fused));
    fused = values;
  }
}

}  // namespace moelab::kernels
