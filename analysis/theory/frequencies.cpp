#include "analysis/theory/frequencies.h"

#include <fmt/core.h>

#include <cmath>

#include "analysis/stats/intervals.h"

namespace moelab {

CheckFinding every_instance(int hits, int instances, std::string error_origin) {
  CheckFinding finding;
  finding.predicted = 1;
  finding.measured = static_cast<double>(hits) / instances;
  finding.error_origin = std::move(error_origin);
  finding.details = {{"instances", instances}};
  return finding;
}

CheckFinding measured_frequency(int hits, int instances, double predicted, double unit) {
  CheckFinding finding;
  finding.predicted = predicted;
  finding.measured = static_cast<double>(hits) / instances;
  finding.error_bound = 4 * std::sqrt(predicted * (1 - predicted) / instances) + unit / 2;
  finding.error_origin = fmt::format("4 standard errors, and half of the last digit given, {}", unit / 2);
  finding.resolution = 2 * unit;
  finding.details = {{"instances", instances}};
  return finding;
}

void add_frequency(CheckFinding& finding, const std::string& name, int hits, int instances) {
  const Interval interval = binomial_interval(hits, instances);
  finding.details.emplace_back(name, static_cast<double>(hits) / instances);
  finding.details.emplace_back(name + ", 95 % low", interval.low);
  finding.details.emplace_back(name + ", 95 % high", interval.high);
}

}  // namespace moelab
