#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <iostream>

#include "app/commands/decided_run.h"
#include "app/commands/verbs.h"
#include "app/run/cost.h"
#include "app/run/durable_file.h"
#include "app/run/session.h"
#include "app/run/shell_word.h"
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

/// Processor minutes of all cells, and what tells them.
struct Work {
  double minutes = 0;
  std::string source;
};

Work work_of(const Arguments& arguments, const Scenario& scenario, const Records& records) {
  const std::vector<const Cell*> cells = missing_cells(scenario, {});
  if (arguments.minutes_per_cell > 0)
    return {arguments.minutes_per_cell * static_cast<double>(cells.size()), "--minutes-per-cell"};
  const RunCost missing = run_cost(scenario, records, 1);
  Work work = {missing.seconds / 60, missing.source};
  for (const Cell* cell : cells) {
    if (const auto record = records.find(cell->id); record != records.end())
      work.minutes += record->second.seconds / 60;
  }
  if (work.source.empty()) work.source = "the recorded times of all cells";
  return work;
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

/// Which cells there are is known as the run goes on: its tasks share them by leases.
bool grows(const Arguments& arguments, const Scenario& scenario) {
  return arguments.until_decided || scenario.crossing.has_value();
}

std::string script_of(const Arguments& arguments, const Scenario& scenario,
                      const std::filesystem::path& directory, int tasks, int threads) {
  std::string command = "exec " + shell_word(program_file()) + " run " +
                        shell_word(std::filesystem::absolute(arguments.file).string());
  if (!arguments.profile.empty()) command += " --profile " + shell_word(arguments.profile);
  for (const std::string& setting : arguments.settings) command += " --set " + shell_word(setting);
  command += fmt::format(" --out {} --threads {}", shell_word(std::filesystem::absolute(directory).string()),
                         threads);
  if (arguments.until_decided)
    command += fmt::format(" --until-decided --max-seeds {}", most_seeds(arguments));
  if (arguments.until_decided && arguments.hours > 0) command += fmt::format(" --hours {}", arguments.hours);
  command +=
      grows(arguments, scenario) ? " --leases" : fmt::format(" --share \"$SLURM_ARRAY_TASK_ID/{}\"", tasks);
  return fmt::format(
      "#!/bin/sh\n"
      "#SBATCH --job-name={}\n"
      "#SBATCH --array=0-{}\n"
      "#SBATCH --cpus-per-task={}\n"
      "#SBATCH --time={}\n"
      "#SBATCH --requeue\n"
      "#SBATCH --open-mode=append\n"
      "#SBATCH --output={}\n"
      "# A task that is requeued goes on where it stopped. When all are done: moelab claims, moelab plot.\n"
      "cd {}\n{}\n",
      scenario.name, tasks - 1, threads, time_limit(arguments.minutes_per_task),
      quoted_pattern(std::filesystem::absolute(directory).string(), "slurm-%A_%a.log"),
      shell_word(std::filesystem::current_path().string()), command);
}

/// Writes an array job for Slurm, and submits it where asked to.
int write_job(const Arguments& arguments) {
  const auto [scenario, directory] = planned_run(arguments);
  check_deciding(arguments, scenario);
  const Records records = read_records(directory);
  const int threads = std::max(1, arguments.threads);
  const std::size_t cells = missing_cells(scenario, {}).size();
  const Work work = work_of(arguments, scenario, records);
  const double minutes = work.minutes / threads;
  const int tasks = static_cast<int>(
      std::clamp(std::ceil(minutes / arguments.minutes_per_task), 1.0, static_cast<double>(cells)));
  if (tasks > kSlurmTasks) {
    std::cerr << fmt::format(
        "moelab: {} tasks; an array of Slurm holds {} unless its MaxArraySize says more, and "
        "--minutes-per-task {:.0f} makes as many\n",
        tasks, kSlurmTasks, std::ceil(minutes / kSlurmTasks));
  }
  const std::string text = script_of(arguments, scenario, directory, tasks, threads);
  keep_plan(directory, scenario, false);  // its tasks show it
  const std::filesystem::path script = directory / "slurm.sh";
  replace_file(script, text);
  // A path that begins with a hyphen would be an option.
  const std::string submit =
      "sbatch " + shell_word((script.string().starts_with('-') ? "./" : "") + script.string());
  if (arguments.json) {
    const Json answer = {{"script", script.string()},
                         {"tasks", tasks},
                         {"cells", cells},
                         {"minutes_estimate", work.minutes},
                         {"minutes_from", work.source},
                         {"submitted", arguments.submit}};
    std::cout << json_text(answer) << '\n';
  } else {
    std::cout << fmt::format("{}: {} tasks for {} cells, about {:.3g} processor minutes from {}\n",
                             script.string(), tasks, cells, work.minutes, work.source);
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
      "slurm", "Write a Slurm array job whose tasks each run a share of the cells",
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
                 {{"--submit", &arguments.submit, "hand the job to sbatch"}, json_option(arguments)}}),
            [&] { return write_job(arguments); }};
      }};
}

}  // namespace moelab
