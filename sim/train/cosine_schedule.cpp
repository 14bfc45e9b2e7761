#include <cmath>
#include <numbers>

#include "sim/train/schedule.h"

namespace moelab {

void CosineScheduleOptions::bind(Fields& fields) {
  fields.add("final", final_share, fraction(), "share of the rate that is left at the end");
}

ScheduleKind cosine_schedule() {
  return {{"cosine", "from the full rate to `final` of it along half a cosine", CosineScheduleOptions{},
           CosineScheduleOptions{.final_share = 0.2}},
          [](const AnyOptions& options, std::int64_t step, std::int64_t total) {
            const double final_share = options.get<CosineScheduleOptions>().final_share;
            const double angle = std::numbers::pi * static_cast<double>(step) / static_cast<double>(total);
            return final_share + (1.0 - final_share) * 0.5 * (1.0 + std::cos(angle));
          }};
}

}  // namespace moelab
