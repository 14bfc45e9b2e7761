#pragma once

/// Overrides that cells would not show, since the sweep or an arm sets the same field after them.

#include <span>
#include <string>
#include <vector>

#include "app/scenario/overrides.h"
#include "app/scenario/sweep.h"

namespace moelab {

struct Arm {
  std::string name;
  std::vector<Override> overrides;
};

/// Throws UserError at the place of an override, be it of an arm or a profile, that the sweep replaces in
/// every cell. An arm or the sweep may well change a part of what it sets.
void check_not_swept(std::span<const Override> overrides, std::span<const SweepAxis> axes);

/// The same for overrides of the command line, of which nothing may be replaced, in no arm: who asks there
/// for a value gets it in every cell.
void check_settings(std::span<const Override> settings, std::span<const Arm> arms,
                    std::span<const SweepAxis> axes);

}  // namespace moelab
