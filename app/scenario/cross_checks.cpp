#include "app/scenario/cross_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/base/error.h"
#include "sim/data/problem.h"

namespace moelab {
namespace {

void check_gating(const Json& model) {
  const Json& experts = model.at("experts");
  for (const auto& [phase, gating] : model.at("gating").items()) {
    if (!gating.contains("k") || gating.at("k") <= experts) continue;
    throw UserError("model.gating." + phase + ".k", fmt::format("got {}, needs at most model.experts = {}",
                                                                gating.at("k").dump(), experts.dump()));
  }
}

void check_dense(const Json& model) {
  const bool is_dense = model.at("kind") == "dense";
  if (is_dense == model.contains("match")) return;
  throw UserError("model.match", is_dense ? "missing; a dense model needs 'expert' or 'moe' to match"
                                          : "given, but model.kind is not 'dense'");
}

void check_length_of_run(const Json& train) {
  const bool has_steps = train.contains("steps"), has_epochs = train.contains("epochs");
  if (has_steps == has_epochs) {
    throw UserError("train.steps", has_steps ? "train.epochs is given, too; needs exactly one of the two"
                                             : "missing; needs train.steps or train.epochs");
  }
}

void check_weights(const Json& data) {
  if (!data.contains("weights") || !data.contains("clusters")) return;
  const std::size_t weights = data.at("weights").size();
  if (weights == data.at("clusters").get<std::size_t>()) return;
  throw UserError("data.weights", fmt::format("got {} weights, needs one for each of data.clusters = {}",
                                              weights, data.at("clusters").dump()));
}

/// Elements of a list name different things.
void check_distinct_names(const Json& config, const std::string& list) {
  std::set<Json> seen;
  for (std::size_t i = 0; i < config.at(list).size(); ++i) {
    const Json& element = config.at(list)[i];
    const Json name = element.is_object() ? element.at("kind") : element;
    if (!seen.insert(name).second)
      throw UserError(join_path(list, i), "got " + name.dump() + " a second time");
  }
}

}  // namespace

void check_name(const std::string& name, const std::string& path) {
  constexpr std::size_t kLongest = 100;  // a file name may have 255 bytes, and endings are added
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  const bool is_allowed = !name.empty() && name.size() <= kLongest && name.front() != '.' &&
                          name.front() != '-' && name.find_first_not_of(kAllowed) == std::string::npos;
  if (is_allowed) return;
  throw UserError(path,
                  fmt::format("got {}, needs a name of at most {} letters, digits, . _ - that begins with a "
                              "letter, a digit or _",
                              abbreviated(name), kLongest));
}

void check_config(const Json& config) {
  check_gating(config.at("model"));
  check_dense(config.at("model"));
  check_length_of_run(config.at("train"));
  check_weights(config.at("data"));
  check_distinct_names(config, "metrics");
  check_distinct_names(config, "save");
}

void check_separation(const Scenario& scenario) {
  std::set<std::string> drawn;
  for (const Cell& cell : scenario.cells) {
    Json data = cell.config.at("data");
    if (!data.contains("separation")) continue;
    // Sample counts do not enter the means: one draw serves the whole sweep over them.
    data["train_samples"] = data["test_samples"] = 1;
    if (!drawn.insert(canonical_text(data) + std::to_string(cell.seed)).second) continue;
    draw_problem(data, {cell.config.at("seed").at("root"), cell.config.at("seed").at("index")});
  }
}

}  // namespace moelab
