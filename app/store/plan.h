#pragma once

/// What a run directory is to hold: the plan of a scenario, its text and its id.
///
/// plan.json is {"checksum", "version", "id", "name", "title", "source", "profile", "scenario", "claims",
/// "figures", "arms", "sweep", "metrics", "cells": [{"id", "arm", "seed", "point"}]}, with "added_seeds_to"
/// before the cells where seeds were added, "decided" where that was done until claims were
/// (Scenario::decided), and "crossing" where the sweep searches one (CrossingSearch).

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/stats/result_table.h"
#include "app/scenario/scenario.h"

namespace moelab {

/// The version of the plan's format that this program writes and reads.
constexpr int kPlanVersion = 2;

struct Plan {
  std::string id;
  Json head;                     ///< plan.json without its cells
  std::vector<ResultRow> cells;  ///< all of them `missing`
};

/// A plan that is not as it was written.
class DamagedPlan : public UserError {
 public:
  using UserError::UserError;
};

/// A run directory without a plan.
class MissingPlan : public UserError {
 public:
  using UserError::UserError;
};

/// The number of seeds of the cells.
int seed_count(const Scenario& scenario);
int seed_count(const std::vector<ResultRow>& cells);

/// 12 hexadecimal digits for the scenario's document without its number of seeds and the ids of the cells of
/// seed 0, in which the contents of files and the version of the numerics are: more seeds make no other plan,
/// nor do points that a search has placed between its ends.
/// With `of_its_seeds` the number of seeds is in it, too.
std::string plan_id(const Scenario& scenario, bool of_its_seeds = false);

/// The plan of a scenario by one of its two ids.
Plan plan_of(const Scenario& scenario, std::string id);

/// The scenario of a plan, with the cells that the plan has. Throws InvalidOption where it is refused now,
/// and std::invalid_argument where it has other arms and points.
Scenario scenario_of(const Json& head);

/// The text of its plan.json.
std::string plan_text(const Scenario& scenario, const std::string& id);

/// Reads a plan.json. Throws DamagedPlan where its checksum, its fields or its id do not fit, and UserError
/// where it is of another version of its format or of the scenario's.
Plan read_plan(const std::filesystem::path& file);

/// The dotted paths at which two documents differ.
std::vector<std::string> differing_paths(const Json& left, const Json& right);

}  // namespace moelab
