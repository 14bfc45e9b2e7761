#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <iostream>

#include "app/cli/run.h"
#include "app/cli/tune.h"
#include "app/cli/verbs.h"
#include "app/figures/crossing.h"
#include "app/run/cost.h"
#include "app/run/search.h"
#include "app/run/session.h"
#include "app/store/durable_file.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// What Slurm's own MaxArraySize of 1001 leaves.
constexpr int kSlurmTasks = 1000;
constexpr double kMaximumMinutes = 1e6;  // two years

/// The value of an #SBATCH option: quoted, with its own percent signs kept from being patterns. Refused is
/// what such a line cannot hold: a control character, since a line break ends it, and a backslash, since
/// Slurm then replaces no pattern.
std::string quoted_pattern(const std::string& directory, const std::string& pattern) {
  std::string quoted = "\"";
  for (const char letter : directory) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < ' ' || code == 0x7F || letter == '\\') {
      throw UserError("--out",
                      fmt::format("got the folder {}; for Slurm's log it needs a path without "
                                  "control characters and backslashes",
                                  Json(directory).dump(-1, ' ', true, Json::error_handler_t::replace)));
    }
    if (letter == '"') quoted += '\\';
    if (letter == '%') quoted += '%';
    quoted += letter;
  }
  return quoted + "/" + pattern + "\"";
}

std::string check_minutes(const std::string& text) {
  return number_problem(text, "minutes", kMaximumMinutes);
}

/// What an array job runs, and how its tasks share the cells.
struct Job {
  std::filesystem::path directory;
  std::string verb = "run";
  std::string options = {};   ///< of the verb, beside those of every job
  Scenario first;             ///< the run that its tasks begin with
  std::size_t cells = 0;      ///< that it comes to, at most where it grows
  std::size_t at_a_time = 0;  ///< of these, at most, that tasks can be at
  bool grows = false;       ///< which cells there are is known as it goes on: its tasks share them by leases
  double minutes = 0;       ///< of a processor, of all cells
  std::string source = {};  ///< what tells them
};

/// Processor minutes of all cells of a scenario, and what tells them.
void add_job_minutes(const Arguments& arguments, const Scenario& scenario, Job& job) {
  const std::vector<const Cell*> cells = missing_cells(scenario, {});
  if (arguments.minutes_per_cell > 0) {
    job.minutes = arguments.minutes_per_cell * static_cast<double>(cells.size());
    job.source = "--minutes-per-cell";
    return;
  }
  const Records records = read_records(job.directory);
  const RunCost missing = run_cost(scenario, records, 1);
  job.minutes = missing.seconds / 60;
  job.source = missing.source.empty() ? "the recorded times of all cells" : missing.source;
  for (const Cell* cell : cells) {
    if (const auto record = records.find(cell->id); record != records.end())
      job.minutes += record->second.seconds / 60;
  }
}

/// Takes the minutes of the scenario's cells for those of so many, which are like them.
void extend_job(Job& job, std::size_t known, std::size_t cells) {
  job.cells = cells;
  job.minutes *= static_cast<double>(cells) / static_cast<double>(known);
}

Job run_job(const Arguments& arguments) {
  auto [scenario, directory] = planned_run(arguments);
  check_deciding(arguments, scenario);
  Job job;
  job.directory = std::move(directory);
  job.grows = arguments.until_decided || scenario.crossing.has_value();
  if (arguments.until_decided) {
    job.options = fmt::format(" --until-decided --max-seeds {}", most_seeds(arguments));
    if (arguments.hours > 0) job.options += fmt::format(" --hours {}", arguments.hours);
  }
  const Scenario& whole = arguments.until_decided ? largest_decided_run(arguments, scenario) : scenario;
  add_job_minutes(arguments, whole, job);
  job.cells = job.at_a_time = missing_cells(whole, {}).size();
  if (scenario.crossing) {
    const std::size_t further = most_further_cells(
        *scenario.crossing, recorded_table(scenario, read_records(job.directory, RecordPart::metrics)));
    extend_job(job, job.cells, job.cells + further);
  }
  job.first = std::move(scenario);
  return job;
}

Job tuning_job(const Arguments& arguments) {
  const Tuning tuning = read_tuning(arguments);
  check_run_directory(tuning.directory, tuning.scenario.name);
  Job job;
  job.directory = tuning.directory;
  job.verb = "tune";
  job.grows = true;
  if (!arguments.arms.empty()) job.options += " --arms " + shell_word(arguments.arms);
  if (arguments.budget > 0) job.options += fmt::format(" --budget {}", arguments.budget);
  if (!arguments.metric.empty()) job.options += " --metric " + shell_word(arguments.metric);
  if (arguments.maximize) job.options += " --maximize";
  job.first = rung_scenario(tuning, tuning.rungs.front());
  add_job_minutes(arguments, job.first, job);
  // No later rung has as many trainings that it can run at a time.
  job.at_a_time = missing_cells(job.first, {}).size();
  extend_job(job, job.first.cells.size(), tuning_cells(tuning));
  return job;
}

/// Throws UserError for options that do not go with --tune, or with it alone.
void check_job_options(const Arguments& arguments) {
  const auto refuse = [&](bool is_given, const char* option) {
    if (is_given) throw UserError(option, arguments.tune ? "given beside --tune" : "given without --tune");
  };
  if (arguments.tune) {
    refuse(arguments.until_decided, "--until-decided");
    refuse(arguments.max_seeds > 0, "--max-seeds");
    refuse(arguments.hours > 0, "--hours");
    refuse(!arguments.added_seeds.empty(), "--seeds");
    return;
  }
  refuse(!arguments.arms.empty(), "--arms");
  refuse(arguments.budget > 0, "--budget");
  refuse(!arguments.metric.empty(), "--metric");
  refuse(arguments.maximize, "--maximize");
}

/// The time limit of a task as Slurm reads it: a third more than asked for, for cells that take longer.
std::string time_limit(double minutes) {
  return std::to_string(static_cast<int>(std::ceil(minutes * 4 / 3)) + 1);
}

/// This program's file; by name alone, to be found on PATH, where the system does not tell.
std::string program_file() {
  std::error_code unknown;
  const std::filesystem::path file = std::filesystem::canonical("/proc/self/exe", unknown);
  return unknown ? "moelab" : file.string();
}

std::string script_of(const Arguments& arguments, const Job& job, int tasks, int threads) {
  const std::filesystem::path directory = std::filesystem::absolute(job.directory);
  std::string command = fmt::format("exec {} {} {}", shell_word(program_file()), job.verb,
                                    shell_word(std::filesystem::absolute(arguments.file).string()));
  if (!arguments.profile.empty()) command += " --profile " + shell_word(arguments.profile);
  for (const std::string& setting : arguments.settings) command += " --set " + shell_word(setting);
  command += fmt::format(" --out {} --threads {}{}", shell_word(directory.string()), threads, job.options);
  command += job.grows ? " --leases" : fmt::format(" --share \"$SLURM_ARRAY_TASK_ID/{}\"", tasks);
  const char* const after = job.verb == "tune" ? "tune.json has the choice" : "moelab claims, moelab plot";
  return fmt::format(
      "#!/bin/sh\n"
      "#SBATCH --job-name={}\n"
      "#SBATCH --array=0-{}\n"
      "#SBATCH --cpus-per-task={}\n"
      "#SBATCH --time={}\n"
      "#SBATCH --requeue\n"
      "#SBATCH --open-mode=append\n"
      "#SBATCH --output={}\n"
      "# A task that is requeued goes on where it stopped. When all are done: {}.\n"
      "cd {}\n{}\n",
      job.first.name, tasks - 1, threads, time_limit(arguments.minutes_per_task),
      quoted_pattern(directory.string(), "slurm-%A_%a.log"), after,
      shell_word(std::filesystem::current_path().string()), command);
}

/// Writes an array job for Slurm, and submits it where asked to.
int write_job(const Arguments& arguments) {
  check_job_options(arguments);
  const Job job = arguments.tune ? tuning_job(arguments) : run_job(arguments);
  const int threads = std::max(1, arguments.threads);
  const double minutes = job.minutes / threads;
  const int tasks = static_cast<int>(
      std::clamp(std::ceil(minutes / arguments.minutes_per_task), 1.0, static_cast<double>(job.at_a_time)));
  if (tasks > kSlurmTasks) {
    std::cerr << fmt::format(
        "moelab: {} tasks; an array of Slurm holds {} unless its MaxArraySize says more, and "
        "--minutes-per-task {:.0f} makes as many\n",
        tasks, kSlurmTasks, std::ceil(minutes / kSlurmTasks));
  }
  const std::string text = script_of(arguments, job, tasks, threads);
  keep_plan(job.directory, job.first, false);  // its tasks show it
  const std::filesystem::path script = job.directory / "slurm.sh";
  replace_file(script, text);
  // A path that begins with a hyphen would be an option.
  const std::string submit =
      "sbatch " + shell_word((script.string().starts_with('-') ? "./" : "") + script.string());
  if (arguments.json) {
    const Json answer = {{"script", script.string()},  {"tasks", tasks},
                         {"cells", job.cells},         {"minutes_estimate", job.minutes},
                         {"minutes_from", job.source}, {"submitted", arguments.submit}};
    std::cout << json_text(answer) << '\n';
  } else {
    std::cout << fmt::format("{}: {} for {}{}, about {:.3g} processor minutes from {}\n", script.string(),
                             counted(tasks, "task"), job.grows ? "up to " : "", counted(job.cells, "cell"),
                             job.minutes, job.source);
    if (!arguments.submit) std::cout << "submit it with: " << submit << '\n';
  }
  std::cout.flush();
  if (!arguments.submit) return 0;
  if (std::system(submit.c_str()) != 0)
    throw EnvironmentError("'" + submit + "' failed; is Slurm installed here?");
  return 0;
}

}  // namespace

Verb slurm_verb() {
  return {
      "slurm", "Write a Slurm array job whose tasks share the cells of a run, or of tune",
      "slurm scenarios/dikkala2023/fig4.json --minutes-per-task 30 --minutes-per-cell 1",
      [](Arguments& arguments) -> VerbCall {
        return {
            joined(
                scenario_options(arguments),
                {run_directory_options(arguments),
                 {{"--minutes-per-task", &arguments.minutes_per_task, "length of a task (default: 30)", false,
                   check_minutes},
                  {"--minutes-per-cell", &arguments.minutes_per_cell,
                   "time of a cell on one processor (default: what `plan` estimates)", false, check_minutes},
                  threads_option(arguments, "processors of a task (default: 1)")},
                 deciding_options(arguments, "tasks of run --until-decided, which share its cells by leases"),
                 {{"--tune", &arguments.tune, "tasks of tune, which share its cells by leases"}},
                 tuning_options(arguments, "with --tune: "),
                 {{"--submit", &arguments.submit, "hand the job to sbatch"}, json_option(arguments)}}),
            [&] { return write_job(arguments); }};
      }};
}

}  // namespace moelab
