#include "app/figures/display_names.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

#include "app/metrics/labels.h"
#include "app/metrics/metric_groups.h"

namespace moelab {
namespace {

/// The paths of a plan's sweep: those that figures tell values of, and of those that vary together the
/// others, which stand behind the first.
struct SweptPaths {
  std::vector<std::string> shown, all;
};

SweptPaths swept_paths(const Json& sweep) {
  SweptPaths paths;
  if (!sweep.is_object()) return paths;
  for (const auto& [path, values] : sweep.items()) {
    if (path != "zip" || !values.is_object()) {
      paths.shown.push_back(path);
      paths.all.push_back(path);
      continue;
    }
    if (!values.empty()) paths.shown.push_back(values.begin().key());
    for (const auto& zipped : values.items()) paths.all.push_back(zipped.key());
  }
  return paths;
}

/// "router.tau1" of "model.router.tau1" for two components. A kind is called by what it is a kind of.
std::string last_components(const std::string& path, std::size_t count) {
  constexpr std::string_view kKind = ".kind";
  const std::string whole = path.ends_with(kKind) ? path.substr(0, path.size() - kKind.size()) : path;
  std::size_t start = whole.size();
  for (; count > 0 && start != std::string::npos && start > 0; --count) start = whole.rfind('.', start - 1);
  return start == std::string::npos || start == 0 ? whole : whole.substr(start + 1);
}

/// The fewest last components of a path that tell it from the others.
std::string short_path(const std::string& path, const std::vector<std::string>& paths) {
  const auto components = static_cast<std::size_t>(std::count(path.begin(), path.end(), '.')) + 1;
  for (std::size_t count = 1; count < components; ++count) {
    const std::string shortest = last_components(path, count);
    if (std::none_of(paths.begin(), paths.end(), [&](const std::string& other) {
          return other != path && last_components(other, count) == shortest;
        }))
      return shortest;
  }
  return path;
}

/// A label that is an expression itself stands in parentheses within another.
std::string as_operand(const std::string& label) {
  const auto has = [&](const char* sign) { return label.find(sign) != std::string::npos; };
  return has(" ÷ ") || has(" × ") || has(" + ") || has(" − ") ? "(" + label + ")" : label;
}

}  // namespace

DisplayNames::DisplayNames(const Json& plan) {
  const Json scenario = plan.value("scenario", Json::object());
  if (!scenario.is_object()) return;
  // What no table names is called by the end of its path.
  const SweptPaths paths = swept_paths(scenario.value("sweep", Json()));
  for (const std::string& path : paths.all)
    if (legend_label(path) == path && find_metric(path) == nullptr)
      labels_[path] = short_path(path, paths.shown);
  if (!scenario.contains("labels")) return;
  for (const auto& [name, label] : scenario.at("labels").items()) labels_[name] = label.get<std::string>();
}

std::string DisplayNames::or_else(const std::string& name, const std::string& otherwise) const {
  const auto found = labels_.find(name);
  return found == labels_.end() ? otherwise : found->second;
}

std::string DisplayNames::arm(const std::string& name) const {
  return or_else(name, name);
}
std::string DisplayNames::axis(const std::string& name) const {
  return name.find(' ') == std::string::npos ? or_else(name, axis_label(name)) : expression(name);
}
std::string DisplayNames::legend(const std::string& name) const {
  return name.find(' ') == std::string::npos ? or_else(name, legend_label(name)) : expression(name);
}

std::string DisplayNames::expression(const std::string& text) const {
  static const std::map<std::string, std::string> operators = {{"-", "−"}, {"*", "×"}, {"/", "÷"},
                                                               {"+", "+"}, {"(", "("}, {")", ")"}};
  std::string label;
  std::istringstream parts(text);
  bool is_tight = true;  // after an opening parenthesis
  for (std::string part; parts >> part;) {
    const auto found = operators.find(part);
    const bool is_call = part == "(" && label.ends_with("log");
    label += is_tight || is_call || part == ")" ? "" : " ";
    // A legend's short form tells what a line is beside others, and may mean nothing alone: "router".
    label += found != operators.end() ? found->second : as_operand(or_else(part, axis_label(part)));
    is_tight = part == "(";
  }
  return label;
}

std::string DisplayNames::value(const std::string& path, const std::string& text) const {
  return or_else(path + "=" + text, legend(path) + " = " + text);
}
std::string DisplayNames::bare_value(const std::string& path, const std::string& text) const {
  return or_else(path + "=" + text, text);
}

}  // namespace moelab
