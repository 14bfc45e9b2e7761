#pragma once

/// The readers of what users and disks hand in, each as a function of arbitrary bytes. It returns whether the
/// bytes were accepted; refusals are UserErrors. Anything else that is thrown, and every finding of a
/// sanitizer, is a defect: std::logic_error where a property below does not hold. libFuzzer calls these
/// functions, and tests/fuzz/corpus_test.cpp with the corpora.

#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "app/run/store.h"
#include "app/scenario/overrides.h"
#include "app/scenario/scenario.h"
#include "app/scenario/scenario_shape.h"
#include "app/scenario/sweep.h"
#include "sim/base/error.h"
#include "sim/data/npy/npy.h"
#include "sim/data/npy/npy_reader.h"
#include "tests/app/commands/tiny_run.h"

namespace moelab {

inline void require(bool holds, const char* property) {
  if (!holds) throw std::logic_error(property);
}

/// A scenario of more cells is not expanded: one is as good as thousands, and faster.
constexpr std::size_t kFuzzedCells = 64;

/// The number of cells that a document asks for; 0 where it is refused before they are counted.
inline std::size_t asked_cells(const Json& document) {
  try {
    const Json resolved = resolve(scenario_shape(), document, "");
    const std::vector<SweepAxis> axes = read_sweep(resolved.value("sweep", Json::object()));
    const double arms = static_cast<double>(resolved.value("arms", Json::object()).size()) + 1;
    const double points = static_cast<double>(count_points(axes, kFuzzedCells));
    const double cells = arms * points * resolved.at("seeds").at("count").get<double>();
    return static_cast<std::size_t>(std::min(cells, 1e6));
  } catch (const UserError&) {
    return 0;
  }
}

/// Canonical text is JSON that reads back to the same canonical text.
inline void check_canonical(const Json& value) {
  const std::string text = canonical_text(value);
  require(canonical_text(parse_json(text, "canonical")) == text, "canonical text reads back as another");
}

/// What is accepted comes out the same when it is written and read once more: each cell's id, and each
/// configuration with its defaults.
inline void check_expansion(const Scenario& scenario) {
  const Json again = parse_json(scenario.document.dump(), "again");
  const Scenario second = expand_scenario(again, "", {});
  require(second.cells.size() == scenario.cells.size(), "another number of cells when read again");
  for (std::size_t i = 0; i < scenario.cells.size(); ++i) {
    require(second.cells[i].id == scenario.cells[i].id, "another cell id when read again");
    const std::string text = canonical_text(scenario.cells[i].config.json());
    require(canonical_text(resolve(config_shape(), parse_json(text, "config"), "")) == text,
            "a resolved configuration resolves to another");
  }
}

/// Reads a scenario file: parse → validate → expand.
inline bool fuzz_scenario(std::string_view bytes) {
  try {
    const Json document = parse_json(bytes, "scenario.json");
    check_canonical(document);
    // Drawing means that lie far apart is no reading, and takes its time.
    if (asked_cells(document) > kFuzzedCells || bytes.find("separation") != std::string_view::npos)
      return false;
    check_expansion(expand_scenario(document, "", {}));
    return true;
  } catch (const UserError&) {
    return false;
  }
}

/// Reads the values of --set, one a line, for a scenario that is right without them.
inline bool fuzz_setting(std::string_view bytes) {
  std::vector<std::string> settings;
  for (std::size_t start = 0; start <= bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', start), bytes.size());
    settings.emplace_back(bytes.substr(start, end - start));
    start = end + 1;
  }
  if (settings.back().empty()) settings.pop_back();
  try {
    Json document = tiny();
    apply_overrides(scenario_shape(), read_settings(settings), document);
    if (asked_cells(document) > kFuzzedCells || bytes.find("separation") != std::string_view::npos)
      return false;
    check_expansion(expand_scenario(tiny(), "", settings));
    return true;
  } catch (const UserError&) {
    return false;
  }
}

/// Removed first: a file that is cut to nothing and written anew goes to the disk at once on some systems.
inline void write_anew(const std::filesystem::path& file, std::string_view bytes) {
  std::filesystem::remove(file);
  std::ofstream(file, std::ios::binary) << bytes;
}

/// What a directory holds whose one journal is these bytes; reading that stops at the first problem and
/// reading that collects problems agree.
struct JournalReading {
  Records records;
  std::vector<std::string> problems;
};

inline JournalReading read_journal(std::string_view bytes) {
  static const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "journal");
  write_anew(folder.path() / "journal" / "x.jsonl", bytes);
  JournalReading reading;
  reading.records = read_records(folder.path(), reading.problems);
  try {
    require(read_records(folder.path()).size() == reading.records.size() && reading.problems.empty(),
            "a problem that does not stop reading");
  } catch (const UserError&) {
    require(!reading.problems.empty(), "reading stops without a problem");
  }
  return reading;
}

/// Reads a journal; then, so that what lies behind the checksum is reached, too, its lines as records with
/// right checksums.
inline bool fuzz_journal(std::string_view bytes) {
  JournalReading reading = read_journal(bytes);
  const bool accepted = reading.problems.empty() && !reading.records.empty();
  std::string sealed;
  for (std::size_t start = 0; start < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', start), bytes.size());
    sealed += sealed_line(bytes.substr(start, end - start)) + '\n';
    start = end + 1;
  }
  reading.records.merge(read_journal(sealed).records);
  for (const auto& [cell, record] : reading.records) {
    const std::string line = record_line(record);
    const Record again = parse_record_line(line);
    require(same_numbers(again, record) && record_line(again) == line, "a record reads back as another");
  }
  return accepted;
}

/// The .npy file of an array.
inline std::string file_of(const std::vector<std::int64_t>& shape, const Matrix& values) {
  return npy_bytes(shape, std::span<const double>(values.data(), static_cast<std::size_t>(values.size())));
}

/// Reads a .npy file: whole, in part, and again after it has been written as float64.
inline bool fuzz_npy(std::string_view bytes) {
  static const TemporaryFolder folder;
  const std::filesystem::path given = folder.path() / "given.npy", rewritten = folder.path() / "again.npy";
  write_anew(given, bytes);
  try {
    const NpyReader array(given, "--probs");
    const Matrix values = array.read(0, array.rows());
    const std::string written = file_of(array.shape(), values);
    const Matrix last = values.bottomRows(1);
    require(file_of({last.size()}, array.read(array.rows() - 1, 1)) == file_of({last.size()}, last),
            "the last row is another when it is read alone");
    write_anew(rewritten, written);
    const NpyReader again(rewritten, "--probs");
    require(file_of(again.shape(), again.read(0, again.rows())) == written, "an array reads back as another");
    try {
      array.read_finite(0, array.rows());
      if (is_integer(array.type())) read_labels(array, 0, array.rows(), kLabelLimit);
    } catch (const UserError&) {  // a right file of wrong values
    }
    return true;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace moelab
