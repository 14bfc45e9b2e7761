#include <cmath>
#include <numbers>

#include "sim/train/schedule.h"

namespace moelab {

void CosineScheduleOptions::bind(Fields& fields) {
  fields.add("final", final_share, fraction(), "share of the rate that is left at the end");
  fields.add("warmup_steps", warmup_steps, between(0, 1e12),
             "steps in which the rate grows from near 0, in a line");
}

ScheduleKind cosine_schedule() {
  return {
      {"cosine", "from the full rate, after a warm-up if there is one, to `final` of it along half a cosine",
       CosineScheduleOptions{}, CosineScheduleOptions{.final_share = 0.2}},
      [](const AnyOptions& options, std::int64_t step, std::int64_t total) {
        const auto& [final_share, warmup] = options.get<CosineScheduleOptions>();
        if (step < warmup) return static_cast<double>(step + 1) / static_cast<double>(warmup);
        const double angle =
            std::numbers::pi * static_cast<double>(step - warmup) / static_cast<double>(total - warmup);
        return final_share + (1.0 - final_share) * 0.5 * (1.0 + std::cos(angle));
      }};
}

}  // namespace moelab
