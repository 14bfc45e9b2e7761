#include "sim/train/schedule.h"

namespace moelab {

ScheduleKind constant_schedule() {
  return {{"constant", "the learning rate as given", ConstantScheduleOptions{}, ConstantScheduleOptions{}},
          [](const AnyOptions&, std::int64_t, std::int64_t) { return 1.0; }};
}

}  // namespace moelab
