#include "app/figures/routing_plane.h"

#include <fmt/core.h>

#include <algorithm>

#include "analysis/geometry/principal_components.h"
#include "app/figures/saved_arrays.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr int kGrid = 96;

/// The first of the largest scores.
int largest_score(const std::vector<ScoreInPlane>& scores, double x, double y) {
  const auto at = [&](const ScoreInPlane& score) { return score.offset + score.x * x + score.y * y; };
  const auto best = std::max_element(
      scores.begin(), scores.end(),
      [&](const ScoreInPlane& left, const ScoreInPlane& right) { return at(left) < at(right); });
  return static_cast<int>(best - scores.begin());
}

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

void check_input(int input, int count, const std::string& path) {
  if (input >= count)
    throw UserError(path, fmt::format("got {}, needs numbers of the {} inputs, from 0", input, count));
}

RoutingPlane input_plane(const Matrix& rows, const std::vector<int>& inputs, const std::string& path) {
  RoutingPlane plane{rows.colwise().mean(), Matrix::Zero(rows.cols(), 2), "", ""};
  for (int axis = 0; axis < 2; ++axis) {
    const int input = inputs[static_cast<std::size_t>(axis)];
    check_input(input, static_cast<int>(rows.cols()), path);
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

std::vector<RecordedScores> saved_score_steps(const FigureSource& source, const std::string& cell,
                                              const LinearScores& last) {
  const std::filesystem::path steps_file = source.array(cell, "recorded_steps"),
                              weight_file = source.array(cell, "router_weight_steps"),
                              bias_file = source.array(cell, "router_bias_steps");
  if (!std::filesystem::exists(steps_file) || !std::filesystem::exists(weight_file)) return {};
  const std::vector<int> steps = read_cluster_labels(steps_file);
  const Matrix weights = read_rows(weight_file);  // (T · E, d)
  const Eigen::Index count = static_cast<Eigen::Index>(steps.size()), experts = last.weight.rows();
  if (count == 0 || weights.rows() != count * experts || weights.cols() != last.weight.cols()) return {};
  Matrix biases = Matrix::Zero(count, experts);
  if (std::filesystem::exists(bias_file)) biases = read_rows(bias_file);
  if (biases.rows() != count || biases.cols() != experts) return {};
  std::vector<RecordedScores> recorded;
  for (const std::size_t t : shown_steps(steps.size())) {
    const auto at = static_cast<Eigen::Index>(t);
    recorded.push_back({steps[t], {weights.middleRows(at * experts, experts), biases.row(at).transpose()}});
  }
  const LinearScores& end = recorded.back().scores;
  const bool is_whole = end.weight == last.weight && end.bias == last.bias;
  return is_whole ? recorded : std::vector<RecordedScores>();
}

std::vector<ScoreInPlane> scores_in_plane(const LinearScores& scores, const RoutingPlane& plane) {
  const Matrix slope = scores.weight * plane.directions;
  const Vector offset = scores.weight * plane.centre + scores.bias;
  std::vector<ScoreInPlane> in_plane;
  for (Eigen::Index e = 0; e < slope.rows(); ++e) in_plane.push_back({slope(e, 0), slope(e, 1), offset(e)});
  return in_plane;
}

std::vector<EmbeddingRegion> decision_regions(const LinearScores& scores, const RoutingPlane& plane,
                                              const PlaneBox& box) {
  const std::vector<ScoreInPlane> in_plane = scores_in_plane(scores, plane);
  const double width = (box.x_high - box.x_low) / kGrid, height = (box.y_high - box.y_low) / kGrid;
  std::vector<EmbeddingRegion> regions;
  for (int row = 0; row < kGrid; ++row) {
    const double low = box.y_low + row * height;
    for (int column = 0; column < kGrid; ++column) {
      const double left = box.x_low + column * width;
      const int expert = largest_score(in_plane, left + width / 2, low + height / 2);
      if (column > 0 && regions.back().label == expert)
        regions.back().x_high = left + width;
      else
        regions.push_back({left, left + width, low, low + height, expert, -1});
    }
  }
  return regions;
}

}  // namespace moelab
