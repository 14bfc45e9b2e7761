#pragma once

/// Draws the figures of a run's plan.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/run/results.h"
#include "plots/kinds/figure_kind.h"

namespace moelab {

/// Returns the data that figures of this run may show. `results` must outlive it.
FigureSource figure_source(const RunResults& results, const std::filesystem::path& directory);

/// Renders the figure in a temporary folder of `directory`, then copies each file as a whole to `figures`.
/// Throws EnvironmentError. In this case it leaves the data and the script, so that the user can draw the
/// figure manually.
void publish_drawing(const Drawing& drawn, const std::filesystem::path& directory,
                     const std::filesystem::path& figures, std::vector<std::filesystem::path>& files);

/// A figure of the plan, or the reason why the saved data cannot be drawn. drawn_figure throws UserError if
/// arrays are damaged or lost.
struct DrawnFigure {
  std::optional<Drawing> drawing;
  std::string failure;  ///< "figures.map: …"; empty if the figure was drawn
};
DrawnFigure drawn_figure(const FigureOptions& figure, const FigureSource& source,
                         const FigureStyle& style = {});

/// Renders every figure of the plan into the folder figures/ of the plan's outputs, and returns the files.
/// Each file is replaced as a whole. If a figure cannot be drawn from the saved data, the others are still
/// drawn, and notes on stderr list the failures at the end. Throws EnvironmentError; then the failed figure's
/// data and script remain.
/// `style` goes before the figures' own.
std::vector<std::filesystem::path> draw_figures(const RunResults& results,
                                                const std::filesystem::path& directory,
                                                const FigureStyle& style = {});

/// Small forest plots of the claims, as kind "claim" draws them, without files.
std::vector<Drawing> claim_drawings(const FigureSource& source, const FigureStyle& style = {});

/// The forest plot of all claims, without files; none without claims.
std::optional<Drawing> claims_drawing(const FigureSource& source, const std::string& id,
                                      const FigureStyle& style = {});

/// Renders the forest plot of all claims as `directory`/figures/claims.* (all_claims.* where a figure has
/// that id), and a small one of each into figures/claims. Claim ids name the files.
std::vector<std::filesystem::path> draw_claims(const RunResults& results,
                                               const std::filesystem::path& directory,
                                               const FigureStyle& style = {});

/// Returns a line for each figure among these files: its first picture and the figure's other files.
std::string figures_text(const std::vector<std::filesystem::path>& files);

}  // namespace moelab
