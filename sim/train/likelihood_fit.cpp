#include "sim/train/likelihood_fit.h"

#include <algorithm>
#include <cmath>

#include "sim/base/error.h"
#include "sim/model/measure_places.h"
#include "sim/train/fit_starts.h"

namespace moelab {
namespace {

/// Differences of ℓ up to this are one maximum, met again.
constexpr double kSameLikelihood = 1e-6;
/// Of p / (2 n), which sampling takes from ℓ: maxima nearer than that are not told apart.
constexpr double kNearMaximum = 0.1;

RegressionSample regression_sample(const TrainingSet<double>& data, int rows, int dim) {
  return {Eigen::Map<const Matrix>(data.x.data(), rows, dim), Eigen::Map<const Vector>(data.y.data(), rows)};
}

/// What the form knows, put into a start.
void set_known_parts(const GaussianForm& form, GaussianExperts& mixture) {
  if (!form.gate) mixture.measure.gate.setZero();
  if (!form.slope) mixture.measure.slope.setZero();
  if (form.variance) mixture.variance.setConstant(*form.variance);
}

/// Start after start, as the least-squares fit's.
GaussianExperts likelihood_start(const LikelihoodFitSetting& setting, const GaussianForm& form,
                                 const MeasurePlaces& places, const RegressionSample& first, int number) {
  Engine engine = start_stream(setting.seeds, setting.data.rows, number);
  const StartTurn turn = start_turn(number);
  const Network<double>& network = *setting.model.network;
  const int experts = network.experts();
  const double spread = (first.y.array() - first.y.mean()).square().mean();
  GaussianExperts start{MixingMeasure{}, Vector::Constant(experts, spread / experts)};
  const bool knows_truth =
      setting.truth && setting.truth->form == MixtureForm{} && setting.truth->components() <= experts;
  if (turn == StartTurn::near_truth && knows_truth) {
    start.measure = near_truth(*setting.truth, experts, setting.start.perturbation, engine);
    for (int i = 0; i < experts && setting.truth->variance.size() > 0; ++i)
      start.variance[i] = setting.truth->variance[i % setting.truth->components()] *
                          std::exp(setting.start.perturbation * draw_normal(engine));
  } else if (turn == StartTurn::clusters) {
    start.measure = clustered_start({}, setting.data, static_cast<int>(first.x.rows()),
                                    static_cast<int>(first.x.cols()), experts, engine);
  } else {
    network.initialize({{engine(), setting.seeds.index}}, setting.model.parameters, setting.model.state);
    start.measure = places.read(setting.model.parameters);
    // Experts that are all 0 at the centre of y would be one: they start at samples.
    for (int i = 0; i < experts; ++i) {
      const auto row = static_cast<Eigen::Index>(draw_uniform(engine) * static_cast<double>(first.y.size()));
      start.measure.intercept[i] = first.y[row];
    }
  }
  set_known_parts(form, start);
  return start;
}

bool has_likelihood(const GaussianFit& fit) {
  return std::isfinite(fit.likelihood);
}

}  // namespace

void check_likelihood_fit(const ModelOptions& model, const std::optional<FitStart>& start) {
  if (!start || !start->as<BestStartOptions>())
    throw InvalidOption("train.start", "needs \"best\" beside train.optimizer.likelihood");
  if (model.kind == ModelOptions::Kind::moe && model.layers == 1 && mixture_form(model) == MixtureForm{} &&
      has_gate_bias(model))
    return;
  throw InvalidOption("train.optimizer.likelihood",
                      "given, needs model.router \"linear\" with bias and no temperature, model.expert "
                      "\"linear\", model.gating.train \"soft\", one layer and no shared experts");
}

FitOutcome likelihood_fit(const LikelihoodFitSetting& setting, const TrainCallbacks& callbacks) {
  const Network<double>& network = *setting.model.network;
  const int dim = network.layout().input_dim;
  const MeasurePlaces places(setting.options, network);
  const GaussianForm form{setting.likelihood.gate, setting.likelihood.slope, setting.likelihood.variance};
  bool stopped = false;
  const auto interrupted = [&] { return stopped = stopped || callbacks.progress(0); };
  FitOutcome outcome;
  callbacks.record(0);
  const RegressionSample first =
      regression_sample(setting.data, std::min(setting.data.rows, setting.start.rows), dim);
  std::vector<GaussianFit> fits;
  for (; outcome.starts < setting.start.starts && !stopped; ++outcome.starts) {
    GaussianFit fit = fit_by_em(likelihood_start(setting, form, places, first, outcome.starts), first, form,
                                setting.start.evaluations, interrupted);
    outcome.evaluations += fit.evaluations;
    if (has_likelihood(fit)) fits.push_back(std::move(fit));
  }
  const auto higher = [](const GaussianFit& a, const GaussianFit& b) { return a.likelihood > b.likelihood; };
  std::stable_sort(fits.begin(), fits.end(), higher);
  fits.erase(std::unique(fits.begin(), fits.end(),
                         [](const GaussianFit& a, const GaussianFit& b) {
                           return a.likelihood - b.likelihood <= kSameLikelihood;
                         }),
             fits.end());
  outcome.minima = MinimaFound{static_cast<int>(fits.size())};
  fits.resize(std::min(fits.size(), static_cast<std::size_t>(setting.start.polished)));
  const RegressionSample all = regression_sample(setting.data, setting.data.rows, dim);
  for (GaussianFit& fit : fits) {
    fit = polish_likelihood(std::move(fit.mixture), all, form, setting.steps, interrupted);
    outcome.evaluations += fit.evaluations;
  }
  if (stopped) {
    outcome.state = TrainState::interrupted;
    return outcome;
  }
  std::erase_if(fits, [](const GaussianFit& fit) { return !has_likelihood(fit); });
  if (fits.empty()) {
    outcome.state = TrainState::diverged;
    return outcome;
  }
  std::stable_sort(fits.begin(), fits.end(), higher);
  const GaussianFit& best = fits.front();
  const double count = static_cast<double>(free_parameters(best.mixture, form).size());
  for (const GaussianFit& fit : fits) {
    if (fit.likelihood < best.likelihood - kNearMaximum * count / (2.0 * setting.data.rows)) continue;
    ++outcome.minima->near;
    outcome.minima->diameter =
        std::max(outcome.minima->diameter, expert_distance(best.mixture.measure, fit.mixture.measure));
  }
  outcome.converged = best.converged;
  places.write(best.mixture.measure, setting.model.parameters);
  outcome.mixture = best.mixture;
  outcome.likelihood = best.likelihood;
  if (setting.truth && setting.truth->variance.size() > 0)
    outcome.likelihood_gain =
        best.likelihood - mean_log_likelihood({*setting.truth, setting.truth->variance}, all);
  callbacks.record(outcome.evaluations);
  return outcome;
}

}  // namespace moelab
