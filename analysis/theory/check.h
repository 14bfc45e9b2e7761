#pragma once

/// Theorem checks. A check turns a statement of a paper into a prediction, a measurement and a verdict.
/// Each paper has a header, which lists its checks in the order of the paper, and a folder of sources.

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/random.h"

namespace moelab {

enum class CheckVerdict { holds, fails, hypotheses_not_met, inconclusive, regression };

/// "holds", "fails", "hypotheses not met", "inconclusive", "regression".
const char* to_string(CheckVerdict verdict);

/// A condition of the statement, with the number that was found.
struct Hypothesis {
  std::string text;  ///< the condition as a formula: "rho < 1"
  double value = 0;
  bool met = true;
};

/// How the measurement must compare with the prediction.
enum class Relation { equal, at_most, at_least };

/// Further numbers of a finding, in order.
using CheckDetails = std::vector<std::pair<std::string, double>>;

/// The points (x, y) from which a slope was measured, for a figure. Both coordinates are positive.
struct CheckCurve {
  std::string name;   ///< of the line
  std::string title;  ///< of the figure that all checks of this kind share
  std::string x_label, y_label;
  std::vector<std::pair<double, double>> points;
};

/// What one check found. The verdict follows in this order:
/// 1. An unmet hypothesis gives `hypotheses_not_met`.
/// 2. A number that is not finite, or error_bound > resolution, gives `inconclusive`.
/// 3. The check holds if |measured − predicted| ≤ error_bound (equal), measured ≤ predicted + error_bound
///    (at_most) or measured ≥ predicted − error_bound (at_least). Otherwise it fails.
/// 4. A prediction that is a stored number of an earlier simulation tests the program, not the statement. It
///    gives `regression` in place of `holds`.
struct CheckFinding {
  std::vector<Hypothesis> hypotheses = {};
  Relation relation = Relation::equal;
  double predicted = 0;
  double measured = 0;
  double error_bound = 0;
  std::string error_origin = {};  ///< why the bound has its size: "4 standard errors", "rounding"
  /// The widest error bound with which the comparison is still informative.
  double resolution = std::numeric_limits<double>::infinity();
  CheckDetails details = {};
  CheckCurve curve = {};       ///< most checks have no points
  bool is_regression = false;  ///< the prediction is a stored number of an earlier simulation
};

CheckVerdict verdict_of(const CheckFinding& finding);

/// How much work a check does, and on which random streams.
struct CheckEffort {
  std::uint64_t root = 1;  ///< root of all random streams
  int seeds = 1;           ///< multiplies the repetitions
};

/// As the functions of checks take it.
using Effort = const CheckEffort&;

/// The random stream of one repetition of the check `id`. Other ids have other streams.
Engine check_stream(const CheckEffort& effort, std::string_view id, int repetition);

/// A statement of a paper. A statement that is wrong as printed has two checks: as printed (expected to fail)
/// and as corrected (expected to hold).
struct Check {
  std::string id;         ///< "dikkala2023.lemma1"; a pair ends in ".as_printed" and ".corrected"
  std::string source;     ///< "Dikkala et al. 2023, Lemma 1"
  std::string statement;  ///< one sentence with the formula that is checked
  CheckVerdict expected = CheckVerdict::holds;
  std::function<CheckFinding(const CheckEffort&)> run;
};

/// All checks, by paper and number, from the table in check.cpp.
const std::vector<Check>& checks();

// Parts of findings

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

/// The error bound of a mean over draws, in standard errors.
constexpr double kStandardErrors = 4;

/// A number that the statement predicts to be 0.
CheckFinding expected_zero(double measured, double error_bound, std::string error_origin,
                           CheckDetails details = {});

/// The largest of several deviations, each in its standard errors, that the statement predicts to be 0.
CheckFinding in_standard_errors(double largest, CheckDetails details = {}, double bound = kStandardErrors);

/// A statement about every instance: the share `hits` / `instances` must be 1 without any error. `details`
/// follow the number of instances.
CheckFinding every_instance(int hits, int instances, std::string error_origin, CheckDetails details = {});

/// A regression: a frequency of an earlier simulation, rounded to `unit`. The error bound is 4 standard
/// errors and half a unit.
CheckFinding measured_frequency(int hits, int instances, double predicted, double unit,
                                CheckDetails details = {});

/// Adds to `details` how often a statement failed: "NAME", and "NAME, 95 % low" and "NAME, 95 % high" by
/// Clopper and Pearson.
void add_frequency(CheckFinding& finding, const std::string& name, int hits, int instances);

/// The larger or smaller of a running extreme and a value. Unlike std::max and std::min they keep a NaN.
inline double larger(double left, double right) {
  return left >= right || std::isnan(left) ? left : right;
}
inline double smaller(double left, double right) {
  return left <= right || std::isnan(left) ? left : right;
}

/// Vectors (d) whose expectation is claimed to be 0: sums over independent draws.
class MeanOfZero {
 public:
  explicit MeanOfZero(Eigen::Index size) : sum_(Vector::Zero(size)), squares_(Vector::Zero(size)) {}
  void add(const Vector& values);
  /// max_j |m_j| / (s_j / √n) for the means m_j and standard deviations s_j of n draws. An entry that is
  /// always 0 counts as 0. An entry that is constant and not 0 counts as infinite.
  double largest_deviation() const;

 private:
  Vector sum_, squares_;
  double count_ = 0;
};

/// The central difference (f(x + h) − f(x − h)) / 2h in one `coordinate` of the point at which `value_of` is
/// evaluated. The coordinate has its own value again afterwards. `value_of` returns a number or a Matrix or
/// Vector (not an expression).
template <class ValueOf>
auto central_difference(double& coordinate, double step, const ValueOf& value_of) {
  using Value = decltype(value_of());
  const double kept = coordinate;
  coordinate = kept + step;
  const Value above = value_of();
  coordinate = kept - step;
  const Value below = value_of();
  coordinate = kept;
  return Value((above - below) / (2 * step));
}

}  // namespace moelab
