#include "app/run/set_aside.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "app/run/durable_file.h"
#include "app/run/journal.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

/// A record that another one may speak against.
struct Contender {
  fs::path journal;
  std::string line;
  Record record;
};

/// The records of cells that are recorded more than once; few are. Damage is not this function's to mend.
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

/// The journal that is meant; empty for the newest record of each cell.
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

/// A journal that no process writes, held until this goes.
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

/// Moves lines from a journal to the file beside it.
fs::path move_lines(const fs::path& journal, const std::unordered_set<std::string>& lines) {
  const fs::path aside = journal.string() + ".aside";
  std::string kept, moved = fs::exists(aside) ? read_bytes(aside) : "";
  const std::string text = read_bytes(journal);
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size() - 1) + 1;
    const std::string line = text.substr(start, end - start);
    const bool goes = line.ends_with('\n') && lines.contains(line.substr(0, line.size() - 1));
    // After a crash between the two files below, the line stands aside already.
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
