#include "app/scenario/label_checks.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "app/metrics/metric_groups.h"
#include "app/scenario/sweep.h"
#include "app/scenario/sweep_values.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// The sweep of a profile may be wrong, which is told where it is chosen.
std::vector<SweepAxis> axes_of(const Json& variant) {
  try {
    return read_sweep(variant.value("sweep", Json::object()));
  } catch (const InvalidOption&) {
    return {};
  }
}

/// What the variants have together.
struct LabelledNames {
  std::vector<std::string> names = {"step"};               ///< arms and swept paths
  std::map<std::string, std::vector<std::string>> values;  ///< by swept path; none where they are searched

  void add(const Json& variant) {
    if (!variant.contains("arms")) add_name("base");
    const Json arms = variant.value("arms", Json::object());
    for (const auto& [arm, overrides] : arms.items()) add_name(arm);
    for (const SweepAxis& axis : axes_of(variant)) {
      for (const std::string& path : axis.paths) add_name(path);
      if (axis.crossing.is_null()) add_values(axis);
    }
  }
  bool has(const std::string& name) const {
    return std::find(names.begin(), names.end(), name) != names.end();
  }

 private:
  /// Variants have most names together.
  static void add_new(const std::string& text, std::vector<std::string>& texts) {
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
  }
  void add_name(const std::string& name) { add_new(name, names); }
  void add_values(const SweepAxis& axis) {
    for (const std::vector<Override>& step : axis.steps)
      for (const Override& change : step)
        add_new(value_text(read_sweep_value(change.value)), values[change.path]);
  }
};

void check_label(const LabelledNames& known, const std::string& name) {
  const std::size_t equals = name.find('=');
  const std::string path = name.substr(0, equals);
  if (known.has(name) || find_metric(name)) return;
  if (!known.has(path)) {
    std::vector<std::string> names = known.names;
    for (const std::string& metric : metric_names()) names.push_back(metric);
    throw UserError(join_path("labels", name), unknown_name("arm, swept path or metric", name, names));
  }
  const auto found = known.values.find(path);
  if (found == known.values.end()) return;
  const std::string text = name.substr(equals + 1);
  if (std::find(found->second.begin(), found->second.end(), text) == found->second.end())
    throw UserError(join_path("labels", name), unknown_name("value of " + path, text, found->second));
}

}  // namespace

void check_labels(std::span<const Json> variants) {
  LabelledNames known;
  for (const Json& variant : variants) known.add(variant);
  for (const Json& variant : variants) {
    const Json labels = variant.value("labels", Json::object());
    for (const auto& [name, label] : labels.items()) check_label(known, name);
  }
}

}  // namespace moelab
