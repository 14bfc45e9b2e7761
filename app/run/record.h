#pragma once

/// One line of a journal: the result of one cell, with a checksum.

#include <string>
#include <string_view>

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
  std::string finished_at;  ///< UTC, ISO 8601
};

/// "done", "diverged", "failed" or "interrupted".
std::string state_name(CellResult::State state);

/// {"checksum":"<CRC-32 of the record's text, 8 hexadecimal digits>","record":{…}}. Doubles are written in
/// the shortest form that reads back to the same bits; non-finite ones as "nan", "inf" and "-inf".
std::string record_line(const Record& record);

/// The line of a record's text, as record_line writes it.
std::string sealed_line(std::string_view text);

/// The inverse of record_line. Throws std::runtime_error with the reason when the line is damaged.
Record parse_record_line(std::string_view line);

/// Whether two records of a cell hold the same state and the same numbers, to the last bit.
bool same_numbers(const Record& left, const Record& right);

}  // namespace moelab
