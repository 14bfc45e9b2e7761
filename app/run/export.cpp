#include "app/run/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace moelab {
namespace {

std::vector<std::string> metric_columns(const ResultTable& table, bool trace,
                                        const std::vector<std::string>& metric_order) {
  std::set<std::string> present;
  for (const ResultRow& row : table.rows) {
    for (const auto& metric : row.metrics) present.insert(metric.first);
    if (!trace) continue;
    for (const TraceEntry& entry : row.trace) {
      for (const auto& metric : entry.metrics) present.insert(metric.first);
    }
  }
  std::vector<std::string> columns;
  for (const std::string& name : metric_order) {
    if (present.erase(name) > 0) columns.push_back(name);
  }
  columns.insert(columns.end(), present.begin(), present.end());
  return columns;
}

void append_metrics(const MetricValues& metrics, const std::vector<std::string>& columns,
                    std::vector<Json>& row) {
  for (const std::string& name : columns) {
    const auto metric = metrics.find(name);
    row.push_back(metric == metrics.end() ? Json() : Json(metric->second));
  }
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"') field += '"';
    field += c;
  }
  return field + '"';
}

std::string field_text(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  if (value.is_string()) return quoted(value.get<std::string>());
  return quoted(value.dump());
}

}  // namespace

ExportTable export_table(const RunResults& results, bool trace,
                         const std::vector<std::string>& metric_order) {
  const ResultTable& table = results.table;
  const std::vector<std::string> metrics = metric_columns(table, trace, metric_order);
  ExportTable exported;
  exported.columns = {"cell", "arm", "seed"};
  exported.columns.insert(exported.columns.end(), table.sweep_paths.begin(), table.sweep_paths.end());
  exported.columns.push_back("state");
  if (trace) exported.columns.push_back("step");
  exported.columns.insert(exported.columns.end(), metrics.begin(), metrics.end());
  for (const ResultRow& row : table.rows) {
    std::vector<Json> start = {row.cell, row.arm, row.seed};
    for (const std::string& path : table.sweep_paths) {
      const Json* const swept = row.coordinate(path);
      start.push_back(swept ? *swept : Json());
    }
    start.push_back(row.state);
    if (!trace) {
      append_metrics(row.metrics, metrics, start);
      exported.rows.push_back(std::move(start));
      continue;
    }
    for (const TraceEntry& entry : row.trace) {
      std::vector<Json> fields = start;
      fields.push_back(entry.step);
      append_metrics(entry.metrics, metrics, fields);
      exported.rows.push_back(std::move(fields));
    }
  }
  return exported;
}

std::string csv_text(const ExportTable& table) {
  std::string text;
  const auto append_line = [&text](const std::vector<std::string>& fields) {
    text += fmt::format("{}\n", fmt::join(fields, ","));
  };
  std::vector<std::string> fields;
  for (const std::string& column : table.columns) fields.push_back(quoted(column));
  append_line(fields);
  for (const std::vector<Json>& row : table.rows) {
    fields.clear();
    for (const Json& value : row) fields.push_back(field_text(value));
    append_line(fields);
  }
  return text;
}

}  // namespace moelab
