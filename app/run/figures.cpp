#include "app/run/figures.h"

#include <fmt/format.h>

#include <iostream>

#include "app/run/results.h"
#include "app/store/durable_file.h"
#include "sim/base/error.h"

namespace moelab {
void publish_drawing(const Drawing& drawn, const std::filesystem::path& directory,
                     const std::filesystem::path& figures, std::vector<std::filesystem::path>& files) {
  const DrawingFolder drawing(directory);
  try {
    for (const std::filesystem::path& file : drawing.publish(render(drawn, drawing.path()), figures))
      files.push_back(file);
  } catch (const EnvironmentError&) {
    drawing.publish(drawing.files_ending({".csv", ".gp"}), figures);
    throw;
  }
}

FigureSource figure_source(const RunResults& results, const std::filesystem::path& directory) {
  return {results.plan, results.table, builds_footnote(results),
          [&results, directory](const std::string& cell, const std::string& name) {
            return saved_file(results, directory, cell, name);
          }};
}

DrawnFigure drawn_figure(const Json& figure, const FigureSource& source) {
  try {
    return {drawing_of(kind_of(figure).build(figure, source)), ""};
  } catch (const UserError& error) {
    // The error is not in the figure, so stored data are damaged or lost. Repair the run before drawing.
    if (!error.path().starts_with("figures.")) throw;
    return {std::nullopt, error.what()};
  }
}

std::vector<std::filesystem::path> draw_figures(const RunResults& results,
                                                const std::filesystem::path& directory) {
  const FigureSource source = figure_source(results, directory);
  std::vector<std::filesystem::path> files;
  std::string notes;
  for (const Json& figure : results.plan.at("figures")) {
    const DrawnFigure drawn = drawn_figure(figure, source);
    if (drawn.drawing)
      publish_drawing(*drawn.drawing, directory, directory / results.outputs / "figures", files);
    else
      notes += fmt::format("moelab: note: not drawn: {}\n", drawn.failure);
  }
  std::cerr << notes << std::flush;
  return files;
}

std::vector<Drawing> claim_drawings(const FigureSource& source) {
  std::vector<Drawing> drawings;
  for (const Json& claim : source.plan.at("claims")) {
    const Json figure = {{"id", claim.at("id")}, {"kind", "claim"}, {"claim", claim.at("id")}};
    drawings.push_back(drawing_of(kind_of(figure).build(figure, source)));
  }
  return drawings;
}

std::vector<std::filesystem::path> draw_claims(const RunResults& results,
                                               const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  for (const Drawing& drawing : claim_drawings(figure_source(results, directory)))
    publish_drawing(drawing, directory, directory / results.outputs / "figures" / "claims", files);
  return files;
}

std::string figures_text(const std::vector<std::filesystem::path>& files) {
  std::string text;
  for (const std::filesystem::path& file : files) {
    if (file.extension() != ".svg") continue;
    std::vector<std::string> others;
    for (const std::filesystem::path& other : files) {
      if (other != file && other.parent_path() == file.parent_path() && other.stem() == file.stem())
        others.push_back(other.extension().string());
    }
    text += fmt::format("{} ({})\n", file.string(), fmt::join(others, " "));
  }
  return text;
}

}  // namespace moelab
