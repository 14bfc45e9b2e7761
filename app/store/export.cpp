#include "app/store/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "analysis/metrics/metric_groups.h"
#include "app/scenario/checks.h"
#include "app/scenario/overrides.h"
#include "plots/report/table.h"
#include "sim/base/csv.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// Whether csv_cell has put an apostrophe before this text.
bool has_apostrophe(const std::string& field) {
  return field.size() > 1 && field[0] == '\'' &&
         std::string_view("=+-@\t\r'").find(field[1]) != std::string_view::npos;
}

/// The next record, without the apostrophes of csv_cell.
std::vector<std::string> next_fields(CsvLines& lines) {
  std::vector<std::string> fields = lines.next();
  for (std::string& field : fields)
    if (has_apostrophe(field)) field.erase(0, 1);
  return fields;
}

/// Throws UserError for text that is not UTF-8, or whose lines end in CR alone.
void check_encoding(std::string_view text, const std::string& source) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff") ||
      text.substr(0, 100).find('\0') != text.npos)
    throw UserError(source, "is UTF-16, needs UTF-8: iconv -f UTF-16 -t UTF-8 FILE > NEW");
  const Json string(std::string{text});
  if (string.dump(-1, ' ', false, Json::error_handler_t::ignore) !=
      string.dump(-1, ' ', false, Json::error_handler_t::replace))
    throw UserError(source, "is not UTF-8 (Latin-1?), needs UTF-8: iconv -f LATIN1 -t UTF-8 FILE > NEW");
  if (text.find('\r') != text.npos && text.find('\n') == text.npos)
    throw UserError(source, "has line ends of CR alone, needs LF or CR LF: tr '\\r' '\\n' < FILE > NEW");
}

}  // namespace

CsvTable parse_csv(std::string_view text, const std::string& source) {
  check_encoding(text, source);
  const auto refuse = [&](std::size_t line, const std::string& message) {
    throw UserError(fmt::format("{}:{}", source, line), message);
  };
  CsvLines lines(without_byte_order_mark(text), {}, refuse);
  if (lines.at_end()) throw UserError(source, "is empty; needs a head with the names of its columns");
  CsvTable table{next_fields(lines), {}};
  lines.check_names(table.columns);
  while (!lines.at_end()) {
    std::vector<std::string> fields = next_fields(lines);
    if (fields.size() == 1 && fields[0].empty() && table.columns.size() > 1) continue;  // an empty line
    if (fields.size() != table.columns.size())
      refuse(lines.line(), fmt::format("has {} fields, the head {}", fields.size(), table.columns.size()));
    table.rows.push_back(std::move(fields));
  }
  return table;
}

namespace {

/// A metric's name without its layer suffix, and the layer.
struct LayerName {
  std::string name;
  std::optional<int> layer;
};

LayerName split_layer(const std::string& name) {
  MetricKey key = MetricKey::parse(name);
  const std::optional<int> layer = std::exchange(key.layer, std::nullopt);
  return {layer ? key.text() : name, layer};
}

/// The columns of a table: metric names (without layer suffixes in a trace), and the layers.
struct Present {
  std::set<std::string> names;
  std::set<std::string> of_layers;  ///< metric names that have layers in some row

  Present(const ResultTable& table, const std::vector<std::string>& planned, bool trace) {
    for (const std::string& name : planned) {
      if (!trace || !is_of_end_alone(name)) add(name, trace);
    }
    for (const ResultRow& row : table.rows) {
      if (!trace) add(row.metrics, false);
      for (const TraceEntry& entry : row.trace) {
        if (trace) add(entry.metrics, true);
      }
    }
  }

 private:
  void add(const MetricValues& metrics, bool splits) {
    // Most rows have the same names as the previous row, so the comparison saves time.
    const auto same_name = [](const auto& left, const auto& right) { return left.first == right.first; };
    if (last_ && std::equal(metrics.begin(), metrics.end(), last_->begin(), last_->end(), same_name)) return;
    last_ = &metrics;
    for (const auto& metric : metrics) add(metric.first, splits);
  }
  void add(const std::string& name, bool splits) {
    if (!splits) {
      names.insert(name);
      return;
    }
    const LayerName split = split_layer(name);
    names.insert(split.name);
    if (split.layer) of_layers.insert(split.name);
  }

  const MetricValues* last_ = nullptr;
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

/// Returns the layers of these metrics. A model with one layer has no layer in its metric names and gets
/// layer 0. A model without layers gets `nullopt`. `of_layers` holds the metric names that other models have
/// by layer.
std::set<std::optional<int>> layers_of(const MetricValues& metrics, const std::set<std::string>& of_layers) {
  std::set<std::optional<int>> layers;
  bool is_of_one_layer = false;
  for (const auto& metric : metrics) {
    const std::optional<int> layer = split_layer(metric.first).layer;
    if (layer) layers.insert(layer);
    is_of_one_layer |= !layer && of_layers.contains(metric.first);
  }
  if (layers.empty()) layers.insert(is_of_one_layer ? std::optional(0) : std::nullopt);
  return layers;
}

/// Returns a layer's metrics without layer suffix, and the metrics of the whole model.
MetricValues metrics_of_layer(const MetricValues& metrics, std::optional<int> layer) {
  MetricValues own;
  for (const auto& [name, value] : metrics) {
    const LayerName split = split_layer(name);
    if (!split.layer || split.layer == layer) own[split.name] = value;
  }
  return own;
}

/// Appends a value as a CSV field. A text is escaped by csv_cell; a number needs no escape.
void append_field(const Json& value, std::string& text) {
  if (value.is_number_float()) {
    fmt::format_to(std::back_inserter(text), "{}", value.get<double>());
  } else if (value.is_string()) {
    text += csv_cell(value.get_ref<const std::string&>());
  } else if (!value.is_null()) {
    text += value.is_number() ? value.dump() : csv_cell(value.dump());
  }
}

/// Produces the columns of a table, and its rows one at a time.
class Export {
 public:
  Export(const RunResults& results, bool trace, const std::vector<std::string>& metric_order)
      : table_(results.table),
        trace_(trace),
        present_(results.table, results.metrics, trace),
        metrics_(metric_columns(present_.names, metric_order)) {
    for (std::size_t i = 0; i < metrics_.size(); ++i) places_[metrics_[i]] = i;
  }

  std::vector<std::string> columns() const {
    std::vector<std::string> columns = {"cell", "arm", "seed"};
    columns.insert(columns.end(), table_.sweep_paths.begin(), table_.sweep_paths.end());
    columns.push_back("state");
    if (trace_) columns.push_back("step");
    if (!present_.of_layers.empty()) columns.push_back("layer");
    columns.insert(columns.end(), metrics_.begin(), metrics_.end());
    return columns;
  }

  /// Calls `take` with the fields of each row.
  template <class Take>
  void rows(const Take& take) const {
    std::vector<Json> fields;
    for (const ResultRow& row : table_.rows) {
      if (row.is_copy) continue;
      fields.clear();
      fields.emplace_back(row.cell);
      fields.emplace_back(row.arm);
      fields.emplace_back(row.seed);
      for (const std::string& path : table_.sweep_paths) {
        const SweepValue* const swept = table_.sweeps(row.arm, path) ? row.coordinate(path) : nullptr;
        fields.push_back(swept ? to_json(*swept) : Json());
      }
      fields.push_back(row.state);
      if (!trace_) {
        append_metrics(row.metrics, fields);
        take(fields);
        continue;
      }
      const std::size_t start = fields.size();
      for (const TraceEntry& entry : row.trace) {
        fields.resize(start);
        fields.push_back(entry.step);
        if (present_.of_layers.empty()) {
          append_metrics(entry.metrics, fields);
          take(fields);
          continue;
        }
        for (const std::optional<int> layer : layers_of(entry.metrics, present_.of_layers)) {
          fields.resize(start + 1);
          fields.push_back(layer ? Json(*layer) : Json());
          append_metrics(metrics_of_layer(entry.metrics, layer), fields);
          take(fields);
        }
      }
    }
  }

 private:
  void append_metrics(const MetricValues& metrics, std::vector<Json>& fields) const {
    const std::size_t start = fields.size();
    fields.resize(start + metrics_.size());
    auto place = places_.begin();
    for (const auto& [name, value] : metrics) {
      // Both lists are sorted by name, and every metric has a column.
      while (place->first != name) ++place;
      fields[start + place->second] = value;
    }
  }

  const ResultTable& table_;
  bool trace_;
  Present present_;
  std::vector<std::string> metrics_;
  std::map<std::string, std::size_t> places_;  ///< indices of the metrics' columns
};

}  // namespace

ExportTable export_table(const RunResults& results, bool trace,
                         const std::vector<std::string>& metric_order) {
  const Export table(results, trace, metric_order);
  ExportTable exported = {table.columns(), {}};
  table.rows([&](const std::vector<Json>& fields) { exported.rows.push_back(fields); });
  return exported;
}

std::string export_csv(const RunResults& results, bool trace, const std::vector<std::string>& metric_order) {
  const Export table(results, trace, metric_order);
  std::string text;
  const auto append_line = [&text](const auto& fields) {
    for (const auto& field : fields) {
      append_field(field, text);
      text += ',';
    }
    text.back() = '\n';
  };
  append_line(table.columns());
  table.rows(append_line);
  return text;
}

}  // namespace moelab
