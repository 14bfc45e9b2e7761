#include "app/commands/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <functional>
#include <iostream>
#include <map>
#include <new>

#include "app/commands/analyze.h"
#include "app/commands/claims.h"
#include "app/commands/plot.h"
#include "app/commands/verbs.h"
#include "app/run/provenance.h"
#include "sim/base/error.h"
#include "sim/base/json.h"

namespace moelab {
namespace {

constexpr int kUserErrorStatus = 2;
constexpr int kEnvironmentErrorStatus = 3;
constexpr int kMaximumThreads = 1024;
constexpr int kMaximumSeeds = 10000;
constexpr double kMaximumMinutes = 1e6;  // two years

/// The program's verbs with what each does when chosen.
struct Program {
  CLI::App app{"A laboratory for the theory of routing in Mixture-of-Experts models", "moelab"};
  Arguments arguments;
  AnalyzedFiles arrays;
  std::map<const CLI::App*, std::function<int()>> actions;
};

/// A check of an option's text; CLI11's own ranges neither speak as the rest of the program does nor refuse
/// "nan".
std::function<std::string(const std::string&)> whole_number(int minimum, int maximum) {
  return [=](const std::string& text) {
    int number = 0;
    const char* const end = text.data() + text.size();
    const auto [after, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && after == end && number >= minimum && number <= maximum) return std::string();
    return fmt::format("got '{}', needs a whole number of {} to {}", text, minimum, maximum);
  };
}

std::string check_minutes(const std::string& text) {
  double minutes = 0;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data(), end, minutes);
  if (error == std::errc() && after == end && minutes > 0 && minutes <= kMaximumMinutes) return {};
  return fmt::format("got '{}', needs minutes: a number above 0 and at most {}", text, kMaximumMinutes);
}

std::string check_shell(const std::string& text) {
  const std::vector<std::string> shells = {"bash", "zsh", "fish"};
  if (std::find(shells.begin(), shells.end(), text) != shells.end()) return {};
  return unknown_name("shell", text, shells);
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return names;
}

/// The options that `app` takes, as they are written.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// Completes verbs, and the options of a verb.
std::string completion_script(const CLI::App& app, const std::string& shell) {
  const std::string verbs = fmt::format("{}", fmt::join(verb_names(app), " "));
  std::string script;
  if (shell == "fish") {
    script = fmt::format("complete -c moelab -n __fish_use_subcommand -f -a '{}'\n", verbs);
    for (const std::string& verb : verb_names(app)) {
      for (const std::string& option : option_names(*app.get_subcommand(verb))) {
        script += fmt::format("complete -c moelab -n '__fish_seen_subcommand_from {}' -l {}\n", verb,
                              option.substr(2));
      }
    }
    return script;
  }
  if (shell == "zsh") script = "autoload -U +X bashcompinit && bashcompinit\n";
  script += "_moelab() {\n  local options\n  case \"${COMP_WORDS[1]}\" in\n";
  for (const std::string& verb : verb_names(app)) {
    script += fmt::format("    {}) options='{}' ;;\n", verb,
                          fmt::join(option_names(*app.get_subcommand(verb)), " "));
  }
  script += fmt::format(
      "    *) options='' ;;\n  esac\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then options='{}'; fi\n"
      "  COMPREPLY=($(compgen -W \"$options\" -- \"${{COMP_WORDS[COMP_CWORD]}}\"))\n}}\n"
      "complete -o default -F _moelab moelab\n",
      verbs);
  return script;
}

CLI::App* add_verb(Program& program, const std::string& name, const std::string& help,
                   const std::string& example, std::function<int()> action) {
  CLI::App* verb = program.app.add_subcommand(name, help);
  verb->footer("Example: moelab " + example);
  program.actions[verb] = std::move(action);
  return verb;
}

void add_scenario(CLI::App* verb, Arguments& arguments) {
  verb->add_option("FILE", arguments.file, "scenario file (JSON)")->required();
  verb->add_option("--profile", arguments.profile, "named set of overrides in the scenario, such as quick");
  // One value per --set: otherwise the option would swallow FILE.
  verb->add_option("--set", arguments.settings, "path=value: override one field (repeatable)")
      ->allow_extra_args(false);
}

void add_run_directory(CLI::App* verb, Arguments& arguments) {
  verb->add_option("--out", arguments.out, "run directory (default: runs/<name>[-<profile>])");
  verb->add_option("--seeds", arguments.added_seeds,
                   "FIRST..LAST: add seeds, such as 5..9 to 0 … 4; the run directory keeps them");
}

void add_directory(CLI::App* verb, Arguments& arguments) {
  verb->add_option("DIR", arguments.directory, "run directory")->required();
}

void add_threads(CLI::App* verb, Arguments& arguments) {
  verb->add_option("--threads", arguments.threads, "cells run at a time (default: one per processor)")
      ->check(whole_number(1, kMaximumThreads));
}

void add_json(CLI::App* verb, Arguments& arguments) {
  verb->add_flag("--json", arguments.json, "answer (and report errors) in JSON on stdout");
}

void add_running_verbs(Program& program) {
  Arguments& arguments = program.arguments;
  CLI::App* run = add_verb(
      program, "run", "Run a scenario's missing cells, judge its claims, draw its figures",
      "run scenarios/dikkala2023/fig2a.json --profile quick", [&] { return run_run_command(arguments); });
  add_scenario(run, arguments);
  add_run_directory(run, arguments);
  add_threads(run, arguments);
  run->add_option("--share", arguments.share,
                  "I/N: only the I-th (from 0) of N shares of the cells, for N processes on one directory");
  run->add_option("--retry", arguments.retry, "failed: run cells again that are recorded as failed")
      ->check(CLI::IsMember({"failed"}));
  run->add_flag("--fail-fast", arguments.fail_fast, "stop at the first cell that fails; status 1");
  add_json(run, arguments);

  CLI::App* plan = add_verb(program, "plan", "Say what run would do, and write nothing",
                            "plan scenarios/dikkala2023/fig2a.json --set seeds.count=3",
                            [&] { return run_plan_command(arguments); });
  add_scenario(plan, arguments);
  add_run_directory(plan, arguments);
  add_threads(plan, arguments);
  add_json(plan, arguments);

  CLI::App* starting =
      add_verb(program, "new", "Write a small scenario to start from, its parts explained in its notes",
               "new my_idea", [&] { return run_new_command(arguments); });
  starting->add_option("NAME", arguments.name, "the scenario's name")->required();
  starting->add_option("--out", arguments.out, "file to write (default: NAME.json)");
  add_json(starting, arguments);

  CLI::App* validate = add_verb(program, "validate", "Check a scenario, every cell of it",
                                "validate my_scenario.json", [&] { return run_validate_command(arguments); });
  add_scenario(validate, arguments);
  add_json(validate, arguments);

  CLI::App* sample =
      add_verb(program, "sample", "Write the training and test data that a cell draws, as .npy files",
               "sample scenarios/dikkala2023/fig2a.json --out runs/data",
               [&] { return run_sample_command(arguments); });
  add_scenario(sample, arguments);
  sample->add_option("--out", arguments.out, "folder for the arrays (default: runs/<name>-sample)");
  sample->add_option("--cell", arguments.cell, "cell id, or first (default)");
  add_json(sample, arguments);
}

void add_slurm_verb(Program& program) {
  Arguments& arguments = program.arguments;
  CLI::App* slurm =
      add_verb(program, "slurm", "Write a Slurm array job whose tasks each run a share of the cells",
               "slurm scenarios/dikkala2023/fig4.json --minutes-per-task 30 --minutes-per-cell 1",
               [&] { return run_slurm_command(arguments); });
  add_scenario(slurm, arguments);
  add_run_directory(slurm, arguments);
  slurm->add_option("--minutes-per-task", arguments.minutes_per_task, "length of a task (default: 30)")
      ->check(check_minutes);
  slurm
      ->add_option("--minutes-per-cell", arguments.minutes_per_cell,
                   "time of a cell on one processor (default: what `plan` estimates)")
      ->check(check_minutes);
  slurm->add_option("--threads", arguments.threads, "processors of a task (default: 1)")
      ->check(whole_number(1, kMaximumThreads));
  slurm->add_flag("--submit", arguments.submit, "hand the job to sbatch");
  add_json(slurm, arguments);
}

void add_store_verbs(Program& program) {
  Arguments& arguments = program.arguments;
  CLI::App* compare =
      add_verb(program, "compare", "Put run directories side by side", "compare runs/fig3-quick runs/fig3",
               [&] { return run_compare_command(arguments); });
  compare->add_option("DIR", arguments.directories, "run directories, two or more")->required();
  compare->add_option("--metric", arguments.metric, "what is compared (default: the first figure's)");
  add_json(compare, arguments);

  CLI::App* report =
      add_verb(program, "report", "Write runs as one HTML file: figures, claims, provenance",
               "report runs/fig2a runs/fig2b --out fig2.html", [&] { return run_report_command(arguments); });
  report->add_option("DIR", arguments.directories, "run directories")->required();
  report->add_option("--out", arguments.out, "file to write (default: report.html in the first directory)");
  report->add_option("--ledger", arguments.ledger,
                     "write this Markdown file instead: a table of every claim, beside it the cells behind "
                     "each and a figure of each run");
  report->add_option("--checks", arguments.checks, "theorem checks to include: what `check --json` answered");
  add_json(report, arguments);

  CLI::App* reproduce =
      add_verb(program, "reproduce", "Run a recorded cell again; status 1 when a bit differs",
               "reproduce runs/fig2a-quick 0123abcd", [&] { return run_reproduce_command(arguments); });
  add_directory(reproduce, arguments);
  reproduce->add_option("CELL", arguments.cell, "cell id, or its beginning")->required();
  add_json(reproduce, arguments);

  CLI::App* verify = add_verb(program, "verify", "Read every record and array; status 1 when one is damaged",
                              "verify runs/fig2a-quick", [&] { return run_verify_command(arguments); });
  add_directory(verify, arguments);
  add_json(verify, arguments);
}

void add_completion_verb(Program& program) {
  CLI::App* completion =
      add_verb(program, "completion", "Print a completion script for a shell",
               "completion bash > ~/.local/share/bash-completion/completions/moelab", [&program] {
                 std::cout << completion_script(program.app, program.arguments.shell);
                 return 0;
               });
  completion->add_option("SHELL", program.arguments.shell, "bash, zsh or fish (default: bash)")
      ->check(check_shell);
}

void add_reading_verbs(Program& program) {
  Arguments& arguments = program.arguments;
  CLI::App* status = add_verb(program, "status", "Count the cells by arm and state",
                              "status runs/fig2a-quick", [&] { return run_status_command(arguments); });
  add_directory(status, arguments);
  add_json(status, arguments);

  CLI::App* claims = add_verb(program, "claims", "Judge the scenario's claims; status 1 when one is refuted",
                              "claims runs/fig2a-quick",
                              [&] { return run_claims_command(arguments.directory, arguments.json); });
  add_directory(claims, arguments);
  add_json(claims, arguments);

  CLI::App* exporting = add_verb(program, "export", "Print the results as CSV, one row per cell",
                                 "export runs/fig2a-quick --trace --out trace.csv",
                                 [&] { return run_export_command(arguments); });
  add_directory(exporting, arguments);
  exporting->add_flag("--trace", arguments.trace, "one row per cell and recorded step");
  exporting->add_option("--out", arguments.out, "file to write instead of stdout");
  add_json(exporting, arguments);

  CLI::App* plot = add_verb(program, "plot", "Draw the scenario's figures again", "plot runs/fig2a-quick",
                            [&] { return run_plot_command(arguments.directory, arguments.json); });
  add_directory(plot, arguments);
  add_json(plot, arguments);

  CLI::App* list = add_verb(program, "list", "List generators, routers, experts, metrics … with their fields",
                            "list routers", [&] { return run_list_command(arguments); });
  list->add_option(
      "AXIS", arguments.axis,
      "generators, targets, routers, experts, gatings, losses, optimizers, schedules or metrics");
  add_json(list, arguments);

  CLI::App* schema = add_verb(program, "schema", "Print the JSON Schema of scenario files",
                              "schema > moelab.schema.json", [] { return run_schema_command(); });
  add_json(schema, arguments);
}

void add_docs_verb(Program& program) {
  Arguments& arguments = program.arguments;
  CLI::App* docs = add_verb(program, "docs",
                            "Write the documents made from the program's tables: scenario.md, theorems.md "
                            "and scenario.schema.json",
                            "docs --out docs", [&] { return run_docs_command(arguments); });
  docs->add_option("--out", arguments.out, "folder (default: docs)");
  docs->add_option("--threads", arguments.threads, "checks run at a time (default: one per processor)")
      ->check(whole_number(1, kMaximumThreads));
  add_json(docs, arguments);
}

void add_analyze_verb(Program& program) {
  AnalyzedFiles& arrays = program.arrays;
  CLI::App* analyze =
      add_verb(program, "analyze", "Measure routing from your own arrays (.npy, rows may be (n, s) tokens)",
               "analyze --probs P.npy --labels C.npy --inputs X.npy --router W.npy",
               [&] { return run_analyze_command(arrays, program.arguments.json); });
  analyze->add_option("--probs", arrays.probs, "routing probabilities (n, E)");
  analyze->add_option("--logits", arrays.logits, "or the router's scores (n, E), whose softmax they are");
  analyze->add_option("--labels", arrays.labels, "cluster of each row, integers (n), for sparsity");
  analyze->add_option("--inputs", arrays.inputs, "router inputs (n, d)");
  analyze->add_option("--router", arrays.router,
                      "weights (E, d) of a linear router, for the shuffled baseline");
  analyze->add_option("--embeddings", arrays.embeddings,
                      "where overlap and silhouette are measured (n, m) (default: the inputs)");
  analyze->add_option("--expert-outputs", arrays.expert_outputs, "outputs of every expert (n, E, o)");
  analyze->add_option("--previous-probs", arrays.previous_probs,
                      "an earlier snapshot of --probs, for fluctuation");
  analyze->add_option("--previous-logits", arrays.previous_logits, "or of --logits");
  analyze->add_option("--previous-assignments", arrays.previous_assignments,
                      "or its experts, integers (n), or (n, K) with --top-k K");
  analyze
      ->add_option("--top-k", arrays.top_k,
                   "experts that serve a row: load and fluctuation count them (default 1)")
      ->check(whole_number(1, 1000000));
  analyze->add_option("--neighbours", arrays.neighbours, "neighbours of expert overlap (default 10)")
      ->check(whole_number(1, 1000000));
  add_json(analyze, program.arguments);
}

void add_theory_verbs(Program& program) {
  Arguments& arguments = program.arguments;
  CLI::App* check =
      add_verb(program, "check", "Check theorems against computation; status 1 when a verdict is unexpected",
               "check dikkala2023.theorem4", [&] { return run_check_command(arguments); });
  check->add_option("ID", arguments.ids, "checks, or beginnings such as dikkala2023 (default: all)");
  check->add_flag("--list", arguments.listing, "list the checks and run none");
  check->add_option("--seeds", arguments.seeds, "multiplies the random repetitions (default: 1)")
      ->check(whole_number(1, kMaximumSeeds));
  check->add_option("--threads", arguments.threads, "checks run at a time (default: one per processor)")
      ->check(whole_number(1, kMaximumThreads));
  add_json(check, arguments);
}

void build(Program& program) {
  program.app.set_version_flag("--version",
                               fmt::format("moelab {} (commit {})", program_version(), program_commit()));
  program.app.footer(
      "Examples:\n"
      "  moelab new my_idea                                   a small scenario to start from\n"
      "  moelab run my_idea.json --profile quick              its cells, claims and figures\n"
      "  moelab run my_idea.json --set model.experts=32       the same with another value\n"
      "  moelab report runs/my_idea-quick                     one HTML file that opens from disk\n"
      "  moelab check dikkala2023                             theorems against computation\n"
      "  moelab analyze --logits L.npy --labels C.npy         your own router\n\n"
      "moelab VERB --help explains a verb. Exit status: 0 done; 1 done, but a cell failed, a claim\n"
      "is refuted or a check came out unexpected; 2 bad input; 3 disk, permissions or a missing program;\n"
      "130 interrupted, resumable.");
  add_running_verbs(program);
  add_reading_verbs(program);
  add_store_verbs(program);
  add_slurm_verb(program);
  add_completion_verb(program);
  add_analyze_verb(program);
  add_theory_verbs(program);
  add_docs_verb(program);
}

/// Names the verb or option that was not understood before CLI11's own message would be less exact.
void check_names(const CLI::App& app, const std::vector<std::string>& words) {
  const std::vector<std::string> verbs = verb_names(app);
  if (words.empty())
    throw UserError("", fmt::format("a verb is missing; allowed: {}", fmt::join(verbs, ", ")));
  const bool starts_with_verb = !words[0].starts_with("-");
  if (starts_with_verb && std::find(verbs.begin(), verbs.end(), words[0]) == verbs.end()) {
    throw UserError(words[0], unknown_name("verb", words[0], verbs));
  }
  const CLI::App& chosen = starts_with_verb ? *app.get_subcommand(words[0]) : app;
  const std::vector<std::string> options = option_names(chosen);
  for (const std::string& word : words) {
    if (word == "--") return;
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with("--") || std::find(options.begin(), options.end(), name) != options.end()) continue;
    throw UserError(name, unknown_name("option", name, options));
  }
}

/// CLI11's error at the option or argument that its text begins with; at the verb where it names none.
UserError located(const CLI::ParseError& error, const std::string& verb) {
  const std::string text = error.what(), help = verb.starts_with("-") ? "moelab" : "moelab " + verb;
  const std::size_t colon = text.find(": "), space = text.find(' ');
  if (colon != std::string::npos && colon < space) return {text.substr(0, colon), text.substr(colon + 2)};
  return {help, fmt::format("{}; see {} --help", text, help)};
}

/// `words` is the command line, the program's name first.
int dispatch(Program& program, const std::vector<std::string>& words) {
  build(program);
  program.arguments.all = words;
  const std::vector<std::string> given(words.empty() ? words.end() : words.begin() + 1, words.end());
  check_names(program.app, given);
  try {
    program.app.parse(
        std::vector<std::string>(given.rbegin(), given.rend()));  // CLI11 takes words last first
  } catch (const CLI::Success& request) {                         // --help or --version
    return program.app.exit(request);
  } catch (const CLI::ParseError& error) {
    throw located(error, given.front());
  }
  const std::vector<CLI::App*> chosen = program.app.get_subcommands();
  if (chosen.empty()) throw UserError("", "a verb is missing; see moelab --help");
  const int status = program.actions.at(chosen.front())();
  if (!std::cout.flush()) throw EnvironmentError("standard output cannot be written");
  return status;
}

void report(bool json, const std::string& path, const std::string& message) {
  if (json) {
    const Json answer = {{"error", {{"path", path}, {"message", message}}}};
    std::cout << answer.dump(2, ' ', false, Json::error_handler_t::replace) << std::endl;
  } else {
    std::cerr << "moelab: error: " << path << (path.empty() ? "" : ": ") << message << std::endl;
  }
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  const std::vector<std::string> words(argv, argv + argc);
  const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
  try {
    Program program;
    return dispatch(program, words);
  } catch (const UserError& error) {
    report(json, error.path(), error.message());
    return kUserErrorStatus;
  } catch (const std::bad_alloc&) {
    report(json, "", "out of memory");
  } catch (const EnvironmentError& error) {
    report(json, "", error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    report(json, "", error.what());
  } catch (const std::exception& error) {
    report(json, "", fmt::format("this is a defect of the program: {}", error.what()));
  }
  return kEnvironmentErrorStatus;
}

}  // namespace moelab
