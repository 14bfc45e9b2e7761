#include "plots/kinds/embedding.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

#include "analysis/metrics/geometry.h"
#include "plots/figure.h"
#include "plots/kinds/figure_kind.h"
#include "plots/kinds/saved_arrays.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr int kGrid = 96;

/// The index of the largest score; the first one for ties.
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

std::optional<LinearScores> saved_scores(const FigureSource& source, const std::string& cell, int layer,
                                         const SavedRows& rows) {
  const std::filesystem::path weight = source.array(cell, "router_weight", layer),
                              bias = source.array(cell, "router_bias", layer);
  if (!std::filesystem::exists(weight)) return std::nullopt;
  LinearScores scores{read_rows(weight).values(), Vector::Zero(rows.probabilities.width())};
  if (scores.weight.rows() != rows.probabilities.width() || scores.weight.cols() != rows.inputs.width())
    return std::nullopt;
  if (std::filesystem::exists(bias)) scores.bias = read_rows(bias).values().reshaped();
  for (std::int64_t i = 0; i < rows.inputs.rows(); ++i) {
    const Vector own = scores.weight * rows.inputs.row(i).transpose() + scores.bias;
    // Rounding can create ties of probabilities. Any tied expert is accepted.
    if (rows.probabilities.at(i, largest_entry(own)) < rows.probabilities.row(i).maxCoeff())
      return std::nullopt;
  }
  return scores;
}

std::vector<RecordedScores> saved_score_steps(const FigureSource& source, const std::string& cell, int layer,
                                              const LinearScores& last) {
  const std::filesystem::path steps_file = source.array(cell, "recorded_steps", layer),
                              weight_file = source.array(cell, "router_weight_steps", layer),
                              bias_file = source.array(cell, "router_bias_steps", layer);
  if (!std::filesystem::exists(steps_file) || !std::filesystem::exists(weight_file)) return {};
  const std::vector<int> steps = read_cluster_labels(steps_file);
  const Matrix weights = read_rows(weight_file).values();  // (T · E, d)
  const Eigen::Index count = static_cast<Eigen::Index>(steps.size()), experts = last.weight.rows();
  if (count == 0 || weights.rows() != count * experts || weights.cols() != last.weight.cols()) return {};
  Matrix biases = Matrix::Zero(count, experts);
  if (std::filesystem::exists(bias_file)) biases = read_rows(bias_file).values();
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

namespace {

constexpr std::int64_t kDrawnRows = 1000;

/// A panel shows the first finished seed of an arm at the last sweep point of `where`:
///   test rows         in the plane of two inputs or of the first two principal components; the first 1000
///                     are drawn
///   looks             the argmax expert: a colour and a marker for each drawn expert, alike in all panels.
///                     Of more experts than looks, the experts with the fewest rows are grey
///   means             the means of the clusters
///   router            for a linear router with saved weights: the argmax regions and the router rows
/// The HTML page also shows the router at the recorded steps if "routing_steps" was saved. In a stack it
/// shows one layer. Needs "save": ["routing"].
struct EmbeddingOptions : FigureCommon, RoutedLayer {
  std::vector<int> inputs;  ///< two inputs that span the plane; empty: principal components
  void bind(Fields& fields) {
    FigureCommon::bind(fields);
    fields.optional().add(
        "inputs", inputs, between(0, count().maximum), 0,
        "two inputs, by number from 0, that span the plane (default: the first two principal components)");
    RoutedLayer::bind(fields);
  }
};

/// The rank of each expert by its number of rows. For ties, the lower index comes first.
std::vector<int> ranks(const std::vector<int>& rows_of_expert) {
  std::vector<std::size_t> order(rows_of_expert.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rows_of_expert[a] > rows_of_expert[b]; });
  std::vector<int> rank(order.size());
  for (std::size_t place = 0; place < order.size(); ++place) rank[order[place]] = static_cast<int>(place);
  return rank;
}

void check_embedding(const FigureReferences& references, const EmbeddingOptions& options,
                     const std::string& path) {
  check_saved_arrays(references, options, "routing", path);
  const std::vector<int>& inputs = options.inputs;
  if (!inputs.empty() && (inputs.size() != 2 || inputs[0] == inputs[1]))
    throw UserError(path + ".inputs",
                    fmt::format("got [{}], needs two different inputs", fmt::join(inputs, ",")));
  check_layer(options, references, options, path);
  for (const std::string& arm : own_shown_arms(options.arms, references.table()))
    for (const int width : references.saved_input_widths(arm, options.where)) {
      if (width < 2)
        throw UserError(path, "shows arm '" + arm + "', whose rows have one input; needs two for a plane");
      for (std::size_t i = 0; i < inputs.size(); ++i)
        check_input(inputs[i], width, fmt::format("{}.inputs[{}]", path, i));
    }
}

/// A panel before its regions are known. Regions cover the range of the points of all panels.
struct PanelOfArm {
  RoutingPlane plane;
  std::optional<LinearScores> scores;
  int layer = 0;
};

/// The argmax expert of each row.
std::vector<int> argmax_experts(const RowArray& probabilities) {
  std::vector<int> experts;
  for (std::int64_t i = 0; i < probabilities.rows(); ++i) experts.push_back(probabilities.argmax(i));
  return experts;
}

/// The plane of a cell's rows. For principal components, `share` is the share of variance in each direction.
RoutingPlane plane_of(const SavedRows& rows, const std::vector<int>& chosen, const std::string& path,
                      Vector& share) {
  const Matrix& x = rows.inputs.values();
  if (chosen.empty() && !rows.has_ids) return component_plane(x, share);
  const std::vector<int> inputs = chosen.empty() ? std::vector{0, 1} : chosen;
  RoutingPlane plane = input_plane(x, inputs, path);
  constexpr std::array<const char*, 2> kTokenInputs = {"id of the token", "position in the sequence"};
  if (rows.has_ids) {
    plane.x_label = kTokenInputs.at(static_cast<std::size_t>(inputs[0]));
    plane.y_label = kTokenInputs.at(static_cast<std::size_t>(inputs[1]));
  }
  return plane;
}

/// Adds regions and router rows to panels with a linear router. The longest row reaches kArrow of the
/// distance to the frame.
void add_decisions(const std::vector<PanelOfArm>& arms, Embedding& embedding) {
  constexpr double kArrow = 0.8;
  const auto [x_low, x_high] = embedding_range(embedding, &EmbeddingPoint::x);
  const auto [y_low, y_high] = embedding_range(embedding, &EmbeddingPoint::y);
  for (std::size_t p = 0; p < arms.size(); ++p) {
    if (!arms[p].scores) continue;
    EmbeddingPanel& panel = embedding.panels[p];
    panel.regions = decision_regions(*arms[p].scores, arms[p].plane, {x_low, x_high, y_low, y_high});
    const Matrix rows = arms[p].plane.coordinates(arms[p].scores->weight);
    // The largest stretch that keeps every arrowhead inside the frame.
    double stretch = std::numeric_limits<double>::infinity();
    for (Eigen::Index e = 0; e < rows.rows(); ++e)
      for (const auto& [part, low, high] :
           {std::tuple(rows(e, 0), x_low, x_high), {rows(e, 1), y_low, y_high}})
        if (part != 0) stretch = std::min(stretch, std::max(part > 0 ? high / part : low / part, 0.0));
    if (!std::isfinite(stretch)) continue;
    for (Eigen::Index e = 0; e < rows.rows(); ++e)
      panel.arrows.push_back(
          {kArrow * stretch * rows(e, 0), kArrow * stretch * rows(e, 1), static_cast<int>(e), -1});
  }
}

/// Adds the recorded steps of a panel with linear scores, and the argmax experts of its points at each step.
void add_frames(const FigureSource& source, const std::string& cell, const PanelOfArm& arm,
                const RowArray& inputs, EmbeddingPanel& panel) {
  const auto points = static_cast<Eigen::Index>(panel.points.size());
  for (const RecordedScores& recorded : saved_score_steps(source, cell, arm.layer, *arm.scores)) {
    const Matrix scores = (inputs.values().topRows(points) * recorded.scores.weight.transpose()).rowwise() +
                          recorded.scores.bias.transpose();
    panel.frames.push_back({fmt::format("step {}", recorded.step),
                            scores_in_plane(recorded.scores, arm.plane),
                            argmax_experts(RowArray(scores, 1))});
  }
}

/// Marks panels without regions if other panels have them. Returns the caption text about regions.
std::string regions_text(const std::vector<PanelOfArm>& arms, Embedding& embedding) {
  std::vector<std::string> without;
  for (std::size_t p = 0; p < arms.size(); ++p)
    if (!arms[p].scores) without.push_back(embedding.panels[p].name);
  std::string text;
  if (without.size() < arms.size())
    text =
        " Pale: the argmax expert in the plane, other inputs at their means; the router rows of coloured "
        "experts are drawn to a scale of each panel's own.";
  if (without.empty()) return text;
  if (without.size() == arms.size())
    return " No regions of experts: they need a linear router of the inputs whose weights were saved.";
  for (std::size_t p = 0; p < arms.size(); ++p)
    if (!arms[p].scores) embedding.panels[p].note = "(no regions)";
  return text +
         fmt::format(" No regions of {}: they need a linear router of the inputs whose weights were saved.",
                     fmt::join(without, ", "));
}

/// Gives each drawn expert one look in all panels, in the order of the experts. Of more experts than looks,
/// those with the most rows get one.
void colour_experts(const std::vector<int>& rows_of_expert, Embedding& embedding) {
  std::set<int> drawn;
  for (const EmbeddingPanel& panel : embedding.panels) {
    for (const EmbeddingPoint& point : panel.points) drawn.insert(point.label);
    for (const EmbeddingRegion& region : panel.regions) drawn.insert(region.label);
    for (const EmbeddingFrame& frame : panel.frames) drawn.insert(frame.labels.begin(), frame.labels.end());
  }
  std::vector<int> named(drawn.begin(), drawn.end());
  const std::vector<int> rank = ranks(rows_of_expert);
  const auto rank_of = [&](int expert) { return rank[static_cast<std::size_t>(expert)]; };
  std::ranges::sort(named, {}, rank_of);
  if (named.size() > kMostLooks) named.resize(kMostLooks);
  std::ranges::sort(named);
  embedding.colours.assign(rank.size(), -1);
  for (std::size_t place = 0; place < named.size(); ++place)
    embedding.colours[static_cast<std::size_t>(named[place])] = static_cast<int>(place);
  const auto colour = [&](int expert) { return embedding.colours[static_cast<std::size_t>(expert)]; };
  for (EmbeddingPanel& panel : embedding.panels) {
    for (EmbeddingPoint& point : panel.points) point.colour = colour(point.label);
    for (EmbeddingPoint& arrow : panel.arrows) arrow.colour = colour(arrow.label);
    for (EmbeddingRegion& region : panel.regions) region.colour = colour(region.label);
  }
}

Embedding build_embedding(const EmbeddingOptions& options, const FigureSource& source) {
  const std::vector<std::string> arms = own_shown_arms(options.arms, source.table);
  const DisplayNames display(source.run);
  Embedding embedding;
  embedding.id = options.id;
  embedding.title = figure_title(options, source, "argmax experts of the test rows");
  embedding.label = "expert";
  embedding.mean_name = "cluster mean";
  embedding.arrow_name = "router row";
  std::size_t most_points = 0;
  bool is_of_components = false;
  std::vector<int> load;                 // rows by expert, summed over all panels
  Vector least_share = Vector::Zero(2);  // smallest share of variance in the plane over all panels
  std::vector<PanelOfArm> drawn;
  std::vector<const ResultRow*> shown;
  std::vector<std::optional<int>> layers;
  for (const std::string& arm : arms) {
    const ResultRow* const row = shown_row(source.table, arm, options.where);
    if (!row) continue;
    shown.push_back(row);
    layers.push_back(shown_layer(options, source, row->cell, "test_probs"));
    const int layer = layers.back().value_or(0);
    const SavedRows rows = saved_rows(source, row->cell, layer, true);
    const Matrix& x = rows.inputs.values();
    if (x.cols() < 2)
      throw UserError("figures." + embedding.id, "arm '" + arm + "' has rows of one input, needs two");
    Vector share = Vector::Zero(2);
    const RoutingPlane plane = plane_of(rows, options.inputs, "figures." + embedding.id + ".inputs", share);
    const RowArray places(plane.coordinates(x.rowwise() - plane.centre.transpose()), 1);
    const std::vector<int> experts = argmax_experts(rows.probabilities);
    load.resize(std::max(load.size(), static_cast<std::size_t>(rows.probabilities.width())), 0);
    for (const int expert : experts) ++load[static_cast<std::size_t>(expert)];
    EmbeddingPanel panel{display.arm(arm), {}};
    for (std::int64_t i = 0; i < std::min(kDrawnRows, places.rows()); ++i)
      panel.points.push_back({places.at(i, 0), places.at(i, 1), experts.at(static_cast<std::size_t>(i)), -1});
    if (!rows.labels.empty()) {
      const Matrix means = cluster_means(places.values(), rows.labels);
      for (Eigen::Index c = 0; c < means.rows(); ++c)
        panel.means.push_back({means(c, 0), means(c, 1), static_cast<int>(c), -1});
    }
    if (share.sum() > 0) is_of_components = true;
    if (drawn.empty() || share.sum() < least_share.sum()) least_share = share;
    most_points = std::max(most_points, panel.points.size());
    drawn.push_back({plane, saved_scores(source, row->cell, layer, rows), layer});
    if (drawn.back().scores) add_frames(source, row->cell, drawn.back(), rows.inputs, panel);
    embedding.x_label = plane.x_label;
    embedding.y_label = plane.y_label;
    embedding.panels.push_back(std::move(panel));
  }
  add_decisions(drawn, embedding);
  colour_experts(load, embedding);
  embedding.caption = scenario_sentences(embedding.title, source);
  embedding.caption += fmt::format("{} test rows of the first seed, coloured by argmax expert{}.",
                                   most_points, layers_text(layers, shown, display));
  embedding.caption += shown_points_text(source.table, shown, options.where, display);
  if (is_of_components)
    embedding.caption += fmt::format(" The plane holds {:.0f} % and {:.0f} % of the variance of the inputs.",
                                     100 * least_share[0], 100 * least_share[1]);
  embedding.caption += regions_text(drawn, embedding);
  if (embedding.panels.size() < arms.size()) {
    embedding.caption +=
        fmt::format(" Panels left out, no cell done: {}.", arms.size() - embedding.panels.size());
  }
  embedding.caption += source.footnote;
  return embedding;
}

}  // namespace

FigureKind embedding_kind() {
  return figure_kind("embedding",
                     "the test rows of each arm's first seed in a plane, coloured by argmax expert, with the "
                     "means of clusters (needs \"save\": [\"routing\"]). With \"weights\" of a linear router "
                     "saved, it adds the decision regions and the router's rows. With \"routing_steps\" "
                     "saved, the report shows the recorded steps",
                     check_embedding, build_embedding);
}

}  // namespace moelab
