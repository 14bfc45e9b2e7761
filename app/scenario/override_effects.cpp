#include "app/scenario/override_effects.h"

#include <fmt/format.h>

#include "sim/base/error.h"

namespace moelab {
namespace {

/// Refuses a setting of which `later`, set after it in every cell or in those `within` an arm, leaves nothing
/// or only a part. `who` sets it, and `advice` is what to write instead.
void check_setting(const Override& setting, const Override& later, const std::string& within,
                   const std::string& who, const std::string& advice) {
  const bool is_whole = is_replaced(setting.path, later.path);
  if (!is_whole && !is_within(later.path, setting.path)) return;
  throw UserError(setting.place,
                  fmt::format("is {}without effect{}: {} replaces {}; {}", is_whole ? "" : "partly ", within,
                              who, is_whole ? "it" : "a part of it", advice));
}

}  // namespace

void check_not_swept(std::span<const Override> overrides, std::span<const SweepAxis> axes) {
  for (const SweepAxis& axis : axes) {
    for (const std::string& path : axis.paths) {
      for (const Override& change : overrides) {
        if (!is_replaced(change.path, path)) continue;
        throw UserError(change.place, "is without effect: the sweep over '" + path + "' replaces it");
      }
    }
  }
}

void check_settings(std::span<const Override> settings, std::span<const Arm> arms,
                    std::span<const SweepAxis> axes) {
  for (const Override& setting : settings) {
    for (const SweepAxis& axis : axes) {
      for (const Override& swept : axis.steps.front()) {
        check_setting(setting, swept, "", fmt::format("the sweep over '{}'", swept.path),
                      fmt::format("set {}", swept.place));
      }
    }
    for (const Arm& arm : arms) {
      for (const Override& change : arm.overrides) {
        check_setting(setting, change, fmt::format(" in the arm '{}'", arm.name),
                      fmt::format("its '{}'", change.path),
                      fmt::format("set arms.<arm>.{} for the arms that are meant", setting.path));
      }
    }
  }
}

}  // namespace moelab
