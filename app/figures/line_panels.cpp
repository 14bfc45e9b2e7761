#include "app/figures/line_panels.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace moelab {
namespace {

constexpr std::size_t kMostLines = 6;

using Part = std::string NamedLine::*;
constexpr Part kParts[] = {&NamedLine::metric, &NamedLine::arm, &NamedLine::value};

/// How many lines the fullest panel has when there is one for each facet and `part`; null for facets alone.
std::size_t fullest_panel(const std::vector<NamedLine>& lines, Part part) {
  std::map<std::pair<std::string, std::string>, std::size_t> counts;
  std::size_t most = 0;
  for (const NamedLine& line : lines)
    if (!line.is_reference())
      most = std::max(most, ++counts[{line.facet, part == nullptr ? "" : line.*part}]);
  return most;
}

/// What makes panels besides the facets; null for nothing.
Part part_of_panels(const std::vector<NamedLine>& lines) {
  if (fullest_panel(lines, nullptr) <= kMostLines) return nullptr;
  for (const Part part : kParts)
    // Panels of a single line show no comparison.
    if (const std::size_t most = fullest_panel(lines, part); most > 1 && most <= kMostLines) return part;
  return nullptr;
}

std::string line_name(const NamedLine& line, Part told) {
  std::vector<std::string> parts;
  for (const Part part : {&NamedLine::arm, &NamedLine::value, &NamedLine::metric})
    if (part != told && !(line.*part).empty()) parts.push_back(line.*part);
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// What stands in all metrics' names before the last ", " that they share: "test, evaluation" and "test,
/// evaluation, swapped" are told apart by "" and "swapped".
std::size_t shared_beginning(const std::vector<NamedLine>& lines) {
  std::optional<std::string> shared;  // and a ", " after it
  for (const NamedLine& line : lines) {
    if (line.is_reference()) continue;
    const std::string name = line.metric + ", ";
    if (!shared) shared = name;
    std::size_t end = 0;
    for (std::size_t i = 0; i < std::min(name.size(), shared->size()) && name[i] == (*shared)[i]; ++i)
      if (name[i] == ' ' && i > 0 && name[i - 1] == ',') end = i + 1;
    shared->resize(end);
  }
  return shared.value_or("").size();
}

/// The lines without what all of their metrics begin with, where names have more than the metric when `told`
/// stands above the panel.
std::vector<NamedLine> shortened(std::vector<NamedLine> lines, Part told) {
  const auto needs_metric = [&](const NamedLine& line) {
    const bool has_arm = told != &NamedLine::arm && !line.arm.empty();
    const bool has_value = told != &NamedLine::value && !line.value.empty();
    return !line.is_reference() && !has_arm && !has_value;
  };
  if (std::any_of(lines.begin(), lines.end(), needs_metric)) return lines;
  const std::size_t shared = shared_beginning(lines);
  for (NamedLine& line : lines)
    if (!line.is_reference()) line.metric.erase(0, std::min(shared, line.metric.size()));
  return lines;
}

std::string joined_name(const std::string& facet, const std::string& part) {
  return facet + (facet.empty() || part.empty() ? "" : ", ") + part;
}

}  // namespace

std::string full_name(const NamedLine& line) {
  return joined_name(line.facet, line_name(line, nullptr));
}

std::vector<FigurePanel> line_panels(const std::vector<std::string>& facets,
                                     const std::vector<NamedLine>& named) {
  const Part part = part_of_panels(named);
  const std::vector<NamedLine> lines = part == &NamedLine::metric ? named : shortened(named, part);
  std::vector<FigurePanel> panels;
  for (const std::string& facet : facets) {
    std::vector<std::string> values;  // of the part, in the order of the lines
    std::map<std::string, std::vector<const NamedLine*>> own;
    for (const NamedLine& line : lines) {
      if (line.facet != facet || line.is_reference()) continue;
      const std::string value = part == nullptr ? "" : line.*part;
      if (own[value].empty()) values.push_back(value);
      own[value].push_back(&line);
    }
    for (const std::string& value : values) {
      const std::vector<const NamedLine*>& shown = own[value];
      const std::size_t count = (shown.size() + kMostLines - 1) / kMostLines;
      for (std::size_t panel = 0; panel < count; ++panel) {
        FigurePanel& filled = panels.emplace_back();
        std::vector<std::string> names;
        const auto add = [&](const NamedLine& line) {
          filled.series.push_back(line.series);
          filled.series.back().name = line_name(line, part);
        };
        for (std::size_t i = 0; i < shown.size(); ++i)
          if (i * count / shown.size() == panel) {
            add(*shown[i]);
            names.push_back(filled.series.back().name);
          }
        const bool is_of_metric = part == &NamedLine::metric && !shown.front()->heading.empty();
        const std::string told = is_of_metric ? shown.front()->heading
                                 : count == 1 ? value
                                              : fmt::format("{}", fmt::join(names, ", "));
        // Panels of metrics have other numbers, which has to be seen first.
        filled.name = part == &NamedLine::metric ? joined_name(told, facet) : joined_name(facet, told);
        for (const NamedLine& line : lines)
          if (line.is_reference() && line.facet == facet &&
              (part != &NamedLine::value || line.value == value))
            add(line);
      }
    }
  }
  if (panels.empty()) panels.emplace_back();
  return panels;
}

}  // namespace moelab
