#include "app/run/figures.h"

#include <fmt/format.h>

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
  run.figures = head.figures.size();
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
          [&results, directory](const std::string& cell, const std::string& name) {
            return saved_file(results, directory, cell, name);
          }};
}

DrawnFigure drawn_figure(const FigureOptions& figure, const FigureSource& source) {
  try {
    return {drawing_of(build_figure(figure, source)), ""};
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
  for (const FigureOptions& figure : results.head.figures) {
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
  for (const Claim& claim : source.run.claims)
    drawings.push_back(drawing_of(build_figure(claim_figure(claim.id), source)));
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
