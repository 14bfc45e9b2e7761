#include "app/scenario/cross_checks.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <system_error>

#include "app/json/options.h"
#include "app/scenario/experiment_reader.h"
#include "sim/base/error.h"
#include "sim/data/file_data.h"

namespace moelab {
namespace {

/// Arrays that would not fit into any memory are refused before one is asked for: 8 GB in double.
void check_size(const Json& data) {
  constexpr std::int64_t kMostNumbers = 1'000'000'000;
  if (!data.contains("dim")) return;
  const std::int64_t width = data.at("dim").get<std::int64_t>() * data.value("tokens", std::int64_t{1});
  for (const char* rows : {"clusters", "train_samples", "test_samples"}) {
    if (!data.contains(rows) || data.at(rows).get<std::int64_t>() <= kMostNumbers / width) continue;
    throw UserError(std::string("data.") + rows,
                    fmt::format("got {} rows of {} numbers, needs at most {} numbers in all",
                                data.at(rows).dump(), width, kMostNumbers));
  }
}

/// Elements of a list name different things.
void check_distinct_names(const Json& config, const std::string& list) {
  std::set<Json> seen;
  for (std::size_t i = 0; i < config.at(list).size(); ++i) {
    const Json& element = config.at(list)[i];
    Json name = element.is_object() ? element.at("kind") : element;
    if (element.is_object() && element.contains("name")) name = Json::array({name, element.at("name")});
    if (!seen.insert(name).second)
      throw UserError(join_path(list, i), "got " + name.dump() + " a second time");
  }
}

/// A file that is read twice counts its samples twice.
void check_distinct_files(const Json& data, const std::string& path) {
  if (!data.contains("paths") || !data.at("paths").is_array()) return;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < data.at("paths").size(); ++i) {
    const std::string file = data.at("paths")[i];
    std::error_code unseen;
    const std::filesystem::path whole = std::filesystem::weakly_canonical(file, unseen);
    if (!seen.insert(unseen ? file : whole.string()).second)
      throw UserError(join_path(path, i),
                      "got '" + file + "' a second time, needs distinct files and folders");
  }
}

/// Phases are told by their names, which evaluations do not have, too, nor names that begin as those of the
/// metrics of a phase do.
void check_phase_names(const Json& config) {
  std::set<std::string> seen;
  for (const auto& [name, data] : config.at("evaluations").items()) seen.insert(name);
  for (std::size_t i = 0; i < config.at("phases").size(); ++i) {
    const std::string name = config.at("phases")[i].at("name");
    const std::string path = join_path(join_path("phases", i), "name");
    check_name(name, path);
    if (name.find('.') != std::string::npos)
      throw UserError(path, "got '" + name + "', needs a name without dots");
    if (!seen.insert(name).second)
      throw UserError(path, "got '" + name + "', which another phase or an evaluation has");
    for (const auto& [evaluation, data] : config.at("evaluations").items()) {
      if (!evaluation.starts_with(name + ".")) continue;
      throw UserError(
          join_path("evaluations", evaluation),
          fmt::format("begins with the name of the phase '{}' and a dot, as metrics of that phase "
                      "do; needs another name",
                      name));
    }
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

void check_config(const Json& config, const ExperimentOptions& experiment) {
  check_size(config.at("data"));
  check_distinct_files(config.at("data"), "data.paths");
  check(experiment);
  const Json& metrics = config.at("metrics");
  for (std::size_t i = 0; i < metrics.size(); ++i)
    check(read_options<MetricOptions>(metrics[i]), experiment, join_path("metrics", i));
  check_phase_names(config);
  check_distinct_names(config, "metrics");
  check_distinct_names(config, "save");
}

void check_separation(const Scenario& scenario) {
  std::set<std::string> drawn;
  const auto draw = [&](const Cell& cell, const Json& given) {
    if (!given.contains("separation")) return;
    Json data = given;
    // Sample counts do not enter the means: one draw serves the whole sweep over them.
    if (data.contains("train_samples")) data["train_samples"] = 1;
    data["test_samples"] = 1;
    if (!drawn.insert(canonical_text(data) + std::to_string(cell.seed)).second) return;
    draw_problem(read_data(data), cell.seeds());
  };
  for (const Cell& cell : scenario.cells) {
    draw(cell, cell.config.at("data"));
    for (const Json& phase : cell.config.at("phases")) draw(cell, phase.at("data"));
  }
}

void check_files(const Scenario& scenario) {
  std::set<std::string> read;
  const auto look_at = [&](const Json& data, const Json& loss) {
    if (data.at("generator") != "file") return;
    const std::string task = loss.at("task");
    if (!read.insert(canonical_text(data) + task).second) return;
    check_file_values(read_data(data), task_loss_kind(task).needs_classes);
  };
  for (const Cell& cell : scenario.cells) {
    if (cell.seed != 0) continue;
    look_at(cell.config.at("data"), cell.config.at("loss"));
    for (const Json& phase : cell.config.at("phases")) look_at(phase.at("data"), phase.at("loss"));
  }
}

}  // namespace moelab
