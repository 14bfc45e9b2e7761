#pragma once

/// One line of a journal: the result of one cell, with a checksum.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/stats/result_table.h"
#include "app/run/cell.h"

namespace moelab {

/// What the journal keeps of a cell. Times stand apart: they are never compared nor exported.
struct Record {
  std::string cell;
  std::string state;  ///< done, diverged or failed
  std::string message;
  MetricValues metrics;
  std::vector<TraceEntry> trace;
  double seconds = 0;
  std::string finished_at;                         ///< UTC, ISO 8601
  std::map<std::string, std::string> arrays = {};  ///< saved arrays by name, with the checksum of their bytes
  /// Name of the program that wrote the journal, one for all of its records; not part of the line.
  std::shared_ptr<const std::string> build = {};
  std::optional<TimeSpent> spent = {};  ///< of the seconds; journals of earlier builds have none
};

/// How much of a record is read: of a long journal, most is trace. Arrays belong to each part.
enum class RecordPart { state, metrics, all };

/// CRC-32 of `bytes` as 8 hexadecimal digits.
std::string checksum(std::string_view bytes);

/// "done", "diverged", "failed" or "interrupted".
std::string state_name(CellResult::State state);

/// {"checksum":"<CRC-32 of the record's text, 8 hexadecimal digits>","record":{…}}. Doubles are written in
/// the shortest form that reads back to the same bits; non-finite ones as "nan", "inf" and "-inf".
std::string record_line(const Record& record);

/// The line of a record's text, as record_line writes it.
std::string sealed_line(std::string_view text);

/// The inverse of record_line; what lies behind `part` stays empty, but for a failed cell. The checksum of
/// the whole line is taken in any case. Throws std::runtime_error with the reason when the line is damaged.
Record parse_record_line(std::string_view line, RecordPart part = RecordPart::all);

/// Where two records of a cell differ, "test_nmse_soft: 0.5 and 0.25"; none for equal ones.
std::vector<std::string> record_differences(const Record& left, const Record& right);

/// Whether two records of a cell hold the same state, the same numbers and the same arrays, to the last bit.
bool same_numbers(const Record& left, const Record& right);

}  // namespace moelab
