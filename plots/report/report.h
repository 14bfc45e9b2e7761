#pragma once

/// A report of runs as one HTML file that opens from disk: no network, figures that answer the pointer, light
/// and dark, for paper, desk and phone. Nothing is computed here.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plots/painters/gnuplot.h"
#include "plots/report/table.h"

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

struct ReportedClaim {
  std::string id, verdict, text, source, reported;
  std::vector<ReportedPoint> points;
  std::vector<ReportedCell> cells;
  std::string origin;     ///< "paper" or "ours"
  std::string statement;  ///< what was judged, where `text` does not say it: "a loss < b loss (ends)"
  std::optional<int> seeds_to_decide;
  Table terms;  ///< what is compared: arms, metrics, factors; tolerance and the smallest effect
};

/// One run directory.
struct ReportedRun {
  std::string name, title, source;
  std::string state;                  ///< "100 cells: 100 done"
  std::map<std::string, int> builds;  ///< programs that recorded its cells, with counts
  std::string builds_note;            ///< names several programs, whose numbers may differ; empty for one
  std::string command;                ///< that made the newest of its cells; empty where unknown
  double seconds = 0;                 ///< time of its cells, one after another, as the clock had it
  std::vector<std::string> notes;     ///< how hyper-parameters were chosen
  Table summary;                      ///< the main metric, arms × sweep points
  Table crossings = {};               ///< of a sweep that searches a crossing
  std::vector<Table> rates = {};      ///< of figures of rates
  std::vector<ReportedClaim> claims;
  std::optional<ReportedFigure> forest;      ///< of all claims
  std::vector<ReportedFigure> figures;       ///< the objective's first
  std::vector<std::filesystem::path> drawn;  ///< the figures' SVG files, where `plot` wrote them
  Table unfinished;                          ///< cells that diverged or failed
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

/// A page with this title, a line that names the program, and a body of HTML.
std::string page_html(const std::string& title, const std::string& program, const std::string& body);

/// A figure of a page, with its title, caption and data.
std::string figure_html(const ReportedFigure& figure);

}  // namespace moelab
