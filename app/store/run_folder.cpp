#include "app/store/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <iostream>
#include <set>
#include <utility>

#include "app/run/search.h"
#include "app/store/durable_file.h"
#include "app/store/provenance.h"
#include "sim/base/error.h"
#include "sim/base/folder.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

/// A run creates one of these folders before its plan can be lost.
constexpr std::array kStoreFolders = {"journal", "sessions", "cells", "plans"};
constexpr std::array kOwnFiles = {"plan.json", "provenance.json", "claims.json", "report.html",
                                  "figures",   "tune.json",       "leases"};

fs::path plan_file(const fs::path& directory, const std::string& id) {
  return directory / "plans" / id / "plan.json";
}

bool holds_store(const fs::path& directory) {
  return std::any_of(kStoreFolders.begin(), kStoreFolders.end(),
                     [&](const char* folder) { return fs::is_directory(directory / folder); });
}

/// Whether a run writes files with this name.
bool is_own_name(const std::string& name) {
  const auto is_name = [&](const char* own) { return name == own; };
  return is_temporary_name(name) || name.starts_with("slurm") ||
         std::any_of(kStoreFolders.begin(), kStoreFolders.end(), is_name) ||
         std::any_of(kOwnFiles.begin(), kOwnFiles.end(), is_name);
}

/// Reads the plan in `file`. Returns nothing if there is none. If the plan is damaged, fills `damage`.
std::optional<Plan> plan_at(const fs::path& file, std::optional<DamagedPlan>& damage) {
  if (!fs::exists(file)) return std::nullopt;
  try {
    return read_plan(file);
  } catch (const DamagedPlan& error) {
    if (!damage) damage = error;
    return std::nullopt;
  }
}

/// Rebuilds the plan with this id from the scenario that a session stored.
std::optional<Plan> plan_from_sessions(const fs::path& directory, const std::string& id) {
  const std::vector<Json> sessions = read_sessions(directory);
  for (auto session = sessions.rbegin(); session != sessions.rend(); ++session) {
    if (session->value("plan", "") != id) continue;
    try {
      Scenario scenario = expand_scenario(session->at("scenario"), "", {});
      scenario.profile = session->value("profile", "");
      scenario.added_seeds_to = session->value("added_seeds_to", 0);
      keep_decided(scenario, DecidedSeeds::of_plan(session->value("decided", Json())));
      if (scenario.crossing) place_points(scenario, read_records(directory, RecordPart::metrics));
      if (plan_id(scenario) == id || plan_id(scenario, true) == id) return plan_of(scenario, id);
    } catch (const InvalidOption&) {
      // The data files that the scenario reads may be missing.
    } catch (const std::invalid_argument&) {
    } catch (const Json::exception&) {
    }
  }
  return std::nullopt;
}

/// The id of the newest session's plan, or of the only plan. Empty if neither is known.
std::string last_plan(const fs::path& directory) {
  const std::vector<Json> sessions = read_sessions(directory);
  if (!sessions.empty()) return sessions.back().value("plan", "");
  const std::vector<std::string> ids = plan_ids(directory);
  return ids.empty() ? "" : ids.front();
}

void check_name(const fs::path& directory, const Plan& plan, const std::string& scenario_name) {
  if (plan.head.name == scenario_name) return;
  throw UserError("--out",
                  fmt::format("'{}' belongs to the scenario {}, not to \"{}\"; choose another folder",
                              directory.string(), Json(plan.head.name).dump(), scenario_name));
}

std::string no_plan_text(const fs::path& directory) {
  std::error_code unseen;
  return fs::exists(directory, unseen)
             ? "has no plan.json, so it is not a run folder; moelab run FILE makes one"
             : "no such folder; runs are in runs/<name>";
}

std::string whole_id(const RunAddress& address, std::vector<std::string> ids) {
  const std::string shown = shown_plan(address.directory());
  if (!shown.empty() && std::find(ids.begin(), ids.end(), shown) == ids.end()) ids.push_back(shown);
  std::string found;
  for (const std::string& id : ids) {
    if (!id.starts_with(address.plan())) continue;
    if (!found.empty()) {
      throw UserError("--plan", fmt::format("'{}' begins more than one plan of {}: {}, {}", address.plan(),
                                            address.directory().string(), found, id));
    }
    found = id;
  }
  if (!found.empty()) return found;
  if (ids.empty()) throw UserError(address.directory().string(), no_plan_text(address.directory()));
  throw UserError("--plan", unknown_name("plan", address.plan(), ids));
}

/// Moves the claims, the report and the figures of a plan to another folder, in every format. What cannot be
/// moved stays, because it can be made again. So do files that the plan does not name.
void move_outputs(const Plan& plan, const fs::path& from, const fs::path& to) {
  std::vector<fs::path> files = {"claims.json", "report.html"};
  const auto add_named = [&](const fs::path& folder, const std::set<std::string>& ids) {
    std::error_code left;
    for (fs::directory_iterator entry(from / folder, left), end; !left && entry != end; entry.increment(left))
      if (ids.contains(entry->path().stem().string())) files.push_back(folder / entry->path().filename());
  };
  std::set<std::string> figures = {"claims"}, claims;  // figures/claims.svg is the forest of all claims
  for (const FigureOptions& figure : plan.head.figures) figures.insert(common_of(figure).id);
  for (const Claim& claim : plan.head.claims) claims.insert(claim.id);
  add_named("figures", figures);
  add_named(fs::path("figures") / "claims", claims);
  for (const fs::path& file : files) {
    std::error_code left;
    if (!fs::is_regular_file(fs::symlink_status(from / file, left))) continue;
    fs::create_directories((to / file).parent_path(), left);
    if (!left) fs::rename(from / file, to / file, left);
  }
}

/// Whether a growing plan has all cells of the scenario and more. Then another process has recorded cells
/// that this process has not read yet. A decided plan always counts as further than a fixed one. Otherwise
/// the fixed plan would hide that seeds were added after looking at results.
bool is_further(const Plan& plan, const Scenario& scenario) {
  const PlanHead& known = plan.head;
  if (known.decided.has_value() != scenario.decided.has_value()) return known.decided.has_value();
  if (known.decided) {
    const std::vector<int>&theirs = known.decided->seeds, &own = scenario.decided->seeds;
    return theirs != own &&
           std::equal(theirs.begin(), theirs.end(), own.begin(), own.end(), std::greater_equal<>());
  }
  if (!known.crossing || !scenario.crossing || seed_count(plan.cells) != seed_count(scenario)) return false;
  const std::vector<std::vector<Json>>&theirs = known.crossing->placed, &own = scenario.crossing->placed;
  const auto holds_all = [](const std::vector<Json>& more, const std::vector<Json>& fewer) {
    return std::all_of(fewer.begin(), fewer.end(), [&](const Json& value) {
      return std::find(more.begin(), more.end(), value) != more.end();
    });
  };
  return theirs != own && std::equal(theirs.begin(), theirs.end(), own.begin(), own.end(), holds_all);
}

}  // namespace

RunAddress::RunAddress(fs::path given, std::string plan)
    : directory_(std::move(given)), plan_(std::move(plan)) {
  std::error_code unseen;
  if (fs::exists(directory_, unseen)) return;
  const std::string text = directory_.string();
  const std::size_t at = text.rfind('@');
  if (at == std::string::npos || at == 0 || at + 1 == text.size() || !fs::exists(text.substr(0, at), unseen))
    return;
  directory_ = text.substr(0, at);
  const std::string own = text.substr(at + 1);
  if (!own.starts_with(plan_) && !plan_.starts_with(own))
    throw UserError("--plan",
                    fmt::format("got '{}', which does not fit '{}'; needs one of them", plan_, text));
  if (plan_.size() < own.size()) plan_ = own;
}

void check_run_directory(const fs::path& directory, const std::string& scenario_name) {
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  if (status.type() == fs::file_type::not_found) return;
  if (error) throw EnvironmentError(fmt::format("{}: {}", directory.string(), error.message()));
  if (!fs::is_directory(status)) {
    throw UserError("--out", fmt::format("'{}' is not a folder", directory.string()));
  }
  if (holds_store(directory) || fs::exists(directory / "plan.json")) {
    try {
      return check_name(directory, find_plan(directory).plan, scenario_name);
    } catch (const DamagedPlan&) {
      if (!holds_store(directory)) throw;  // the plan.json belongs to another program
    } catch (const MissingPlan&) {
    }
  }
  std::string own, strange;
  for (const fs::path& entry : entries_of(directory)) {
    const std::string name = entry.filename().string();
    if (!is_temporary_name(name)) (is_own_name(name) ? own : strange) = name;
  }
  // Another process may be creating the run. It creates its store folder before any other file.
  if (strange.empty() && (own.empty() || holds_store(directory))) return;
  throw UserError("--out",
                  fmt::format("'{}' holds files ('{}') but no plan.json, so it is not a run folder; choose "
                              "another folder or an empty one",
                              directory.string(), strange.empty() ? own : strange));
}

std::vector<std::string> plan_ids(const fs::path& directory) {
  std::vector<std::string> ids;
  for (const fs::path& folder : entries_of(directory / "plans")) {
    if (is_present(folder / "plan.json")) ids.push_back(folder.filename().string());
  }
  return ids;
}

std::string shown_plan(const fs::path& directory) {
  const fs::path file = directory / "plan.json";
  if (!fs::is_regular_file(file)) return "";
  std::ifstream stream = opened_lines(file);
  const std::string_view before = " \"id\": \"";
  std::string line;
  for (int number = 0; number < 4; ++number) std::getline(stream, line);
  const std::size_t end = line.rfind('"');
  if (!stream || !line.starts_with(before) || end <= before.size()) return "";
  return line.substr(before.size(), end - before.size());
}

std::optional<Plan> plan_with_id(const fs::path& directory, const std::string& id) {
  std::optional<DamagedPlan> damage;
  std::optional<Plan> plan = plan_at(plan_file(directory, id), damage);
  if (!plan && shown_plan(directory) == id) plan = plan_at(directory / "plan.json", damage);
  return plan && plan->id == id ? plan : std::nullopt;
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::cerr << "moelab: note: " << note << '\n';
}

FoundPlan find_plan(const RunAddress& address) {
  const fs::path& directory = address.directory();
  const std::vector<std::string> ids = plan_ids(directory);
  const bool is_named = !address.plan().empty();
  std::string id = is_named ? whole_id(address, ids) : "";
  const fs::path file = is_named ? plan_file(directory, id) : directory / "plan.json";
  std::optional<DamagedPlan> damage;
  std::optional<Plan> plan = plan_at(file, damage);
  FoundPlan found;
  if (!plan) {
    if (!is_named) id = last_plan(directory);
    plan = plan_with_id(directory, id);
    std::string source = "its copy";
    if (!plan) {
      plan = plan_from_sessions(directory, id);
      source = "the scenario in sessions/";
    }
    if (!plan) {
      if (damage) throw *damage;
      throw MissingPlan(directory.string(), no_plan_text(directory));
    }
    found.notes.push_back(fmt::format("{} is {}; read from {}, and the next run writes it anew",
                                      file.string(), damage ? "damaged" : "missing", source));
  }
  found.plan = std::move(*plan);
  if (is_named) found.outputs = outputs_of(directory, found.plan.id);
  if (ids.size() > 1) {
    const std::string& profile = found.plan.head.profile;
    found.notes.push_back(fmt::format("plan {}{}{} of the {} in {}{}", found.plan.id,
                                      profile.empty() ? "" : " (profile " + profile + ")",
                                      found.outputs.empty() ? ", the last run" : "", ids.size(),
                                      directory.string(), is_named ? "" : "; --plan asks about another"));
  }
  return found;
}

std::string plan_id_in(const fs::path& directory, const Scenario& scenario) {
  std::string id = plan_id(scenario);
  const std::optional<Plan> known = plan_with_id(directory, id);
  const bool has_more = known && seed_count(known->cells) > seed_count(scenario);
  const bool is_begun = known && !known->head.decided && scenario.decided;
  return has_more && !is_begun && !is_further(*known, scenario) ? plan_id(scenario, true) : id;
}

fs::path outputs_of(const fs::path& directory, const std::string& id) {
  return shown_plan(directory) == id ? fs::path() : fs::path("plans") / id;
}

KeptPlan keep_plan(const fs::path& directory, const Scenario& scenario, bool shows) {
  make_folder(directory);
  const FolderLock lock(directory);
  const KeptPlan kept = {plan_id_in(directory, scenario), shown_plan(directory)};
  std::optional<Plan> before;
  if (!kept.before.empty() && kept.before != kept.id) before = plan_with_id(directory, kept.before);
  if (before) check_name(directory, *before, scenario.name);  // another process may have just written it
  std::optional<DamagedPlan> damage;
  const std::optional<Plan> known = plan_at(plan_file(directory, kept.id), damage);
  const bool is_kept = known && is_further(*known, scenario);
  const std::string text = is_kept ? read_bytes(plan_file(directory, kept.id)) : plan_text(scenario, kept.id);
  update_file(plan_file(directory, kept.id), text);
  if (!shows && !kept.before.empty()) return kept;
  if (before) {
    move_outputs(*before, directory, directory / "plans" / kept.before);
    move_outputs(plan_of(scenario, kept.id), directory / "plans" / kept.id, directory);
  }
  update_file(directory / "plan.json", text);
  return kept;
}

}  // namespace moelab
