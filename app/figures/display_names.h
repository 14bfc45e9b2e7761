#pragma once

/// How arms, swept paths and values, and metrics are called in figures.

#include <map>
#include <string>

#include "app/json/json.h"

namespace moelab {

/// The scenario's "labels", before what app/metrics/labels.h knows, before the last components of a swept
/// path that tell it from the others. A key is an arm, a swept path, a metric, or "path=value".
class DisplayNames {
 public:
  /// Of a plan.
  explicit DisplayNames(const Json& plan);
  std::string arm(const std::string& name) const;
  /// Of a path or a metric, or an expression of them, for an axis and for a legend.
  std::string axis(const std::string& name) const;
  std::string legend(const std::string& name) const;
  /// "samples = 640".
  std::string value(const std::string& path, const std::string& text) const;
  /// The value alone: "640".
  std::string bare_value(const std::string& path, const std::string& text) const;

 private:
  /// With the labels that its parts have at axes and printed operators.
  std::string expression(const std::string& text) const;
  std::string or_else(const std::string& name, const std::string& otherwise) const;
  std::map<std::string, std::string> labels_;
};

}  // namespace moelab
