#include "sim/data/contamination.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"

// To add a contamination or an attack, define <name>_contamination() and add a line here.
// clang-format off
#define MOELAB_CONTAMINATIONS(entry) \
  entry(none_contamination)          \
  entry(noise_contamination)         \
  entry(replaced_contamination)      \
  entry(swapped_contamination)       \
  entry(fgsm_contamination)          \
  entry(pgd_contamination)           \
  entry(spsa_contamination)
// clang-format on

namespace moelab {

MOELAB_TABLE(ContaminationAxis, MOELAB_CONTAMINATIONS)

void contaminate(const ContaminationOptions& options, const Layout& layout, const Seeds& seeds, Matrix& x) {
  const ContaminationKind& kind = options.entry();
  if (kind.contaminate) kind.contaminate(options.options(), layout, seeds, x);
}

void contaminate(const ContaminationOptions& options, const Layout& layout, const Seeds& seeds, Matrix& x,
                 Matrix& y) {
  contaminate(options, layout, seeds, x);
  const ContaminationKind& kind = options.entry();
  if (!kind.change_ids) return;
  Matrix ids(x.rows(), x.cols() + 1);
  ids << x, y.rightCols(1);
  kind.change_ids(options.options(), layout, seeds, ids);
  x = ids.leftCols(x.cols());
  y = ids.rightCols(y.cols());
}

ContaminationKind none_contamination() {
  return {{"none", "test inputs as drawn", NoContaminationOptions{}, NoContaminationOptions{}}};
}

namespace {

std::vector<double> deviations_of(const NoiseOptions& options, int columns) {
  const std::vector<double>& given = options.deviations;
  if (given.size() == 1) return std::vector<double>(size(columns), given.front());
  if (given.size() == size(columns)) return given;
  throw InvalidOption("data.contamination.std",
                      fmt::format("got {} numbers, needs one, or one for each of the {} input columns",
                                  given.size(), columns));
}

void add_noise(const AnyOptions& options, const Layout& layout, const Seeds& seeds, Matrix& x) {
  const int dim = layout.input_dim;
  const std::vector<double> deviations = deviations_of(options.get<NoiseOptions>(), dim);
  Engine engine = seeds.stream(Purpose::evaluation, kNoise);
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    for (Eigen::Index j = 0; j < x.cols(); ++j) {
      x(i, j) += deviations[size(j % dim)] * draw_normal(engine);
    }
  }
}

void replace_rows(const AnyOptions& any, const Layout& layout, const Seeds& seeds, Matrix& x) {
  const ReplacedOptions& options = any.get<ReplacedOptions>();
  const int dim = layout.input_dim;
  Engine rows = seeds.stream(Purpose::evaluation, kReplacedRows);
  Engine values = seeds.stream(Purpose::evaluation, kReplacement);
  Vector replacement(dim);
  fill_normal(values, options.scale, replacement.data(), size(dim));
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    for (Eigen::Index start = 0; start < x.cols(); start += dim) {
      if (draw_uniform(rows) < options.share) x.row(i).segment(start, dim) = replacement;
    }
  }
}

void swap_tokens(const AnyOptions& any, const Layout& layout, const Seeds& seeds, Matrix& ids) {
  const double share = any.get<SwappedOptions>().share;
  Engine places = seeds.stream(Purpose::evaluation, kReplacedRows);
  Engine tokens = seeds.stream(Purpose::evaluation, kReplacement);
  for (double& id : ids.reshaped<Eigen::RowMajor>()) {
    const int other = draw_index(tokens, layout.vocabulary - 1);
    if (draw_uniform(places) < share) id = other < id ? other : other + 1;
  }
}

/// The fields of attacks that repeat a step.
void bind_steps(Fields& fields, double& budget, int& steps, std::optional<double>& step_size) {
  fields.required().add("budget", budget, at_least(0), "largest change of an input entry, ε");
  fields.add("steps", steps, between(1, 1e6), "steps");
  fields.add("step_size", step_size, positive(), "change of an entry in a step (default 2.5 ε / steps)");
}

/// The step along the signs of a gradient within an l∞ budget, which all attacks share:
/// x ← clamp(x + step_size · sign(g(x)), clean − ε, clean + ε), `steps` times. clean is the given x, ε the
/// budget, and the default step size 2.5 ε / steps, or ε for a single step. `gradient_at(x, g)` writes the
/// gradient g.
template <class Real, class Gradient>
void ascend(std::vector<Real>& x, double budget, int steps, std::optional<double> given_step_size,
            const Gradient& gradient_at) {
  const double step_size = given_step_size.value_or(steps > 1 ? 2.5 * budget / steps : budget);
  const std::vector<Real> clean = x;
  const Real largest = static_cast<Real>(budget);
  std::vector<Real> gradient;
  for (int step = 0; step < steps; ++step) {
    gradient_at(x, gradient);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Real sign = gradient[i] > 0 ? Real(1) : gradient[i] < 0 ? Real(-1) : Real(0);
      x[i] = std::clamp(x[i] + static_cast<Real>(step_size) * sign, clean[i] - largest, clean[i] + largest);
    }
  }
}

template <class Real>
void fgsm_attack(const AnyOptions& any, AttackedLoss<Real>& loss, Engine& /*engine*/, int /*samples*/,
                 std::vector<Real>& x) {
  ascend(x, any.get<FgsmOptions>().budget, 1, std::nullopt,
         [&](const std::vector<Real>& at, std::vector<Real>& gradient) { loss.gradient(at, gradient); });
}

template <class Real>
void pgd_attack(const AnyOptions& any, AttackedLoss<Real>& loss, Engine& /*engine*/, int /*samples*/,
                std::vector<Real>& x) {
  const PgdOptions& options = any.get<PgdOptions>();
  ascend(x, options.budget, options.steps, options.step_size,
         [&](const std::vector<Real>& at, std::vector<Real>& gradient) { loss.gradient(at, gradient); });
}

/// Estimates the gradient up to a factor.
template <class Real>
void estimate_gradient(const SpsaOptions& options, AttackedLoss<Real>& loss, Engine& engine, int samples,
                       const std::vector<Real>& x, std::vector<Real>& gradient) {
  const Real difference = static_cast<Real>(options.difference);
  gradient.assign(x.size(), Real(0));
  std::vector<Real> signs(x.size()), moved(x.size());
  for (int direction = 0; direction < options.directions; ++direction) {
    for (Real& sign : signs) sign = draw_uniform(engine) < 0.5 ? Real(-1) : Real(1);
    std::vector<double> slopes(size(samples), 0.0);
    for (const Real side : {Real(1), Real(-1)}) {
      for (std::size_t i = 0; i < moved.size(); ++i) moved[i] = x[i] + side * difference * signs[i];
      loss.add_losses(moved, static_cast<double>(side), slopes);
    }
    const std::size_t width = x.size() / slopes.size();
    for (std::size_t i = 0; i < signs.size(); ++i) {
      gradient[i] += static_cast<Real>(slopes[i / width]) * signs[i];
    }
  }
}

template <class Real>
void spsa_attack(const AnyOptions& any, AttackedLoss<Real>& loss, Engine& engine, int samples,
                 std::vector<Real>& x) {
  const SpsaOptions& options = any.get<SpsaOptions>();
  ascend(x, options.budget, options.steps, options.step_size,
         [&](const std::vector<Real>& at, std::vector<Real>& gradient) {
           estimate_gradient(options, loss, engine, samples, at, gradient);
         });
}

}  // namespace

void NoiseOptions::bind(Fields& fields) {
  fields.required().add_number_or_list("std", deviations, at_least(0),
                                       "standard deviation, one or one for each column");
}

ContaminationKind noise_contamination() {
  return {{"noise", "x + N(0, diag(std²))", NoiseOptions{}, NoiseOptions{{0.5}}}, add_noise};
}

void ReplacedOptions::bind(Fields& fields) {
  fields.add("share", share, fraction(), "probability of a row to be replaced");
  fields.add("scale", scale, at_least(0), "scale of the fixed row");
}

ContaminationKind replaced_contamination() {
  return {{"replaced", "a share of the rows (tokens) is replaced by one fixed row, drawn N(0, scale² I)",
           ReplacedOptions{}, ReplacedOptions{.share = 0.3}},
          replace_rows};
}

void SwappedOptions::bind(Fields& fields) {
  fields.add("share", share, fraction(), "probability of a token to be swapped");
}

ContaminationKind swapped_contamination() {
  return {{"swapped",
           "a share of the tokens of sequences, targets among them, is swapped for others of the vocabulary",
           SwappedOptions{}, SwappedOptions{.share = 0.3}},
          nullptr,
          {},
          swap_tokens};
}

void FgsmOptions::bind(Fields& fields) {
  fields.required().add("budget", budget, at_least(0), "largest change of an input entry, ε");
}

ContaminationKind fgsm_contamination() {
  return {{"fgsm", "x + ε sign(∂L/∂x) under the training gating", FgsmOptions{}, FgsmOptions{0.1}},
          nullptr,
          {fgsm_attack<float>, fgsm_attack<double>}};
}

void PgdOptions::bind(Fields& fields) {
  bind_steps(fields, budget, steps, step_size);
}

ContaminationKind pgd_contamination() {
  return {{"pgd", "repeated steps along sign(∂L/∂x), kept within ε of x entry by entry", PgdOptions{},
           PgdOptions{.budget = 0.1, .steps = 3}},
          nullptr,
          {pgd_attack<float>, pgd_attack<double>}};
}

void SpsaOptions::bind(Fields& fields) {
  bind_steps(fields, budget, steps, step_size);
  fields.add("directions", directions, between(1, 1e6), "random directions of a gradient estimate");
  fields.add("difference", difference, positive(), "half of the distance of the two losses");
}

ContaminationKind spsa_contamination() {
  return {{"spsa", "pgd with gradients estimated from losses along random signs", SpsaOptions{},
           SpsaOptions{.budget = 0.1, .steps = 2, .directions = 4}},
          nullptr,
          {spsa_attack<float>, spsa_attack<double>}};
}

}  // namespace moelab
