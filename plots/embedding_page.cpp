#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "plots/embedding.h"
#include "plots/page_data.h"

namespace moelab {
namespace {

using PlaneJson = nlohmann::ordered_json;

/// A number to the digits that a picture needs.
double drawn_number(double value) {
  return std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr);
}

PlaneJson places_json(const std::vector<EmbeddingPoint>& points) {
  PlaneJson places = PlaneJson::array();
  for (const EmbeddingPoint& point : points) places.push_back({drawn_number(point.x), drawn_number(point.y)});
  return places;
}

PlaneJson frame_json(const EmbeddingFrame& frame) {
  PlaneJson scores = PlaneJson::array();
  for (const ScoreInPlane& score : frame.scores)
    scores.push_back({drawn_number(score.x), drawn_number(score.y), drawn_number(score.offset)});
  return {{"name", frame.name}, {"scores", std::move(scores)}, {"labels", frame.labels}};
}

}  // namespace

std::string moving_embedding_html(const Embedding& embedding) {
  PlaneJson panels = PlaneJson::array();
  for (const EmbeddingPanel& panel : embedding.panels) {
    PlaneJson frames = PlaneJson::array();
    for (const EmbeddingFrame& frame : panel.frames) frames.push_back(frame_json(frame));
    // What does not move is a frame without scores.
    if (frames.empty()) {
      EmbeddingFrame still;
      for (const EmbeddingPoint& point : panel.points) still.labels.push_back(point.label);
      frames.push_back(frame_json(still));
    }
    panels.push_back({{"name", panel.name + (panel.note.empty() ? "" : " " + panel.note)},
                      {"points", places_json(panel.points)},
                      {"means", places_json(panel.means)},
                      {"frames", std::move(frames)}});
  }
  const auto [x_low, x_high] = embedding_range(embedding, &EmbeddingPoint::x);
  const auto [y_low, y_high] = embedding_range(embedding, &EmbeddingPoint::y);
  return page_data({{"draw", "plane"},
                    {"title", embedding.title},
                    {"label", embedding.label},
                    {"meanName", embedding.mean_name},
                    {"arrowName", embedding.arrow_name},
                    {"xLabel", embedding.x_label},
                    {"yLabel", embedding.y_label},
                    {"box", {x_low, x_high, y_low, y_high}},
                    {"colours", embedding.colours},
                    {"panels", std::move(panels)}});
}

}  // namespace moelab
