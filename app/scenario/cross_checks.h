#pragma once

/// Checks that look at more than one field, after every field has been checked by its shape.

#include <string>

#include "app/scenario/scenario.h"
#include "sim/train/experiment.h"

namespace moelab {

/// A name that becomes a file or folder: letters, digits, . _ -, at most 100 of them, not led by a dot or
/// dash.
void check_name(const std::string& name, const std::string& path);

/// One resolved configuration, and what was read of it: no array beyond all memory, options that go together
/// (see check() of ExperimentOptions), metrics that can be taken, nothing listed twice. Throws InvalidOption
/// at the path in the configuration.
void check_config(const Json& config, const ExperimentOptions& experiment);

/// Each entry of "convergence" looks at a metric that the configuration, whose evaluations are resolved,
/// records, and has a name that is one.
void check_convergence(const Json& config);

/// "train.until", of a phase too, looks at a metric that the configuration, whose evaluations are resolved,
/// records.
void check_until(const Json& config);

/// A searched crossing: the arms exist and measure the metric, which has a mean and may lie on either side of
/// the level.
void check_crossing(const Scenario& scenario);

/// The claims of an expanded scenario: arms, metrics, sweep points and steps exist and are measured.
void check_claims(const Scenario& scenario);

/// The figures: x, series and `where` are swept and single out one value per seed; metrics and arms exist.
void check_figures(const Scenario& scenario);

/// Draws the means of every cell that requires a separation. Throws InvalidOption at "data.separation" where
/// no place is found, before anything runs.
void check_separation(const Scenario& scenario);

/// Reads the rows that cells take from the user's files. Throws UserError for entries that are not finite.
void check_files(const Scenario& scenario);

}  // namespace moelab
