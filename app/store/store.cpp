#include "app/store/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "app/store/durable_file.h"
#include "app/store/journal.h"
#include "app/store/provenance.h"
#include "sim/base/error.h"
#include "sim/data/npy.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

/// Returns a name that is unique across machines: host, process and time in microseconds. A clock that stands
/// still and a process number that returns would repeat a name of the folder, so a number follows then.
std::string new_journal_name(const fs::path& folder) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::string start = fmt::format("{}-{}-{}", host_name(), ::getpid(),
                                        std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  std::string name = start + ".jsonl";
  std::error_code unseen;
  for (int i = 2; fs::exists(folder / name, unseen); ++i) name = fmt::format("{}-{}.jsonl", start, i);
  return name;
}

/// A failure has no numbers to lose. So any other state and any later failure replaces it.
bool supersedes(const Record& record, const Record& failure) {
  if (failure.state != "failed") return false;
  return record.state != "failed" || record.finished_at > failure.finished_at;
}

/// Returns how the record at `here` differs from the record at `there`, or an empty string if they are equal.
/// It reads both lines again, because few cells are recorded twice and journals are long.
std::string difference_between(const JournalPlace& here, const JournalPlace& there) {
  try {
    const Record record = parse_record_line(line_at(here)), earlier = parse_record_line(line_at(there));
    if (same_numbers(record, earlier)) return "";
    return record_differences(record, earlier).front();
  } catch (const std::runtime_error& error) {
    return error.what();  // damage after the requested part
  }
}

/// The build and the vector level that wrote a journal, by journal.
using Machines = std::unordered_map<const fs::path*, std::string>;

/// The error for two conflicting records of a cell: the difference, both places and the advice.
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

/// Calls take(i, compute(i)) for i = 0 … count − 1 in this order on the calling thread. As many threads as
/// there are processors compute the next parts meanwhile. A single part needs no thread. If no thread can be
/// started, a part is computed when it is taken. Throws what either function throws.
template <class Compute, class Take>
void in_ordered_parts(std::size_t count, const Compute& compute, const Take& take) {
  using Part = std::invoke_result_t<Compute, std::size_t>;
  const auto policy = count == 1 ? std::launch::deferred : std::launch::async | std::launch::deferred;
  const std::size_t most = std::max(1u, std::thread::hardware_concurrency());
  std::deque<std::future<Part>> parts;
  std::size_t next = 0;
  const auto start = [&] {
    for (; next < count && parts.size() < most; ++next)
      parts.push_back(std::async(policy, std::cref(compute), next));
  };
  start();
  for (std::size_t i = 0; i < count; ++i) {
    Part part = parts.front().get();
    parts.pop_front();
    start();
    take(i, std::move(part));
  }
}

/// Reads every journal in parallel, one thread per processor. `refuse` receives each error.
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
      journal_name_(new_journal_name(directory / "journal")),
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

namespace {

namespace fs = std::filesystem;

/// A record that may conflict with another one.
struct Contender {
  fs::path journal;
  std::string line;
  Record record;
};

/// Returns the records of all cells that are recorded more than once. Skips damaged lines and failed cells.
std::unordered_map<std::string, std::vector<Contender>> contenders(const std::vector<fs::path>& journals) {
  std::unordered_map<std::string, std::vector<JournalPlace>> places;
  for (const fs::path& journal : journals) {
    for (const JournalLine& line : read_journal(journal, RecordPart::state)) {
      if (line.damage.empty() && line.record.state != "failed")
        places[line.record.cell].push_back(line.place);
    }
  }
  std::unordered_map<std::string, std::vector<Contender>> found;
  for (const auto& [cell, of_cell] : places) {
    for (std::size_t i = 0; of_cell.size() > 1 && i < of_cell.size(); ++i) {
      const std::string line = line_at(of_cell[i]);
      try {
        found[cell].push_back({*of_cell[i].journal, line, parse_record_line(line)});
      } catch (const std::runtime_error&) {
        continue;
      }
    }
  }
  return found;
}

/// Returns the chosen journal. Empty for the newest record of each cell.
fs::path chosen_journal(const std::vector<fs::path>& journals, const std::string& given) {
  if (given == "newest") return {};
  std::vector<std::string> names;
  fs::path found;
  for (const fs::path& journal : journals) {
    names.push_back(journal.filename().string());
    if (!names.back().starts_with(given)) continue;
    if (!found.empty()) {
      throw UserError("--keep", fmt::format("'{}' begins more than one journal: {}, {}", given,
                                            found.filename().string(), names.back()));
    }
    found = journal;
  }
  names.push_back("newest");
  if (found.empty()) throw UserError("--keep", unknown_name("journal", given, names));
  return found;
}

/// A lock on a journal that no process writes. The destructor releases it.
class HeldJournal {
 public:
  explicit HeldJournal(const fs::path& journal) : descriptor_(::open(journal.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(descriptor_);
      throw UserError("--keep",
                      fmt::format("{} is being written by a process that lives; wait for it, or end it",
                                  journal.string()));
    }
  }
  ~HeldJournal() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  HeldJournal(const HeldJournal&) = delete;
  HeldJournal& operator=(const HeldJournal&) = delete;

 private:
  int descriptor_;
};

/// Moves lines from a journal to its .aside file.
fs::path move_lines(const fs::path& journal, const std::unordered_set<std::string>& lines) {
  const fs::path aside = journal.string() + ".aside";
  std::string kept, moved = fs::exists(aside) ? read_bytes(aside) : "";
  const std::string text = read_bytes(journal);
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size() - 1) + 1;
    const std::string line = text.substr(start, end - start);
    const bool goes = line.ends_with('\n') && lines.contains(line.substr(0, line.size() - 1));
    // After a crash between the two writes below, the line is already in the .aside file.
    if (!goes)
      kept += line;
    else if (moved.find(line) == std::string::npos)
      moved += line;
    start = end;
  }
  replace_file(aside, moved);
  replace_file(journal, kept);
  return aside;
}

}  // namespace

SetAside set_others_aside(const fs::path& directory, const std::string& journal) {
  const std::vector<fs::path> journals = journal_files(directory);
  const fs::path chosen = chosen_journal(journals, journal);
  std::map<fs::path, std::unordered_set<std::string>> leaving;
  SetAside aside;
  for (const auto& [cell, records] : contenders(journals)) {
    const Contender* kept = nullptr;
    for (const Contender& each : records) {
      if (chosen.empty() ? !kept || each.record.finished_at >= kept->record.finished_at
                         : each.journal == chosen)
        kept = &each;
    }
    if (!kept) continue;
    for (const Contender& each : records) {
      if (same_numbers(each.record, kept->record)) continue;
      leaving[each.journal].insert(each.line);
      ++aside.records;
    }
  }
  std::vector<std::unique_ptr<HeldJournal>> held;
  for (const auto& [file, lines] : leaving) held.push_back(std::make_unique<HeldJournal>(file));
  for (const auto& [file, lines] : leaving) aside.files.push_back(move_lines(file, lines));
  return aside;
}

}  // namespace moelab
