#pragma once

/// Runs of a scenario whose sweep searches a crossing: points placed by what is recorded, until none is
/// missing.

#include "app/run/results.h"
#include "app/run/session.h"

namespace moelab {

/// The cells of a scenario that searches a crossing, with what is recorded of them.
ResultTable recorded_table(const Scenario& scenario, const Records& records);

/// Gives the scenario the points that the searches ask for, as far as these records tell; whether it had not
/// all of them before. The points are a function of scenario and records alone, so a run that was killed, or
/// shared by several processes, has those of an undisturbed one. Nothing where the scenario searches none.
bool place_points(Scenario& scenario, const Records& records);

/// run_session, again and again while it makes the searches ask for further points.
SessionOutcome run_and_search(Scenario& scenario, const SessionOptions& options, const CellRunner& runner);

/// The searches of a plan: what its crossings are, {arm, at, state: "crosses" | "above" | "below" | "no
/// value" | "open", estimate, interval, bracket, points, note}; an end of an interval that reaches the end of
/// the range is null. Empty where the plan searches none.
Json crossings_json(const RunResults& results);

/// A table of them for people, and what it is of; empty where the plan searches none.
std::vector<std::vector<std::string>> crossings_table(const RunResults& results);
std::string crossings_caption(const RunResults& results);
/// Both as one text.
std::string crossings_text(const RunResults& results);

}  // namespace moelab
