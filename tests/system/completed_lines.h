#pragma once

/// What is typed in a shell, and what its line is after the Tab key; the same in every shell.

#include <fstream>

#include "tests/app/cli/tiny_run.h"
#include "tests/system/terminal.h"

namespace moelab {

/// A folder with scenarios, a run and the program as bin/moelab.
struct ShellBench : Bench {
  ShellBench() : Bench(scenario()) {
    const std::filesystem::path& here = folder.path();
    std::filesystem::create_directory(here / "bin");
    std::filesystem::create_symlink(program(), here / "bin" / "moelab");
    std::filesystem::copy_file(file, here / "my tiny.json");
    std::ofstream(here / "tiny.txt") << "no scenario";
    std::ofstream(here / "other.json") << R"({"extends": "tiny.json", "name": "other"})";
    std::ofstream(here / "broken.json") << R"({"profiles": {"quick")";
    REQUIRE(call({"run", file, "--out", run}, here / "out") == 0);
    cell = Json::parse(file_text(here / "run" / "plan.json")).at("cells").at(0).at("id").get<std::string>();
  }

  static Json scenario() {
    Json scenario = tiny();
    scenario["profiles"] = {{"quick", {{"train.steps", 2}}}};
    scenario["arms"]["$(touch made)"] = Json::object();
    return scenario;
  }

  std::map<std::string, std::string> environment() const {
    const char* const path = std::getenv("PATH");
    const std::string home = folder.path().string();
    return {{"PATH", home + "/bin:" + (path ? path : "")},
            {"HOME", home},
            {"ZDOTDIR", home},
            {"TERM", "vt100"},
            {"LC_ALL", "C.UTF-8"}};
  }

  std::string cell;
};

struct CompletedLine {
  std::string typed;
  std::string added;  ///< by the shell: a space where the word is whole
};

/// Lines that go on in one way alone.
inline std::vector<CompletedLine> completed_lines(const ShellBench& bench) {
  const std::string start = "moelab run tiny.json --";
  return {
      {"moelab valid", "ate "},
      {"moelab run --prof", "ile "},
      {"moelab run ti", "ny.json "},
      {"moelab run my", "\\ tiny.json "},
      {"moelab plot ru", "n/"},
      {"moelab export run --out=ti", "ny."},
      {"moelab analyze --probs tiny.t", "xt "},
      {start + "profile q", "uick "},
      {start + "profile=q", "uick "},
      {"moelab run other.json --profile q", "uick "},
      {"moelab run ~/tiny.json --profile q", "uick "},
      {"moelab run my\\ tiny.json --profile q", "uick "},
      {"moelab run broken.json --profile q", ""},
      {"moelab run no.json --profile q", ""},
      {start + "set seeds.c", "ount="},
      {start + "set tra", "in."},
      {start + "set model.router.ki", "nd="},
      {start + "set model.router.kind=pert", "urbed_cosine "},
      {start + "set=model.router.kind=pert", "urbed_cosine "},
      {start + "set model.router.kind=cosine --set model.router.proj", "ection_dim="},
      {"moelab list rou", "ters "},
      {"moelab check graph", "_of_tokens2025"},
      {"moelab check acmoe2025.lemma1.cr", "iterion "},
      {"moelab compare run --metric router_n", "orm_ratio "},
      {"moelab sample tiny.json --arm f", "rozen "},
      {"moelab sample tiny.json --at da", "ta.train_samples="},
      {"moelab sample tiny.json --at data.train_samples=4", "0 "},
      {"moelab reproduce run " + bench.cell.substr(0, 8), bench.cell.substr(8) + " "},
      {"moelab completion f", "ish "},
      {"bin/moelab valid", "ate "},
  };
}

}  // namespace moelab
