#include "app/store/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <new>

#include "app/store/durable_file.h"
#include "sim/base/error.h"
#include "sim/base/folder.h"

namespace moelab {

namespace fs = std::filesystem;

std::string name_of(const JournalPlace& place) {
  return fmt::format("{}:{}", place.journal->string(), place.number);
}

std::string line_at(const JournalPlace& place) {
  std::ifstream stream = opened_lines(*place.journal);
  std::string line(place.size, '\0');
  stream.seekg(static_cast<std::streamoff>(place.start));
  stream.read(line.data(), static_cast<std::streamsize>(line.size()));
  if (!stream) throw EnvironmentError(place.journal->string() + ": cannot be read");
  return line;
}

std::vector<fs::path> journal_files(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const fs::path& file : entries_of(directory / "journal")) {
    if (file.extension() != ".jsonl" || !fs::exists(fs::symlink_status(file))) continue;  // removed since
    if (!fs::is_regular_file(file))  // opening a pipe would wait for a writer
      throw EnvironmentError(file.string() + ": is no regular file, as a journal has to be");
    files.push_back(file);
  }
  return files;
}

std::vector<JournalLine> read_journal(const fs::path& journal, RecordPart part) {
  std::vector<JournalLine> lines;
  std::vector<char> buffer(1 << 20);  // a large file reads faster than with the library's 8 kB
  std::ifstream stream;
  stream.rdbuf()->pubsetbuf(buffer.data(), static_cast<std::streamsize>(buffer.size()));
  stream.open(journal, std::ios::binary);
  stream.exceptions(std::ios::badbit);  // otherwise a failed allocation would look like the end of the file
  JournalPlace place = {&journal};
  for (std::string text; std::getline(stream, text) && !stream.eof(); place.start += text.size() + 1) {
    ++place.number;
    place.size = text.size();
    lines.push_back({place, {}, ""});
    try {
      lines.back().record = parse_record_line(text, part);
    } catch (const std::bad_alloc&) {
      throw;  // the record's content is unknown
    } catch (const std::exception& error) {
      lines.back().damage = error.what();
    }
  }
  if (!stream.eof()) throw EnvironmentError(journal.string() + ": cannot be read");
  return lines;
}

namespace {

/// The byte offset of a cell's lease, from the leading hexadecimal digits of its id. It is the same in every
/// process and build.
off_t place_of_lease(const std::string& cell) {
  constexpr std::size_t kDigits = 15;
  std::uint64_t place = 0;
  for (const char letter : cell.substr(0, kDigits))
    place = place * 16 + static_cast<std::uint64_t>(letter <= '9' ? letter - '0' : letter - 'a' + 10) % 16;
  return static_cast<off_t>(place);
}

}  // namespace

Leases::Leases(std::filesystem::path directory, bool retries_failed)
    : directory_(std::move(directory)), retries_failed_(retries_failed), descriptor_(-1) {
  make_folder(directory_);
  const std::filesystem::path file = directory_ / "leases";
  descriptor_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0)
    throw EnvironmentError(fmt::format("{}: cannot open: {}", file.string(), std::strerror(errno)));
  try {
    lock("", true);  // tries the disk's locks before the first cell
    lock("", false);
  } catch (...) {
    ::close(descriptor_);  // the destructor does not run after a throwing constructor
    throw;
  }
}

Leases::~Leases() {
  ::close(descriptor_);
}

bool Leases::lock(const std::string& cell, bool taken) {
  struct flock range {};
  range.l_type = static_cast<short>(taken ? F_WRLCK : F_UNLCK);
  range.l_whence = SEEK_SET;
  range.l_start = place_of_lease(cell);
  range.l_len = 1;
  // An OFD lock belongs to the open file. A POSIX lock would end when the process closes any other descriptor
  // of it.
  if (::fcntl(descriptor_, F_OFD_SETLK, &range) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  throw EnvironmentError(fmt::format(
      "{}: cannot lock: {}; run one process without --leases, or choose a folder on a disk with locks",
      (directory_ / "leases").string(), std::strerror(errno)));
}

bool Leases::take(const std::string& cell, bool is_recorded) {
  const std::lock_guard guard(mutex_);
  if (!lock(cell, true)) return false;
  if (is_recorded) return true;
  // The previous holder wrote its record before it released the lease.
  read_on();
  if (!recorded_.contains(cell)) return true;
  lock(cell, false);
  return false;
}

void Leases::give_back(const std::string& cell) {
  const std::lock_guard guard(mutex_);
  lock(cell, false);
}

void Leases::read_on() {
  for (const std::filesystem::path& journal : journal_files(directory_)) {
    std::uintmax_t& read = read_to_[journal.string()];
    std::error_code gone;
    if (std::filesystem::file_size(journal, gone) <= read || gone) continue;
    std::ifstream stream = opened_lines(journal);
    stream.seekg(static_cast<std::streamoff>(read));
    for (std::string line; std::getline(stream, line) && !stream.eof(); read += line.size() + 1) {
      try {
        const Record record = parse_record_line(line, RecordPart::state);
        if (!retries_failed_ || record.state != "failed") recorded_.insert(record.cell);
      } catch (const std::runtime_error&) {
        // The reader of the results reports this damage.
      }
    }
  }
}

}  // namespace moelab
