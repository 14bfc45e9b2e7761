#include "sim/base/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace moelab {

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

std::vector<std::string> CsvLines::next() {
  begin_ = line_;
  std::vector<std::string> fields;
  do fields.push_back(field());
  while (take(rules_.separator));
  take('\r');
  if (!at_end() && !take('\n')) refuse_(begin_, "has text behind a quoted field");
  ++line_;
  return fields;
}

void CsvLines::check_names(const std::vector<std::string>& names) const {
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    if (name.empty() && &name != &names.front()) refuse_(begin_, "has a column without a name");
    if (!seen.insert(name).second) refuse_(begin_, fmt::format("has the column '{}' twice", name));
  }
}

bool CsvLines::take(char wanted) {
  if (at_end() || text_[at_] != wanted) return false;
  ++at_;
  return true;
}

void CsvLines::skip_spaces() {
  while (rules_.trims_spaces && take(' ')) {
  }
}

std::string CsvLines::field() {
  skip_spaces();
  std::string text;
  if (!take('"')) {
    // Trimming also takes the CR of the line end, and leaves any other CR in the field.
    const char ends[] = {rules_.separator, '\n', '"', '\r'};
    const std::size_t end =
        std::min(text_.find_first_of({ends, rules_.trims_spaces ? 3U : 4U}, at_), text_.size());
    text = text_.substr(at_, end - at_);
    at_ = end;
    if (!at_end() && text_[at_] == '"')
      refuse_(begin_, "has a quote inside a field that does not begin with one");
    if (!rules_.trims_spaces) return text;
    if (text.ends_with('\r') && (at_end() || text_[at_] == '\n')) text.pop_back();
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }
  while (!at_end()) {
    const char letter = text_[at_++];
    if (letter == '"' && !take('"')) {
      skip_spaces();
      return text;
    }
    if (letter == '\n') ++line_;
    text += letter;
  }
  refuse_(begin_, "has a quote that is not closed");
  return text;
}

}  // namespace moelab
