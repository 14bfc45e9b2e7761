#include "sim/base/quasi_random.h"

#include <fmt/format.h>

#include <boost/math/constants/constants.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/random/sobol.hpp>

#include "sim/base/error.h"

namespace moelab {
namespace {

/// The middle of the cell of width 2⁻⁵³ that a word falls into: never 0 or 1.
double centre_of_cell(std::uint64_t word) {
  return (static_cast<double>(word >> 11) + 0.5) * 0x1p-53;
}

}  // namespace

double normal_quantile(double u) {
  // Without promotion to long double, whose digits would be lost in the result.
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
      // Boost's sequence leaves out the point 0, without which the first 2^m points are not evenly spread.
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
