#include <algorithm>
#include <cmath>
#include <numbers>

#include "analysis/theory/latent_single_index2025.h"

namespace moelab {
namespace {

const std::string kCancellationId = "latent_single_index2025.cancellation";
constexpr int kNeurons = 6, kSingleIndexSamples = 200000, kSingleIndexBlock = 1000;

}  // namespace

double hermite_coefficient(int degree, double bias) {
  // The kink of the ReLU is an end of the range, so the integrand is smooth.
  constexpr double kReach = 10;
  constexpr int kIntervals = 2000;
  const double first = std::max(-bias, -kReach), width = (kReach - first) / kIntervals;
  double sum = 0;
  for (int i = 0; i <= kIntervals; ++i) {
    const double z = first + width * i;
    const double weight = i == 0 || i == kIntervals ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * (z + bias) * hermite(degree, z) * std::exp(-z * z / 2);
  }
  return sum * width / 3 / std::sqrt(2 * std::numbers::pi);
}

double correlation_law(const SingleIndexOptions& options, const SingleIndexDirections& directions,
                       const Vector& w, double bias) {
  const double global = directions.global.row(0).dot(w);
  double sum = 0;
  for (int c = 0; c < options.clusters; ++c) {
    const double shifted = bias + options.mean_norm * directions.means.row(c).dot(w);
    const double local = directions.local.row(c).dot(w);
    for (std::size_t i = 0; i < std::max(options.local.size(), options.global.size()); ++i) {
      const int degree = options.exponent + static_cast<int>(i);
      const double coefficient = hermite_coefficient(degree, shifted);
      if (i < options.local.size()) sum += options.local[i] * coefficient * std::pow(local, degree);
      if (i < options.global.size())
        sum += options.signs[size(c)] * options.global[i] * coefficient * std::pow(global, degree);
    }
  }
  return sum / options.clusters;
}

CheckFinding check_cancellation(const CheckEffort& effort, const CorrelationLaw& law) {
  SingleIndexOptions options;
  options.dim = 6;
  options.local = {1, 0.5};
  options.global = {1, -0.5};
  Engine engine = check_stream(effort, kCancellationId, 0);
  const std::unique_ptr<Problem> problem = draw_problem(DataOptions(options), Seeds{engine(), 0});
  const SingleIndexDirections& directions = *problem->single_index();
  // Neurons near the span of the directions: in most others every term is small.
  Matrix neurons(kNeurons, options.dim);
  Vector biases(kNeurons), expected(kNeurons);
  for (int j = 0; j < kNeurons; ++j) {
    Vector w = 0.3 * draw_normals(engine, options.dim, 1);
    w += 1.5 * directions.global.row(0).transpose() + directions.local.row(j % 2).transpose();
    w += 0.5 * directions.means.row(j % 2).transpose();
    neurons.row(j) = w.normalized().transpose();
    biases[j] = draw_normal(engine);
    expected[j] = law(options, directions, neurons.row(j).transpose(), biases[j]);
  }
  MeanOfZero deviations(kNeurons);
  const int blocks = kSingleIndexSamples / kSingleIndexBlock * effort.seeds;
  for (int block = 0; block < blocks; ++block) {
    const Dataset data = problem->draw(
        engine,
        {Purpose::population, static_cast<std::int64_t>(block) * kSingleIndexBlock, kSingleIndexBlock});
    const Matrix slopes = data.x * neurons.transpose();
    Vector mean = Vector::Zero(kNeurons);
    for (int i = 0; i < kSingleIndexBlock; ++i)
      mean += data.y(i, 0) * (slopes.row(i).transpose() + biases).cwiseMax(0) / kSingleIndexBlock;
    deviations.add(mean - expected);
  }
  return in_standard_errors(deviations.largest_deviation(),
                            {{"neurons", kNeurons}, {"rho", options.mean_norm}});
}

CheckFinding check_first_order(const std::function<double(int)>& slope) {
  constexpr double kShift = 1e-3, kBias = 0.7;
  double largest = 0;
  for (int degree = 2; degree <= 5; ++degree) {
    // Two clusters with s = (1, −1) and ρ w·v_c = ±shift.
    const double sum =
        hermite_coefficient(degree, kBias + kShift) - hermite_coefficient(degree, kBias - kShift);
    const double factor = slope ? slope(degree) : std::sqrt(degree + 1.0);
    const double predicted = factor * hermite_coefficient(degree + 1, kBias) * 2 * kShift;
    largest = larger(largest, std::abs(sum / predicted - 1));
  }
  return expected_zero(largest, 1e-4, "terms of order (ρ w·v)², ρ w·v = 1/1000");
}

std::vector<Check> latent_single_index2025_checks() {
  const std::string source = "Kawata et al. 2025 (2506.01656), derived";
  return {
      {kCancellationId, source,
       "E[y sigma(w.x + b)] is a sum of local terms alpha_i (w.w_c)^i and of (w.w_g)^i sum_c s_c alpha_i(b + "
       "rho "
       "w.v_c), which cancels at w.v_c = 0 (largest deviation over neurons)",
       CheckVerdict::holds, [](Effort effort) { return check_cancellation(effort); }},
      {"latent_single_index2025.first_order", source,
       "to first order in w.v_c, sum_c s_c alpha_i(b + rho w.v_c) = rho sqrt(i + 1) alpha_{i+1}(b) sum_c s_c "
       "w.v_c (largest relative difference)",
       CheckVerdict::holds, [](Effort) { return check_first_order(); }}};
}

}  // namespace moelab
