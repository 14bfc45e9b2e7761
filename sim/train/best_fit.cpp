#include "sim/train/best_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "sim/base/error.h"
#include "sim/model/measure_places.h"
#include "sim/train/fit_starts.h"
#include "sim/train/gauss_newton.h"

namespace moelab {
namespace {

/// Relative differences of the loss up to this are one minimum, met again.
constexpr double kSameLoss = 1e-9;
/// Of L p / n, the scale of what noise adds to a minimum's loss.
constexpr double kNear = 0.05;

/// A start's fit to the first samples.
struct Candidate {
  std::vector<double> parameters;
  double loss = 0;
};

/// Writes start after start into the model.
class Starts {
 public:
  explicit Starts(const BestFitSetting& setting) : setting_(setting), network_(*setting.model.network) {
    form_ = mixture_form(setting.options);
    if (form_ && has_gate_bias(setting.options)) places_.emplace(setting.options, network_);
    knows_truth_ = places_ && setting.truth && is_same_family(setting.truth->form, *form_) &&
                   setting.truth->components() <= network_.experts();
  }

  void write(int number) const {
    Engine engine = start_stream(setting_.seeds, setting_.data.rows, number);
    const StartTurn turn = start_turn(number);
    const int rows = std::min(setting_.data.rows, setting_.start.rows);
    AlignedVector<double>& parameters = setting_.model.parameters;
    if (turn == StartTurn::near_truth && knows_truth_) {
      places_->write(near_truth(*setting_.truth, network_.experts(), setting_.start.perturbation, engine),
                     parameters);
    } else if (turn == StartTurn::clusters && places_) {
      const int dim = network_.layout().input_dim;
      places_->write(clustered_start(*form_, setting_.data, rows, dim, network_.experts(), engine),
                     parameters);
    } else {
      network_.initialize({{engine(), setting_.seeds.index}}, parameters, setting_.model.state);
    }
  }

  /// The model's parameters as a mixing measure, where they are one.
  std::optional<MixingMeasure> measure() const {
    if (!places_) return std::nullopt;
    return places_->read(setting_.model.parameters);
  }

 private:
  const BestFitSetting& setting_;
  const Network<double>& network_;
  std::optional<MixtureForm> form_;
  std::optional<MeasurePlaces> places_;
  bool knows_truth_ = false;
};

/// Fits of the starts to the first samples, lowest first; those without a finite loss are left out.
std::vector<Candidate> fit_starts(const BestFitSetting& setting, const Starts& starts, SampleLoss& loss,
                                  const TrainCallbacks& callbacks) {
  std::vector<Candidate> candidates;
  loss.use_rows(std::min(setting.data.rows, setting.start.rows));
  for (int i = 0; i < setting.start.starts && !loss.interrupted(); ++i) {
    starts.write(i);
    if (i == 0) callbacks.record(0);
    std::vector<double> values =
        descend(loss, setting.descent.memory, setting.start.evaluations, loss.parameters());
    if (values.empty()) continue;
    const double value = loss.evaluate(values.data(), nullptr);
    candidates.push_back({std::move(values), value});
  }
  loss.use_rows(setting.data.rows);
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.loss < b.loss; });
  return candidates;
}

/// The first of each run of equal losses.
void keep_distinct(std::vector<Candidate>& candidates) {
  const auto same = [](const Candidate& a, const Candidate& b) {
    return b.loss - a.loss <= kSameLoss * std::max(a.loss, std::numeric_limits<double>::min());
  };
  candidates.erase(std::unique(candidates.begin(), candidates.end(), same), candidates.end());
}

double diameter_of(const std::vector<MixingMeasure>& measures) {
  double largest = 0;
  for (const MixingMeasure& one : measures) {
    for (const MixingMeasure& other : measures) largest = std::max(largest, expert_distance(one, other));
  }
  return largest;
}

}  // namespace

void check_best_targets(const Layout& layout) {
  if (layout.target_dim() != 1)
    throw InvalidOption("train.start", "got \"best\", needs targets of one number");
}

FitOutcome best_fit(const BestFitSetting& setting, SampleLoss& loss, const TrainCallbacks& callbacks) {
  check_best_targets(setting.model.network->layout());
  if (!separates_samples(*setting.model.network, setting.objective)) {
    throw InvalidOption(
        "train.start",
        "got \"best\", needs a loss of single samples: one layer, gates that couple no rows, no "
        "losses on the routing");
  }
  const Starts starts(setting);
  std::vector<Candidate> candidates = fit_starts(setting, starts, loss, callbacks);
  keep_distinct(candidates);
  FitOutcome outcome;
  outcome.starts = setting.start.starts;
  outcome.minima = MinimaFound{static_cast<int>(candidates.size())};
  candidates.resize(std::min(candidates.size(), static_cast<std::size_t>(setting.start.polished)));
  std::vector<PolishedFit> fits;
  for (Candidate& candidate : candidates)
    fits.push_back(polish(loss, std::move(candidate.parameters), setting.steps));
  outcome.evaluations = loss.evaluations();
  if (loss.interrupted()) {
    outcome.state = TrainState::interrupted;
    return outcome;
  }
  std::erase_if(fits, [](const PolishedFit& fit) { return !std::isfinite(fit.loss); });
  if (fits.empty()) {
    outcome.state = TrainState::diverged;
    return outcome;
  }
  const auto best = std::min_element(
      fits.begin(), fits.end(), [](const PolishedFit& a, const PolishedFit& b) { return a.loss < b.loss; });
  const double near =
      best->loss * (1 + kNear * static_cast<double>(best->parameters.size()) / setting.data.rows);
  std::vector<MixingMeasure> measures;
  for (const PolishedFit& fit : fits) {
    if (fit.loss > near) continue;
    ++outcome.minima->near;
    loss.set_parameters(fit.parameters.data());
    if (const auto measure = starts.measure()) measures.push_back(*measure);
  }
  outcome.minima->diameter = diameter_of(measures);
  outcome.converged = best->converged;
  loss.set_parameters(best->parameters.data());
  callbacks.record(outcome.evaluations);
  return outcome;
}

}  // namespace moelab
