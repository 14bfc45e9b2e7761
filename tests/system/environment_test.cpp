/// The built program where the system gives less than it asks for, takes its files away, or replaces
/// them: a status and a sentence, never a crash, a hang or a defect.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>

#include "tests/app/cli/tiny_run.h"
#include "tests/system/run_directory.h"

namespace moelab::environment_test {
namespace {

namespace fs = std::filesystem;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kOwnAddresses = false;  // sanitizers need terabytes of addresses
#else
constexpr bool kOwnAddresses = true;
#endif

/// Eight cells of some tenths of a second.
Json slow_cells() {
  Json scenario = tiny();
  scenario["train"]["steps"] = 40000;
  return scenario;
}

/// A run that has recorded a cell, and goes on.
struct Running : Bench {
  fs::path log = folder.path() / "log";
  std::vector<std::string> command = {"run", file, "--out", run, "--threads", "1"};
  pid_t process;
  explicit Running(const std::string& preparation = "") : Bench(slow_cells()) {
    std::vector<std::string> words = {"sh", "-c", preparation + " exec \"$@\"", "sh", program()};
    words.insert(words.end(), command.begin(), command.end());
    process = start_program(words, log);
    REQUIRE(wait_until([&] { return recorded_lines(run) > 0; }));
  }
  std::string errors() const { return file_text(log.string() + ".err"); }
};

/// Runs the program after a command of the shell, such as one that limits what it may use.
int call_after(const std::string& preparation, std::vector<std::string> words, const fs::path& log) {
  words.insert(words.begin(), {"sh", "-c", preparation + " && exec \"$@\"", "sh", program()});
  return wait_for(start_program(words, log));
}

/// The program ends with status 3 and one sentence that names `place`.
void check_refused(const std::vector<std::string>& words, const fs::path& log, const std::string& place) {
  CAPTURE(words[0]);
  CHECK(call(words, log) == 3);
  const std::string error = file_text(log.string() + ".err");
  CHECK_MESSAGE(error.starts_with("moelab: error: "), error);
  CHECK_MESSAGE(error.find(place) != std::string::npos, error);
  CHECK_MESSAGE(error.find("defect") == std::string::npos, error);
}

void replace_by_pipe(const fs::path& file) {
  fs::remove_all(file);
  REQUIRE(::mkfifo(file.c_str(), 0666) == 0);
}

fs::path only_file(const fs::path& folder) {
  return fs::directory_iterator(folder)->path();
}

}  // namespace

TEST_CASE("environment: a hang-up and a quit end a run like a termination, to be resumed") {
  for (const int signal : {SIGHUP, SIGQUIT}) {
    const Running running;
    ::kill(running.process, signal);
    CHECK(wait_for(running.process) == 130);
    CHECK(running.errors().find("the same command resumes") != std::string::npos);
    CHECK(call(running.command, running.log) == 0);
    CHECK(recorded_lines(running.run) == 8);
  }
}

TEST_CASE("environment: a signal that was ignored from the start stays so") {
  for (const auto& [name, signal] :
       {std::pair{"HUP", SIGHUP}, {"QUIT", SIGQUIT}, {"INT", SIGINT}, {"TERM", SIGTERM}}) {
    const Running running(std::string("trap '' ") + name + ";");
    ::kill(running.process, signal);
    CHECK(wait_for(running.process) == 0);
    CHECK(recorded_lines(running.run) == 8);
  }
}

TEST_CASE("environment: a reader that has seen enough ends an export without a word") {
  const Bench bench;
  const fs::path log = bench.folder.path() / "log";
  REQUIRE(call({"run", bench.file, "--out", bench.run}, log) == 0);
  const std::string piped = "\"$0\" schema | head -n 1";
  CHECK(wait_for(start_program({"sh", "-c", piped, program()}, log)) == 0);
  CHECK(file_text(log) == "{\n");
  CHECK(file_text(log.string() + ".err").empty());
}

TEST_CASE("environment: a limit of files' sizes is a disk that refuses") {
  const Bench bench;
  const fs::path log = bench.folder.path() / "log";
  const std::vector<std::string> command = {"run", bench.file, "--out", bench.run};
  CHECK(call_after("ulimit -f 2", command, log) == 3);
  const std::string error = file_text(log.string() + ".err");
  CHECK_MESSAGE(error.find("File too large") != std::string::npos, error);
  CHECK(call(command, log) == 0);
}

TEST_CASE("environment: with fewer threads than asked for a run goes on, with none it says so") {
  if (!kOwnAddresses) return;
  const Bench bench;
  const fs::path log = bench.folder.path() / "log";
  const std::vector<std::string> command = {"run", bench.file, "--out", bench.run, "--threads", "8"};
  // Each thread takes addresses for a stack as large as the limit of the first one's.
  CHECK(call_after("ulimit -s 1048576 && ulimit -v 200000", command, log) == 3);
  const std::string none = file_text(log.string() + ".err");
  CHECK_MESSAGE(none.starts_with("moelab: error: no thread can be started"), none);
  CHECK(recorded_lines(bench.run) == 0);
  CHECK(call_after("ulimit -s 1048576 && ulimit -v 1500000", command, log) == 0);
  const std::string some = file_text(log.string() + ".err");
  CHECK_MESSAGE(some.find("1 of 8 threads could be started") != std::string::npos, some);
  CHECK(recorded_lines(bench.run) == 8);
  // Reading results beside the plan takes a thread, too.
  CHECK(call_after("ulimit -s 1048576 && ulimit -v 200000", {"export", bench.run}, log) == 0);
}

TEST_CASE("environment: a journal that goes while the run works ends it, and the same command goes on") {
  for (const bool with_folder : {false, true}) {
    const Running running;
    const fs::path journals = fs::path(running.run) / "journal";
    fs::remove_all(with_folder ? journals : only_file(journals));
    CHECK(wait_for(running.process) == 3);
    CHECK_MESSAGE(running.errors().find("was removed or replaced while it was written") != std::string::npos,
                  running.errors());
    CHECK(call(running.command, running.log) == 0);
    CHECK(recorded_lines(running.run) == 8);
  }
}

TEST_CASE("environment: a pipe in a run folder is refused and never waited for") {
  Json scenario = tiny();
  scenario["figures"] = Json::parse(R"([{"id": "loss", "x": "data.train_samples", "y": "test_loss_soft"}])");
  const auto verbs = [](const Bench& bench) {
    return std::vector<std::vector<std::string>>{
        {"status", bench.run}, {"claims", bench.run}, {"export", bench.run},
        {"report", bench.run}, {"verify", bench.run}, {"run", bench.file, "--out", bench.run}};
  };
  const Bench bench(scenario);
  const fs::path log = bench.folder.path() / "log", run = bench.run;
  REQUIRE(call({"run", bench.file, "--out", bench.run, "--share", "0/1"}, log) == 0);

  const fs::path pipe = run / "journal" / "pipe.jsonl";
  replace_by_pipe(pipe);
  for (const std::vector<std::string>& words : verbs(bench)) check_refused(words, log, pipe.string());
  fs::remove(pipe);
  fs::create_directory(pipe);
  check_refused({"status", bench.run}, log, pipe.string());
  fs::remove(pipe);

  const fs::path session = only_file(run / "sessions");
  const std::string text = file_text(session);
  replace_by_pipe(session);
  check_refused({"status", bench.run}, log, session.string());
  fs::remove(session);
  for (const char* field : {"version", "started_at"}) {
    Json changed = Json::parse(text);
    changed[field] = {7};
    std::ofstream(session) << changed;
    check_refused({"status", bench.run}, log, session.string() + ": " + field);
  }
  std::ofstream(session) << text;

  replace_by_pipe(run / "provenance.json");  // gathered from the sessions, and never read
  CHECK(call({"report", bench.run}, log) == 0);
  fs::remove(run / "provenance.json");

  fs::create_directory(run / "figures");
  replace_by_pipe(run / "figures" / "loss.svg");
  check_refused({"plot", bench.run}, log, "loss.svg");
  CHECK(fs::is_fifo(run / "figures" / "loss.svg"));
  fs::remove(run / "figures" / "loss.svg");
  CHECK(call({"plot", bench.run}, log) == 0);
  for (const fs::directory_entry& entry : fs::directory_iterator(run))
    CHECK_FALSE(entry.path().extension() == ".tmp");

  replace_by_pipe(run / "plan.json");
  check_refused({"status", bench.run}, log, "plan.json");
  check_refused({"run", bench.file, "--out", bench.run}, log, "plan.json");
}

TEST_CASE("environment: a scenario in a pipe or a device is refused and never waited for") {
  const TemporaryFolder folder;
  const fs::path log = folder.path() / "log";
  replace_by_pipe(folder.path() / "pipe");
  for (const std::string& file : {(folder.path() / "pipe").string(), std::string("/dev/zero")}) {
    CHECK(call({"run", file}, log) == 2);
    CHECK(file_text(log.string() + ".err").find("is a pipe or a device") != std::string::npos);
  }
}

TEST_CASE("environment: paths are any bytes") {
  const TemporaryFolder folder;
  const fs::path log = folder.path() / "log", place = folder.path() / "\xff\xfe";
  const std::string file = (place / "\xe9.json").string(), run = (place / "\xe8").string();
  fs::create_directory(place);
  std::ofstream(file) << tiny();
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"validate", file},
                                             {"plan", file, "--out", run},
                                             {"run", file, "--out", run},
                                             {"status", run},
                                             {"claims", run},
                                             {"export", run},
                                             {"export", run, "--out", (place / "\xe7").string()},
                                             {"verify", run},
                                             {"plot", run},
                                             {"report", run},
                                             {"compare", run, run},
                                             {"agreement", run},
                                             {"slurm", file, "--out", run},
                                             {"sample", file, "--out", (place / "\xe6").string()}}) {
    CAPTURE(words[0]);
    const int plain = call(words, log);
    CHECK_MESSAGE((plain == 0 || plain == 2), file_text(log.string() + ".err"));
    std::vector<std::string> asked = words;
    asked.push_back("--json");
    CHECK(call(asked, log) == plain);
    CHECK_FALSE(Json::parse(file_text(log), nullptr, false).is_discarded());
    CHECK(file_text(log.string() + ".err").find("defect") == std::string::npos);
  }
}

}  // namespace moelab::environment_test
