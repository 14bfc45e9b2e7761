#pragma once

/// Files of records: JSON lines, and CSV with a header. A field of all records is a column.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/scenario/json.h"
#include "sim/data/npy.h"

namespace moelab {

/// A field of all records, one record after another.
struct Column {
  std::string name;
  std::optional<NpyReader> values;    ///< numbers: (Σ rows of the records, …)
  std::vector<std::string> texts;     ///< or texts, one for each record
  std::vector<std::int64_t> lengths;  ///< the rows of each record; empty where a record is one row
  bool is_raw = false;                ///< int32 values in base64, without a shape
};

/// The records of a file.
class RecordFile {
 public:
  /// Reads JSON lines, or CSV where the name ends so. Throws UserError with the line of what is malformed.
  RecordFile(std::filesystem::path file, std::string place);

  const std::filesystem::path& path() const { return file_; }
  const std::string& place() const { return place_; }
  const std::vector<Json>& records() const { return records_; }
  bool is_table() const { return is_table_; }
  bool has(const std::string& field) const { return !records_.empty() && find(records_.front(), field); }
  /// The names of the fields of the first record, dots between the levels.
  std::vector<std::string> fields() const;

  /// The column of `fields`, which are joined in each record: numbers, nested lists, base64 texts of .npy
  /// files or of raw int32, or names. Throws UserError where a record lacks the field or has another shape.
  Column column(const std::vector<std::string>& fields) const;

  /// Throws UserError with the line of a record.
  [[noreturn]] void refuse(std::size_t record, const std::string& message) const;

 private:
  static const Json* find(const Json& record, const std::string& field);
  void read_lines(std::string_view text);
  void read_table(std::string_view text);
  [[noreturn]] void refuse_line(std::size_t line, const std::string& message) const;

  std::filesystem::path file_;
  std::string place_;
  std::vector<Json> records_;
  std::vector<std::size_t> lines_;  ///< the first line of each record; the file's first line is 1
  bool is_table_ = false;
};

/// Values that the reader keeps.
NpyReader kept_array(const std::vector<std::int64_t>& values, std::vector<std::int64_t> shape,
                     const std::string& place, const std::string& name, const std::filesystem::path& file);

}  // namespace moelab
