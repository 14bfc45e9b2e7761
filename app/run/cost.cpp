#include "app/run/cost.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/run/cell_times.h"
#include "app/run/memory.h"
#include "sim/train/gauss_newton.h"
#include "sim/train/least_squares.h"

namespace moelab {
namespace {

/// Of a fit, were every start and every polishing as long as it may be; from a single start, the first try.
double fit_seconds(const TrainOptions& train, double steps, double samples, int experts) {
  if (!is_least_squares(train)) return 0;
  double rows = steps * samples;
  if (const BestStartOptions* const best = train.start ? train.start->as<BestStartOptions>() : nullptr) {
    // A step of polishing evaluates L about twice; a row of the curvature, which of a likelihood is that of
    // all samples, takes as long as eight of L.
    const bool is_likelihood = train.optimizer.as<LeastSquaresOptions>()->likelihood.has_value();
    const double curved = is_likelihood ? samples : std::min<double>(kCurvatureRows, samples);
    rows = best->starts * best->evaluations * std::min<double>(best->rows, samples) +
           best->polished * steps * (2 * samples + 8 * curved);
  }
  return rows * experts * kNominalFit;
}

}  // namespace

CellCost estimated_cost(const Cell& cell) {
  const CellShape shape(cell);
  const CellOptions& options = shape.options;
  const DataOptions& data = options.experiment.data;
  const TrainOptions& train = options.experiment.train;
  const Layout& layout = shape.layout;
  const Network<float>& network = shape.network;
  const double parameters = static_cast<double>(network.parameter_count());
  const double rows = shape.batch * layout.tokens;
  const double active =
      network.has_router()
          ? parameters * experts_per_row(options.experiment.model.gating.train, network.experts(), rows) /
                network.experts()
          : parameters;

  const bool population = train.gradient == TrainOptions::Gradient::population;
  const int train_samples = shape.train_samples;
  const double steps = shape.steps, batch = shape.batch;
  const double records = 2 + (train.record_every ? steps / static_cast<double>(*train.record_every) : 10);
  const double tests = data.test_samples * (1.0 + static_cast<double>(options.evaluations.size()));
  const double measured = tests + std::min(train_samples, most_measured_train_samples(data));
  const double tokens = layout.tokens;

  CellCost cost;
  cost.operations = tokens * (6 * active * steps * batch + 2 * parameters * records * measured);
  const CellMemory memory = cell_memory(shape);
  const PassBytes passes = pass_bytes(shape);
  // What the steps of a fit move is in its seconds.
  const double moving_steps = is_least_squares(train) ? 0 : steps;
  const double moved =
      moving_steps * (passes.step + memory.model) + records * measured * passes.measured_sample;
  const double draws = (train_samples + tests + (population ? steps * batch : 0)) *
                       (layout.sample_dim() + layout.target_dim());
  cost.seconds = cost.operations / kNominalSpeed + moved / kNominalBytes + draws * kNominalDraw +
                 fit_seconds(train, steps, train_samples, network.experts());
  cost.bytes = memory.total();
  cost.recorded_bytes = recorded_bytes(shape);
  return cost;
}

RunCost run_cost(const Scenario& scenario, const Records& records, int threads) {
  CellTimes times(scenario);
  for (const auto& [id, record] : records) times.learn(id, record.state, record.seconds);
  times.fit();

  RunCost cost;
  cost.learned = times.learned();
  std::vector<double> seconds;
  int unlike = 0;
  double recorded = 0;
  for (const CellTimes::Setting& setting : times.settings()) {
    recorded += setting.cells * setting.cost.recorded_bytes;
    if (setting.open == 0) continue;
    seconds.insert(seconds.end(), static_cast<std::size_t>(setting.open), setting.seconds);
    cost.cell_bytes = std::max(cost.cell_bytes, setting.cost.bytes);
    unlike += setting.recorded > 0 ? 0 : setting.open;
  }
  cost.cells = seconds.size();
  cost.seconds = seconds_on_threads(seconds, threads);
  if (seconds.empty()) return cost;
  cost.threads =
      std::clamp(static_cast<int>(std::min<std::size_t>(seconds.size(), 1u << 20)), 1, std::max(threads, 1));
  cost.process_bytes = kProgramBytes + kPlannedCellBytes * static_cast<double>(scenario.cells.size());
  // Results are read when the last cell is done.
  cost.bytes = cost.process_bytes + std::max(cost.cell_bytes * cost.threads, recorded);
  if (cost.learned == 0) {
    cost.source = fmt::format("a model of a usual machine, since no cell is done ({})", unlike);
    return cost;
  }
  cost.source = cost.learned == 1 ? "1 cell done" : fmt::format("{} cells done", cost.learned);
  if (unlike > 0)
    cost.source += fmt::format(", and a model for {} at arms and sweep points where none is", unlike);
  return cost;
}

}  // namespace moelab
