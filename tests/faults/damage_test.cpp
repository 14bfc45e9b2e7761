/// Bytes of every file of a run folder are changed: each reader refuses in a sentence, or answers as before.

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "tests/app/cli/answer.h"
#include "tests/faults/faulty_program.h"

namespace moelab::damage_test {
namespace {

namespace fs = std::filesystem;
using namespace moelab::faults;

/// Files up to this size are changed at every byte, larger ones at as many bytes.
constexpr std::size_t kSmall = 4096;
/// Readers that draw or write take their time: one in so many changes is shown to them.
constexpr int kSeldom = 40;

Json scenario_with_all_files() {
  Json scenario = tiny();
  scenario["sweep"] = {{"data.train_samples", {20}}};
  scenario["save"] = {"weights"};
  scenario["claims"] = Json::parse(R"([{"id": "learned_beats_frozen", "op": "<",
    "left": {"arm": "learned", "metric": "test_nmse_top1"},
    "right": {"arm": "frozen", "metric": "test_nmse_top1"}, "at": "each"}])");
  scenario["figures"] =
      Json::parse(R"([{"id": "loss", "x": "step", "y": "test_nmse_top1", "series": "arm"}])");
  return scenario;
}

/// plan.json, provenance.json, session, journal, array, … of a file's place in the folder.
std::string kind_of(const fs::path& file) {
  const std::string first = file.begin()->string();
  if (file.has_parent_path() && first == "figures") return "figure" + file.extension().string();
  return file.has_parent_path() ? first : file.string();
}

struct DamageBench : Bench {
  fs::path here = folder.path(), whole_run = here / "whole";
  Answer table;
  std::map<std::string, Answer> answers;  ///< of the undisturbed folder by reader
  Findings findings;

  DamageBench() : Bench(scenario_with_all_files()) {
    REQUIRE(ask({"run", file, "--out", run, "--threads", "1"}).status == 0);
    REQUIRE(ask({"report", run}).status == 0);
    for (const char* reader : {"export", "status", "claims", "verify", "report", "plot"}) {
      answers[reader] = answer_of(reader);
      REQUIRE(answers[reader].status == 0);
    }
    table = answers["export"];
    fs::copy(run, whole_run, fs::copy_options::recursive);
  }

  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(whole_run))
      if (entry.is_regular_file()) found.push_back(entry.path().lexically_relative(whole_run));
    std::sort(found.begin(), found.end());
    return found;
  }

  /// What a reader says, and what it writes.
  Answer answer_of(const std::string& reader) const {
    Answer answer = ask({reader, run});
    if (answer.status != 0) return answer;
    if (reader == "report") answer.out += file_text(fs::path(run) / "report.html");
    if (reader == "plot") answer.out += file_text(fs::path(run) / "figures" / "loss.csv");
    return answer;
  }

  void restore() const {
    fs::remove_all(run);
    fs::copy(whole_run, run, fs::copy_options::recursive);
  }

  void judge(const std::string& reader, const Answer& answer, const std::string& place,
             const std::string& example) {
    const std::string kind = place + ", " + reader + ": ";
    if (answer.status == 0) {
      if (answer.out != answers[reader].out) findings.add(kind + "another answer", example);
    } else if (answer.status == 1 && reader == "verify") {
      if (answer.out.find("problem: ") == std::string::npos) findings.add(kind + "no problem named", example);
    } else if (answer.status != 2 && answer.status != 3) {
      findings.add(kind + "status " + std::to_string(answer.status), example + answer.err);
    } else if (sentences(answer.err) != 1 || answer.err.find("defect") != std::string::npos) {
      findings.add(kind + "not one sentence", example + answer.err);
    }
  }

  /// Shows `bytes` in place of a file to the readers.
  void show(const fs::path& damaged, const std::string& bytes, const std::string& example, bool to_all) {
    const fs::path target = run / damaged;
    const std::string place = kind_of(damaged);
    const auto damage = [&] { std::ofstream(target, std::ios::binary) << bytes; };
    damage();
    for (const char* reader : {"export", "status", "verify"})
      judge(reader, answer_of(reader), place, example);
    if (to_all) {
      for (const char* reader : {"claims", "report", "plot"}) {
        damage();  // what a reader writes may have replaced it
        judge(reader, answer_of(reader), place, example);
      }
      damage();
      const Answer again = ask({"run", file, "--out", run, "--threads", "1"});
      if (again.status == 0) {
        if (ask({"export", run}).out != table.out) findings.add(place + ", run: another export", example);
      } else if (again.status != 2 && again.status != 3) {
        findings.add(place + ", run: status " + std::to_string(again.status), example + again.err);
      }
      restore();
    } else {
      std::ofstream(target, std::ios::binary) << file_text(whole_run / damaged);
    }
  }
};

/// Figures and reports are made anew, and nobody reads them.
bool is_derived(const std::string& kind) {
  return kind.starts_with("figure") || kind == "report.html";
}

/// The places at which a file is changed.
std::vector<std::size_t> places_of(const std::string& kind, std::size_t size, Engine& engine) {
  std::vector<std::size_t> places;
  if (whole() && size <= kSmall && !is_derived(kind)) {
    for (std::size_t i = 0; i < size; ++i) places.push_back(i);
    return places;
  }
  const std::size_t count = is_derived(kind) ? 4 : whole() ? kSmall / 4 : 12;
  for (std::size_t i = 0; i < count && size > 0; ++i)
    places.push_back(static_cast<std::size_t>(draw_index(engine, static_cast<int>(size))));
  return places;
}

}  // namespace

TEST_CASE("run folder: a changed byte of any file is refused or changes no answer") {
  DamageBench bench;
  Engine engine = chosen_engine();
  std::map<std::string, int> changes;
  int shown = 0;
  for (const fs::path& file : bench.files()) {
    const std::string text = file_text(bench.whole_run / file);
    const std::string kind = kind_of(file);
    // A journal's last line without its newline is one that a killed process did not finish.
    const bool is_journal = kind == "journal";
    for (const std::size_t place : places_of(kind, is_journal ? text.size() - 1 : text.size(), engine)) {
      std::string bytes = text;
      // A bit, or any other byte.
      const int change =
          draw_index(engine, 2) == 0 ? 1 << draw_index(engine, 8) : 1 + draw_index(engine, 255);
      bytes[place] = static_cast<char>(bytes[place] ^ change);
      ++changes[kind];
      bench.show(file, bytes,
                 file.string() + ", byte " + std::to_string(place) + " of " + std::to_string(text.size()) +
                     " changed from " + std::to_string(static_cast<unsigned char>(text[place])) + " to " +
                     std::to_string(static_cast<unsigned char>(bytes[place])) + "\n",
                 shown++ % kSeldom == 0);
    }
    for (int cut = 0; cut < (whole() ? 20 : 2) && !is_journal && !text.empty(); ++cut) {
      const int size = draw_index(engine, static_cast<int>(text.size()));
      ++changes[kind];
      bench.show(file, text.substr(0, static_cast<std::size_t>(size)),
                 file.string() + " cut to " + std::to_string(size) + " bytes\n", shown++ % kSeldom == 0);
    }
  }
  for (const auto& [kind, count] : changes) MESSAGE(std::string(kind), ": ", count, " changes");
  for (const char* kind : {"plan.json", "provenance.json", "sessions", "journal", "cells", "claims.json"})
    CHECK_MESSAGE(changes[kind] > 0, kind);
}

}  // namespace moelab::damage_test
