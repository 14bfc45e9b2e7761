#pragma once

/// The frame of theorem checks: a statement of a source becomes a prediction, a measurement and a verdict.

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/random.h"

namespace moelab {

enum class CheckVerdict { holds, fails, hypotheses_not_met, inconclusive };

/// "holds", "fails", "hypotheses not met", "inconclusive".
const char* to_string(CheckVerdict verdict);

/// A condition under which the statement is claimed, with the number that was found.
struct Hypothesis {
  std::string text;  ///< the condition, as a formula: "rho < 1"
  double value = 0;
  bool met = true;
};

/// How the measurement has to stand to the prediction.
enum class Relation { equal, at_most, at_least };

/// What a slope was measured on, for a figure: points (x, y), both positive.
struct CheckCurve {
  std::string name;   ///< of the line
  std::string title;  ///< of the figure that all checks of the kind share
  std::string x_label, y_label;
  std::vector<std::pair<double, double>> points;
};

/// What one check found. The verdict follows from it:
/// a hypothesis that is not met → hypotheses_not_met; a number that is not finite, or error_bound >
/// resolution → inconclusive; otherwise `holds` when |measured − predicted| ≤ error_bound (equal), measured ≤
/// predicted + error_bound (at_most), measured ≥ predicted − error_bound (at_least), else `fails`.
struct CheckFinding {
  std::vector<Hypothesis> hypotheses;
  Relation relation = Relation::equal;
  double predicted = 0;
  double measured = 0;
  double error_bound = 0;
  std::string error_origin;  ///< where the bound comes from: "4 standard errors over 32 draws", "rounding"
  /// The widest error bound at which the comparison would still say something.
  double resolution = std::numeric_limits<double>::infinity();
  /// Further numbers of interest, in order.
  std::vector<std::pair<std::string, double>> details;
  CheckCurve curve = {};  ///< without points for most
};

CheckVerdict verdict_of(const CheckFinding& finding);

/// How much work a check does, and on which random streams.
struct CheckEffort {
  std::uint64_t root = 1;  ///< root of all random streams
  int seeds = 1;           ///< repetitions are multiplied by this
};

/// So many standard errors bound the error of what is measured by draws.
constexpr double kStandardErrors = 4;

/// The random stream of one repetition of the check `id`. Other checks have other streams.
Engine check_stream(const CheckEffort& effort, std::string_view id, int repetition);

/// A statement of a source. One that is wrong as printed is listed twice, as printed (expected to fail) and
/// as corrected (expected to hold).
struct Check {
  std::string id;      ///< "dikkala2023.lemma1"; ".as_printed" or ".corrected" at the end where there are two
  std::string source;  ///< "Dikkala et al. 2023, Lemma 1"
  std::string statement;  ///< one sentence with the formula that is checked
  CheckVerdict expected = CheckVerdict::holds;
  std::function<CheckFinding(const CheckEffort&)> run;
};

/// All checks, by source and number: from the one table in checks.cpp.
const std::vector<Check>& checks();

// Running extremes that do not overlook a value that is not a number, as std::max and std::min do.

inline double larger(double left, double right) {
  return left >= right || std::isnan(left) ? left : right;
}

inline double smaller(double left, double right) {
  return left <= right || std::isnan(left) ? left : right;
}

// What random instances are counted into.

/// For a statement of every instance: `hits` of `instances` against all of them, without any error.
CheckFinding every_instance(int hits, int instances, std::string error_origin);

/// For a frequency that the source sheet gives rounded to `unit`: 4 standard errors and half a unit.
CheckFinding measured_frequency(int hits, int instances, double predicted, double unit);

/// Adds to `details` how often a statement failed: "NAME", "NAME, 95 % low" and "NAME, 95 % high" (Clopper
/// and Pearson).
void add_frequency(CheckFinding& finding, const std::string& name, int hits, int instances);

}  // namespace moelab
