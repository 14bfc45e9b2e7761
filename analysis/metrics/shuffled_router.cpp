#include "analysis/metrics/shuffled_router.h"

#include <fmt/core.h>

#include <numeric>

#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"

namespace moelab {

ShuffledRouter::ShuffledRouter(const Eigen::Ref<const Matrix>& weight, const Seeds& seeds, int shuffles)
    : experts_(static_cast<int>(weight.rows())),
      width_(static_cast<int>(weight.cols())),
      stride_(kernels::padded(experts_)) {
  std::vector<int> columns(static_cast<std::size_t>(width_));
  std::iota(columns.begin(), columns.end(), 0);
  for (int s = -1; s < shuffles; ++s) {
    if (s >= 0) {
      Engine engine = seeds.stream(Purpose::shuffles, static_cast<std::uint64_t>(s));
      columns = draw_permutation(engine, width_);
    }
    // W_π x = W x' with x'_j = x_π(j): column j of W meets coordinate π(j).
    AlignedVector<double> transposed(static_cast<std::size_t>(width_) * static_cast<std::size_t>(stride_), 0);
    for (int j = 0; j < width_; ++j) {
      const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(columns[static_cast<std::size_t>(j)]) * stride_;
      for (int e = 0; e < experts_; ++e) transposed[static_cast<std::size_t>(row + e)] = weight(e, j);
    }
    weights_.push_back(std::move(transposed));
  }
}

ShuffledRouter::Probabilities ShuffledRouter::route(const AlignedVector<double>& weight,
                                                    const Matrix& inputs) {
  if (inputs.cols() != width_)
    throw InvalidOption("inputs", fmt::format("{} columns for a router of width {}", inputs.cols(), width_));
  const int rows = static_cast<int>(inputs.rows());
  reserve_entries(probabilities_, static_cast<std::size_t>(rows) * static_cast<std::size_t>(stride_));
  kernels::Product<double> product;
  product.m = rows;
  product.n = experts_;
  product.k = width_;
  product.a = inputs.data();
  product.a_row = width_;
  product.b = weight.data();
  product.b_row = stride_;
  product.c = probabilities_.data();
  product.c_row = stride_;
  kernels::multiply(product);
  kernels::softmax_rows(probabilities_.data(), probabilities_.data(), rows, experts_, stride_);
  return {probabilities_.data(), rows, experts_, Eigen::OuterStride<>(stride_)};
}

}  // namespace moelab
