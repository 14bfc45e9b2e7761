#include "app/run/store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <unordered_map>
#include <utility>

#include "app/run/provenance.h"
#include "sim/base/error.h"
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

/// Where a record stands: its line is `size` bytes from `start`.
struct Place {
  const fs::path* journal = nullptr;
  const std::string* machine = nullptr;  ///< the build that wrote it, and its vector level
  std::size_t number = 0, start = 0, size = 0;
};

std::string name_of(const Place& place) {
  return fmt::format("{}:{}", place.journal->string(), place.number);
}

std::string line_at(const Place& place) {
  std::ifstream stream(*place.journal, std::ios::binary);
  std::string line(place.size, '\0');
  stream.seekg(static_cast<std::streamoff>(place.start));
  stream.read(line.data(), static_cast<std::streamsize>(line.size()));
  return line;
}

/// Where what stands at `here` says otherwise than what stands at `there`, down to the last number; empty
/// where it repeats it. Both places are read once more: few cells are recorded twice, and journals are long.
std::string difference_between(const Place& here, const Place& there) {
  try {
    const Record record = parse_record_line(line_at(here)), earlier = parse_record_line(line_at(there));
    if (same_numbers(record, earlier)) return "";
    return record_differences(record, earlier).front();
  } catch (const std::runtime_error& error) {
    return error.what();  // damage behind the part that was asked for
  }
}

/// Two records of a cell that cannot both be right: what differs, where each comes from, and the way out.
UserError conflict(const std::string& cell, const Place& here, const Place& there,
                   const std::string& difference) {
  const fs::path directory = here.journal->parent_path().parent_path();
  return {
      name_of(here),
      fmt::format("cell {} has other numbers here than in {} ({}), by {} and by {}; moelab verify {} --keep "
                  "{}, or the other journal or newest in its place, keeps one of them and sets the others "
                  "aside",
                  cell, name_of(there), difference, *here.machine, *there.machine, directory.string(),
                  here.journal->filename().string())};
}

/// A line of a journal: its record, or what is wrong with it.
struct Line {
  Place place;
  Record record;
  std::string damage;
};

/// The lines of a journal, each held against its checksum.
std::vector<Line> read_lines(const fs::path& journal, RecordPart part) {
  std::vector<Line> lines;
  std::ifstream stream(journal, std::ios::binary);
  stream.exceptions(std::ios::badbit);  // too little memory for a line would end the file otherwise
  Place place = {&journal};
  // A line that ends with the file is of a killed process, or of one that is writing.
  for (std::string text; std::getline(stream, text) && !stream.eof(); place.start += text.size() + 1) {
    ++place.number;
    place.size = text.size();
    lines.push_back({place, {}, ""});
    try {
      lines.back().record = parse_record_line(text, part);
    } catch (const std::bad_alloc&) {
      throw;  // nothing is known of the record
    } catch (const std::exception& error) {
      lines.back().damage = error.what();
    }
  }
  if (!stream.eof()) throw EnvironmentError(journal.string() + ": cannot be read");
  return lines;
}

/// Reads every journal, as many at a time as there are processors; `refuse` takes each error.
template <class Refuse>
Records read_all(const fs::path& directory, RecordPart part, const Refuse& refuse) {
  Records records;
  std::unordered_map<const Record*, Place> places;
  const std::vector<fs::path> journals = journal_files(directory);
  std::deque<std::string> machines;
  const auto add = [&](Line& line) {
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
    Place& earlier_place = places.at(&earlier);
    if (line.record.state == "failed" || earlier.state == "failed") {
      if (!supersedes(line.record, earlier)) return;
      earlier_place = line.place;
      earlier = std::move(line.record);
    } else if (const std::string difference = difference_between(line.place, earlier_place);
               !difference.empty()) {
      refuse(conflict(known->first, line.place, earlier_place, difference));
    }
  };
  const std::size_t at_a_time = std::max(1u, std::thread::hardware_concurrency());
  for (std::size_t first = 0; first < journals.size(); first += at_a_time) {
    // One alone needs no thread; where none can be started it is read when it is asked for.
    const auto policy =
        journals.size() == 1 ? std::launch::deferred : std::launch::async | std::launch::deferred;
    std::vector<std::future<std::vector<Line>>> read;
    for (std::size_t i = first; i < std::min(first + at_a_time, journals.size()); ++i)
      read.push_back(std::async(policy, read_lines, std::cref(journals[i]), part));
    for (std::size_t i = 0; i < read.size(); ++i) {
      Json provenance;
      try {
        provenance = read_journal_provenance(journals[first + i]);
      } catch (const UserError& error) {
        refuse(error);
      }
      const auto build = std::make_shared<const std::string>(build_name(provenance));
      machines.push_back(
          fmt::format("{} at vector level {}", *build,
                      provenance.is_object() ? provenance.value("vector_level", "unknown") : "unknown"));
      for (Line& line : read[i].get()) {
        line.place.machine = &machines.back();
        line.record.build = build;
        add(line);
      }
    }
  }
  return records;
}

}  // namespace

std::vector<fs::path> journal_files(const fs::path& directory) {
  std::vector<fs::path> files;
  const fs::path folder = directory / "journal";
  if (!fs::is_directory(folder)) return files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".jsonl") continue;
    if (!entry.is_regular_file())  // a pipe would be waited for
      throw EnvironmentError(entry.path().string() + ": is no regular file, as a journal has to be");
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

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

Record record_of(const std::string& cell_id, const CellResult& result, double seconds) {
  Record record = {cell_id,  state_name(result.state), result.message, result.metrics, result.trace, seconds,
                   utc_now()};
  for (const SavedArray& array : result.arrays) record.arrays[array.name] = checksum(array_bytes(array));
  return record;
}

std::string restore_arrays(const fs::path& directory, const Record& recorded, const CellResult& again) {
  const std::vector<std::string> differences =
      record_differences(recorded, record_of(recorded.cell, again, 0));
  if (!differences.empty()) return differences.front();
  for (const SavedArray& array : again.arrays)
    update_file(array_file(directory, recorded.cell, array.name), array_bytes(array));
  return "";
}

StoreWriter::StoreWriter(const fs::path& directory)
    : directory_(directory),
      journal_name_(new_journal_name()),
      journal_(directory / "journal" / journal_name_) {}

void StoreWriter::write(const std::string& cell_id, const CellResult& result, double seconds) {
  for (const SavedArray& array : result.arrays)
    replace_file(array_file(directory_, cell_id, array.name), array_bytes(array));
  journal_.append(record_line(record_of(cell_id, result, seconds)));
}

}  // namespace moelab
