#pragma once

/// The parts of a configuration that stand over others of it: evaluations and phases.

#include "app/json/json.h"

namespace moelab {

/// {name: its data}, each the data of `document` (a configuration that is not resolved) after the
/// evaluation's own overrides; their rows have the shape of `data`, which the model reads, and tokens of text
/// are its. Throws UserError at the place of an override.
Json resolved_evaluations(const Json& document, const Json& data, Json evaluations);

/// The phases of a resolved `config`, each with the whole of its data, loss, training and evaluations: those
/// of `document` after the phase's own fields. Throws UserError at the place of a field.
Json resolved_phases(const Json& document, const Json& config);

}  // namespace moelab
