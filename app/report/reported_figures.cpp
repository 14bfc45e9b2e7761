#include "app/report/reported_figures.h"

#include "app/run/durable_file.h"
#include "app/run/figures.h"

namespace moelab {

void add_figures(const RunResults& results, const std::filesystem::path& directory, ReportedRun& run) {
  const FigureSource source = figure_source(results, directory);
  for (const Json& figure : results.plan.at("figures")) {
    DrawnFigure drawn = drawn_figure(figure, source);
    const std::string id = figure.at("id");
    if (!drawn.drawing) {
      // A file of that name is of another time.
      ReportedFigure& missing = run.figures.emplace_back();
      missing.drawing.id = id;
      missing.drawing.title = figure.value("title", id);
      missing.failure = "Not drawn: " + drawn.failure;
      continue;
    }
    run.drawn.push_back(directory / results.outputs / "figures" / (id + ".svg"));
    const std::filesystem::path& file = run.drawn.back();
    ReportedFigure reported{std::move(*drawn.drawing), ""};
    if (reported.drawing.html.empty() && std::filesystem::exists(file)) reported.svg = read_bytes(file);
    run.figures.push_back(std::move(reported));
  }
  // Claims of imported arms come after the plan's, which alone have figures.
  std::vector<Drawing> of_claims = claim_drawings(source);
  for (std::size_t i = 0; i < of_claims.size(); ++i)
    run.claims.at(i).figure = ReportedFigure{std::move(of_claims[i]), ""};
}

}  // namespace moelab
