#include "sim/train/best_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "sim/base/error.h"
#include "sim/base/numerics.h"
#include "sim/model/measure_places.h"
#include "sim/train/least_squares.h"

namespace moelab {
namespace {

constexpr int kMostRounds = 50;
/// The ridge of the regressions, in units of the inputs' second moments, since clusters may hold few samples.
constexpr double kClusterRidge = 1e-2;

/// Assigns each row to its nearest centre. Returns whether an assignment changed.
bool assign(const Matrix& points, const Matrix& centres, std::vector<int>& nearest) {
  bool changed = false;
  for (Eigen::Index i = 0; i < points.rows(); ++i) {
    Eigen::Index best = 0;
    (centres.rowwise() - points.row(i)).rowwise().squaredNorm().minCoeff(&best);
    int& own = nearest[static_cast<std::size_t>(i)];
    changed |= own != static_cast<int>(best);
    own = static_cast<int>(best);
  }
  return changed;
}

/// k-means++ (Arthur and Vassilvitskii 2007): each centre is a data point, drawn with probability
/// proportional to its squared distance to the earlier centres.
Matrix seed_centres(const Matrix& points, int count, Engine& engine) {
  Matrix centres(count, points.cols());
  Vector distances = Vector::Constant(points.rows(), std::numeric_limits<double>::infinity());
  for (int j = 0; j < count; ++j) {
    Eigen::Index chosen = 0;
    if (j == 0) {
      chosen = static_cast<Eigen::Index>(draw_uniform(engine) * static_cast<double>(points.rows()));
    } else {
      double left = draw_uniform(engine) * distances.sum();
      while (chosen + 1 < points.rows() && (left -= distances[chosen]) > 0) ++chosen;
    }
    centres.row(j) = points.row(chosen);
    distances = distances.cwiseMin((points.rowwise() - centres.row(j)).rowwise().squaredNorm());
  }
  return centres;
}

/// The cluster of each row.
std::vector<int> k_means(const Matrix& points, int count, Engine& engine) {
  Matrix centres = seed_centres(points, count, engine);
  std::vector<int> nearest(static_cast<std::size_t>(points.rows()), -1);
  for (int round = 0; round < kMostRounds && assign(points, centres, nearest); ++round) {
    Matrix sums = Matrix::Zero(count, points.cols());
    Vector sizes = Vector::Zero(count);
    for (Eigen::Index i = 0; i < points.rows(); ++i) {
      const int own = nearest[static_cast<std::size_t>(i)];
      sums.row(own) += points.row(i);
      sizes[own] += 1;
    }
    for (int j = 0; j < count; ++j) {
      if (sizes[j] > 0) centres.row(j) = sums.row(j) / sizes[j];
    }
  }
  return nearest;
}

/// The value of a'x + b at which h equals y, for starts. Rectifiers and GELUs count as the identity. A value
/// outside the range of the logistic function counts as the nearest one in its middle.
double before_expert(const MixtureForm& form, double y) {
  if (form.expert == MixtureForm::Expert::sigmoid) {
    const double share = std::clamp(y, 0.05, 0.95);
    return std::log(share / (1 - share));
  }
  if (form.expert != MixtureForm::Expert::power || form.power == 1) return y;
  return std::copysign(std::pow(std::abs(y), 1.0 / form.power), y);
}

/// The component of a truth for a fit, and the number of fits of this component.
struct SharedComponent {
  int component;
  int sharing;
};

SharedComponent component_of(const MixingMeasure& truth, int fit, int fits) {
  const auto within = [](int place, int of, int components) {
    return SharedComponent{place % components, (of - 1 - place % components) / components + 1};
  };
  const int groups = static_cast<int>(truth.group_gate.rows()), components = truth.components();
  if (groups == 0) return within(fit, fits, components);
  int g = 0;
  while (first_of_group(g + 1, groups, fits) <= fit) ++g;
  const int first = first_of_group(g, groups, fits), own = first_of_group(g, groups, components);
  SharedComponent found = within(fit - first, first_of_group(g + 1, groups, fits) - first,
                                 first_of_group(g + 1, groups, components) - own);
  found.component += own;
  return found;
}

/// Ridge regression on x and 1, (d + 1), of the rows that `takes` selects; zero if there are none.
template <class Takes>
Vector affine_fit(const Matrix& x, const Vector& y, const Takes& takes) {
  const Eigen::Index dim = x.cols();
  Matrix moments = Matrix::Zero(dim + 1, dim + 1);
  Vector products = Vector::Zero(dim + 1), row(dim + 1);
  double size = 0;
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    if (!takes(i)) continue;
    row << x.row(i).transpose(), 1;
    moments += row * row.transpose();
    products += y[i] * row;
    size += 1;
  }
  if (size == 0) return products;
  moments.diagonal().array() += kClusterRidge * size;
  return least_norm_solution(moments, products);
}

/// Sets the groups of two levels to the mean of their experts' clusters.
void start_groups(MixingMeasure& start) {
  const int groups = std::min(start.form.groups, start.components());
  start.group_gate.resize(groups, start.gate.cols());
  for (int g = 0; g < groups; ++g) {
    const int first = first_of_group(g, groups, start.components());
    const int count = first_of_group(g + 1, groups, start.components()) - first;
    start.group_gate.row(g) = start.gate.middleRows(first, count).colwise().mean();
  }
  start.group_bias = -0.5 * start.group_gate.rowwise().squaredNorm();
}

/// Maxima whose ℓ differ by at most this value count as the same maximum.
constexpr double kSameLikelihood = 1e-6;
/// A share of p / (2 n), the effect of sampling on ℓ. The data cannot tell closer maxima apart.
constexpr double kNearMaximum = 0.1;

/// Makes one start after another, as in the least-squares fit.
GaussianExperts likelihood_start(const LikelihoodFitSetting& setting, const GaussianForm& form,
                                 const MeasurePlaces& places, const RegressionSample& first, int number) {
  Engine engine = start_stream(setting.seeds, setting.data.rows, number);
  const StartTurn turn = start_turn(number);
  const auto start = [&] {
    if (turn == StartTurn::near_truth && knows_truth(setting))
      return truth_start(setting, first, setting.start.perturbation, engine);
    if (turn == StartTurn::clusters) {
      return spread_start(
          clustered_start({}, setting.data, static_cast<int>(first.x.rows()),
                          static_cast<int>(first.x.cols()), setting.model.network->experts(), engine),
          first);
    }
    return random_start(setting, places, first, engine);
  };
  GaussianExperts made = start();
  set_known_parts(form, made);
  return made;
}

bool has_higher_likelihood(const GaussianFit& a, const GaussianFit& b) {
  return a.likelihood > b.likelihood;
}

bool has_likelihood(const GaussianFit& fit) {
  return std::isfinite(fit.likelihood);
}

/// Minima whose losses differ by at most this relative value count as the same minimum.
constexpr double kSameLoss = 1e-9;
/// A share of L p / n, the scale of noise in a minimum's loss.
constexpr double kNear = 0.05;

/// The fit of a start to the first samples.
struct Candidate {
  std::vector<double> parameters;
  double loss = 0;
};

/// Writes one start after another into the model.
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

  /// The model's parameters as a mixing measure, if they have this form.
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

/// Fits the starts to the first samples. Returns the fits with a finite loss, lowest first.
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

/// The first fit of each run of equal losses.
void keep_distinct(std::vector<Candidate>& candidates) {
  const auto same = [](const Candidate& a, const Candidate& b) {
    return b.loss - a.loss <= kSameLoss * std::max(a.loss, std::numeric_limits<double>::min());
  };
  candidates.erase(std::unique(candidates.begin(), candidates.end(), same), candidates.end());
}

}  // namespace

double diameter_of(const std::vector<MixingMeasure>& measures) {
  double largest = 0;
  for (const MixingMeasure& one : measures) {
    for (const MixingMeasure& other : measures) largest = std::max(largest, expert_distance(one, other));
  }
  return largest;
}

RegressionSample regression_sample(const TrainingSet<double>& data, int rows, int dim) {
  return {Eigen::Map<const Matrix>(data.x.data(), rows, dim), Eigen::Map<const Vector>(data.y.data(), rows)};
}

void set_known_parts(const GaussianForm& form, GaussianExperts& mixture) {
  if (!form.gate) mixture.measure.gate.setZero();
  if (!form.slope) mixture.measure.slope.setZero();
  if (form.variance) mixture.variance.setConstant(*form.variance);
}

GaussianForm gaussian_form(const LikelihoodOptions& options) {
  return {options.gate, options.slope, options.variance};
}

bool knows_truth(const LikelihoodFitSetting& setting) {
  return setting.truth && setting.truth->form == MixtureForm{} &&
         setting.truth->components() <= setting.model.network->experts();
}

GaussianExperts spread_start(MixingMeasure measure, const RegressionSample& sample) {
  const double spread = (sample.y.array() - sample.y.mean()).square().mean();
  const int experts = measure.components();
  return {std::move(measure), Vector::Constant(experts, spread / experts)};
}

GaussianExperts truth_start(const LikelihoodFitSetting& setting, const RegressionSample& sample,
                            double perturbation, Engine& engine) {
  const int experts = setting.model.network->experts();
  const MixingMeasure& truth = *setting.truth;
  GaussianExperts start = spread_start(near_truth(truth, experts, perturbation, engine), sample);
  for (int i = 0; i < experts && truth.variance.size() > 0; ++i)
    start.variance[i] = truth.variance[i % truth.components()] * std::exp(perturbation * draw_normal(engine));
  return start;
}

GaussianExperts random_start(const LikelihoodFitSetting& setting, const MeasurePlaces& places,
                             const RegressionSample& sample, Engine& engine) {
  setting.model.network->initialize({{engine(), setting.seeds.index}}, setting.model.parameters,
                                    setting.model.state);
  GaussianExperts start = spread_start(places.read(setting.model.parameters), sample);
  // Experts start at samples, since equal experts at 0, the centre of y, would stay equal.
  for (Eigen::Index i = 0; i < start.variance.size(); ++i) {
    const auto row = static_cast<Eigen::Index>(draw_uniform(engine) * static_cast<double>(sample.y.size()));
    start.measure.intercept[i] = sample.y[row];
  }
  return start;
}

bool is_near_minimum(const PolishedFit& least, const PolishedFit& other, int samples) {
  return other.loss <= least.loss * (1 + kNear * static_cast<double>(least.parameters.size()) / samples);
}

Engine start_stream(const Seeds& seeds, int samples, int number) {
  return seeds.stream(Purpose::starts,
                      static_cast<std::uint64_t>(samples) << 16 | static_cast<std::uint64_t>(number));
}

MixingMeasure near_truth(const MixingMeasure& truth, int experts, double perturbation, Engine& engine) {
  const Eigen::Index dim = truth.gate.cols();
  MixingMeasure start{truth.form, Matrix(experts, dim), Vector(experts), Matrix(experts, dim),
                      Vector(experts)};
  const auto moved = [&](double value) { return value + perturbation * draw_normal(engine); };
  const auto move = [&](auto& values) {
    for (Eigen::Index i = 0; i < values.size(); ++i) values.data()[i] = moved(values.data()[i]);
  };
  for (int i = 0; i < experts; ++i) {
    const auto [component, sharing] = component_of(truth, i, experts);
    for (Eigen::Index j = 0; j < dim; ++j) start.gate(i, j) = moved(truth.gate(component, j));
    for (Eigen::Index j = 0; j < dim; ++j) start.slope(i, j) = moved(truth.slope(component, j));
    // A temperature also divides the logarithms of weights.
    const double temperature = std::exp(-truth.log_scale);
    start.bias[i] = moved(truth.bias[component] - temperature * std::log(static_cast<double>(sharing)));
    start.intercept[i] = moved(truth.intercept[component]);
  }
  start.group_gate = truth.group_gate;
  start.group_bias = truth.group_bias;
  start.shared_slope = truth.shared_slope;
  start.shared_intercept = truth.shared_intercept;
  move(start.group_gate);
  move(start.group_bias);
  move(start.shared_slope);
  move(start.shared_intercept);
  start.log_scale = truth.form.temperature ? moved(truth.log_scale) : 0;
  return start;
}

MixingMeasure clustered_start(const MixtureForm& form, const TrainingSet<double>& data, int rows, int dim,
                              int experts, Engine& engine, const Vector* residuals) {
  const Matrix x = Eigen::Map<const Matrix>(data.x.data(), rows, dim);
  const Vector y = Eigen::Map<const Vector>(data.y.data(), rows);
  const Eigen::RowVectorXd mean = x.colwise().mean();
  Matrix points(rows, dim + 1);
  const Vector& last = residuals ? *residuals : y;
  points << x.rowwise() - mean, (last.array() - last.mean()).matrix();
  for (Eigen::Index j = 0; j <= dim; ++j) {
    const double deviation = std::sqrt(points.col(j).squaredNorm() / rows);
    if (deviation > 0) points.col(j) /= deviation;
  }
  const std::vector<int> cluster = k_means(points, experts, engine);
  MixingMeasure start{form, Matrix::Zero(experts, dim), Vector::Zero(experts), Matrix::Zero(experts, dim),
                      Vector::Zero(experts)};
  start.shared_slope = Matrix::Zero(form.shared, dim);
  start.shared_intercept = Vector::Zero(form.shared);
  Vector targets = y.unaryExpr([&](double value) { return before_expert(form, value); });
  if (form.shared > 0) {
    const Vector shared = affine_fit(x, targets, [](Eigen::Index /*row*/) { return true; });
    start.shared_slope.row(0) = shared.head(dim).transpose();
    start.shared_intercept[0] = shared[dim];
    targets -= x * shared.head(dim) + Vector::Constant(rows, shared[dim]);
  }
  for (int e = 0; e < experts; ++e) {
    const auto is_own = [&](Eigen::Index i) { return cluster[static_cast<std::size_t>(i)] == e; };
    double size = 0;
    for (Eigen::Index i = 0; i < rows; ++i) {
      if (!is_own(i)) continue;
      start.gate.row(e) += x.row(i) - mean;
      size += 1;
    }
    if (size == 0) continue;
    start.gate.row(e) /= size;
    const bool affine =
        form.router == MixtureForm::Router::linear || form.router == MixtureForm::Router::two_level;
    if (affine) start.bias[e] = -0.5 * start.gate.row(e).squaredNorm();
    const Vector expert = affine_fit(x, targets, is_own);
    start.slope.row(e) = expert.head(dim).transpose();
    start.intercept[e] = expert[dim];
  }
  if (form.router == MixtureForm::Router::squared_distance) start.gate.rowwise() += mean;
  if (form.router == MixtureForm::Router::two_level) start_groups(start);
  return start;
}

void check_likelihood_fit(const ModelOptions& model, const std::optional<FitStart>& start) {
  if (!many_starts(start))
    throw InvalidOption("train.start", "needs \"best\" or \"search\" with train.optimizer.likelihood");
  if (mixture_form(model) == MixtureForm{} && has_gate_bias(model)) return;
  throw InvalidOption(
      "train.optimizer.likelihood",
      "given, needs model.router \"linear\" with bias and no temperature, model.expert "
      "\"linear\" without normalize, model.gating.train \"soft\", one layer and no shared experts");
}

void finish_likelihood_fit(const LikelihoodFitSetting& setting, const MeasurePlaces& places,
                           const RegressionSample& all, std::vector<GaussianFit> fits, FitOutcome& outcome,
                           const TrainCallbacks& callbacks) {
  std::erase_if(fits, [](const GaussianFit& fit) { return !has_likelihood(fit); });
  if (fits.empty()) {
    outcome.state = TrainState::diverged;
    return;
  }
  std::stable_sort(fits.begin(), fits.end(), has_higher_likelihood);
  const GaussianFit& best = fits.front();
  const double count =
      static_cast<double>(free_parameters(best.mixture, gaussian_form(setting.likelihood)).size());
  std::vector<MixingMeasure> near;
  for (const GaussianFit& fit : fits) {
    if (fit.likelihood < best.likelihood - kNearMaximum * count / (2.0 * setting.data.rows)) continue;
    ++outcome.minima->near;
    near.push_back(fit.mixture.measure);
  }
  outcome.minima->diameter = diameter_of(near);
  outcome.converged = best.converged;
  places.write(best.mixture.measure, setting.model.parameters);
  outcome.mixture = best.mixture;
  outcome.likelihood = best.likelihood;
  if (setting.truth && setting.truth->variance.size() > 0)
    outcome.likelihood_gain =
        best.likelihood - mean_log_likelihood({*setting.truth, setting.truth->variance}, all);
  callbacks.record(outcome.evaluations);
}

FitOutcome likelihood_fit(const LikelihoodFitSetting& setting, const TrainCallbacks& callbacks) {
  const Network<double>& network = *setting.model.network;
  const int dim = network.layout().input_dim;
  const MeasurePlaces places(setting.options, network);
  const GaussianForm form = gaussian_form(setting.likelihood);
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
  std::stable_sort(fits.begin(), fits.end(), has_higher_likelihood);
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
  finish_likelihood_fit(setting, places, all, std::move(fits), outcome, callbacks);
  return outcome;
}

void check_best_targets(const Layout& layout, const std::string& start) {
  if (layout.target_dim() != 1)
    throw InvalidOption("train.start", "got \"" + start + "\", needs targets of one number");
}

void check_best_fit(const Network<double>& network, const Objective<double>& objective,
                    const std::string& start) {
  check_best_targets(network.layout(), start);
  if (separates_samples(network, objective)) return;
  throw InvalidOption("train.start", "got \"" + start +
                                         "\", needs a loss of single samples: one layer, gates that couple "
                                         "no rows, no losses on the routing");
}

FitOutcome best_fit(const BestFitSetting& setting, SampleLoss& loss, const TrainCallbacks& callbacks) {
  check_best_fit(*setting.model.network, setting.objective, "best");
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
  std::vector<MixingMeasure> measures;
  for (const PolishedFit& fit : fits) {
    if (!is_near_minimum(*best, fit, setting.data.rows)) continue;
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
