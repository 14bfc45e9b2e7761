#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <thread>

#include "app/commands/verbs.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr int kMaximumThreads = 1024;

}  // namespace

int thread_count(const Arguments& arguments) {
  if (arguments.threads > 0) return arguments.threads;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

RunAddress run_address(const Arguments& arguments) {
  return {arguments.directory, arguments.plan};
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
