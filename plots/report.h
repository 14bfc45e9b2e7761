#pragma once

/// A report of runs as one HTML file that opens from disk: no network, figures that answer the pointer, light
/// and dark, for paper, desk and phone. Nothing is computed here.

#include <string>
#include <utility>
#include <vector>

#include "plots/figure.h"
#include "plots/heat_map.h"

namespace moelab {

/// One point of a claim, every number already a text.
struct ReportedPoint {
  std::string at, left, right, estimate, verdict, note;
};

struct ReportedClaim {
  std::string id, verdict, text, source, reported;
  std::vector<ReportedPoint> points;
};

/// A table; the first row is its head.
using ReportedTable = std::vector<std::vector<std::string>>;

/// One run directory.
struct ReportedRun {
  std::string name, title, source;
  std::string state;               ///< "100 cells: 100 done"
  std::vector<std::string> notes;  ///< how hyper-parameters were chosen
  ReportedTable summary;           ///< the main metric, arms × sweep points
  std::string summary_caption;
  std::vector<ReportedClaim> claims;
  std::vector<Figure> figures;
  std::vector<HeatMap> heat_maps;
  ReportedTable unfinished;  ///< cells that diverged or failed
  std::vector<std::pair<std::string, std::string>> provenance;
  std::string scenario;  ///< the resolved scenario as JSON text
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

/// The HTML. Texts are escaped; figures are drawn by the page's own script from data in it.
std::string report_html(const Report& report);

}  // namespace moelab
