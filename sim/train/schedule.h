#pragma once

/// The axis of learning-rate schedules.

#include <cstdint>
#include <vector>

#include "sim/base/one_of.h"

namespace moelab {

struct ScheduleKind : KindEntry {
  /// The factor on the learning rate at `step` of `total` (0-based).
  double (*factor)(const AnyOptions& options, std::int64_t step, std::int64_t total) = nullptr;
};

/// The table: adding a schedule is a new file and a line in schedules.cpp.
struct ScheduleAxis {
  using Entry = ScheduleKind;
  static const std::vector<ScheduleKind>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "schedule";
};
using ScheduleOptions = OneOf<ScheduleAxis>;
void add_schedule_kind(ScheduleKind kind);

/// A chosen schedule, looked up once.
class Schedule {
 public:
  explicit Schedule(const ScheduleOptions& options)
      : options_(options.options()), factor_(options.entry().factor) {}
  double factor(std::int64_t step, std::int64_t total) const { return factor_(options_, step, total); }

 private:
  AnyOptions options_;
  double (*factor_)(const AnyOptions&, std::int64_t, std::int64_t);
};

/// Factor 1.
struct ConstantScheduleOptions {
  void bind(Fields& /*fields*/) {}
};
/// factor^⌊step / every⌋.
struct StepScheduleOptions {
  std::int64_t every = 1;
  double factor = 0.1;
  void bind(Fields& fields);
};
/// (step + 1) / w for the first w = `warmup_steps`, then final + (1 − final) (1 + cos(π (step − w) / (total −
/// w))) / 2.
struct CosineScheduleOptions {
  double final_share = 0.0;
  std::int64_t warmup_steps = 0;
  void bind(Fields& fields);
};

}  // namespace moelab
