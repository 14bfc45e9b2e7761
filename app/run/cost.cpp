#include "app/run/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "app/scenario/experiment_reader.h"

namespace moelab {
namespace {

/// Settings whose problem is drawn and whose model is made for an estimate.
constexpr std::size_t kMaxEstimates = 100;

/// Of the program itself, with its libraries.
constexpr double kBaseBytes = 16e6;

/// The share of the experts that a row passes through in training.
double active_share(const GatingRule& gating, int experts) {
  const GatingKind& kind = gating.entry();
  const int most = kind.most_experts ? kind.most_experts(gating.options()) : 0;
  return most > 0 ? std::min(1.0, static_cast<double>(most) / experts) : 1;
}

/// An arm at a sweep point: its seeds cost the same.
struct Setting {
  const Cell* cell = nullptr;  ///< one of them
  int missing = 0, recorded = 0;
  double seconds = 0;  ///< of the recorded ones together
  std::optional<CellCost> estimate = std::nullopt;
};

std::vector<Setting> settings_of(const Scenario& scenario, const Records& records) {
  std::vector<Setting> settings;
  std::set<std::string> seen;  // two arms may have the same cell
  for (const Cell& cell : scenario.cells) {
    if (!seen.insert(cell.id).second) continue;
    if (settings.empty() || settings.back().cell->arm != cell.arm ||
        settings.back().cell->point != cell.point)
      settings.push_back({&cell});
    const auto record = records.find(cell.id);
    ++(record == records.end() ? settings.back().missing : settings.back().recorded);
    if (record != records.end()) settings.back().seconds += record->second.seconds;
  }
  return settings;
}

}  // namespace

CellCost estimated_cost(const Cell& cell) {
  const CellOptions options = read_cell(cell.config);
  const DataOptions& data = options.experiment.data;
  const TrainOptions& train = options.experiment.train;
  const std::unique_ptr<Problem> problem = draw_problem(data, options.seeds);
  const Layout layout = problem->layout();
  const Network<float> network(options.experiment.model, layout);
  const double parameters = static_cast<double>(network.parameter_count());
  const double active =
      network.has_router()
          ? parameters * active_share(options.experiment.model.gating.train, network.experts())
          : parameters;

  const bool population = train.gradient == TrainOptions::Gradient::population;
  const int train_samples = data.train_samples.value_or(population ? 0 : kMeasuredTrainSamples);
  const double steps = static_cast<double>(total_steps(train, train_samples));
  const double batch =
      population
          ? population_rule(train).points
          : std::min<double>(static_cast<double>(train.batch_size.value_or(train_samples)), train_samples);
  const double records = 2 + (train.record_every ? steps / static_cast<double>(*train.record_every) : 10);
  const double tests = data.test_samples * (1.0 + static_cast<double>(options.evaluations.size()));
  const double measured = tests + std::min(train_samples, kMeasuredTrainSamples);
  const double tokens = layout.tokens;

  CellCost cost;
  cost.operations = tokens * (6 * active * steps * batch + 2 * parameters * records * measured);
  const double sample = layout.sample_dim() + layout.target_dim();
  const double real = train.precision == TrainOptions::Precision::in_double ? 8 : 4;
  // Test sets are kept as drawn and as contaminated; outputs and probabilities of all rows are measured.
  const double measured_width = 2 * sample + tokens * (2.0 * network.experts() + 2.0 * layout.output_dim);
  // A weight of d inputs stands for 1/d of an activation, kept forwards and backwards.
  const double activations = 2 * batch * tokens * parameters / std::max(layout.input_dim, 1);
  cost.bytes = real * (train_samples * sample + 4 * parameters + activations) + 8 * measured * measured_width;
  return cost;
}

RunCost run_cost(const Scenario& scenario, const Records& records, int threads) {
  std::vector<Setting> settings = settings_of(scenario, records);
  const std::size_t looked_at = std::min(settings.size(), kMaxEstimates);
  for (std::size_t i = 0; i < looked_at; ++i) {
    Setting& setting = settings[i * settings.size() / looked_at];
    setting.estimate = estimated_cost(*setting.cell);
  }
  RunCost cost;
  double like_seconds = 0, known_operations = 0, known_seconds = 0, looked_operations = 0;
  int missing = 0, like = 0, looked_cells = 0;
  for (const Setting& setting : settings) {
    missing += setting.missing;
    if (setting.recorded > 0) {
      like += setting.missing;
      like_seconds += setting.missing * setting.seconds / setting.recorded;
    }
    if (!setting.estimate) continue;
    if (setting.missing > 0) cost.bytes = std::max(cost.bytes, setting.estimate->bytes);
    if (setting.recorded > 0) {
      known_operations += setting.recorded * setting.estimate->operations;
      known_seconds += setting.seconds;
    } else {
      looked_operations += setting.missing * setting.estimate->operations;
      looked_cells += setting.missing;
    }
  }
  const int unlike = missing - like, running = std::clamp(missing, 1, std::max(threads, 1));
  const bool is_measured = known_operations > 0 && known_seconds > 0;
  const double speed = is_measured ? known_operations / known_seconds : kNominalSpeed;
  // Settings that were not looked at count as the mean of those that were.
  const double operations = looked_cells > 0 ? looked_operations / looked_cells * unlike : 0;
  cost.seconds = (like_seconds + operations / speed) / running;
  cost.bytes = missing == 0 ? 0 : kBaseBytes + cost.bytes * running;
  std::vector<std::string> sources;
  if (like > 0) sources.push_back(fmt::format("the recorded times of like cells ({})", like));
  if (unlike > 0) {
    sources.push_back(fmt::format("an estimate of {:.2g} operations at {:.2g} a second{} ({})", operations,
                                  speed, is_measured ? " as in recorded cells" : ", a guess", unlike));
  }
  cost.source = fmt::format("{}", fmt::join(sources, " and "));
  return cost;
}

}  // namespace moelab
