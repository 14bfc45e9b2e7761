#include "app/cli/analysis_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "analysis/metrics/metric_groups.h"
#include "analysis/metrics/routed_tokens.h"
#include "app/cli/verbs.h"
#include "app/run/figures.h"
#include "app/store/durable_file.h"
#include "app/store/provenance.h"
#include "plots/report/report.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

std::string number_text(const Json& value) {
  return value.is_null() ? "" : value.dump();
}

/// The metrics that some layer has. The metrics of the table of definitions come first.
std::vector<std::string> measured_names(const ArrayAnalysis& analysis) {
  std::vector<std::string> names;
  for (const RoutedMetric& metric : routed_metrics()) names.emplace_back(metric.name);
  for (const LayerAnalysis& layer : analysis.layers) {
    for (const auto& [name, value] : layer.metrics.items()) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::erase_if(names, [&](const std::string& name) {
    return std::none_of(analysis.layers.begin(), analysis.layers.end(),
                        [&](const LayerAnalysis& layer) { return layer.metrics.contains(name); });
  });
  return names;
}

std::string layers_csv(const ArrayAnalysis& analysis) {
  const std::vector<std::string> names = measured_names(analysis);
  std::string text = "layer";
  for (const std::string& name : names) text += fmt::format(",{0},{0}_low,{0}_high,{0}_chance", name);
  text += "\n";
  for (const LayerAnalysis& layer : analysis.layers) {
    text += std::to_string(layer.layer);
    for (const std::string& name : names) {
      const auto of = [&](const Json& values) {
        return values.contains(name) ? number_text(values.at(name)) : "";
      };
      const Json interval = layer.intervals.value(name, Json::array({Json(), Json()}));
      text += fmt::format(",{},{},{},{}", of(layer.metrics), number_text(interval[0]),
                          number_text(interval[1]), of(layer.chance));
    }
    text += "\n";
  }
  if (analysis.layers.size() > 1) {
    text += "mean";
    for (const std::string& name : names)
      text +=
          fmt::format(",{},,,", analysis.means.contains(name) ? number_text(analysis.means.at(name)) : "");
    text += "\n";
  }
  return text;
}

std::string experts_csv(const ArrayAnalysis& analysis) {
  const std::vector<std::string> names = {"load",         "activation_rate", "top1_load",
                                          "mean_routing", "least_tokens",    "most_tokens"};
  std::string text = fmt::format("layer,expert,{}\n", fmt::join(names, ","));
  for (const LayerAnalysis& layer : analysis.layers) {
    for (std::size_t e = 0; e < layer.experts.at("load").size(); ++e) {
      text += fmt::format("{},{}", layer.layer, e);
      for (const std::string& name : names)
        text += "," + (layer.experts.contains(name) ? number_text(layer.experts.at(name)[e]) : "");
      text += "\n";
    }
  }
  return text;
}

/// One line for each entry of the matrices of this name. Empty where no layer has them.
std::string matrices_csv(const ArrayAnalysis& analysis, const std::string& name) {
  std::string text;
  const auto add = [&](const std::string& layer, const Json& matrix) {
    for (std::size_t i = 0; i < matrix.at("rows").size(); ++i) {
      for (std::size_t j = 0; j < matrix.at("columns").size(); ++j)
        text += fmt::format("{}{},{},{}\n", layer, csv_cell(matrix.at("rows")[i].get<std::string>()),
                            csv_cell(matrix.at("columns")[j].get<std::string>()),
                            number_text(matrix.at("values")[i][j]));
    }
  };
  for (const LayerAnalysis& layer : analysis.layers) {
    if (layer.matrices.contains(name)) add(std::to_string(layer.layer) + ",", layer.matrices.at(name));
  }
  if (!text.empty()) return "layer,row,column,value\n" + text;
  if (!analysis.matrices.contains(name)) return text;
  add("", analysis.matrices.at(name));
  return "row,column,value\n" + text;
}

/// One line for each layer and document, a column for each metric that some layer has. Empty without
/// documents, or for many.
std::string documents_csv(const ArrayAnalysis& analysis) {
  std::vector<std::string> names;
  const Json documents = in_some_layer(analysis, &LayerAnalysis::documents);
  for (const auto& [name, unused] : documents.items()) names.push_back(name);
  if (names.empty()) return "";
  std::string text = fmt::format("layer,{}\n", fmt::join(names, ","));
  for (const LayerAnalysis& layer : analysis.layers) {
    if (layer.documents.empty()) continue;
    for (std::size_t at = 0; at < layer.documents.at("document").size(); ++at) {
      text += std::to_string(layer.layer);
      for (const std::string& name : names)
        text += "," + (layer.documents.contains(name) ? number_text(layer.documents.at(name)[at]) : "");
      text += "\n";
    }
  }
  return text;
}

std::string definitions_csv() {
  std::string text = "metric,definition,follows\n";
  for (const RoutedMetric& metric : routed_metrics())
    text += fmt::format("{},{},{}\n", metric.name, csv_cell(metric.definition), metric.follows);
  for (const MetricGroup& group : metric_groups()) {
    for (const MetricGroup::Metric& metric : group.metrics) {
      const bool is_there = std::any_of(routed_metrics().begin(), routed_metrics().end(),
                                        [&](const RoutedMetric& own) { return metric.name == own.name; });
      const std::vector<const Need*> all = needs_of(metric.name);
      const bool is_of_arrays =
          std::all_of(all.begin(), all.end(), [](const Need* need) { return need->argument; });
      if (!is_there && is_of_arrays) text += fmt::format("{},{},\n", metric.name, csv_cell(metric.help));
    }
  }
  return text;
}

// npz

/// Texts as an array of NumPy's type <U.
std::string npy_of_texts(const std::vector<std::string>& texts) {
  std::vector<std::u32string> letters;
  std::size_t longest = 1;
  for (const std::string& text : texts) {
    std::u32string& own = letters.emplace_back();
    for (std::size_t at = 0; at < text.size();) {
      const auto first = static_cast<unsigned char>(text[at]);
      const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
      char32_t letter = length == 1 ? first : first & (0xFFU >> (length + 1));
      for (std::size_t i = 1; i < length && at + i < text.size(); ++i)
        letter = letter << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3FU);
      own += letter;
      at += length;
    }
    longest = std::max(longest, own.size());
  }
  std::string bytes = npy_header(fmt::format("<U{}", longest), {std::ssize(texts)});
  for (std::u32string& own : letters) {
    own.resize(longest, U'\0');
    bytes.append(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(char32_t));
  }
  return bytes;
}

/// The arrays of the .npz file by name.
class ArrayTable {
 public:
  void add(const std::string& name, std::vector<std::int64_t> shape, const std::vector<double>& values) {
    arrays_.emplace_back(name, npy_bytes(shape, std::span<const double>(values)));
  }
  void add(const std::string& name, const std::vector<std::string>& texts) {
    arrays_.emplace_back(name, npy_of_texts(texts));
  }
  std::string bytes() const { return npz_bytes(arrays_); }

 private:
  std::vector<std::pair<std::string, std::string>> arrays_;
};

double number_or_nan(const Json& value) {
  return value.is_number() ? value.get<double>() : std::nan("");
}

void append_matrix(const Json& matrix, std::vector<double>& values) {
  for (const Json& row : matrix.at("values")) {
    for (const Json& value : row) values.push_back(number_or_nan(value));
  }
}

std::vector<std::string> axis_names(const Json& names) {
  return names.get<std::vector<std::string>>();
}

/// layers (L), each metric (L) with its interval and chance level, each vector (L, E), each matrix with its
/// names. NaN stands where a layer has no value.
std::string analysis_npz(const ArrayAnalysis& analysis) {
  ArrayTable table;
  const auto count = std::ssize(analysis.layers);
  std::vector<double> numbers;
  std::set<std::string> metrics, vectors, matrices;
  for (const LayerAnalysis& layer : analysis.layers) {
    numbers.push_back(layer.layer);
    for (const auto& [name, unused] : layer.metrics.items()) metrics.insert(name);
    for (const auto& [name, unused] : layer.experts.items()) vectors.insert(name);
    for (const auto& [name, unused] : layer.matrices.items()) matrices.insert(name);
  }
  table.add("layers", {count}, numbers);
  const double none = std::nan("");
  for (const std::string& name : metrics) {
    std::vector<double> values, low, high, chance;
    for (const LayerAnalysis& layer : analysis.layers) {
      values.push_back(layer.metrics.contains(name) ? number_or_nan(layer.metrics.at(name)) : none);
      low.push_back(layer.intervals.contains(name) ? number_or_nan(layer.intervals.at(name)[0]) : none);
      high.push_back(layer.intervals.contains(name) ? number_or_nan(layer.intervals.at(name)[1]) : none);
      chance.push_back(layer.chance.contains(name) ? number_or_nan(layer.chance.at(name)) : none);
    }
    const auto is_known = [](double value) { return !std::isnan(value); };
    table.add(name, {count}, values);
    if (std::any_of(low.begin(), low.end(), is_known)) {
      table.add(name + "_low", {count}, low);
      table.add(name + "_high", {count}, high);
    }
    if (std::any_of(chance.begin(), chance.end(), is_known)) table.add(name + "_chance", {count}, chance);
  }
  const std::int64_t experts = std::ssize(analysis.layers.front().experts.at("load"));
  for (const std::string& name : vectors) {
    std::vector<double> values;
    for (const LayerAnalysis& layer : analysis.layers) {
      for (std::size_t e = 0; e < static_cast<std::size_t>(experts); ++e)
        values.push_back(layer.experts.contains(name) ? number_or_nan(layer.experts.at(name)[e]) : none);
    }
    table.add("experts." + name, {count, experts}, values);
  }
  for (const std::string& name : matrices) {
    // Layers have other tokens in the rows of `token`.
    const auto add = [&](const std::string& title, const std::vector<const Json*>& layers) {
      std::vector<double> values;
      for (const Json* const matrix : layers) append_matrix(*matrix, values);
      const auto rows = std::ssize(layers.front()->at("rows")),
                 columns = std::ssize(layers.front()->at("columns"));
      std::vector<std::int64_t> shape = {std::ssize(layers), rows, columns};
      table.add(title, shape, values);
      table.add(title + ".rows", axis_names(layers.front()->at("rows")));
    };
    std::vector<const Json*> all;
    bool is_common = true;
    for (const LayerAnalysis& layer : analysis.layers) {
      if (!layer.matrices.contains(name)) continue;
      all.push_back(&layer.matrices.at(name));
      is_common = is_common && all.back()->at("rows") == all.front()->at("rows");
    }
    is_common = is_common && std::ssize(all) == count;
    if (is_common) {
      add(name, all);
      continue;
    }
    for (const LayerAnalysis& layer : analysis.layers) {
      if (layer.matrices.contains(name))
        add(fmt::format("{}.{}", name, layer.layer), {&layer.matrices.at(name)});
    }
  }
  for (const auto& [name, matrix] : analysis.matrices.items()) {
    std::vector<double> values;
    append_matrix(matrix, values);
    table.add(name, {std::ssize(matrix.at("rows")), std::ssize(matrix.at("columns"))}, values);
  }
  return table.bytes();
}

// The page

std::string shown_number(double value) {
  return fmt::format("{:.4g}", value);
}

/// A row for each metric, a column for each of at most so many layers.
Table layers_table(const ArrayAnalysis& analysis) {
  constexpr std::size_t kMostColumns = 12;
  const std::vector<std::size_t> shown = spread_places(analysis.layers.size(), kMostColumns);
  Table table;
  table.head = {"metric"};
  for (const std::size_t place : shown)
    table.head.push_back(fmt::format("layer {}", analysis.layers[place].layer));
  if (analysis.layers.size() > 1) table.head.emplace_back("mean of all layers");
  for (const std::string& name : measured_names(analysis)) {
    std::vector<std::string> row = {name};
    for (const std::size_t place : shown) {
      const LayerAnalysis& layer = analysis.layers[place];
      std::string& cell = row.emplace_back();
      if (!layer.metrics.contains(name)) continue;
      cell = shown_number(layer.metrics.at(name).get<double>());
      if (layer.intervals.contains(name)) {
        const Json& interval = layer.intervals.at(name);
        cell += fmt::format(" [{}, {}]", shown_number(interval[0].get<double>()),
                            shown_number(interval[1].get<double>()));
      }
      if (layer.chance.contains(name))
        cell += fmt::format(" (chance {})", shown_number(layer.chance.at(name).get<double>()));
    }
    if (analysis.layers.size() > 1)
      row.push_back(analysis.means.contains(name) ? shown_number(analysis.means.at(name).get<double>()) : "");
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string analysis_html(const ArrayAnalysis& analysis) {
  const Json& settings = analysis.settings;
  std::vector<std::string> parts;
  if (settings.contains("rows")) parts.push_back(settings.at("rows").dump() + " tokens");
  parts.push_back(settings.at("experts").dump() + " experts");
  if (settings.contains("top_k")) parts.push_back(settings.at("top_k").dump() + " to a token");
  if (settings.contains("clusters")) parts.push_back(settings.at("clusters").dump() + " domains");
  if (settings.contains("documents")) parts.push_back(settings.at("documents").dump() + " documents");
  parts.push_back(counted(analysis.layers.size(), "layer"));
  std::string body =
      fmt::format("<section><p>{}</p>\n", html_text(fmt::format("{}", fmt::join(parts, " · "))));
  if (!analysis.checks.empty()) {
    body += "<h2>Found and assumed</h2><ul>";
    for (const std::string& check : analysis.checks) body += "<li>" + html_text(check) + "</li>";
    body += "</ul>\n";
  }
  body += "<h2>Figures</h2><div class=\"figures\">";
  for (const Drawing& drawing : analysis_drawings(analysis)) body += figure_html({drawing, ""});
  body += "</div>\n<h2>Layers</h2><div class=\"scroll\">" + html_table(layers_table(analysis)) + "</div>\n";
  for (const auto& [name, value] : analysis.metrics.items()) {
    if (analysis.layers.size() > 1)
      body +=
          fmt::format("<p>{} of all layers: {}</p>\n", html_text(name), shown_number(value.get<double>()));
  }
  Table skipped, definitions;
  skipped.head = {"left out", "why"};
  for (const auto& [name, reason] : analysis.layers.front().skipped.items())
    skipped.rows.push_back({name, reason.get<std::string>()});
  definitions.head = {"metric", "definition", "follows"};
  for (const RoutedMetric& metric : routed_metrics())
    definitions.rows.push_back({metric.name, metric.definition, metric.follows});
  for (const auto& [title, table] :
       {std::pair("Left out", &skipped), std::pair("Definitions", &definitions)}) {
    if (!table->empty())
      body += fmt::format("<details><summary>{}</summary>{}</details>\n", title, html_table(*table));
  }
  return page_html("Routing of " + counted(analysis.layers.size(), "layer"), program_version(),
                   body + "</section>\n");
}

}  // namespace

std::vector<std::filesystem::path> write_analysis(const ArrayAnalysis& analysis,
                                                  const std::filesystem::path& folder, bool draws) {
  make_folder(folder);
  std::vector<std::filesystem::path> written;
  const auto write = [&](const std::string& name, const std::string& text) {
    if (text.empty()) return;
    check_written_file(folder / name, "--out");
    write_answer(folder / name, text);
    written.push_back(folder / name);
  };
  write("layers.csv", layers_csv(analysis));
  write("experts.csv", experts_csv(analysis));
  write("definitions.csv", definitions_csv());
  for (const char* const name : {"domain", "domain_iou", "domain_iou4", "domain_divergence", "co_activation",
                                 "token", "layer_nmi", "layer_nmi_chance", "layer_ari", "same_name_share"})
    write(fmt::format("{}.csv", name), matrices_csv(analysis, name));
  write("documents.csv", documents_csv(analysis));
  write("analysis.json", to_json(analysis).dump(1) + "\n");
  write("analysis.npz", analysis_npz(analysis));
  write("report.html", analysis_html(analysis));
  if (!draws) return written;
  const std::filesystem::path figures = folder / "figures";
  make_folder(figures);
  for (const Drawing& drawing : analysis_drawings(analysis))
    publish_drawing(drawing, folder, figures, written);
  return written;
}

}  // namespace moelab
