#include "app/run/store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

#include "app/run/journal.h"
#include "app/run/provenance.h"
#include "sim/base/error.h"
#include "sim/base/ordered_parts.h"
#include "sim/data/npy/npy.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

/// Unique among the processes of all machines: host, process and the time in microseconds.
std::string new_journal_name() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return fmt::format("{}-{}-{}.jsonl", host_name(), ::getpid(),
                     std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

/// A failure has no numbers that could be lost: it gives way to any other state, and to a later failure.
bool supersedes(const Record& record, const Record& failure) {
  if (failure.state != "failed") return false;
  return record.state != "failed" || record.finished_at > failure.finished_at;
}

/// Where what stands at `here` says otherwise than what stands at `there`, down to the last number; empty
/// where it repeats it. Both places are read once more: few cells are recorded twice, and journals are long.
std::string difference_between(const JournalPlace& here, const JournalPlace& there) {
  try {
    const Record record = parse_record_line(line_at(here)), earlier = parse_record_line(line_at(there));
    if (same_numbers(record, earlier)) return "";
    return record_differences(record, earlier).front();
  } catch (const std::runtime_error& error) {
    return error.what();  // damage behind the part that was asked for
  }
}

/// By journal: the build that wrote it, and its vector level.
using Machines = std::unordered_map<const fs::path*, std::string>;

/// Two records of a cell that cannot both be right: what differs, where each comes from, and the way out.
UserError conflict(const std::string& cell, const JournalPlace& here, const JournalPlace& there,
                   const std::string& difference, const Machines& machines) {
  const fs::path directory = here.journal->parent_path().parent_path();
  return {
      name_of(here),
      fmt::format("cell {} has other numbers here than in {} ({}), by {} and by {}; moelab verify {} --keep "
                  "{}, or the other journal or newest in its place, keeps one of them and sets the others "
                  "aside",
                  cell, name_of(there), difference, machines.at(here.journal), machines.at(there.journal),
                  directory.string(), here.journal->filename().string())};
}

/// Reads every journal, as many at a time as there are processors; `refuse` takes each error.
template <class Refuse>
Records read_all(const fs::path& directory, RecordPart part, const Refuse& refuse) {
  Records records;
  std::unordered_map<const Record*, JournalPlace> places;
  const std::vector<fs::path> journals = journal_files(directory);
  Machines machines;
  const auto add = [&](JournalLine& line) {
    if (!line.damage.empty()) {
      refuse(
          UserError(name_of(line.place),
                    fmt::format("damaged record at byte {}: {}; remove the line to have its cell run again",
                                line.place.start, line.damage)));
      return;
    }
    const auto known = records.find(line.record.cell);
    if (known == records.end()) {
      std::string id = line.record.cell;
      const auto added = records.emplace(std::move(id), std::move(line.record)).first;
      places.emplace(&added->second, line.place);
      return;
    }
    Record& earlier = known->second;
    JournalPlace& earlier_place = places.at(&earlier);
    if (line.record.state == "failed" || earlier.state == "failed") {
      if (!supersedes(line.record, earlier)) return;
      earlier_place = line.place;
      earlier = std::move(line.record);
    } else if (const std::string difference = difference_between(line.place, earlier_place);
               !difference.empty()) {
      refuse(conflict(known->first, line.place, earlier_place, difference, machines));
    }
  };
  in_ordered_parts(
      journals.size(), [&](std::size_t i) { return read_journal(journals[i], part); },
      [&](std::size_t i, std::vector<JournalLine> lines) {
        Json provenance;
        try {
          provenance = read_journal_provenance(journals[i]);
        } catch (const UserError& error) {
          refuse(error);
        }
        const auto build = std::make_shared<const std::string>(build_name(provenance));
        machines[&journals[i]] =
            fmt::format("{} at vector level {}", *build,
                        provenance.is_object() ? provenance.value("vector_level", "unknown") : "unknown");
        for (JournalLine& line : lines) {
          line.record.build = build;
          add(line);
        }
      });
  return records;
}

}  // namespace

Records read_records(const fs::path& directory, RecordPart part) {
  return read_all(directory, part, [](const UserError& error) { throw error; });
}

Records read_records(const fs::path& directory, std::vector<std::string>& problems) {
  return read_all(directory, RecordPart::all,
                  [&](const UserError& error) { problems.push_back(error.what()); });
}

fs::path array_file(const fs::path& directory, const std::string& cell, const std::string& name) {
  return directory / "cells" / cell / (name + ".npy");
}

std::string array_bytes(const SavedArray& array) {
  if (!array.labels.empty()) return npy_bytes(array.shape, std::span<const std::int64_t>(array.labels));
  return npy_bytes(array.shape, std::span<const double>(array.values));
}

std::string array_problem(const fs::path& file, const std::string& recorded) {
  if (!fs::exists(file)) return "missing";
  return checksum(read_bytes(file)) == recorded ? "" : "other bytes than were recorded";
}

Record numbers_of(const std::string& cell_id, const CellResult& result, double seconds) {
  Record record = {cell_id,  state_name(result.state), result.message, result.metrics, result.trace, seconds,
                   utc_now()};
  record.spent = result.spent;
  return record;
}

std::string restore_arrays(const fs::path& directory, const Record& recorded, const CellResult& again) {
  Record record = numbers_of(recorded.cell, again, 0);
  std::map<std::string, std::string> bytes;
  for (const SavedArray& array : again.arrays) {
    bytes[array.name] = array_bytes(array);
    record.arrays[array.name] = checksum(bytes[array.name]);
  }
  const std::vector<std::string> differences = record_differences(recorded, record);
  if (!differences.empty()) return differences.front();
  for (const auto& [name, content] : bytes) update_file(array_file(directory, recorded.cell, name), content);
  return "";
}

StoreWriter::StoreWriter(const fs::path& directory)
    : directory_(directory),
      journal_name_(new_journal_name()),
      journal_(directory / "journal" / journal_name_) {}

void StoreWriter::write(const std::string& cell_id, const CellResult& result, double seconds) {
  Record record = numbers_of(cell_id, result, seconds);
  for (const SavedArray& array : result.arrays) {
    const std::string bytes = array_bytes(array);
    replace_file(array_file(directory_, cell_id, array.name), bytes);
    record.arrays[array.name] = checksum(bytes);
  }
  journal_.append(record_line(record));
}

}  // namespace moelab
