#include <cmath>

#include "sim/train/schedule.h"

namespace moelab {

void StepScheduleOptions::bind(Fields& fields) {
  fields.required().add("every", every, between(1, 1e12), "steps");
  fields.add("factor", factor, positive(), "factor");
}

ScheduleKind step_schedule() {
  return {{"step", "multiplied by `factor` every `every` steps", StepScheduleOptions{},
           StepScheduleOptions{.every = 10, .factor = 0.5}},
          [](const AnyOptions& options, std::int64_t step, std::int64_t) {
            const StepScheduleOptions& own = options.get<StepScheduleOptions>();
            const std::int64_t falls = step / own.every;
            return std::pow(own.factor, static_cast<double>(falls));
          }};
}

}  // namespace moelab
