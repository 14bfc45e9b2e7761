#include "app/run/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "app/run/results.h"
#include "app/scenario/claim_reader.h"
#include "app/scenario/overrides.h"
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

namespace {

FigureRun figure_run(const RunResults& results) {
  const PlanHead& head = results.head;
  FigureRun run;
  run.title = head.title;
  run.source = head.source;
  run.untitled = static_cast<std::size_t>(
      std::count_if(head.figures.begin(), head.figures.end(),
                    [](const FigureOptions& figure) { return takes_automatic_title(figure); }));
  run.labels = head.labels;
  run.swept_paths = head.sweep_paths;
  run.shown_paths = head.shown_paths;
  run.claims = head.claims;
  run.crossing = head.crossing;
  if (results.table.is_decided && head.decided) run.fixed_seeds = head.decided->fixed_seeds;
  return run;
}

}  // namespace

FigureSource figure_source(const RunResults& results, const std::filesystem::path& directory) {
  return {figure_run(results), results.table, builds_footnote(results),
          [&results, directory](const std::string& cell, const std::string& name, int layer) {
            return saved_file(results, directory, cell, name, layer);
          }};
}

DrawnFigure drawn_figure(const FigureOptions& figure, const FigureSource& source, const FigureStyle& style) {
  try {
    return {drawing_of(build_figure(figure, source, style)), ""};
  } catch (const UserError& error) {
    // The error is not in the figure, so stored data are damaged or lost. Repair the run before drawing.
    if (!error.path().starts_with("figures.")) throw;
    return {std::nullopt, error.what()};
  }
}

std::vector<std::filesystem::path> draw_figures(const RunResults& results,
                                                const std::filesystem::path& directory,
                                                const FigureStyle& style) {
  const FigureSource source = figure_source(results, directory);
  std::vector<std::filesystem::path> files;
  std::string notes;
  for (const FigureOptions& figure : results.head.figures) {
    const DrawnFigure drawn = drawn_figure(figure, source, style);
    if (drawn.drawing)
      publish_drawing(*drawn.drawing, directory, directory / results.outputs / "figures", files);
    else
      notes += fmt::format("moelab: note: not drawn: {}\n", drawn.failure);
  }
  std::cerr << notes << std::flush;
  return files;
}

std::vector<Drawing> claim_drawings(const FigureSource& source, const FigureStyle& style) {
  std::vector<Drawing> drawings;
  for (const Claim& claim : source.run.claims)
    drawings.push_back(drawing_of(build_figure(claim_figure(claim.id), source, style)));
  return drawings;
}

std::optional<Drawing> claims_drawing(const FigureSource& source, const std::string& id,
                                      const FigureStyle& style) {
  std::optional<Forest> forest = claims_forest(source, id);
  if (!forest) return std::nullopt;
  forest->style = style;
  return drawing_of(*forest);
}

std::vector<std::filesystem::path> draw_claims(const RunResults& results,
                                               const std::filesystem::path& directory,
                                               const FigureStyle& style) {
  const FigureSource source = figure_source(results, directory);
  const std::filesystem::path figures = directory / results.outputs / "figures";
  std::vector<std::filesystem::path> files;
  const auto is_taken = [](const FigureOptions& figure) { return common_of(figure).id == "claims"; };
  const std::vector<FigureOptions>& own = results.head.figures;
  const char* const id = std::any_of(own.begin(), own.end(), is_taken) ? "all_claims" : "claims";
  if (const std::optional<Drawing> all = claims_drawing(source, id, style))
    publish_drawing(*all, directory, figures, files);
  for (const Drawing& drawing : claim_drawings(source, style))
    publish_drawing(drawing, directory, figures / "claims", files);
  return files;
}

std::string figures_text(const std::vector<std::filesystem::path>& files) {
  std::string text;
  std::filesystem::path before;
  for (const std::filesystem::path& file : files) {
    const bool is_picture =
        file.extension() == ".svg" || file.extension() == ".pdf" || file.extension() == ".png";
    const std::filesystem::path figure = file.parent_path() / file.stem();
    if (!is_picture || figure == before) continue;
    before = figure;
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
