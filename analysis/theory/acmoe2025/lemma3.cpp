#include "analysis/theory/acmoe2025/lemma3.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "sim/base/linear_algebra.h"

namespace moelab {
namespace {

constexpr const char* kRootId = "acmoe2025.lemma3";
constexpr int kRootInstances = 500;

/// Of eigenvalues, relative to the largest.
double rounding_of(const Vector& dispersion, double lambda) {
  return 16 * static_cast<double>(dispersion.size()) * std::numeric_limits<double>::epsilon() *
         (dispersion.maxCoeff() + lambda);
}

/// d uniform on 2 … 12, log s ~ N(0, 1); in every second instance the last half of the features, rounded up,
/// repeats others.
Vector draw_dispersion(Engine& engine, bool ties) {
  const int dim = 2 + draw_index(engine, 11);
  Vector dispersion = draw_log_normal(engine, dim, 1);
  for (int q = dim / 2; ties && q < dim; ++q) dispersion[q] = dispersion[draw_index(engine, dim / 2)];
  return dispersion;
}

/// Whether there is one root in each interval (p_j, p_{j+1}) of the poles, the last one (p_d, ∞), and no
/// other.
bool one_right_of_each(const std::set<double>& poles, const Vector& roots) {
  if (poles.size() != static_cast<std::size_t>(roots.size())) return false;
  Eigen::Index j = 0;
  for (auto pole = poles.begin(); pole != poles.end(); ++pole, ++j) {
    const auto next = std::next(pole);
    if (roots[j] <= *pole || (next != poles.end() && roots[j] >= *next)) return false;
  }
  return true;
}

}  // namespace

Vector weight_equation_roots(const Vector& dispersion, double lambda) {
  const Eigen::Index dim = dispersion.size();
  Matrix secular = Matrix::Constant(dim, dim, lambda / static_cast<double>(dim));
  secular.diagonal() -= dispersion;
  const Vector values = symmetric_eigenvalues(secular);
  std::vector<double> sorted(dispersion.begin(), dispersion.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> roots;
  for (const double value : values) {
    const auto repeats = [&](auto place) {
      return std::next(place) != sorted.end() && *place == *std::next(place) &&
             std::abs(value + *place) <= rounding_of(dispersion, lambda);
    };
    bool is_pole = false;
    for (auto place = sorted.begin(); place != sorted.end(); ++place) is_pole = is_pole || repeats(place);
    if (!is_pole) roots.push_back(value);
  }
  return Eigen::Map<const Vector>(roots.data(), static_cast<Eigen::Index>(roots.size()));
}

CheckFinding check_root_count(const CheckEffort& effort, bool as_printed, const RootFinder& roots) {
  const int instances = kRootInstances * effort.seeds;
  int right = 0, tied = 0;
  double most = 0;
  for (int i = 0; i < instances; ++i) {
    Engine engine = check_stream(effort, kRootId, i);
    const Vector dispersion = draw_dispersion(engine, i % 2 == 1);
    const double lambda = dispersion.mean() * std::pow(10, 2 * draw_uniform(engine) - 1);
    const Vector found = roots(dispersion, lambda);
    std::set<double> poles;
    for (const double s : dispersion) poles.insert(-s);
    if (static_cast<Eigen::Index>(poles.size()) < dispersion.size()) ++tied;
    most = std::max(most, static_cast<double>(found.size()));
    if (as_printed ? found.size() == dispersion.size() : one_right_of_each(poles, found)) ++right;
  }
  CheckFinding finding = every_instance(right, instances, "none: numbers are counted");
  finding.details.emplace_back("instances with ties", tied);
  finding.details.emplace_back("largest number of solutions", most);
  return finding;
}

std::vector<Check> acmoe2025_lemma3_checks() {
  const std::string source = "Nielsen et al. 2025, Lemma 3", id = kRootId;
  return {
      {id + ".as_printed", source,
       "sum_q 1/(s_q + alpha) = d/lambda has exactly d real solutions: share of random dispersions, every "
       "second with ties",
       CheckVerdict::fails, [](const CheckEffort& effort) { return check_root_count(effort, true); }},
      {id + ".corrected", source,
       "it has one solution right of each different -s_q, before the next one, and no other: share of the "
       "same dispersions",
       CheckVerdict::holds, [](const CheckEffort& effort) { return check_root_count(effort, false); }}};
}

}  // namespace moelab
