#include <cmath>

#include "app/commands/array_analysis.h"

namespace moelab {

void skip_not_finite(ArrayAnalysis& analysis) {
  Json finite = Json::object();
  for (const auto& [name, value] : analysis.metrics.items()) {
    if (std::isfinite(value.get<double>())) {
      finite[name] = value;
    } else {
      analysis.skipped[name] = "not finite: the numbers of its arrays are too large";
      analysis.intervals.erase(name);
    }
  }
  analysis.metrics = std::move(finite);
}

}  // namespace moelab
