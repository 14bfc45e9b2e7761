#include "app/run/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "app/run/metric_groups.h"

namespace moelab {
namespace {

/// A metric's name without the ending of a layer, and that layer.
struct LayerName {
  std::string name;
  std::optional<int> layer;
};

LayerName split_layer(const std::string& name) {
  const std::string_view number = layer_number(name);
  if (number.empty()) return {name, std::nullopt};
  return {name.substr(0, name.rfind('_')), std::stoi(std::string(number))};
}

/// What occurs in a table: names (of a trace without the layers' endings), and layers.
struct Present {
  std::set<std::string> names;
  std::set<int> layers;

  Present(const ResultTable& table, bool trace) {
    for (const ResultRow& row : table.rows) {
      if (!trace) add(row.metrics, false);
      for (const TraceEntry& entry : row.trace) {
        if (trace) add(entry.metrics, true);
      }
    }
  }

 private:
  void add(const MetricValues& metrics, bool splits) {
    for (const auto& metric : metrics) {
      const LayerName split = split_layer(metric.first);
      names.insert(splits ? split.name : metric.first);
      if (splits && split.layer) layers.insert(*split.layer);
    }
  }
};

std::vector<std::string> metric_columns(std::set<std::string> present,
                                        const std::vector<std::string>& metric_order) {
  std::vector<std::string> columns;
  for (const std::string& name : metric_order) {
    if (present.erase(name) > 0) columns.push_back(name);
  }
  columns.insert(columns.end(), present.begin(), present.end());
  return columns;
}

/// A layer's metrics by their bare names, and those of the whole model.
MetricValues metrics_of_layer(const MetricValues& metrics, int layer) {
  MetricValues own;
  for (const auto& [name, value] : metrics) {
    const LayerName split = split_layer(name);
    if (!split.layer || *split.layer == layer) own[split.name] = value;
  }
  return own;
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
  const Present present(table, trace);
  const std::vector<std::string> metrics = metric_columns(present.names, metric_order);
  ExportTable exported;
  exported.columns = {"cell", "arm", "seed"};
  exported.columns.insert(exported.columns.end(), table.sweep_paths.begin(), table.sweep_paths.end());
  exported.columns.push_back("state");
  if (trace) exported.columns.push_back("step");
  if (!present.layers.empty()) exported.columns.push_back("layer");
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
      if (present.layers.empty()) {
        append_metrics(entry.metrics, metrics, fields);
        exported.rows.push_back(std::move(fields));
        continue;
      }
      for (const int layer : present.layers) {
        std::vector<Json> of_layer = fields;
        of_layer.push_back(layer);
        append_metrics(metrics_of_layer(entry.metrics, layer), metrics, of_layer);
        exported.rows.push_back(std::move(of_layer));
      }
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
