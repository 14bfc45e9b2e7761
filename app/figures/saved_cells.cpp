#include "app/figures/saved_cells.h"

#include <algorithm>
#include <set>
#include <utility>

#include "app/scenario/experiment_reader.h"
#include "app/scenario/references.h"
#include "app/scenario/sweep_values.h"

namespace moelab {

void check_saved_cells(const Scenario& scenario, const std::vector<std::string>& arms, const Json& figure,
                       const std::function<void(const std::string& arm, const MetricSubject&)>& check) {
  const SweepPoint where = where_of(figure);
  std::set<std::pair<const Json*, const Json*>> seen;  // cells share equal parts
  for (const Cell& cell : scenario.cells) {
    if (cell.seed != 0 || std::find(arms.begin(), arms.end(), cell.arm) == arms.end()) continue;
    const ResultRow row = {"", cell.arm, 0, read_point(cell.point), "missing", {}, {}};
    if (!row.is_at(where)) continue;
    const Json& phases = cell.config.at("phases");
    const Json& data = phases.empty() ? cell.config.at("data") : phases.back().at("data");
    if (!seen.emplace(&cell.config.at("model"), &data).second) continue;
    ExperimentOptions experiment = read_experiment(cell.config.json());
    experiment.data = read_small_data(data);
    check(cell.arm, MetricSubject(experiment, experiment.data, Seeds{1, 0}, true));
  }
}

}  // namespace moelab
