#pragma once

/// The plan of a run directory: the scenario, its planned cells and an id.
///
/// plan.json:
///
///   {"checksum", "version", "id", "name", "title", "source", "profile", "scenario", "claims", "figures",
///    "arms", "sweep", "metrics", "cells": [{"id", "arm", "seed", "point"}]}
///
/// A cell has "untaught": true if its router learns, but no gradient of the task reaches its scores.
///
/// Optional fields before "cells":
/// - "added_seeds_to": set if seeds were added.
/// - "fixed": set if expressions use paths with the same number in every cell.
/// - "decided": set if seeds were added until the claims were decided (DecidedSeeds).
/// - "crossing": set if the sweep searches a crossing (CrossingSearch).

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "analysis/stats/result_table.h"
#include "app/scenario/scenario.h"

namespace moelab {

/// The version of the plan's format. The program writes and reads only this version.
constexpr int kPlanVersion = 2;

struct Plan {
  std::string id;
  PlanHead head;
  std::vector<std::string> metrics;     ///< a run has columns for them even if no cell has a value
  std::map<std::string, double> fixed;  ///< fixed_numbers() of the scenario
  std::vector<ResultRow> cells = {};    ///< all cells, all `missing`
};

/// Returns plan.json without its cells.
Json to_json(const Plan& plan);

/// Thrown for a plan whose file is damaged.
class DamagedPlan : public UserError {
 public:
  using UserError::UserError;
};

/// Thrown for a run directory without a plan.
class MissingPlan : public UserError {
 public:
  using UserError::UserError;
};

/// Returns the number of seeds.
int seed_count(const Scenario& scenario);
int seed_count(const std::vector<ResultRow>& cells);

/// Returns the plan's id, 12 hexadecimal digits.
///
/// The id is a hash of the scenario's document without its number of seeds, and of the cell ids of seed 0.
/// Cell ids cover the contents of files and the version of the numerics. Adding seeds keeps the id. Points
/// that a search places between the ends of its range keep it too. With `of_its_seeds`, the hash also covers
/// the number of seeds.
std::string plan_id(const Scenario& scenario, bool of_its_seeds = false);

/// Returns the plan of a scenario. `id` is one of its two ids (see plan_id).
Plan plan_of(const Scenario& scenario, std::string id);

/// Returns the scenario of a plan, with the plan's cells. Throws InvalidOption if the program refuses the
/// scenario now. Throws std::invalid_argument if the scenario has other arms or points.
Scenario scenario_of(const PlanHead& head);

/// Returns the text of the plan's plan.json.
std::string plan_text(const Scenario& scenario, const std::string& id);

/// Reads a plan.json. Throws DamagedPlan if the checksum, the fields or the id do not match. Throws UserError
/// if the plan's or the scenario's format has another version.
Plan read_plan(const std::filesystem::path& file);

/// Returns the dotted paths at which two documents differ.
std::vector<std::string> differing_paths(const Json& left, const Json& right);

}  // namespace moelab
