#include "app/figures/plotted_value.h"

#include <algorithm>

#include "analysis/stats/observation.h"
#include "app/metrics/metric_groups.h"
#include "app/scenario/references.h"

namespace moelab {
namespace {

bool is_positive_part(const std::string& name, const ResultTable& table) {
  if (const auto fixed = table.fixed.find(name); fixed != table.fixed.end()) return fixed->second > 0;
  if (std::find(table.sweep_paths.begin(), table.sweep_paths.end(), name) == table.sweep_paths.end())
    return is_declared_positive(name);
  return std::all_of(table.rows.begin(), table.rows.end(), [&](const ResultRow& row) {
    const SweepValue* const value = row.coordinate(name);
    return value == nullptr || value->number().value_or(0) > 0;
  });
}

}  // namespace

PlottedValue::PlottedValue(std::string text, const ResultTable& table)
    : text_(std::move(text)), expression_(Expression::parse(text_, "figure")), fixed_(table.fixed) {
  is_positive_ =
      expression_.is_positive([&](const std::string& name) { return is_positive_part(name, table); });
  may_be_censored_ = std::any_of(names().begin(), names().end(), moelab::may_be_censored);
}

bool PlottedValue::is_measured() const {
  return has_metric(names());
}

std::optional<Interval> PlottedValue::of(const ResultRow& row, const MetricValues& metrics) const {
  return expression_.evaluate([&](const std::string& name) -> std::optional<Interval> {
    if (const SweepValue* const swept = row.coordinate(name)) {
      if (!swept->number()) return std::nullopt;
      return Interval{*swept->number(), *swept->number()};
    }
    if (const auto fixed = fixed_.find(name); fixed != fixed_.end())
      return Interval{fixed->second, fixed->second};
    return observed(row, metrics, name);
  });
}

bool names_metric(const std::string& text, const std::string& path) {
  if (text.find(' ') == std::string::npos) return find_metric(text) != nullptr;
  return has_metric(Expression::parse(text, path).names());
}

void check_plotted_value(const References& references, const std::string& arm, const std::string& text,
                         const std::string& path) {
  const Expression expression = Expression::parse(text, path);
  if (expression.is_name()) return references.check_metric(arm, text, path);
  for (const std::string& name : expression.names()) references.check_part(arm, name, path);
}

void check_plotted_path(const References& references, const std::string& text, const std::string& other,
                        const std::string& path) {
  if (text.find(' ') == std::string::npos) return references.check_swept(text, other, path);
  for (const std::string& name : Expression::parse(text, path).names()) {
    references.check_number(name, path);
  }
}

}  // namespace moelab
