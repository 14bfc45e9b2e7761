#include "app/cli/verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <exception>
#include <initializer_list>
#include <iostream>
#include <iterator>
#include <set>
#include <system_error>
#include <thread>

#include "analysis/metrics/metric_groups.h"
#include "app/cli/completion.h"
#include "app/store/durable_file.h"
#include "sim/base/error.h"

// A new verb is a file that defines <name>_verb() and a line here.
// clang-format off
#define MOELAB_VERBS(entry) \
  entry(run)                \
  entry(tune)               \
  entry(plan)               \
  entry(new)                \
  entry(validate)           \
  entry(sample)             \
  entry(status)             \
  entry(claims)             \
  entry(import)             \
  entry(export)             \
  entry(table)              \
  entry(plot)               \
  entry(list)               \
  entry(schema)             \
  entry(compare)            \
  entry(agreement)          \
  entry(report)             \
  entry(reproduce)          \
  entry(verify)             \
  entry(slurm)              \
  entry(completion)         \
  entry(analyze)            \
  entry(check)              \
  entry(docs)
// clang-format on

namespace moelab {

#define MOELAB_DECLARE(name) Verb name##_verb();
MOELAB_VERBS(MOELAB_DECLARE)
#undef MOELAB_DECLARE

const std::vector<Verb>& verbs() {
#define MOELAB_CALL(name) name##_verb(),
  static const std::vector<Verb> table = {MOELAB_VERBS(MOELAB_CALL)};
#undef MOELAB_CALL
  return table;
}

bool Option::is_list() const {
  return std::holds_alternative<std::vector<std::string>*>(value) ||
         std::holds_alternative<std::vector<std::filesystem::path>*>(value);
}

bool Option::is_path() const {
  return std::holds_alternative<std::filesystem::path*>(value) ||
         std::holds_alternative<std::vector<std::filesystem::path>*>(value);
}

std::vector<std::string> option_names(const Verb& verb) {
  std::vector<std::string> names = {"--help"};
  for (const Option& option : verb.call().options.list)
    if (option.is_named()) names.push_back(option.name);
  return names;
}

std::string NameCheck::operator()(const std::string& text) const {
  if (std::find(names.begin(), names.end(), text) != names.end()) return {};
  return unknown_name(what, text, names);
}

TextCheck one_of(const std::string& what, std::vector<std::string> names) {
  return NameCheck{what, std::move(names)};
}

namespace {

/// Whether the whole text is a number, which `number` receives.
template <class Number>
bool is_number(const std::string& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && after == end;
}

}  // namespace

// CLI11 has range checks, too. Their messages have another form, and they accept "nan".
TextCheck whole_number(int minimum, int maximum) {
  return [=](const std::string& text) {
    int number = 0;
    if (is_number(text, number) && number >= minimum && number <= maximum) return std::string();
    return fmt::format("got '{}', needs a whole number of {} to {}", text, minimum, maximum);
  };
}

TextCheck positive_number(const std::string& what, double maximum) {
  return [=](const std::string& text) {
    double number = 0;
    if (is_number(text, number) && number > 0 && number <= maximum) return std::string();
    return fmt::format("got '{}', needs {}: a number above 0 and at most {}", text, what, maximum);
  };
}

void ScenarioChoice::bind(VerbOptions& options) {
  options.add("FILE", &file, "scenario file (JSON)",
              {.required = true, .candidates = offer_files(Candidates::Files::scenarios)});
  options.add("--profile", &profile, "named set of overrides in the scenario, such as quick",
              {.candidates = [this](const std::string&) { return offer_profiles(*this); }});
  options.add("--set", &settings, "path=value: override one field (repeatable)",
              {.candidates = [this](const std::string& word) { return offer_settings(*this, word); }});
}

namespace {

void bind_plan(VerbOptions& options, std::string& plan, Completer candidates) {
  options.add("--plan", &plan,
              "id of one of the folder's plans, or its beginning (default: the plan last run)",
              {.candidates = std::move(candidates)});
}

}  // namespace

void RunChoice::bind(VerbOptions& options) {
  options.add("DIR", &directory, "run folder, or DIR@ID for one of its plans",
              {.required = true, .candidates = offer_run_folders});
  bind_plan(options, plan, [this](const std::string&) { return offer_plans({directory}); });
}

void RunsChoice::bind(VerbOptions& options, const std::string& help, bool required) {
  options.add("DIR", &directories, help, {.required = required, .candidates = offer_run_folders});
  bind_plan(options, plan, [this](const std::string&) { return offer_plans(directories); });
}

void bind_threads(VerbOptions& options, int& threads, const std::string& help) {
  constexpr int kMaximumThreads = 1024;
  options.add("--threads", &threads, help, {.check = whole_number(1, kMaximumThreads)});
}

void bind_json(VerbOptions& options, bool& json) {
  options.add("--json", &json, "answer (and report errors) in JSON on stdout");
}

int thread_count(int asked) {
  if (asked > 0) return asked;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

void run_in_parallel(std::size_t count, int threads, const std::string& what,
                     const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> errors(count);
  std::atomic<std::size_t> next{0};
  const auto work_on = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> others;
  others.reserve(count);
  try {
    for (std::size_t i = 1; i < std::min(static_cast<std::size_t>(threads), count); ++i)
      others.emplace_back(work_on);
  } catch (const std::system_error& error) {
    std::cerr << fmt::format("moelab: note: {} of {} threads could be started ({}); these run all {}\n",
                             others.size() + 1, threads, error.what(), what);
  }
  work_on();
  for (std::thread& thread : others) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

void print_json(const Json& answer, int indent) {
  std::cout << json_text(answer, indent) << '\n';
}

Json file_names(const std::vector<std::filesystem::path>& files) {
  Json names = Json::array();
  for (const std::filesystem::path& file : files) names.push_back(file.string());
  return names;
}

void print_files(const std::vector<std::filesystem::path>& files, bool json) {
  if (json) return print_json({{"files", file_names(files)}});
  for (const std::filesystem::path& file : files) std::cout << file.string() << '\n';
}

void write_answer(const std::filesystem::path& file, const std::string& text) {
  if (file.empty()) {
    std::cout << text;
  } else {
    replace_file(file, text);
  }
}

namespace {

/// Whether `path`, below a run directory, belongs to the run and not to the output of a verb.
bool is_of_store(const std::filesystem::path& path) {
  const std::string first = path.begin()->string();
  const auto is = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), first) != names.end();
  };
  if (is({"journal", "sessions", "cells", "imported"})) return true;
  if (std::next(path.begin()) == path.end()) return is({"plan.json", "provenance.json", "plans"});
  // plans/<id> also holds the outputs of plans other than the last run.
  if (first != "plans") return false;
  const std::filesystem::path below = path.lexically_relative(first);
  return std::next(below.begin()) == below.end() || is_of_store(below.lexically_relative(*below.begin()));
}

}  // namespace

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
                    fmt::format("'{}' belongs to the store of the run folder '{}', needs another file",
                                file.string(), above.string()));
  }
}

void refuse_beside(bool is_given, const std::string& option, const std::string& other) {
  if (is_given) throw UserError(option, "cannot be combined with " + other);
}

void check_metric_name(const std::string& metric) {
  if (!find_metric(metric)) throw UserError("--metric", unknown_name("metric", metric, metric_names()));
}

void check_measured(const std::string& metric, std::span<const RunResults> runs) {
  std::set<std::string> measured;
  for (const RunResults& run : runs) {
    measured.insert(run.metrics.begin(), run.metrics.end());
    for (const ResultRow& row : run.table.rows)
      for (const auto& [name, value] : row.metrics) measured.insert(name);
  }
  if (measured.empty() || measured.contains(metric)) return;
  throw UserError("--metric",
                  unknown_name("metric of these cells", metric, {measured.begin(), measured.end()}));
}

}  // namespace moelab
