#include "app/figures/display_names.h"

#include <sstream>

#include "app/metrics/labels.h"

namespace moelab {

DisplayNames::DisplayNames(const Json& plan) {
  const Json scenario = plan.value("scenario", Json::object());
  if (!scenario.is_object() || !scenario.contains("labels")) return;
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
  for (std::string part; parts >> part;) {
    const auto found = operators.find(part);
    label += (label.empty() ? "" : " ") +
             (found == operators.end() ? or_else(part, legend_label(part)) : found->second);
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
