#pragma once

/// The figures that a run's plan asks for.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/figures/figure_kind.h"
#include "app/run/results.h"

namespace moelab {

/// What the run in `directory` has to show; `results` outlives it.
FigureSource figure_source(const RunResults& results, const std::filesystem::path& directory);

/// Renders it out of sight, in a new folder of `directory`, and moves its files to `figures`, each whole.
/// Throws EnvironmentError, and then leaves the data and the script, with which the figure can be drawn by
/// hand.
void publish_drawing(const Drawing& drawn, const std::filesystem::path& directory,
                     const std::filesystem::path& figures, std::vector<std::filesystem::path>& files);

/// A figure of the plan, or why what the run saved cannot be shown so. Throws UserError for arrays that are
/// damaged or lost.
struct DrawnFigure {
  std::optional<Drawing> drawing;
  std::string failure;  ///< "figures.map: …"; empty where it is drawn
};
DrawnFigure drawn_figure(const Json& figure, const FigureSource& source);

/// Renders every figure of the plan into figures/ of where its outputs go, each file whole when it takes its
/// place; the files written. One that cannot be drawn of what the run saved does not keep the others from
/// it: notes on the error stream tell of those at the end. Throws EnvironmentError, and then leaves the data
/// and the script of the figure that failed.
std::vector<std::filesystem::path> draw_figures(const RunResults& results,
                                                const std::filesystem::path& directory);

/// The figures of the claims, as kind "claim" draws them, without files.
std::vector<Drawing> claim_drawings(const FigureSource& source);

/// The same rendered into `directory`/figures/claims, named by the claims' ids.
std::vector<std::filesystem::path> draw_claims(const RunResults& results,
                                               const std::filesystem::path& directory);

/// A line for each figure among these files: its SVG file, and which others lie beside it.
std::string figures_text(const std::vector<std::filesystem::path>& files);

}  // namespace moelab
