#pragma once

/// From a run's results to the figures that its plan asks for.

#include <filesystem>
#include <string>
#include <vector>

#include "app/run/results.h"
#include "plots/figure.h"

namespace moelab {

/// One figure of plan["figures"]: {id, x, y, series, x_scale, y_scale, title, x_label, y_label, where, arms}.
/// A line is an arm (or a value of the swept path `series`) times a metric of `y`: mean, 95 % band and single
/// seeds of the cells that are done. A metric that does not apply to an arm gives no line; bayes_nmse beside
/// other metrics, equal for all arms, is one dashed reference line, or, where it lies far below a logarithmic
/// axis, a sentence in the caption. The caption names seeds, interval and
/// cells left out.
Figure build_figure(const Json& description, const RunResults& results);

/// Renders every figure of the plan into figures/ of where its outputs go, each file whole when it takes its
/// place; the files written. Throws EnvironmentError, and then leaves the data and the script of the figure
/// that failed.
std::vector<std::filesystem::path> draw_figures(const RunResults& results,
                                                const std::filesystem::path& directory);

/// A line for each figure among these files: its SVG file, and which others lie beside it.
std::string figures_text(const std::vector<std::filesystem::path>& files);

}  // namespace moelab
