#pragma once

/// Records and fields of CSV text (RFC 4180).

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace moelab {

/// The text without the byte-order mark of UTF-8 that Excel puts first.
std::string_view without_byte_order_mark(std::string_view text);

/// Splits a text into records of fields. Lines end in "\n" or "\r\n".
class CsvLines {
 public:
  struct Rules {
    char separator = ',';
    bool trims_spaces = false;  ///< spaces around a field are no part of it
  };
  /// Receives a line, from 1 on, and what is wrong with it. Does not return.
  using Refuse = std::function<void(std::size_t line, const std::string& message)>;

  CsvLines(std::string_view text, Rules rules, Refuse refuse)
      : text_(text), rules_(rules), refuse_(std::move(refuse)) {}

  bool at_end() const { return at_ >= text_.size(); }
  /// The next record. Refuses a quote that is not closed or stands inside a field, and text behind a quoted
  /// field.
  std::vector<std::string> next();
  /// The first line of the record that next() returned last.
  std::size_t line() const { return begin_; }
  /// Refuses names of columns, the record that next() returned last, if one stands twice or is empty. The
  /// first may be empty, as the index of pandas is.
  void check_names(const std::vector<std::string>& names) const;

 private:
  bool take(char wanted);
  void skip_spaces();
  std::string field();

  std::string_view text_;
  Rules rules_;
  Refuse refuse_;
  std::size_t at_ = 0, line_ = 1, begin_ = 1;
};

}  // namespace moelab
