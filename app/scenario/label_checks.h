#pragma once

/// Display names ("labels").

#include <span>

#include "app/json/json.h"

namespace moelab {

/// Every name that "labels" replaces is an arm, a swept path or one of its values ("path=value"), or a
/// metric, in one of the scenario's `variants`, resolved documents: as it stands, by its profiles, as it was
/// asked for. Throws UserError at the label.
void check_labels(std::span<const Json> variants);

}  // namespace moelab
