#include "sim/train/fit_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "sim/base/error.h"
#include "sim/base/numerics.h"
#include "sim/model/measure_places.h"

namespace moelab {
namespace {

/// Losses within this share of the noise, which the loss itself estimates, belong to one basin. So do losses
/// within this share of the sampling error L p / n: in flat valleys no fit comes nearer.
constexpr double kSameBasin = 1e-6, kSameSampling = 1e-3;
/// The same for ℓ, in nats.
constexpr double kSameNats = 1e-6;
/// The standard deviation by which the halves of a split component move.
constexpr double kSplitSpread = 0.5;
/// Samples for the curvature of polishing in the search. More samples do not change which basin a start ends
/// in.
constexpr int kSearchCurvatureRows = 500;
/// The random streams of oracle starts begin after the streams of all other starts.
constexpr int kOracleStreams = 1 << 15;
/// A loss below this value is rounding error, for data without noise.
constexpr double kNoNoise = 1e-20;

/// y minus the regression function of a measure on the first rows.
Vector residuals_of(const MixingMeasure& measure, const TrainingSet<double>& data, int rows) {
  const Eigen::Map<const Matrix> x(data.x.data(), rows, measure.gate.cols());
  Vector residuals = Eigen::Map<const Vector>(data.y.data(), rows);
  for (Eigen::Index i = 0; i < residuals.size(); ++i) residuals[i] -= regression_value(measure, x.row(i));
  return residuals;
}

/// The sample that the starts of a search look at, and the best fit so far.
struct SearchView {
  const TrainingSet<double>& data;
  int rows;
  int dim;
  int experts;
  MixtureForm form;
  std::optional<MixingMeasure> best = std::nullopt;
};

/// A start of a search as a measure. Empty if the turn is a random start.
std::optional<MixingMeasure> search_start(const SearchView& view, SearchTurn turn, Engine& engine) {
  const auto at_clusters = [&](const Vector* residuals) {
    return clustered_start(view.form, view.data, view.rows, view.dim, view.experts, engine, residuals);
  };
  if (turn == SearchTurn::clusters) return at_clusters(nullptr);
  if (!view.best || turn == SearchTurn::random) return std::nullopt;
  if (turn == SearchTurn::split_merge) {
    if (view.experts < 2) return std::nullopt;
    return split_and_merged(*view.best, kSplitSpread, engine);
  }
  const Vector residuals = residuals_of(*view.best, view.data, view.rows);
  return at_clusters(&residuals);
}

/// Removes all but the first fit of each basin from fits in order, and keeps at most `most`.
template <class Fit, class Same>
void keep_basins(std::vector<Fit>& fits, int most, const Same& same) {
  fits.erase(std::unique(fits.begin(), fits.end(), same), fits.end());
  if (fits.size() > static_cast<std::size_t>(most)) fits.erase(fits.begin() + most, fits.end());
}

FitOutcome without_fit(FitOutcome outcome, TrainState state) {
  outcome.state = state;
  return outcome;
}

}  // namespace

void Basins::add(double value, double same) {
  for (Basin& basin : basins_) {
    if (std::abs(value - basin.value) > same) continue;
    ++basin.times;
    basin.value = std::min(basin.value, value);
    return;
  }
  const auto place =
      std::find_if(basins_.begin(), basins_.end(), [&](const Basin& basin) { return value < basin.value; });
  basins_.insert(place, {value, 1});
}

bool Basins::is_settled(int repeats) const {
  if (times_best() < repeats) return false;
  return basins_.size() == 1 || basins_[1].times >= repeats;
}

MixingMeasure split_and_merged(const MixingMeasure& measure, double spread, Engine& engine) {
  const int count = measure.components();
  const auto draw_below = [&](int end) {
    return std::min(static_cast<int>(draw_uniform(engine) * end), end - 1);
  };
  const auto draw_but = [&](int other) { return (other + 1 + draw_below(count - 1)) % count; };
  const Eigen::Index freed = draw_below(count), kept = draw_but(static_cast<int>(freed)),
                     split = draw_but(static_cast<int>(freed));
  MixingMeasure moved = measure;
  const double least = std::min(measure.bias[freed], measure.bias[kept]);
  const double own = std::exp(measure.bias[kept] - least), other = std::exp(measure.bias[freed] - least);
  const double share = own / (own + other);
  const auto mean = [&](const auto& of_kept, const auto& of_freed) {
    return (share * of_kept + (1 - share) * of_freed).eval();
  };
  moved.gate.row(kept) = mean(measure.gate.row(kept), measure.gate.row(freed));
  moved.slope.row(kept) = mean(measure.slope.row(kept), measure.slope.row(freed));
  moved.intercept[kept] = share * measure.intercept[kept] + (1 - share) * measure.intercept[freed];
  moved.bias[kept] = least + std::log(own + other);
  const auto part = [&](double& one, double& half) {
    const double middle = one, step = spread * draw_normal(engine);
    one = middle + step;
    half = middle - step;
  };
  for (Eigen::Index i = 0; i < moved.gate.cols(); ++i) {
    part(moved.gate(split, i), moved.gate(freed, i));
    part(moved.slope(split, i), moved.slope(freed, i));
  }
  part(moved.intercept[split], moved.intercept[freed]);
  // A temperature also divides the logarithms of weights.
  moved.bias[split] -= std::exp(-measure.log_scale) * std::log(2.0);
  moved.bias[freed] = moved.bias[split];
  return moved;
}

FitOutcome search_fit(const BestFitSetting& setting, const SearchStartOptions& search, SampleLoss& loss,
                      const TrainCallbacks& callbacks) {
  check_best_fit(*setting.model.network, setting.objective, "search");
  const Network<double>& network = *setting.model.network;
  AlignedVector<double>& parameters = setting.model.parameters;
  const std::optional<MixtureForm> form = mixture_form(setting.options);
  std::optional<MeasurePlaces> places;
  if (form && has_gate_bias(setting.options)) places.emplace(setting.options, network);
  const int rows = std::min(setting.data.rows, search.rows);
  SearchView view{setting.data, rows, network.layout().input_dim, network.experts(),
                  form.value_or(MixtureForm{})};
  const auto loss_order = [](const PolishedFit& a, const PolishedFit& b) { return a.loss < b.loss; };
  const auto width_of = [&](const PolishedFit& fit) {
    const double sampling = kSameSampling * static_cast<double>(fit.parameters.size()) / rows;
    return std::max(kSameBasin, sampling) * fit.loss + kNoNoise;
  };
  const auto same_loss = [&](const PolishedFit& a, const PolishedFit& b) {
    return b.loss - a.loss <= width_of(a);
  };
  FitOutcome outcome;
  Basins basins;
  std::vector<PolishedFit> fits;
  loss.use_rows(rows);
  for (; outcome.starts < search.starts && !basins.is_settled(search.repeats) && !loss.interrupted();
       ++outcome.starts) {
    Engine engine = start_stream(setting.seeds, setting.data.rows, outcome.starts);
    const std::optional<MixingMeasure> start =
        places ? search_start(view, search_turn(outcome.starts), engine) : std::nullopt;
    if (start) {
      places->write(*start, parameters);
    } else {
      network.initialize({{engine(), setting.seeds.index}}, parameters, setting.model.state);
    }
    if (outcome.starts == 0) callbacks.record(0);
    std::vector<double> values = descend(loss, setting.descent.memory, search.evaluations, loss.parameters());
    if (values.empty()) continue;
    PolishedFit fit = polish(loss, std::move(values), setting.steps, kSearchCurvatureRows);
    if (!std::isfinite(fit.loss)) continue;
    basins.add(fit.loss, width_of(fit));
    const auto place = std::upper_bound(fits.begin(), fits.end(), fit, loss_order);
    if (place == fits.begin() && places) {
      loss.set_parameters(fit.parameters.data());
      view.best = places->read(parameters);
    }
    fits.insert(place, std::move(fit));
  }
  outcome.minima = MinimaFound{basins.distinct()};
  outcome.search = SearchFound{basins.times_best(), basins.is_settled(search.repeats)};
  keep_basins(fits, search.polished, same_loss);
  loss.use_rows(setting.data.rows);
  for (PolishedFit& fit : fits) fit = polish(loss, std::move(fit.parameters), setting.steps);
  std::erase_if(fits, [](const PolishedFit& fit) { return !std::isfinite(fit.loss); });
  std::stable_sort(fits.begin(), fits.end(), loss_order);
  double oracle = std::numeric_limits<double>::infinity();
  const bool knows_truth = places && setting.truth && is_same_family(setting.truth->form, *form) &&
                           setting.truth->components() <= network.experts();
  for (int i = 0; i < search.oracle && knows_truth && !loss.interrupted(); ++i) {
    Engine engine = start_stream(setting.seeds, setting.data.rows, kOracleStreams + i);
    places->write(near_truth(*setting.truth, network.experts(), search.perturbation, engine), parameters);
    const double found = polish(loss, loss.parameters(), setting.steps).loss;
    if (found < oracle) oracle = found;
  }
  outcome.evaluations = loss.evaluations();
  if (loss.interrupted()) return without_fit(std::move(outcome), TrainState::interrupted);
  if (fits.empty()) return without_fit(std::move(outcome), TrainState::diverged);
  const PolishedFit& best = fits.front();
  if (std::isfinite(oracle)) outcome.search->oracle_gap = (best.loss - oracle) / std::max(oracle, kNoNoise);
  std::vector<MixingMeasure> near;
  for (const PolishedFit& fit : fits) {
    if (!is_near_minimum(best, fit, setting.data.rows)) continue;
    ++outcome.minima->near;
    loss.set_parameters(fit.parameters.data());
    if (places) near.push_back(places->read(parameters));
  }
  outcome.minima->diameter = diameter_of(near);
  outcome.converged = best.converged;
  loss.set_parameters(best.parameters.data());
  callbacks.record(outcome.evaluations);
  return outcome;
}

FitOutcome likelihood_search(const LikelihoodFitSetting& setting, const SearchStartOptions& search,
                             const TrainCallbacks& callbacks) {
  const Network<double>& network = *setting.model.network;
  const int dim = network.layout().input_dim, experts = network.experts();
  const int rows = std::min(setting.data.rows, search.rows);
  const MeasurePlaces places(setting.options, network);
  const GaussianForm form = gaussian_form(setting.likelihood);
  const RegressionSample first = regression_sample(setting.data, rows, dim);
  const RegressionSample all = regression_sample(setting.data, setting.data.rows, dim);
  bool stopped = false;
  const auto interrupted = [&] { return stopped = stopped || callbacks.progress(0); };
  const auto higher = [](const GaussianFit& a, const GaussianFit& b) { return a.likelihood > b.likelihood; };
  const auto same = [](const GaussianFit& a, const GaussianFit& b) {
    return a.likelihood - b.likelihood <= kSameNats;
  };
  FitOutcome outcome;
  callbacks.record(0);
  const auto fitted = [&](GaussianExperts start, const RegressionSample& sample) {
    GaussianFit fit = fit_by_em(std::move(start), sample, form, search.evaluations, interrupted);
    const int evaluations = fit.evaluations;
    if (std::isfinite(fit.likelihood))
      fit = polish_likelihood(std::move(fit.mixture), sample, form, setting.steps, interrupted);
    outcome.evaluations += evaluations + fit.evaluations;
    return fit;
  };
  SearchView view{setting.data, rows, dim, experts, {}};
  Basins basins;
  std::vector<GaussianFit> fits;
  for (; outcome.starts < search.starts && !basins.is_settled(search.repeats) && !stopped; ++outcome.starts) {
    Engine engine = start_stream(setting.seeds, setting.data.rows, outcome.starts);
    const std::optional<MixingMeasure> measure = search_start(view, search_turn(outcome.starts), engine);
    GaussianExperts start =
        measure ? spread_start(*measure, first) : random_start(setting, places, first, engine);
    set_known_parts(form, start);
    GaussianFit fit = fitted(std::move(start), first);
    if (!std::isfinite(fit.likelihood)) continue;
    basins.add(-fit.likelihood, kSameNats);
    const auto place = std::upper_bound(fits.begin(), fits.end(), fit, higher);
    if (place == fits.begin()) view.best = fit.mixture.measure;
    fits.insert(place, std::move(fit));
  }
  outcome.minima = MinimaFound{basins.distinct()};
  outcome.search = SearchFound{basins.times_best(), basins.is_settled(search.repeats)};
  keep_basins(fits, search.polished, same);
  for (GaussianFit& fit : fits) {
    fit = polish_likelihood(std::move(fit.mixture), all, form, setting.steps, interrupted);
    outcome.evaluations += fit.evaluations;
  }
  double oracle = -std::numeric_limits<double>::infinity();
  for (int i = 0; i < search.oracle && knows_truth(setting) && !stopped; ++i) {
    Engine engine = start_stream(setting.seeds, setting.data.rows, kOracleStreams + i);
    GaussianExperts start = truth_start(setting, first, search.perturbation, engine);
    set_known_parts(form, start);
    const double found = fitted(std::move(start), all).likelihood;
    if (found > oracle) oracle = found;
  }
  if (stopped) return without_fit(std::move(outcome), TrainState::interrupted);
  const bool has_oracle = std::isfinite(oracle);
  finish_likelihood_fit(setting, places, all, std::move(fits), outcome, callbacks);
  if (has_oracle && outcome.mixture) outcome.search->oracle_gap = oracle - outcome.likelihood;
  return outcome;
}

}  // namespace moelab
