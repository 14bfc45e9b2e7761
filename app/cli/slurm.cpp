#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <iostream>

#include "app/cli/run.h"
#include "app/cli/tune.h"
#include "app/run/cost.h"
#include "app/run/search.h"
#include "app/run/session.h"
#include "app/store/durable_file.h"
#include "plots/kinds/crossing.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// Tasks that Slurm's default MaxArraySize of 1001 allows.
constexpr int kSlurmTasks = 1000;
constexpr double kMaximumMinutes = 1e6;  // two years

/// The value of an #SBATCH option in quotes. Percent signs of the directory are doubled, so that Slurm does
/// not take them for patterns. Throws UserError for control characters, since a line break ends the option,
/// and for backslashes, since Slurm then replaces no pattern.
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

struct SlurmOptions {
  PlanChoice plan;
  DecidingChoice deciding;
  bool tune = false;  ///< tasks of `tune`
  TuningChoice tuning;
  double minutes_per_task = 30;
  double minutes_per_cell = 0;  ///< 0 to estimate it from recorded cells
  int threads = 0;              ///< of a task; 0 for 1
  bool submit = false, json = false;

  void bind(VerbOptions& options) {
    const TextCheck minutes = positive_number("minutes", kMaximumMinutes);
    plan.bind(options);
    options.add("--minutes-per-task", &minutes_per_task, "length of a task (default: 30)",
                {.check = minutes});
    options.add("--minutes-per-cell", &minutes_per_cell,
                "time of a cell on one processor (default: the estimate of `plan`)", {.check = minutes});
    bind_threads(options, threads, "processors for each task (default: 1)");
    deciding.bind(options, "write tasks of run --until-decided; they share the cells by leases");
    options.add("--tune", &tune, "write tasks of tune; they share the cells by leases");
    tuning.bind(options, "with --tune: ");
    options.add("--submit", &submit, "submit the job with sbatch");
    bind_json(options, json);
  }
};

/// What an array job runs, and how its tasks share the cells.
struct Job {
  std::filesystem::path directory;
  std::string verb = "run";
  std::string options = {};   ///< of the verb, in addition to the options of every job
  Scenario first;             ///< the run that the tasks begin with
  std::size_t cells = 0;      ///< of the whole job; an upper bound where it grows
  std::size_t at_a_time = 0;  ///< upper bound on the cells that can run at the same time
  bool grows = false;         ///< later cells depend on earlier results, so the tasks share cells by leases
  double minutes = 0;         ///< processor minutes of all cells
  std::string source = {};    ///< where the minutes come from
};

/// Sets the processor minutes of all cells of a scenario, and where they come from.
void add_job_minutes(const SlurmOptions& options, const Scenario& scenario, Job& job) {
  const std::vector<const Cell*> cells = missing_cells(scenario, {});
  if (options.minutes_per_cell > 0) {
    job.minutes = options.minutes_per_cell * static_cast<double>(cells.size());
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

/// Scales the minutes of `known` cells to `cells` cells.
void extend_job(Job& job, std::size_t known, std::size_t cells) {
  job.cells = cells;
  job.minutes *= static_cast<double>(cells) / static_cast<double>(known);
}

Job run_job(const SlurmOptions& options) {
  const DecidingChoice& deciding = options.deciding;
  auto [scenario, directory] = planned_run(options.plan, deciding.until_decided);
  check_deciding(deciding, scenario);
  Job job;
  job.directory = std::move(directory);
  job.grows = deciding.until_decided || scenario.crossing.has_value();
  if (deciding.until_decided) {
    job.options = fmt::format(" --until-decided --max-seeds {}", deciding.most_seeds());
    if (deciding.hours > 0) job.options += fmt::format(" --hours {}", deciding.hours);
  }
  const Scenario& whole =
      deciding.until_decided ? largest_decided_run(options.plan.scenario, deciding, scenario) : scenario;
  add_job_minutes(options, whole, job);
  job.cells = job.at_a_time = missing_cells(whole, {}).size();
  if (scenario.crossing) {
    const std::size_t further = most_further_cells(
        *scenario.crossing, recorded_table(scenario, read_records(job.directory, RecordPart::metrics)));
    extend_job(job, job.cells, job.cells + further);
  }
  job.first = std::move(scenario);
  return job;
}

Job tuning_job(const SlurmOptions& options) {
  const TuningChoice& choice = options.tuning;
  const Tuning tuning = read_tuning(options.plan.scenario, choice, options.plan.out);
  check_run_directory(tuning.directory, tuning.scenario.name);
  Job job;
  job.directory = tuning.directory;
  job.verb = "tune";
  job.grows = true;
  if (!choice.arms.empty()) job.options += " --arms " + shell_word(choice.arms);
  if (choice.budget > 0) job.options += fmt::format(" --budget {}", choice.budget);
  if (!choice.metric.empty()) job.options += " --metric " + shell_word(choice.metric);
  if (choice.maximize) job.options += " --maximize";
  job.first = rung_scenario(tuning, tuning.rungs.front());
  add_job_minutes(options, job.first, job);
  // No later rung has more trainings that can run at the same time.
  job.at_a_time = missing_cells(job.first, {}).size();
  extend_job(job, job.first.cells.size(), tuning_cells(tuning));
  return job;
}

/// Throws UserError for options that do not go with --tune, or with it alone.
void check_job_options(const SlurmOptions& options) {
  const DecidingChoice& deciding = options.deciding;
  const TuningChoice& tuning = options.tuning;
  const auto refuse = [&](bool is_given, const char* option) {
    if (is_given)
      throw UserError(option, options.tune ? "cannot be combined with --tune" : "given without --tune");
  };
  if (options.tune) {
    refuse(deciding.until_decided, "--until-decided");
    refuse(deciding.max_seeds > 0, "--max-seeds");
    refuse(deciding.hours > 0, "--hours");
    refuse(!options.plan.added_seeds.empty(), "--seeds");
    return;
  }
  refuse(!tuning.arms.empty(), "--arms");
  refuse(tuning.budget > 0, "--budget");
  refuse(!tuning.metric.empty(), "--metric");
  refuse(tuning.maximize, "--maximize");
}

/// The time limit of a task for Slurm, in minutes: a third more than asked for, since some cells take longer.
std::string time_limit(double minutes) {
  return std::to_string(static_cast<int>(std::ceil(minutes * 4 / 3)) + 1);
}

/// This program's file. Where the system does not tell it, the name, which the shell looks up on PATH.
std::string program_file() {
  std::error_code unknown;
  const std::filesystem::path file = std::filesystem::canonical("/proc/self/exe", unknown);
  return unknown ? "moelab" : file.string();
}

std::string script_of(const SlurmOptions& options, const Job& job, int tasks, int threads) {
  const ScenarioChoice& scenario = options.plan.scenario;
  const std::filesystem::path directory = std::filesystem::absolute(job.directory);
  std::string command = fmt::format("exec {} {} {}", shell_word(program_file()), job.verb,
                                    shell_word(std::filesystem::absolute(scenario.file).string()));
  if (!scenario.profile.empty()) command += " --profile " + shell_word(scenario.profile);
  for (const std::string& setting : scenario.settings) command += " --set " + shell_word(setting);
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
      job.first.name, tasks - 1, threads, time_limit(options.minutes_per_task),
      quoted_pattern(directory.string(), "slurm-%A_%a.log"), after,
      shell_word(std::filesystem::current_path().string()), command);
}

/// Writes an array job for Slurm, and submits it with --submit.
int write_job(const SlurmOptions& options) {
  check_job_options(options);
  const Job job = options.tune ? tuning_job(options) : run_job(options);
  const int threads = std::max(1, options.threads);
  const double minutes = job.minutes / threads;
  const int tasks = static_cast<int>(
      std::clamp(std::ceil(minutes / options.minutes_per_task), 1.0, static_cast<double>(job.at_a_time)));
  if (tasks > kSlurmTasks) {
    std::cerr << fmt::format(
        "moelab: {} tasks; an array of Slurm holds {} unless its MaxArraySize says more, and "
        "--minutes-per-task {:.0f} makes as many\n",
        tasks, kSlurmTasks, std::ceil(minutes / kSlurmTasks));
  }
  const std::string text = script_of(options, job, tasks, threads);
  keep_plan(job.directory, job.first, false);  // its tasks make it the plan last run
  const std::filesystem::path script = job.directory / "slurm.sh";
  replace_file(script, text);
  // sbatch would take a path that begins with a hyphen for an option.
  const std::string submit =
      "sbatch " + shell_word((script.string().starts_with('-') ? "./" : "") + script.string());
  if (options.json) {
    const Json answer = {{"script", script.string()},  {"tasks", tasks},
                         {"cells", job.cells},         {"minutes_estimate", job.minutes},
                         {"minutes_from", job.source}, {"submitted", options.submit}};
    print_json(answer);
  } else {
    std::cout << fmt::format("{}: {} for {}{}, about {:.3g} processor minutes from {}\n", script.string(),
                             counted(tasks, "task"), job.grows ? "up to " : "", counted(job.cells, "cell"),
                             job.minutes, job.source);
    if (!options.submit) std::cout << "submit it with: " << submit << '\n';
  }
  std::cout.flush();
  if (!options.submit) return 0;
  if (std::system(submit.c_str()) != 0)
    throw EnvironmentError("'" + submit + "' failed; is Slurm installed here?");
  return 0;
}

}  // namespace

Verb slurm_verb() {
  return make_verb("slurm", "Write a Slurm array job whose tasks share the cells of a run, or of tune",
                   "slurm scenarios/dikkala2023/fig4.json --minutes-per-task 30 --minutes-per-cell 1",
                   write_job);
}

}  // namespace moelab
