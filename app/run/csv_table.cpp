#include "app/run/csv_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// A text in which csv_cell has put an apostrophe.
bool has_apostrophe(const std::string& field) {
  return field.size() > 1 && field[0] == '\'' &&
         std::string_view("=+-@\t\r'").find(field[1]) != std::string_view::npos;
}

/// Takes one line after another from a text.
class CsvLines {
 public:
  CsvLines(std::string_view text, const std::string& source) : text_(text), source_(source) {
    if (text_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  }

  bool at_end() const { return at_ >= text_.size(); }

  std::vector<std::string> next() {
    begin_ = line_;
    std::vector<std::string> fields(1);
    while (true) {
      read_field(fields.back());
      if (has_apostrophe(fields.back())) fields.back().erase(0, 1);
      if (!take(',')) break;
      fields.emplace_back();
    }
    take('\r');
    if (!at_end() && !take('\n')) refuse("has text behind a quoted field");
    ++line_;
    return fields;
  }

  /// At the first line of what next() returned last.
  [[noreturn]] void refuse(const std::string& message) const {
    throw UserError(fmt::format("{}:{}", source_, begin_), message);
  }

 private:
  bool take(char wanted) {
    if (at_end() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  void read_field(std::string& field) {
    if (!take('"')) {
      const std::size_t end = std::min(text_.find_first_of(",\"\r\n", at_), text_.size());
      field = text_.substr(at_, end - at_);
      at_ = end;
      if (!at_end() && text_[at_] == '"') refuse("has a quote inside a field that does not begin with one");
      return;
    }
    while (!at_end()) {
      const char character = text_[at_++];
      if (character == '"' && !take('"')) return;
      if (character == '\n') ++line_;
      field += character;
    }
    refuse("has a quote that is not closed");
  }

  std::string_view text_;
  const std::string& source_;
  std::size_t at_ = 0;
  int line_ = 1, begin_ = 1;
};

}  // namespace

CsvTable parse_csv(std::string_view text, const std::string& source) {
  CsvLines lines(text, source);
  if (lines.at_end()) throw UserError(source, "is empty; needs a head with the names of its columns");
  CsvTable table{lines.next(), {}};
  for (const std::string& name : table.columns) {
    if (name.empty()) lines.refuse("has a column without a name");
    if (std::count(table.columns.begin(), table.columns.end(), name) > 1)
      lines.refuse(fmt::format("has the column '{}' twice", name));
  }
  while (!lines.at_end()) {
    std::vector<std::string> fields = lines.next();
    if (fields.size() == 1 && fields[0].empty() && table.columns.size() > 1) continue;  // an empty line
    if (fields.size() != table.columns.size())
      lines.refuse(fmt::format("has {} fields, the head {}", fields.size(), table.columns.size()));
    table.rows.push_back(std::move(fields));
  }
  return table;
}

}  // namespace moelab
