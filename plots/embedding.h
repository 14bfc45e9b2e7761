#pragma once

/// Embeddings: each panel has coloured points of a plane. They lie over the regions that belong together.

#include <string>
#include <utility>
#include <vector>

#include "plots/layout.h"

namespace moelab {

struct EmbeddingPoint {
  double x = 0, y = 0;
  int label = 0;    ///< what the point belongs to, for the CSV
  int colour = -1;  ///< place of the label's look for area_colour(); −1 is grey and below the other points
};

/// A rectangle of the plane.
struct EmbeddingRegion {
  double x_low = 0, x_high = 0, y_low = 0, y_high = 0;
  int label = 0, colour = -1;
};

/// A label's score in the plane, offset + x · (first coordinate) + y · (second).
struct ScoreInPlane {
  double x = 0, y = 0, offset = 0;
};

/// The regions at one recorded step. A point belongs to the label with the largest score.
struct EmbeddingFrame {
  std::string name;
  std::vector<ScoreInPlane> scores;  ///< by label
  std::vector<int> labels;           ///< of the panel's points at this step
};

struct EmbeddingPanel {
  std::string name;
  std::vector<EmbeddingPoint> points;
  std::vector<EmbeddingRegion> regions = {};  ///< pale, below the points
  std::vector<EmbeddingPoint> means = {};     ///< black crosses above the points
  std::vector<EmbeddingPoint> arrows = {};  ///< heads of arrows from the origin; grey arrows are not painted
  std::vector<EmbeddingFrame> frames = {};  ///< for the page alone; the last equals the rest
  std::string note = {};                    ///< after the name: "(no regions)"
};

struct Embedding {
  std::string id;                      ///< file name without ending
  std::string title;                   ///< above the panels; may be empty
  std::string caption;                 ///< below the panels: what the plane and the colours are
  std::string label;                   ///< column of the labels in the CSV
  std::string mean_name, arrow_name;   ///< in the legend
  std::string x_label, y_label;        ///< of the axes
  std::vector<EmbeddingPanel> panels;  ///< two to four side by side with common axes without ticks
  std::vector<int> colours = {};       ///< by label, for panels with frames
  FigureStyle style = {};
};

/// Columns `panel,part,x,y,<label>,colour,x_high,y_high`. The parts are point, region, mean and arrow. For a
/// region x and y are the lower ends.
std::string embedding_csv(const Embedding& embedding);

/// The range of a coordinate over the points and means of all panels, with a margin.
std::pair<double, double> embedding_range(const Embedding& embedding, double EmbeddingPoint::*coordinate);

/// So many labels have a look of their own: a colour, and another marker each time the colours begin again.
inline constexpr int kMostLooks = static_cast<int>(kAreaColours.size()) * 6;
/// "0072B2", or grey for −1.
std::string area_colour(int colour);
/// gnuplot's number.
int area_marker(int colour);
/// The share of the colour in a pale area. Areas of one colour have different shares.
double area_share(int colour);
/// The colour, pale on white. It is opaque, since the edges of transparent areas would show.
std::string pale_area_colour(int colour);

struct EmbeddingLayout : PageLayout {
  /// Which texts the page has besides the panels; the report's page sets title, caption and legend itself.
  enum class Texts { all, axes };

  explicit EmbeddingLayout(const Embedding& embedding, Texts texts = Texts::all);

 private:
  /// `extra`: what panels are higher than wide.
  void arrange(const Embedding& embedding, Texts texts, double extra);
};

/// The figure as data: {"kind": "embedding", "id", "title", "caption", "label", "mean_name", "arrow_name",
/// "x_label", "y_label", "x_range", "y_range", "panels": [{"name", "points", "regions", "note", "means",
/// "arrows"}], "colours": {"points", "areas", "markers"} by place, "layout"}.
nlohmann::ordered_json data_json(const Embedding& embedding);

/// For the report's page, which shows the SVG of panels without frames: null unless a panel has several
/// frames.
nlohmann::ordered_json page_json(const Embedding& embedding);

}  // namespace moelab
