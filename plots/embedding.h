#pragma once

/// Embeddings: a cloud of coloured points for each panel, over the regions of the plane that belong together.

#include <string>
#include <utility>
#include <vector>

#include "plots/figure.h"

namespace moelab {

struct EmbeddingPoint {
  double x = 0, y = 0;
  int label = 0;    ///< what the point belongs to, for the CSV
  int colour = -1;  ///< place in the palette (kAreaColours of style.h); −1 is grey and lies below the others
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

/// A moment of what the regions are about: each label has the region in which its score is the largest.
struct EmbeddingFrame {
  std::string name;
  std::vector<ScoreInPlane> scores;  ///< by label
  std::vector<int> labels;           ///< of the panel's points then
};

struct EmbeddingPanel {
  std::string name;
  std::vector<EmbeddingPoint> points;
  std::vector<EmbeddingRegion> regions = {};  ///< pale, below the points
  std::vector<EmbeddingPoint> means = {};     ///< black crosses above the points
  std::vector<EmbeddingPoint> arrows = {};    ///< their heads; from (0, 0); those with a colour are drawn
  std::vector<EmbeddingFrame> frames = {};    ///< of the page alone, in order; the last is what is drawn
  std::string note = {};                      ///< after the name, where the panel is drawn: "(no regions)"
};

struct Embedding {
  std::string id;                      ///< file name without ending
  std::string title;                   ///< above the panels; may be empty
  std::string caption;                 ///< below them: what plane and colours are
  std::string label;                   ///< column of the labels in the CSV
  std::string mean_name, arrow_name;   ///< in the legend
  std::string x_label, y_label;        ///< of the axes
  std::vector<EmbeddingPanel> panels;  ///< two side by side, all with the same axes, which have no ticks
  std::vector<int> colours = {};       ///< of the labels, where panels have frames
};

/// The CSV is tidy: panel,part,x,y,<label>,colour,x_high,y_high with part point, region (x and y are its
/// lower ends), mean or arrow. The legend names the labels that have a colour. The page shows it as drawn,
/// since it has thousands of points, but where a panel has several frames: then it draws all panels itself,
/// with a slider over the frames.
Drawing drawing_of(const Embedding& embedding);

/// The range of a coordinate in all panels, points and means, with some room around.
std::pair<double, double> embedding_range(const Embedding& embedding, double EmbeddingPoint::*coordinate);

/// The texts of it.
std::string embedding_csv(const Embedding& embedding);
std::string embedding_script(const Embedding& embedding);
/// What the page draws of panels with frames.
std::string moving_embedding_html(const Embedding& embedding);

}  // namespace moelab
