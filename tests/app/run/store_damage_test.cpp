/// Journals cut at every byte, and with every byte changed: read rightly, or refused with file and byte.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "app/store/store.h"
#include "sim/base/error.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::store_damage_test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCells = 3;

/// A journal of three cells.
struct Journal {
  TemporaryFolder folder;
  Records records;
  fs::path file;
  std::string text;

  Journal() {
    const Scenario scenario = small_scenario();
    {
      StoreWriter writer(folder.path());
      for (std::size_t i = 0; i < kCells; ++i)
        writer.write(scenario.cells[i].id, pretend_run(scenario.cells[i]), 0.5);
      file = folder.path() / "journal" / writer.journal_name();
    }
    records = read_records(folder.path());
    text = file_text(file);
    REQUIRE(records.size() == kCells);
  }
  Records read(const std::string& damaged) const {
    std::ofstream(file, std::ios::binary) << damaged;
    return read_records(folder.path());
  }
  /// Whether every record read is one that was written, to the last bit.
  bool holds(const Records& read) const {
    return std::all_of(read.begin(), read.end(), [&](const auto& record) {
      const auto written = records.find(record.first);
      return written != records.end() && same_numbers(written->second, record.second);
    });
  }
};

}  // namespace

TEST_CASE("store: a journal cut at any byte keeps its whole lines") {
  const Journal journal;
  for (std::size_t size = 0; size <= journal.text.size(); ++size) {
    const std::string kept = journal.text.substr(0, size);
    const Records read = journal.read(kept);
    CHECK(read.size() == static_cast<std::size_t>(std::count(kept.begin(), kept.end(), '\n')));
    CHECK(journal.holds(read));
  }
}

TEST_CASE("store: a journal with any byte changed is refused at its line, or loses its last line alone") {
  const Journal journal;
  int refused = 0, dropped = 0;
  for (std::size_t place = 0; place < journal.text.size(); ++place) {
    std::string others = "\n";
    others += '\0';
    for (const int bit : {0, 5, 7}) others += static_cast<char>(journal.text[place] ^ (1 << bit));
    for (const char other : others) {
      if (other == journal.text[place]) continue;
      std::string damaged = journal.text;
      damaged[place] = other;
      try {
        const Records read = journal.read(damaged);
        const bool is_right =
            read.size() == kCells - 1 && place + 1 == journal.text.size() && journal.holds(read);
        CHECK_MESSAGE(is_right, "byte ", place, " as ", static_cast<int>(other), " was read");
        ++dropped;
      } catch (const UserError& error) {
        const std::size_t line_start = place == 0 ? 0 : journal.text.rfind('\n', place - 1) + 1;
        const std::string named = fmt::format("damaged record at byte {}: ", line_start);
        const bool is_named =
            error.path().starts_with(journal.file.string() + ":") && error.message().starts_with(named);
        CHECK_MESSAGE(is_named, error.what(), "; changed byte ", place);
        ++refused;
      }
    }
  }
  CHECK(dropped == 4);  // the newline of the last line, as any of the others
  CHECK(refused > 4 * (static_cast<int>(journal.text.size()) - 1));
}

TEST_CASE("store: a second record is refused where it is damaged behind what is read") {
  const Journal journal;
  const fs::path second = journal.file.parent_path() / "zzz.jsonl";
  const std::string cell = journal.records.begin()->first;
  std::ofstream(second, std::ios::binary)
      << sealed_line("{\"cell\":\"" + cell + R"(","state":"done","metrics":{},"trace":[3]})") << '\n';
  try {
    read_records(journal.folder.path(), RecordPart::state);
    FAIL("was not refused");
  } catch (const UserError& error) {
    CHECK(error.path() == second.string() + ":1");
  }
}

TEST_CASE("store: a record that was changed and signed again is other numbers, and both journals are named") {
  const Journal journal;
  Record record = journal.records.begin()->second;
  record.metrics.begin()->second *= 1 + 1e-15;
  const fs::path second = journal.file.parent_path() / "zzz.jsonl";
  std::ofstream(second, std::ios::binary) << record_line(record) << '\n';
  try {
    read_records(journal.folder.path(), RecordPart::state);
    FAIL("was not refused");
  } catch (const UserError& error) {
    CHECK(error.path() == second.string() + ":1");
    CHECK(error.message().find(journal.file.string() + ":") != std::string::npos);
  }
}

}  // namespace moelab::store_damage_test
