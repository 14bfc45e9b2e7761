#include "app/figures/routing_plane.h"

#include <fmt/core.h>

#include "analysis/geometry/principal_components.h"
#include "app/figures/saved_arrays.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr int kGrid = 96;

Eigen::Index largest_entry(const Eigen::Ref<const Vector>& scores) {
  Eigen::Index best = 0;
  scores.maxCoeff(&best);
  return best;
}

}  // namespace

RoutingPlane component_plane(const Matrix& rows, Vector& variance_share) {
  const PrincipalComponents components = principal_components(rows, 2);
  variance_share = components.variance_share;
  return {components.centre, components.directions, "first principal component",
          "second principal component"};
}

RoutingPlane input_plane(const Matrix& rows, const std::vector<int>& inputs, const std::string& path) {
  RoutingPlane plane{rows.colwise().mean(), Matrix::Zero(rows.cols(), 2), "", ""};
  for (int axis = 0; axis < 2; ++axis) {
    const int input = inputs[static_cast<std::size_t>(axis)];
    if (input >= rows.cols())
      throw UserError(path,
                      fmt::format("got {}, needs numbers of the {} inputs, from 0", input, rows.cols()));
    plane.centre(input) = 0;
    plane.directions(input, axis) = 1;
    (axis == 0 ? plane.x_label : plane.y_label) = fmt::format("input {}", input);
  }
  return plane;
}

std::optional<LinearScores> saved_scores(const FigureSource& source, const std::string& cell,
                                         const Matrix& inputs, const Matrix& probabilities) {
  const std::filesystem::path weight = source.array(cell, "router_weight"),
                              bias = source.array(cell, "router_bias");
  if (!std::filesystem::exists(weight)) return std::nullopt;
  LinearScores scores{read_rows(weight), Vector::Zero(probabilities.cols())};
  if (scores.weight.rows() != probabilities.cols() || scores.weight.cols() != inputs.cols())
    return std::nullopt;
  if (std::filesystem::exists(bias)) scores.bias = read_rows(bias).reshaped();
  for (Eigen::Index i = 0; i < inputs.rows(); ++i) {
    const Vector own = scores.weight * inputs.row(i).transpose() + scores.bias;
    const Vector saved = probabilities.row(i).transpose();
    // Of equal probabilities, which rounding makes, either is the largest.
    if (saved(largest_entry(own)) < saved.maxCoeff()) return std::nullopt;
  }
  return scores;
}

std::vector<EmbeddingRegion> decision_regions(const LinearScores& scores, const RoutingPlane& plane,
                                              const PlaneBox& box) {
  // The scores are linear in the plane, too: W (c + D u) + b.
  const Matrix slope = scores.weight * plane.directions;
  const Vector offset = scores.weight * plane.centre + scores.bias;
  const double width = (box.x_high - box.x_low) / kGrid, height = (box.y_high - box.y_low) / kGrid;
  std::vector<EmbeddingRegion> regions;
  for (int row = 0; row < kGrid; ++row) {
    const double low = box.y_low + row * height;
    for (int column = 0; column < kGrid; ++column) {
      const double left = box.x_low + column * width;
      const Vector here = offset + slope.col(0) * (left + width / 2) + slope.col(1) * (low + height / 2);
      const int expert = static_cast<int>(largest_entry(here));
      if (column > 0 && regions.back().label == expert)
        regions.back().x_high = left + width;
      else
        regions.push_back({left, left + width, low, low + height, expert, -1});
    }
  }
  return regions;
}

}  // namespace moelab
