#pragma once

/// What stands at an axis of a figure: a metric, a swept path, or an arithmetic expression of them and of
/// numbers that all cells have.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/expression.h"
#include "analysis/stats/result_table.h"

namespace moelab {

class References;

class PlottedValue {
 public:
  /// Throws InvalidOption for a text that is no expression.
  PlottedValue(std::string text, const ResultTable& table);

  const std::string& text() const { return text_; }
  const std::vector<std::string>& names() const { return expression_.names(); }
  bool is_name() const { return expression_.is_name(); }
  /// Whether a metric is among the names.
  bool is_measured() const;
  /// The row's value with these of its metrics; an interval where a metric is right-censored (observation.h).
  std::optional<Interval> of(const ResultRow& row, const MetricValues& metrics) const;
  /// Above 0 by definition, so that its logarithms are averaged.
  bool is_positive() const { return is_positive_; }
  /// A metric of it may be right-censored, so that its medians are shown.
  bool may_be_censored() const { return may_be_censored_; }

 private:
  std::string text_;
  Expression expression_;
  std::map<std::string, double> fixed_;
  bool is_positive_ = false, may_be_censored_ = false;
};

/// Whether a text for an axis names a metric. Throws UserError at `path` for a wrong expression.
bool names_metric(const std::string& text, const std::string& path);

/// The arm measures every metric of the expression, and what else it names is a number that is swept or that
/// all cells have. Throws UserError at `path`.
void check_plotted_value(const References& references, const std::string& arm, const std::string& text,
                         const std::string& path);

/// A swept path, `other` unless that is empty, or an expression of paths of numbers.
void check_plotted_path(const References& references, const std::string& text, const std::string& other,
                        const std::string& path);

}  // namespace moelab
