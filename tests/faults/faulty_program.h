#pragma once

/// The program under test with the library of preload.h: a call that fails, or a trace of what it changes.

#include <algorithm>
#include <cstring>
#include <ctime>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/random.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/app/run/test_scenario.h"
#include "tests/faults/call_table.h"
#include "tests/system/process.h"

namespace moelab::faults {

/// Environment variables that stand for as long as the object lives.
class Variables {
 public:
  explicit Variables(const std::map<std::string, std::string>& values) {
    for (const auto& [name, value] : values) {
      names_.push_back(name);
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~Variables() {
    for (const std::string& name : names_) ::unsetenv(name.c_str());
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  std::vector<std::string> names_;
};

/// Whether the tests try all points and states, which takes minutes, or a sample of them.
inline bool whole() {
  return std::getenv("MOELAB_FAULTS_WHOLE") != nullptr;
}

/// MOELAB_FAULTS_SEED, or 1 for a sample, or the time; printed, so that what was found is found again.
inline int chosen_seed() {
  const char* const given = std::getenv("MOELAB_FAULTS_SEED");
  const int seed = given != nullptr ? std::atoi(given) : whole() ? static_cast<int>(std::time(nullptr)) : 1;
  MESSAGE("MOELAB_FAULTS_SEED=", seed);
  return seed;
}

inline Engine chosen_engine() {
  return Seeds{static_cast<std::uint64_t>(chosen_seed()), 0}.stream(Purpose::shuffles);
}

/// Calls `first` … `last` of a kind fail; without a kind none does.
struct Fault {
  const CallEntry* call = nullptr;
  int error = 0;
  std::uint64_t first = 0, last = 0;
};

inline std::string text_of(const Fault& fault) {
  const std::string times = fault.last == fault.first ? " alone" : " and all after it";
  const std::string error = fault.error == kHalf ? "half of it" : std::strerror(fault.error);
  return std::string(fault.call->name) + " " + std::to_string(fault.first) + times + ": " + error;
}

struct Ended {
  int status = 0;
  std::string out, err;
  std::uint64_t seen = 0, failed = 0;  ///< calls of the fault's kind
};

/// The library's settings, with its files in `folder`. Calls on files below `watched` count.
inline std::map<std::string, std::string> variables_of(const Fault& fault,
                                                       const std::filesystem::path& folder,
                                                       const std::filesystem::path& watched) {
  const char* const library = std::getenv("MOELAB_FAULTS_LIBRARY");
  REQUIRE_MESSAGE(library != nullptr, "MOELAB_FAULTS_LIBRARY names the library of tests/faults");
  const std::filesystem::path counts = folder / "counts";
  // A new file: a process that is still running has the former one mapped and would not survive its cut.
  std::filesystem::remove(counts);
  std::ofstream(counts, std::ios::binary) << std::string(2 * sizeof(std::uint64_t), '\0');
  std::map<std::string, std::string> variables = {{"LD_PRELOAD", library},
                                                  {"MOELAB_FAULT_FOLDER", watched.string()},
                                                  {"MOELAB_FAULT_COUNTS", counts.string()},
                                                  {"MOELAB_FAULT_FIRST", std::to_string(fault.first)},
                                                  {"MOELAB_FAULT_LAST", std::to_string(fault.last)},
                                                  {"MOELAB_FAULT_ERROR", std::to_string(fault.error)}};
  if (fault.call != nullptr) variables["MOELAB_FAULT_CALL"] = fault.call->name;
  return variables;
}

/// Runs the program to its end with `fault`.
inline Ended run_with(const Fault& fault, const std::vector<std::string>& words,
                      const std::filesystem::path& folder, const std::filesystem::path& watched) {
  Ended ended;
  {
    const Variables variables(variables_of(fault, folder, watched));
    ended.status = call(words, folder / "out");
  }
  ended.out = file_text(folder / "out");
  ended.err = file_text(folder / "out.err");
  const std::string counts = file_text(folder / "counts");
  std::memcpy(&ended.seen, counts.data(), sizeof ended.seen);
  std::memcpy(&ended.failed, counts.data() + sizeof ended.seen, sizeof ended.failed);
  return ended;
}

/// What was found wrong, gathered by kind: one defect shows at many points.
class Findings {
 public:
  void add(const std::string& kind, const std::string& example) {
    auto& [count, first] = found_[kind];
    if (count++ == 0) first = example;
  }
  int count() const {
    int sum = 0;
    for (const auto& [kind, found] : found_) sum += found.first;
    return sum;
  }
  ~Findings() {
    for (const auto& entry : found_)
      CHECK_MESSAGE(false, entry.first, " (", entry.second.first, " times), first: ", entry.second.second);
  }
  Findings() = default;
  Findings(const Findings&) = delete;
  Findings& operator=(const Findings&) = delete;

 private:
  std::map<std::string, std::pair<int, std::string>> found_;
};

/// The number of lines that say something.
inline std::ptrdiff_t sentences(const std::string& text) {
  std::ptrdiff_t lines = std::count(text.begin(), text.end(), '\n');
  return text.empty() || text.back() == '\n' ? lines : lines + 1;
}

/// The text without the lines that a run may print before it fails: its progress and its notes.
inline std::string without_notes(const std::string& text) {
  std::istringstream lines(text);
  std::string rest;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("cells ") && !line.starts_with("moelab: note: ")) rest += line + '\n';
  return rest;
}

}  // namespace moelab::faults
