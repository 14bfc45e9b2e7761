#include "sim/base/random.h"

#include <fmt/format.h>

#include <boost/math/constants/constants.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/random/sobol.hpp>
#include <numeric>
#include <utility>

#include "sim/base/error.h"

namespace moelab {
namespace {

/// SplitMix64's finaliser (Steele, Lea, Flood 2014): a bijection in which every output bit depends on every
/// input bit.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

/// The middle of the interval of width 2⁻⁵³ that a word falls into: never 0 or 1.
double centre_of_cell(std::uint64_t word) {
  return (static_cast<double>(word >> 11) + 0.5) * 0x1p-53;
}

}  // namespace

Engine Seeds::stream(Purpose purpose, std::uint64_t counter) const {
  const std::uint64_t own = (shared >> static_cast<std::uint64_t>(purpose) & 1) != 0 ? 0 : index;
  std::uint64_t key = mix(root);
  for (const std::uint64_t part : {own, static_cast<std::uint64_t>(purpose), counter}) key = mix(key ^ part);
  return Engine(key);
}

Seeds Seeds::of_layer(int layer) const {
  constexpr std::uint64_t kLayers = 0x6c6179657273u;  // these roots differ from mix(root)
  if (layer == 0) return *this;
  return {mix(mix(root) ^ (kLayers + static_cast<std::uint64_t>(layer))), index, shared};
}

void fill_normal(Engine& engine, double scale, double* values, std::size_t count) {
  boost::random::normal_distribution<double> normal;
  for (std::size_t i = 0; i < count; ++i) values[i] = scale * normal(engine);
}

Matrix draw_normals(Engine& engine, Eigen::Index rows, Eigen::Index columns, double scale) {
  Matrix values(rows, columns);
  fill_normal(engine, scale, values.data(), static_cast<std::size_t>(values.size()));
  return values;
}

void shuffle(Engine& engine, std::vector<int>& values) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[static_cast<std::size_t>(draw_index(engine, static_cast<int>(i)))]);
  }
}

std::vector<int> draw_permutation(Engine& engine, int count) {
  std::vector<int> permutation(static_cast<std::size_t>(count));
  std::iota(permutation.begin(), permutation.end(), 0);
  shuffle(engine, permutation);
  return permutation;
}

void draw_to_front(Engine& engine, int count, std::vector<int>& values) {
  const int all = static_cast<int>(values.size());
  for (int place = 0; place < count; ++place)
    std::swap(values[size(place)], values[size(place + draw_index(engine, all - place))]);
}

int draw_category(Engine& engine, const Eigen::Ref<const Eigen::RowVectorXd>& probabilities) {
  double left = draw_uniform(engine);
  int last = 0;
  for (int i = 0; i < static_cast<int>(probabilities.size()); ++i) {
    if (probabilities[i] <= 0) continue;
    last = i;
    left -= probabilities[i];
    if (left < 0) break;
  }
  return last;
}

double normal_quantile(double u) {
  // No promotion to long double: the result would lose the extra digits.
  using Policy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
  return -boost::math::constants::root_two<double>() * boost::math::erfc_inv(2 * u, Policy());
}

struct QuasiRandom::Sequence {
  explicit Sequence(int dim_) : dim(dim_), sobol(static_cast<std::size_t>(dim_)), shift(sobol.dimension()) {}

  int dim;
  boost::random::sobol sobol;
  std::vector<std::uint64_t> shift;
  bool at_start = true;
};

QuasiRandom::QuasiRandom(int dim, Engine& engine) {
  if (dim < 1 || dim > kMaximumQuasiDimension) {
    throw UserError(
        "dim", fmt::format("got {}: Sobol points have 1 to {} coordinates", dim, kMaximumQuasiDimension));
  }
  sequence_ = std::make_unique<Sequence>(dim);
  restart(engine);
}

QuasiRandom::~QuasiRandom() = default;
QuasiRandom::QuasiRandom(QuasiRandom&&) noexcept = default;
QuasiRandom& QuasiRandom::operator=(QuasiRandom&&) noexcept = default;

void QuasiRandom::restart(Engine& engine) {
  sequence_->sobol.seed();
  sequence_->at_start = true;
  for (std::uint64_t& word : sequence_->shift) word = engine();
}

Matrix QuasiRandom::uniforms(int count) {
  Sequence& sequence = *sequence_;
  Matrix points(count, sequence.dim);
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < sequence.dim; ++j) {
      // Boost's sequence omits the point 0, without which the first 2^m points are not evenly spread.
      const std::uint64_t digits = sequence.at_start ? 0 : sequence.sobol();
      points(i, j) = centre_of_cell(digits ^ sequence.shift[static_cast<std::size_t>(j)]);
    }
    sequence.at_start = false;
  }
  return points;
}

Matrix QuasiRandom::normals(int count) {
  Matrix points = uniforms(count);
  for (Eigen::Index i = 0; i < points.size(); ++i) points.data()[i] = normal_quantile(points.data()[i]);
  return points;
}

}  // namespace moelab
