#pragma once

/// A report of runs as one HTML file that opens from disk: no network, figures that answer the pointer, light
/// and dark, for paper, desk and phone. Nothing is computed here.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plots/figure.h"

namespace moelab {

/// One point of a claim, every number already a text.
struct ReportedPoint {
  std::string at, left, right, estimate, verdict, note;
};

/// A cell that a claim rests on, with the metric that the claim compares.
struct ReportedCell {
  std::string arm, at, metric, id, state;
};

struct ReportedFigure {
  Drawing drawing;
  std::string svg;           ///< of a drawing without `html`; empty where it was not drawn yet
  std::string failure = {};  ///< a sentence that stands for the figure, which then has only id and title
};

/// A table; the first row is its head.
using ReportedTable = std::vector<std::vector<std::string>>;

struct ReportedClaim {
  std::string id, verdict, text, source, reported;
  std::vector<ReportedPoint> points;
  std::vector<ReportedCell> cells;
  std::string origin;     ///< "paper" or "ours"
  std::string statement;  ///< what was judged, where `text` does not say it: "a loss < b loss (ends)"
  std::optional<double> p_value;
  std::optional<int> seeds_to_decide;
  ReportedTable terms;  ///< what is compared: arms, metrics, factors; tolerance and the smallest effect
  std::optional<ReportedFigure> figure;
};

/// One run directory.
struct ReportedRun {
  std::string name, title, source;
  std::string state;                  ///< "100 cells: 100 done"
  std::map<std::string, int> builds;  ///< programs that recorded its cells, with counts
  std::string builds_note;            ///< names several programs, whose numbers may differ; empty for one
  std::string command;                ///< that made the newest of its cells; empty where unknown
  double seconds = 0;                 ///< time of its cells, one after another, as the clock had it
  /// Of it, where records tell; the rest is drawing problems.
  std::optional<double> training_share = {}, measuring_share = {};
  std::vector<std::string> notes;  ///< how hyper-parameters were chosen
  ReportedTable summary;           ///< the main metric, arms × sweep points
  std::string summary_caption;
  ReportedTable crossings = {};  ///< of a sweep that searches one; empty otherwise
  std::string crossings_caption = {};
  std::vector<std::pair<std::string, ReportedTable>> rates = {};  ///< of figures of rates, with captions
  std::vector<ReportedClaim> claims;
  std::vector<ReportedFigure> figures;
  std::vector<std::filesystem::path> drawn;  ///< the figures' SVG files, where `plot` wrote them
  ReportedTable unfinished;                  ///< cells that diverged or failed
  std::vector<std::pair<std::string, std::string>> provenance;
  std::string cells_csv;  ///< `moelab export`: one row per cell
  std::string scenario;   ///< the resolved scenario as JSON text
};

/// A theorem check that was run.
struct ReportedCheck {
  std::string id, source, statement, predicted, measured, error_bound, verdict;
  bool expected = true;
};

struct Report {
  std::string title;
  std::string program;  ///< "moelab 0.1.0 (commit 0123abc)"
  std::vector<ReportedRun> runs;
  std::vector<ReportedCheck> checks;
};

/// "3 reproduced, 1 refuted".
std::string verdict_counts(const std::vector<ReportedClaim>& claims);

/// The HTML. Texts go through html_text; figures are drawn by the page's own script from data in it.
std::string report_html(const Report& report);

// The style and the script of report pages.

extern const char* const kReportStyle;
/// The script in three parts, which stand after each other: what draws lines, what draws heat maps and planes
/// with decision regions, what goes through the figures.
extern const char* const kReportScript;
extern const char* const kMapScript;
extern const char* const kReportScriptEnd;

}  // namespace moelab
