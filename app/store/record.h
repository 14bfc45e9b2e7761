#pragma once

/// A record: the result of one cell, with a checksum, on one line of a journal.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/stats/result_table.h"
#include "app/run/cell.h"

namespace moelab {

/// The journal's data of a cell. Times are separate members, because they are never compared or exported.
struct Record {
  std::string cell;
  std::string state;  ///< done, diverged or failed
  std::string message;
  MetricValues metrics;
  std::vector<TraceEntry> trace;
  double seconds = 0;                              ///< elapsed
  std::string finished_at;                         ///< UTC, ISO 8601
  std::map<std::string, std::string> arrays = {};  ///< checksums of the saved arrays' bytes, by name
  /// The build that wrote the journal, shared by all of its records. It is not part of the line.
  std::shared_ptr<const std::string> build = {};
  std::optional<TimeSpent> spent = {};  ///< processor time; absent in journals of earlier builds
};

/// How much of a record is read. Most of a long journal is trace. Every part includes the arrays.
enum class RecordPart { state, metrics, all };

/// CRC-32 of `bytes` as 8 hexadecimal digits.
std::string checksum(std::string_view bytes);

/// "done", "diverged", "failed" or "interrupted".
std::string state_name(CellResult::State state);

/// Formats a record as a line of a journal:
///
///   {"checksum": "<CRC-32 of the record's text, 8 hexadecimal digits>", "record": {…}}
///
/// The line itself has no spaces. Doubles have the shortest form that reads back to the same bits. Non-finite
/// doubles are "nan", "inf" and "-inf".
std::string record_line(const Record& record);

/// Adds the checksum to a record's text, as in record_line.
std::string sealed_line(std::string_view text);

/// Parses a line of record_line. Fields beyond `part` stay empty, except for a failed cell. The function
/// always verifies the checksum of the whole line. Throws std::runtime_error with the reason if the line is
/// damaged.
Record parse_record_line(std::string_view line, RecordPart part = RecordPart::all);

/// Lists the differences of two records, such as "test_nmse_soft: 0.5 and 0.25". Empty for equal records.
std::vector<std::string> record_differences(const Record& left, const Record& right);

/// Whether two records of a cell have the same state, numbers and arrays, bit for bit.
bool same_numbers(const Record& left, const Record& right);

}  // namespace moelab
