#include "sim/data/contamination/noise.h"

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/data/contamination/contamination.h"
#include "sim/data/contamination/evaluation_streams.h"

namespace moelab {
namespace {

std::vector<double> deviations_of(const NoiseOptions& options, int columns) {
  const std::vector<double>& given = options.deviations;
  if (given.size() == 1) return std::vector<double>(static_cast<std::size_t>(columns), given.front());
  if (given.size() == static_cast<std::size_t>(columns)) return given;
  throw InvalidOption("data.contamination.std",
                      fmt::format("got {} numbers, needs one, or one for each of the {} input columns",
                                  given.size(), columns));
}

void add_noise(const AnyOptions& options, const Layout& layout, const Seeds& seeds, Matrix& x) {
  const int dim = layout.input_dim;
  const std::vector<double> deviations = deviations_of(options.get<NoiseOptions>(), dim);
  Engine engine = seeds.stream(Purpose::evaluation, kNoise);
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    for (Eigen::Index j = 0; j < x.cols(); ++j) {
      x(i, j) += deviations[static_cast<std::size_t>(j % dim)] * draw_normal(engine);
    }
  }
}

}  // namespace

void NoiseOptions::bind(Fields& fields) {
  fields.required().add_number_or_list("std", deviations, at_least(0),
                                       "standard deviation, one or one for each column");
}

ContaminationKind noise_contamination() {
  return {{"noise", "x + N(0, diag(std²))", NoiseOptions{}, NoiseOptions{{0.5}}}, add_noise};
}

}  // namespace moelab
