#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <iterator>
#include <set>
#include <system_error>
#include <thread>

#include "app/commands/verbs.h"
#include "app/run/durable_file.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr int kMaximumThreads = 1024;

/// Whether what lies at `path` in a run directory is the run itself, not an output of a verb.
bool is_of_store(const std::filesystem::path& path) {
  const std::string first = path.begin()->string();
  const auto is = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), first) != names.end();
  };
  if (is({"journal", "sessions", "cells", "imported"})) return true;
  if (std::next(path.begin()) == path.end()) return is({"plan.json", "provenance.json", "plans"});
  // plans/<id> also has the outputs of plans that are not the last run.
  if (first != "plans") return false;
  const std::filesystem::path below = path.lexically_relative(first);
  return std::next(below.begin()) == below.end() || is_of_store(below.lexically_relative(*below.begin()));
}

}  // namespace

int thread_count(const Arguments& arguments) {
  if (arguments.threads > 0) return arguments.threads;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

RunAddress run_address(const Arguments& arguments) {
  return {arguments.directory, arguments.plan};
}

void check_written_file(const std::filesystem::path& file, const std::string& option) {
  check_output_file(file, option);
  std::error_code unseen;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(file, unseen);
  for (std::filesystem::path above = whole.parent_path(); above.has_relative_path();
       above = above.parent_path()) {
    const bool is_run = std::filesystem::is_directory(above / "plans", unseen) ||
                        std::filesystem::is_directory(above / "journal", unseen);
    if (!is_run || !is_of_store(whole.lexically_relative(above))) continue;
    throw UserError(option,
                    fmt::format("'{}' belongs to the store of the run directory '{}', needs another file",
                                file.string(), above.string()));
  }
}

void check_measured(const std::string& metric, std::span<const RunResults> runs) {
  std::set<std::string> measured;
  for (const RunResults& run : runs) {
    for (const Json& name : run.plan.value("metrics", Json::array()))
      measured.insert(name.get<std::string>());
    for (const ResultRow& row : run.table.rows)
      for (const auto& [name, value] : row.metrics) measured.insert(name);
  }
  if (measured.empty() || measured.contains(metric)) return;
  throw UserError("--metric",
                  unknown_name("metric of these cells", metric, {measured.begin(), measured.end()}));
}

std::vector<std::string> option_names(const Verb& verb) {
  Arguments unused;
  std::vector<std::string> names = {"--help"};
  for (const Option& option : verb.call(unused).options) {
    if (option.name.starts_with("--")) names.push_back(option.name);
  }
  return names;
}

std::vector<Option> scenario_options(Arguments& arguments) {
  return {
      {"FILE", &arguments.file, "scenario file (JSON)", true, nullptr, offer_scenario_files},
      {"--profile", &arguments.profile, "named set of overrides in the scenario, such as quick", false,
       nullptr, offer_profiles},
      {"--set", &arguments.settings, "path=value: override one field (repeatable)", false, nullptr,
       offer_settings},
  };
}

std::vector<Option> run_directory_options(Arguments& arguments) {
  return {
      {"--out", &arguments.out, "run directory (default: runs/<name>[-<profile>])", false, nullptr,
       offer_folders},
      {"--seeds", &arguments.added_seeds,
       "FIRST..LAST: add seeds, such as 5..9 to 0 … 4; the run directory keeps them"},
  };
}

std::vector<Option> directory_options(Arguments& arguments) {
  return {{"DIR", &arguments.directory, "run directory, or DIR@ID for one of its plans", true, nullptr,
           offer_run_folders},
          plan_option(arguments)};
}

Option plan_option(Arguments& arguments) {
  return {"--plan",
          &arguments.plan,
          "id of one of the directory's plans, or its beginning (default: the plan last run)",
          false,
          nullptr,
          offer_plans};
}

Option threads_option(Arguments& arguments, const std::string& help) {
  return {"--threads", &arguments.threads, help, false, whole_number(1, kMaximumThreads)};
}

Option leases_option(Arguments& arguments) {
  return {"--leases", &arguments.leases,
          "take only cells that no other process on the directory is at, and wait for theirs: for any number "
          "of processes with this option"};
}

Option json_option(Arguments& arguments) {
  return {"--json", &arguments.json, "answer (and report errors) in JSON on stdout"};
}

std::vector<Option> joined(std::vector<Option> first, const std::vector<std::vector<Option>>& others) {
  for (const std::vector<Option>& options : others) first.insert(first.end(), options.begin(), options.end());
  return first;
}

// CLI11's own ranges neither speak as the rest of the program does nor refuse "nan".
std::function<std::string(const std::string&)> whole_number(int minimum, int maximum) {
  return [=](const std::string& text) {
    int number = 0;
    const char* const end = text.data() + text.size();
    const auto [after, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && after == end && number >= minimum && number <= maximum) return std::string();
    return fmt::format("got '{}', needs a whole number of {} to {}", text, minimum, maximum);
  };
}

std::string number_problem(const std::string& text, const std::string& what, double maximum) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && after == end && number > 0 && number <= maximum) return {};
  return fmt::format("got '{}', needs {}: a number above 0 and at most {}", text, what, maximum);
}

std::string NameCheck::operator()(const std::string& text) const {
  if (std::find(names.begin(), names.end(), text) != names.end()) return {};
  return unknown_name(what, text, names);
}

std::function<std::string(const std::string&)> one_of(const std::string& what,
                                                      std::vector<std::string> names) {
  return NameCheck{what, std::move(names)};
}

}  // namespace moelab
