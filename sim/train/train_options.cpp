#include "sim/train/train_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"
#include "sim/train/experiment.h"
#include "sim/train/least_squares.h"
#include "sim/train/optimizer.h"

namespace moelab {
namespace {

/// Rejects a field that is given but not allowed, or missing but required.
void check_presence(const TrainOptions& options, const char* field, bool given, bool wanted, bool required) {
  const std::string path = std::string("train.") + field;
  if (given && !wanted) {
    throw InvalidOption(path, fmt::format("given, but train.gradient is {}", gradient_name(options)));
  }
  if (!given && wanted && required) {
    throw InvalidOption(path, fmt::format("missing; train.gradient {} needs it", gradient_name(options)));
  }
}

GatingRule resolved_rule(const GatingRule& rule, double skip_below) {
  const SoftGatingOptions* const soft = rule.as<SoftGatingOptions>();
  return soft && !soft->skip_below ? GatingRule(SoftGatingOptions{.skip_below = skip_below}) : rule;
}

void bind_tries(Fields& fields, int& tries) {
  fields.add("tries", tries, between(1, 1000), "starts made until one converges");
}

}  // namespace

void TrainOptions::bind(Fields& fields) {
  fields.add("gradient", gradient, {"sample", "population"},
             "gradients of mini-batches of the training set, or of the expectation over the population");
  fields.add("points", points, between(1, 1e8), "population gradients: samples of a rule (default 4096)");
  fields.add("rule", rule, {"monte_carlo", "quasi_monte_carlo"},
             "population gradients: independent samples, or images of Sobol points under a random digital "
             "shift, for generators that map uniform variables (default monte_carlo)");
  fields.add("redraw", redraw,
             "population gradients: a new rule at every step; false keeps the first, for stationarity checks "
             "(default true)");
  fields.add("optimizer", optimizer, "update rule");
  fields.add("lr", lr, at_least(0), "learning rate, one or per group");
  fields.add("start", start, "lbfgs: where a fit begins (default cold)");
  fields.add("weight_decay", weight_decay, at_least(0),
             "weight decay, one or per group: added to the gradient, or decoupled with adamw");
  fields.add("clip_norm", clip_norm, positive(),
             "a gradient of all that learns with a larger Euclidean norm is scaled down to it");
  fields.add("expert_norm", expert_norm, {"none", "whole", "parts"},
             "divides each expert's gradient before clip_norm: by nothing, by its norm, or by the sum of its "
             "arrays' norms (Chen et al. 2022)");
  fields.add("schedule", schedule, "learning-rate schedule");
  fields.add("batch_size", batch_size, between(1, 1e7), "samples of a mini-batch (sample gradients)");
  fields.add("steps", steps, between(1, 1e12), "optimizer steps (give steps or epochs)");
  fields.add("epochs", epochs, between(1, 1e9), "passes over the training set (give steps or epochs)");
  fields.add("record_every", record_every, between(1, 1e12),
             "steps between recorded metrics (default: a tenth of the run)");
  fields.add("until", until,
             "when training ends before its steps are done, looked at after every record; steps are the "
             "most, and what schedules go by");
  fields.add(
      "rounds", rounds,
      "tasks in sequence: each round trains on samples of one true cluster, its task; a training has steps ÷ "
      "rounds.steps rounds");
  fields.add("precision", precision, {"float", "double"}, "number type of training");
}

const char* gradient_name(const TrainOptions& options) {
  return options.gradient == TrainOptions::Gradient::population ? "\"population\"" : "\"sample\"";
}

void check_rule(const TrainOptions& options) {
  if (!is_least_squares(options)) {
    if (options.start) throw InvalidOption("train.start", "given, but train.optimizer is not 'lbfgs'");
    if (!options.lr) {
      throw InvalidOption(
          "train.lr", fmt::format("missing; train.optimizer \"{}\" needs it", options.optimizer.chosen()));
    }
    return;
  }
  const auto refuse = [](const char* field, bool given) {
    if (given) {
      throw InvalidOption(std::string("train.") + field, "given, but train.optimizer is \"lbfgs\"");
    }
  };
  refuse("lr", options.lr.has_value());
  refuse("clip_norm", options.clip_norm.has_value());
  refuse("expert_norm", options.expert_norm != TrainOptions::ExpertNorm::none);
  refuse("batch_size", options.batch_size.has_value());
  refuse("epochs", options.epochs.has_value());
  refuse("record_every", options.record_every.has_value());
  refuse("until", options.until.has_value());
  refuse("weight_decay", options.weight_decay.expert > 0 || options.weight_decay.router > 0);
  refuse("schedule", options.schedule.as<ConstantScheduleOptions>() == nullptr);
  if (options.gradient != TrainOptions::Gradient::sample) {
    throw InvalidOption("train.gradient", "got \"population\", but \"lbfgs\" fits a sample");
  }
  if (options.precision != TrainOptions::Precision::in_double) {
    throw InvalidOption("train.precision", "got \"float\"; train.optimizer \"lbfgs\" needs \"double\"");
  }
}

void check_batches(const TrainOptions& options) {
  const bool population = options.gradient == TrainOptions::Gradient::population;
  if (!is_least_squares(options)) {
    check_presence(options, "batch_size", options.batch_size.has_value(), !population, true);
  }
  check_presence(options, "points", options.points.has_value(), population, false);
  check_presence(options, "rule", options.rule.has_value(), population, false);
  check_presence(options, "redraw", options.redraw.has_value(), population, false);
  if (!options.rounds) return;
  if (is_least_squares(options))
    throw InvalidOption("train.rounds", "given, but train.optimizer is \"lbfgs\"");
  if (population && options.rule == TrainOptions::Rule::quasi_monte_carlo)
    throw InvalidOption("train.rule", "got \"quasi_monte_carlo\", but train.rounds needs \"monte_carlo\"");
  if (population && !options.redraw.value_or(true))
    throw InvalidOption("train.redraw", "got false, but train.rounds needs new samples in every round");
}

void check_epochs(const TrainOptions& options) {
  if (options.gradient == TrainOptions::Gradient::population && options.epochs) {
    throw InvalidOption("train.epochs", "given, but population gradients have no epochs; needs train.steps");
  }
}

void check_length(const TrainOptions& options) {
  if (options.until) check(*options.until);
  if (options.steps.has_value() != options.epochs.has_value()) return;
  throw InvalidOption("train.steps", options.steps
                                         ? "train.epochs is given, too; needs exactly one of the two"
                                         : "missing; needs train.steps or train.epochs");
}

void check(const TrainOptions& options) {
  check_rule(options);
  check_batches(options);
  check_epochs(options);
  check_length(options);
}

std::int64_t total_steps(const TrainOptions& options, int train_samples) {
  if (options.steps) return *options.steps;
  const std::int64_t batch = std::min<std::int64_t>(options.batch_size.value(), train_samples);
  return options.epochs.value() * ((train_samples + batch - 1) / batch);
}

std::int64_t record_interval(const TrainOptions& options, std::int64_t steps) {
  return options.record_every.value_or(std::max<std::int64_t>(1, steps / 10));
}

double default_skip_below(const TrainOptions& options) {
  constexpr double kSkipBelow = 1e-8;
  return options.optimizer.entry().rescales_gradients ? 0.0 : kSkipBelow;
}

ModelOptions resolved_for(ModelOptions model, const TrainOptions& train) {
  const double skip_below = default_skip_below(train);
  model.gating.train = resolved_rule(model.gating.train, skip_below);
  model.gating.eval = resolved_rule(model.gating.eval, skip_below);
  model.group_samples = static_cast<int>(train.batch_size.value_or(0));
  return model;
}

void RoundOptions::bind(Fields& fields) {
  fields.add("steps", steps, between(1, 1e12), "optimizer steps of a round");
  fields.add(
      "order", order, {"uniform", "cycle", "shuffled"},
      "the task of a round: drawn uniformly; the clusters in turn; or each cluster once in a new random "
      "order, again and again");
}

void PlateauOptions::bind(Fields& fields) {
  fields.required().add("metric", metric, "a metric that the scenario records");
  fields.add("records", records, between(1, 1e6), "records without a fall of the metric");
  fields.add("relative", relative, fraction(), "a fall that counts, as a share of the least value before");
}

void UntilOptions::bind(Fields& fields) {
  fields.add("metric", metric, "a metric that the scenario records; needs below or above");
  fields.add("below", below, any_number(), "stop where the metric is at most this");
  fields.add("above", above, any_number(), "stop where the metric is at least this");
  fields.add("plateau", plateau, "stop where a metric no longer falls");
  fields.add("rise", rise, "stop where a metric is no new least value, and is low or far above the least");
  fields.add("flops", flops, positive(),
             "stop where training has taken this many operations: 6 a step for each row and each parameter "
             "that it reaches");
}

void RiseOptions::bind(Fields& fields) {
  fields.required().add("metric", metric, "a metric that the scenario records");
  fields.required().add("below", below, any_number(),
                        "stop at the first value that is no new least one and at most this");
  fields.required().add("by", by, at_least(0),
                        "stop where the metric exceeds its least value by more than this");
}

void check(const UntilOptions& options) {
  const std::string path = "train.until";
  const int rules =
      (options.metric ? 1 : 0) + (options.plateau ? 1 : 0) + (options.rise ? 1 : 0) + (options.flops ? 1 : 0);
  const int levels = (options.below ? 1 : 0) + (options.above ? 1 : 0);
  if (rules != 1) {
    throw InvalidOption(path, rules == 0 ? "names no rule; needs one of metric, plateau, rise, flops"
                                         : "names several rules; needs one of metric, plateau, rise, flops");
  }
  if (options.metric && levels != 1)
    throw InvalidOption(path + ".metric", "needs one level with it, below or above");
  if (!options.metric && levels > 0)
    throw InvalidOption(path + (options.below ? ".below" : ".above"), "given, but train.until.metric is not");
}

void LeastSquaresOptions::bind(Fields& fields) {
  fields.add("memory", memory, between(1, 1000), "pairs of steps and gradient changes kept");
  fields.add("bound", bound, positive(), "largest absolute value of a parameter (default: none)");
  fields.add("likelihood", likelihood,
             "fits a Gaussian mixture of linear experts by maximum likelihood: EM, then Newton "
             "(default: least squares; needs train.start \"best\" or \"search\")");
}

void LikelihoodOptions::bind(Fields& fields) {
  fields.add("gate", gate, "whether gates read x; false: weights alone");
  fields.add("slope", slope, "whether experts read x; false: locations alone");
  fields.add("variance", variance, positive(), "of every expert, where it is known (default: fitted)");
}

TrainingRuleKind lbfgs_rule() {
  TrainingRuleKind kind = {
      {"lbfgs",
       "least squares over the whole training set by limited-memory BFGS, to convergence; needs train.steps "
       "(the most evaluations of a start) and train.precision \"double\", has no rate and no batches",
       LeastSquaresOptions{}, LeastSquaresOptions{}}};
  // The work array of nlopt's luksan/plis.c, up to the pairs that are used.
  kind.library_numbers = [](const AnyOptions& options, double parameters, double steps) {
    return parameters * (6 + 2 * std::min<double>(options.get<LeastSquaresOptions>().memory, steps));
  };
  return kind;
}

const std::vector<KindEntry>& FitStartAxis::table() {
  static const std::vector<KindEntry> starts = {
      {"cold", "at the model's own initial weights", ColdStartOptions{}, ColdStartOptions{}},
      {"warm", "at the true measure of the data, each parameter moved by N(0, perturbation²)",
       WarmStartOptions{}, WarmStartOptions{}},
      {"best",
       "at many places, keeping the lowest minimum. The places are near the true measure, at the clusters of "
       "k-means, and at initial weights, in turn. The lowest minima are polished on all samples",
       BestStartOptions{}, BestStartOptions{}},
      {"search",
       "starts in turn at clusters of k-means, clusters of residuals, initial weights, and the best fit with "
       "two components merged and one split. It ends when it finds the two best basins repeatedly. Starts "
       "near the true measure only bound the loss from below",
       SearchStartOptions{}, SearchStartOptions{}},
  };
  return starts;
}

void ColdStartOptions::bind(Fields& fields) {
  bind_tries(fields, tries);
}

void WarmStartOptions::bind(Fields& fields) {
  fields.add("perturbation", perturbation, at_least(0), "standard deviation");
  bind_tries(fields, tries);
}

void BestStartOptions::bind(Fields& fields) {
  fields.add("starts", starts, between(1, 10000), "places to start at");
  fields.add("perturbation", perturbation, at_least(0), "standard deviation, of those near the true measure");
  fields.add("rows", rows, between(1, 1e9), "the most samples on which all starts are fitted");
  fields.add("evaluations", evaluations, between(1, 1e6),
             "the most evaluations (rounds of EM) of such a fit");
  fields.add(
      "polished", polished, between(1, 1000),
      "distinct minima, the lowest, that are fitted to all samples by Levenberg and Marquardt's method");
}

void SearchStartOptions::bind(Fields& fields) {
  fields.add("starts", starts, between(1, 10000), "the most starts");
  fields.add("repeats", repeats, between(1, 1000),
             "the search stops when the best basin and the second best were found this often; losses within "
             "1e-6 of the noise are one basin");
  fields.add("rows", rows, between(1, 1e9), "the most samples on which all starts are fitted");
  fields.add("evaluations", evaluations, between(1, 1e6),
             "the most evaluations (rounds of EM) of such a fit before it is polished");
  fields.add("polished", polished, between(1, 1000), "lowest basins that are fitted to all samples");
  fields.add("oracle", oracle, between(0, 1000),
             "starts near the true measure, which give a lower bound of the loss and never the fit; 0: none");
  fields.add("perturbation", perturbation, at_least(0), "standard deviation, of those near the true measure");
}

std::optional<BestStartOptions> many_starts(const std::optional<FitStart>& start) {
  if (!start) return std::nullopt;
  if (const auto* const search = start->as<SearchStartOptions>()) {
    return BestStartOptions{.starts = search->starts,
                            .perturbation = search->perturbation,
                            .rows = search->rows,
                            .evaluations = search->evaluations,
                            .polished = search->polished};
  }
  const auto* const best = start->as<BestStartOptions>();
  return best ? std::optional(*best) : std::nullopt;
}

}  // namespace moelab
