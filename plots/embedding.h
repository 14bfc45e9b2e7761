#pragma once

/// Embeddings: a cloud of coloured points for each panel, in and CSV + gnuplot script + SVG + PDF + PNG out.

#include <filesystem>
#include <string>
#include <vector>

namespace moelab {

struct EmbeddingPoint {
  double x = 0, y = 0;
  int label = 0;    ///< what the point belongs to, for the CSV
  int colour = -1;  ///< place in the palette (kColours of style.h); −1 is grey and lies below the others
};

struct EmbeddingPanel {
  std::string name;
  std::vector<EmbeddingPoint> points;
};

struct Embedding {
  std::string id;                      ///< file name without ending
  std::string title;                   ///< above the panels; may be empty
  std::string caption;                 ///< below them: what plane and colours are
  std::string label;                   ///< column of the labels in the CSV
  std::vector<EmbeddingPanel> panels;  ///< two side by side, all with the same axes, which have no ticks
};

/// Writes and draws as render(Figure) does. The CSV is tidy: panel,x,y,<label>,colour. Throws
/// EnvironmentError.
std::vector<std::filesystem::path> render(const Embedding& embedding, const std::filesystem::path& directory);

/// The two texts that render() writes.
std::string embedding_csv(const Embedding& embedding);
std::string embedding_script(const Embedding& embedding);

}  // namespace moelab
