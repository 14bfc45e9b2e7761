#include "app/run/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <new>

#include "sim/base/error.h"

namespace moelab {

namespace fs = std::filesystem;

std::string name_of(const JournalPlace& place) {
  return fmt::format("{}:{}", place.journal->string(), place.number);
}

std::string line_at(const JournalPlace& place) {
  std::ifstream stream(*place.journal, std::ios::binary);
  std::string line(place.size, '\0');
  stream.seekg(static_cast<std::streamoff>(place.start));
  stream.read(line.data(), static_cast<std::streamsize>(line.size()));
  return line;
}

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

std::vector<JournalLine> read_journal(const fs::path& journal, RecordPart part) {
  std::vector<JournalLine> lines;
  std::vector<char> buffer(1 << 20);  // a tenth of the time of a large file in place of the library's 8 kB
  std::ifstream stream;
  stream.rdbuf()->pubsetbuf(buffer.data(), static_cast<std::streamsize>(buffer.size()));
  stream.open(journal, std::ios::binary);
  stream.exceptions(std::ios::badbit);  // too little memory for a line would end the file otherwise
  JournalPlace place = {&journal};
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

}  // namespace moelab
