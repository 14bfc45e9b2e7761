#include "sim/train/schedule.h"

namespace moelab {

// Adding a schedule is a new file that defines <name>_schedule() and a line here.
// clang-format off
#define MOELAB_SCHEDULES(entry) \
  entry(constant)               \
  entry(step)                   \
  entry(cosine)
// clang-format on

#define MOELAB_DECLARE(name) ScheduleKind name##_schedule();
MOELAB_SCHEDULES(MOELAB_DECLARE)
#undef MOELAB_DECLARE

namespace {

std::vector<ScheduleKind>& schedules() {
#define MOELAB_ENTRY(name) name##_schedule(),
  static std::vector<ScheduleKind> all = {MOELAB_SCHEDULES(MOELAB_ENTRY)};
#undef MOELAB_ENTRY
  return all;
}

}  // namespace

const std::vector<ScheduleKind>& ScheduleAxis::table() {
  return schedules();
}

void add_schedule_kind(ScheduleKind kind) {
  schedules().push_back(std::move(kind));
}

}  // namespace moelab
