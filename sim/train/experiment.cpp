#include "sim/train/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "sim/base/error.h"
#include "sim/data/moe_regression.h"
#include "sim/model/measure_places.h"
#include "sim/model/router/routers.h"
#include "sim/train/best_fit.h"
#include "sim/train/minimum_norm.h"

namespace moelab {
namespace {

/// Samples drawn at a time. A training set is the largest array of a run, so it is kept in one precision
/// only.
constexpr int kDrawnSamples = 4096;

/// Replaces the experiment's data, loss and training by a phase's.
ExperimentOptions in_phase(ExperimentOptions options, std::size_t phase) {
  if (phase >= options.phases.size()) return options;
  options.data = options.phases[phase].data;
  options.loss = options.phases[phase].loss;
  options.train = options.phases[phase].train;
  return options;
}

/// Fills in the model's gatings, which are the same in all phases. They skip no pair if a phase's optimizer
/// counts every pair. They route as many rows together as in the last phase.
ExperimentOptions prepared(ExperimentOptions options, const Problem* own_problem) {
  own_problem ? check_training(options) : check(options);
  const TrainOptions* shown = &options.train;
  for (const PhaseOptions& phase : options.phases) shown = &phase.train;
  TrainOptions train = *shown;
  for (const PhaseOptions& phase : options.phases) {
    if (default_skip_below(phase.train) < default_skip_below(train)) train.optimizer = phase.train.optimizer;
  }
  options.model = resolved_for(std::move(options.model), train);
  return in_phase(std::move(options), 0);
}

/// The first `count` rows of the training set, one token per row, (count, d).
Matrix first_rows(const Problem& problem, const Seeds& seeds, int count, std::uint64_t stream) {
  const Layout layout = problem.layout();
  const int samples = (count + layout.tokens - 1) / layout.tokens;
  const Dataset data = draw_set(problem, seeds, Purpose::train_data, samples, stream);
  return MatrixView(data.x.data(), samples * layout.tokens, layout.input_dim).topRows(count);
}

template <class Real>
Model<Real> started_model(const ExperimentOptions& options, const Problem& problem, const Seeds& seeds) {
  const auto network = std::make_shared<const Network<Real>>(options.model, problem.layout());
  if (!network->starts_at_train_rows()) return Model<Real>(network, {seeds});
  const Matrix rows = first_rows(problem, seeds, network->experts(), train_stream(options.data));
  return Model<Real>(network, {seeds, &rows});
}

/// A warm start of a least-squares fit needs a true measure of the model's form.
void check_warm_start(const ExperimentOptions& options) {
  if (!options.train.start || !options.train.start->as<WarmStartOptions>()) return;
  const ModelOptions& model = options.model;
  const std::string path = "train.start";
  const MoeRegressionOptions* const truth = options.data.as<MoeRegressionOptions>();
  if (!truth) throw InvalidOption(path, "got \"warm\", needs data.generator \"moe_regression\"");
  const std::optional<MixtureForm> form = mixture_form(model);
  if (!form || !is_same_family(*form, form_of(*truth))) {
    throw InvalidOption(path,
                        "got \"warm\", needs a mixture of one layer with the router, gating.train and "
                        "expert of the data");
  }
  if (!has_gate_bias(model)) {
    throw InvalidOption("model.router.bias", "missing; a warm start needs true");
  }
  const int components = components_of(*truth);
  if (model.experts >= components) return;
  throw InvalidOption("model.experts",
                      fmt::format("got {}, needs the {} components of data.measure for a warm start",
                                  model.experts, components));
}

/// The parameters of a gating learn with the router, so a router that does not learn freezes them.
void check_learned_gating(const ModelOptions& model) {
  if (mixtures_of(model) == 0 || is_trainable(model.router)) return;
  const GatingRule& gating = model.gating.train;
  const auto* const threshold = gating.as<TopPGatingOptions>();
  if (threshold && threshold->learnable) {
    throw InvalidOption("model.gating.train.learnable",
                        "got true, but the router does not learn, so its threshold does not either");
  }
  const auto* const noisy = gating.as<NoisyTopKGatingOptions>();
  if (noisy && noisy->noise == NoisyTopKGatingOptions::Noise::learned) {
    throw InvalidOption("model.gating.train.noise",
                        "got \"learned\", but the router does not learn, so its noise does not either; needs "
                        "\"uniform\"");
  }
}

/// Starts away from the initial weights place the router, too, so it cannot be frozen.
void check_placed_router(const ExperimentOptions& options) {
  const std::optional<FitStart>& start = options.train.start;
  if (!start || start->as<ColdStartOptions>() || mixtures_of(options.model) == 0 ||
      is_trainable(options.model.router))
    return;
  throw InvalidOption("model.router.trainable",
                      fmt::format("got false, but train.start \"{}\" places the router, too; needs true, or "
                                  "train.start \"cold\"",
                                  start->chosen()));
}

/// Refuses what a likelihood fit does not read.
void check_read_by_likelihood(const ExperimentOptions& options, const LeastSquaresOptions& fit) {
  const auto refuse = [](const std::string& path, bool given, const char* what) {
    if (given) throw InvalidOption(path, fmt::format("given, but train.optimizer.likelihood {}", what));
  };
  const char* const alone = "maximises the likelihood alone";
  refuse("loss.task", options.loss.task != "mse", alone);
  for (std::size_t t = 0; t < options.loss.coefficients.size(); ++t)
    refuse("loss." + auxiliary_loss_kinds()[t].name, options.loss.coefficients[t] != 0, alone);
  const char* const without = "fits by EM and Newton steps, without it";
  refuse("train.optimizer.memory", fit.memory != LeastSquaresOptions{}.memory, without);
  refuse("train.optimizer.bound", fit.bound.has_value(), without);
  const SoftGatingOptions* const soft = options.model.gating.train.as<SoftGatingOptions>();
  refuse("model.gating.train.skip_below",
         soft && soft->skip_below.value_or(0) > default_skip_below(options.train), without);
}

void check_likelihood(const ExperimentOptions& options) {
  const LeastSquaresOptions* const fit = options.train.optimizer.as<LeastSquaresOptions>();
  if (!fit || !fit->likelihood) return;
  check_likelihood_fit(options.model, options.train.start);
  if (!is_trainable(options.model.router)) {
    throw InvalidOption("model.router.trainable",
                        "got false, but train.optimizer.likelihood fits the gates, too; needs true");
  }
  check_read_by_likelihood(options, *fit);
}

/// A fit takes no training steps, so nothing that belongs to steps has an effect.
void check_steps(const ExperimentOptions& options) {
  if (!is_least_squares(options.train) || mixtures_of(options.model) == 0) return;
  const auto refuse = [](const char* field, bool given) {
    if (given) {
      throw InvalidOption(std::string("model.gating.") + field,
                          "given, but train.optimizer is \"lbfgs\", which takes no training steps");
    }
  };
  refuse("balance_rate", options.model.gating.balance_rate.has_value());
  refuse("jitter", options.model.gating.jitter > 0);
}

/// Sample gradients need a training set, and population gradients have none.
void check_train_samples(const ExperimentOptions& options) {
  const bool given = options.data.train_samples.has_value();
  const bool population = options.train.gradient == TrainOptions::Gradient::population;
  if (given != population) return;
  const char* const gradient = gradient_name(options.train);
  throw InvalidOption("data.train_samples",
                      given ? fmt::format("given, but train.gradient is {}", gradient)
                            : fmt::format("missing; train.gradient {} needs it", gradient));
}

void check_law(const ExperimentOptions& options) {
  if (options.train.gradient != TrainOptions::Gradient::population) return;
  const auto files = files_of(options.data);
  if (files.empty()) return;
  throw InvalidOption(
      "data." + files.front().first,
      "a file is a sample without a law; needs another generator or train.gradient \"sample\"");
}

/// A router that starts at training rows needs one row per expert.
void check_start(const ExperimentOptions& options) {
  const RouterOptions& router = options.model.router;
  if (!reads_mixture(options.model) || !options.data.train_samples ||
      !router.entry().needs_train_rows(router.options()))
    return;
  const GeneratorKind& generator = options.data.entry();
  const std::int64_t tokens = generator.tokens ? generator.tokens(options.data.options()) : 1;
  const std::int64_t rows = *options.data.train_samples * tokens;
  if (rows >= routed_experts(options.model)) return;
  throw InvalidOption(
      "model.router.init",
      fmt::format(
          "got \"train_samples\", needs a training sample for each of model.experts = {}, but there are {}",
          routed_experts(options.model), rows));
}

/// Predicting the next token is trivial if the model sees later tokens. Masks make little sense if it does
/// not.
void check_sight(const ExperimentOptions& options) {
  const bool masks = task_loss_kind(options.loss.task).masks_tokens;
  if (masks != is_causal(options.model)) return;
  if (masks) {
    throw InvalidOption("loss.task",
                        fmt::format("got \"{}\", but model.causal is true: a token would be "
                                    "predicted from earlier ones alone; needs model.causal false",
                                    options.loss.task));
  }
  throw InvalidOption("model.causal", fmt::format("got false, but loss.task is \"{}\": the next token, which "
                                                  "every token then sees; needs \"masked_tokens\"",
                                                  options.loss.task));
}

/// A loss for classes needs targets that are classes. Targets from files are checked when they are read.
void check_loss(const ExperimentOptions& options) {
  const std::string path = "loss.task";
  if (options.loss.mask_share && !task_loss_kind(options.loss.task).masks_tokens) {
    throw InvalidOption(
        "loss.mask_share",
        fmt::format("given, but loss.task is \"{}\"; \"masked_tokens\" has masks", options.loss.task));
  }
  if (options.data.entry().token_ids) {
    make_task_loss<float>(options.loss, true);
    check_sight(options);
    return;
  }
  const TaskLossKind& kind = task_loss_kind(options.loss.task);
  // Least squares has the loss "mse" alone, whatever the task.
  if (!kind.needs_classes && (options.loss.task == "mse" || !is_least_squares(options.train))) return;
  const std::string got = fmt::format("got \"{}\", ", options.loss.task);
  if (!kind.make) {
    throw InvalidOption(path, fmt::format("{}needs ids of tokens; samples of data.generator \"{}\" are none",
                                          got, options.data.entry().name));
  }
  if (is_least_squares(options.train)) {
    throw InvalidOption(path, got + "but train.optimizer is \"lbfgs\", which fits by \"mse\"");
  }
  const auto files = files_of(options.data);
  const bool reads_targets =
      std::any_of(files.begin(), files.end(), [](const auto& file) { return file.first == "targets"; });
  if (reads_targets) return;
  const GeneratorKind& generator = options.data.entry();
  if (generator.class_targets.empty()) {
    throw InvalidOption(path, fmt::format("{}needs targets that are classes; data.generator \"{}\" has none",
                                          got, generator.name));
  }
  const std::string target = generator.target_kind(options.data.options());
  const std::vector<std::string>& classes = generator.class_targets;
  if (std::find(classes.begin(), classes.end(), target) != classes.end()) return;
  throw InvalidOption(path, fmt::format("{}needs targets that are classes; data.target.kind is \"{}\"; with "
                                        "data.generator \"{}\" they are: {}",
                                        got, target, generator.name, fmt::join(classes, ", ")));
}

/// Losses within sequences need sequences.
void check_sequences(const ExperimentOptions& options) {
  const GeneratorKind& generator = options.data.entry();
  if (generator.tokens && generator.tokens(options.data.options()) > 1) return;
  const std::vector<double>& coefficients = options.loss.coefficients;
  for (std::size_t t = 0; t < coefficients.size(); ++t) {
    const AuxiliaryLossKind& kind = auxiliary_loss_kinds()[t];
    if (coefficients[t] == 0 || !kind.needs_sequences) continue;
    throw InvalidOption(
        "loss." + kind.name,
        fmt::format(
            "got {}, needs samples of several tokens; the samples of data.generator \"{}\" are single rows",
            coefficients[t], generator.name));
  }
}

/// Losses may read values that the gating does not have.
void check_gating_of_losses(const ExperimentOptions& options) {
  for (std::size_t t = 0; t < options.loss.coefficients.size(); ++t) {
    const AuxiliaryLossKind& kind = auxiliary_loss_kinds()[t];
    if (options.loss.coefficients[t] != 0 && kind.needs_targets && reads_ids(options.model))
      throw InvalidOption("loss." + kind.name, "given, but targets are ids of tokens");
  }
  if (!reads_mixture(options.model) || reads_ids(options.model)) return;
  const GatingRule& gating = options.model.gating.train;
  const auto* const noisy = gating.as<NoisyTopKGatingOptions>();
  const bool has_noise = noisy && noisy->noise == NoisyTopKGatingOptions::Noise::learned;
  const bool has_slots = gating.as<SoftSlotsGatingOptions>() != nullptr;
  const std::vector<double>& coefficients = options.loss.coefficients;
  for (std::size_t t = 0; t < coefficients.size(); ++t) {
    const AuxiliaryLossKind& kind = auxiliary_loss_kinds()[t];
    if (coefficients[t] == 0) continue;
    if (kind.needs_noise && !has_noise) {
      throw InvalidOption("loss." + kind.name, fmt::format("got {}, needs model.gating.train \"noisy_topk\" "
                                                           "with learned noise; \"{}\" gives it no gradient",
                                                           coefficients[t], gating.chosen()));
    }
    if (kind.needs_moves && !is_solved(options.train)) {
      throw InvalidOption("loss." + kind.name,
                          fmt::format("got {}, needs train.optimizer \"minimum_norm\"", coefficients[t]));
    }
    if (kind.path == AuxiliaryPath::pair_outputs && has_slots) {
      throw InvalidOption(
          "loss." + kind.name,
          fmt::format(
              "got {}, needs experts that read rows; with model.gating.train \"soft_slots\" they read slots",
              coefficients[t]));
    }
  }
}

/// Gradients are normalised expert by expert only if the bank keeps its experts one after another.
void check_expert_norm(const ExperimentOptions& options) {
  if (options.train.expert_norm == TrainOptions::ExpertNorm::none || mixtures_of(options.model) == 0) return;
  const std::string path = "train.expert_norm";
  if (options.model.shared_experts > 0 || options.model.null_experts > 0)
    throw InvalidOption(path, "given, but the model has shared or null experts");
  const ExpertOptions expert = expert_of(options.model);
  if (make_expert_bank<float>(expert, {1, 2, 1})->expert_block_size() > 0) return;
  throw InvalidOption(path, fmt::format("given, but model.expert \"{}\" keeps its experts interleaved; needs "
                                        "\"mlp\" or \"filters\"",
                                        expert.chosen()));
}

/// Token ids are not numbers. They need a model that reads ids, and contamination can swap but not shift
/// them.
void check_tokens(const ExperimentOptions& options) {
  const GeneratorKind& generator = options.data.entry();
  if (generator.token_ids != reads_ids(options.model)) {
    const std::string samples = fmt::format("samples of data.generator \"{}\" are ", generator.name);
    throw InvalidOption("model.kind", generator.token_ids
                                          ? samples + "ids of tokens; needs \"transformer\""
                                          : fmt::format("got \"{}\", but {}no ids of tokens",
                                                        options.model.kind.chosen(), samples));
  }
  const ContaminationKind& contamination = options.data.contamination.entry();
  const bool moves_numbers = contamination.contaminate || contamination.is_attack();
  if (generator.token_ids ? !moves_numbers : !contamination.change_ids) return;
  throw InvalidOption(
      "data.contamination",
      fmt::format("got \"{}\", which {}; samples of data.generator \"{}\" are {}ids of tokens",
                  contamination.name, moves_numbers ? "moves numbers" : "swaps tokens", generator.name,
                  generator.token_ids ? "" : "no "));
}

/// Rounds train on one true cluster each.
void check_rounds(const ExperimentOptions& options) {
  const GeneratorKind& generator = options.data.entry();
  if (!options.train.rounds || generator.has_labels(options.data.options())) return;
  throw InvalidOption("train.rounds",
                      fmt::format("given, needs data whose rows have one true cluster; the rows of "
                                  "data.generator \"{}\" have none",
                                  generator.name));
}

template <class Options>
bool has_equal_options(const TrainingRule& one, const TrainingRule& other) {
  const Options *const first = one.as<Options>(), *const second = other.as<Options>();
  return !first || !second || *first == *second;
}

/// Whether `other` can go on with the velocities and moments of `one`, which keeps its own options.
bool is_continued(const TrainingRule& one, const TrainingRule& other) {
  return one.chosen() == other.chosen() && has_equal_options<SgdOptions>(one, other) &&
         has_equal_options<AdamOptions>(one, other) && has_equal_options<AdamWOptions>(one, other);
}

/// Checks the restrictions on one of several phases.
void check_phase(const ExperimentOptions& options, std::size_t place) {
  const PhaseOptions& phase = options.phases[place];
  if (is_least_squares(phase.train))
    throw InvalidOption("train.optimizer", "got \"lbfgs\", which fits to the end; phases need steps");
  if (phase.train.precision != options.train.precision)
    throw InvalidOption("train.precision", "needs the precision of train: a model has one number type");
  const RouterOptions& router = options.model.router;
  if (!phase.learns.router && reads_mixture(options.model) && router.entry().learns_in_state &&
      is_trainable(router)) {
    throw InvalidOption("learns",
                        fmt::format("leaves out \"router\", but model.router \"{}\" goes on moving, which "
                                    "takes no gradient; needs model.router.trainable false",
                                    router.chosen()));
  }
  if (!phase.learns.router && mixtures_of(options.model) > 0 &&
      options.model.gating.balance_rate.value_or(0) > 0) {
    throw InvalidOption("learns",
                        "leaves out \"router\", but the biases of model.gating.balance_rate go on moving; "
                        "needs \"router\", or model.gating.balance_rate 0");
  }
  if (phase.learns.has_frozen_parts() && phase.train.weight_decay.expert > 0) {
    throw InvalidOption("train.weight_decay",
                        "given, but parts of experts do not learn; needs 0 for experts");
  }
  if (!phase.keep_optimizer) return;
  if (place == 0) throw InvalidOption("keep_optimizer", "got true, but no phase is before this one");
  const PhaseOptions& before = options.phases[place - 1];
  if (!is_continued(before.train.optimizer, phase.train.optimizer))
    throw InvalidOption("keep_optimizer",
                        "got true, but the phase before has another train.optimizer, or other options of it");
  // Kept velocities and moments would move the parts of experts that do not learn.
  const bool were_frozen = before.learns.has_frozen_parts() &&
                           before.learns.first_layers == phase.learns.first_layers &&
                           before.learns.read_outs == phase.learns.read_outs;
  if (phase.learns.has_frozen_parts() && !were_frozen)
    throw InvalidOption("keep_optimizer",
                        "got true, but parts of experts stop learning; needs false, or the same parts in "
                        "\"learns\" of the phase before");
}

void check_phases(const ExperimentOptions& options) {
  for (std::size_t i = 0; i < options.phases.size(); ++i) {
    try {
      check_phase(options, i);
      check(ExperimentOptions{options.phases[i].data, options.model, options.phases[i].loss,
                              options.phases[i].train});
    } catch (const InvalidOption& error) {
      const bool is_own = error.path().rfind("model", 0) != 0;
      throw InvalidOption(is_own ? fmt::format("phases[{}].{}", i, error.path()) : error.path(),
                          error.message());
    }
  }
}

/// The only check of a reduction that losses or fits do not support.
void check_reduction(const ExperimentOptions& options) {
  if (options.loss.reduction == LossOptions::Reduction::sum) return;
  if (is_least_squares(options.train))
    throw InvalidOption("loss.reduction", "got \"mean\", but \"lbfgs\" minimises the sum; needs \"sum\"");
  make_task_loss<float>(options.loss, options.data.entry().token_ids);
}

}  // namespace

TokenMasks masks_of(const LossOptions& options, const Layout& layout) {
  constexpr double kShare = 0.15;
  if (!task_loss_kind(options.task).masks_tokens) return {};
  return {options.mask_share.value_or(kShare), layout.vocabulary};
}

template <class Real>
TrainingSet<Real> draw_training_set(const Problem& problem, const Seeds& seeds, int samples,
                                    std::uint64_t stream, bool with_labels) {
  const Layout layout = problem.layout();
  TrainingSet<Real> set{samples, {}, {}};
  set.x.reserve(entries(samples, layout.sample_dim()));
  set.y.reserve(entries(samples, layout.target_dim()));
  Engine engine = seeds.stream(Purpose::train_data, stream);
  for (int first = 0; first < samples; first += kDrawnSamples) {
    const int count = std::min(kDrawnSamples, samples - first);
    const Dataset block = problem.draw(engine, {Purpose::train_data, first, count});
    set.x.insert(set.x.end(), block.x.data(), block.x.data() + block.x.size());
    set.y.insert(set.y.end(), block.y.data(), block.y.data() + block.y.size());
    if (with_labels) set.labels.insert(set.labels.end(), block.cluster.begin(), block.cluster.end());
  }
  return set;
}

template <class Real>
Experiment<Real>::Experiment(ExperimentOptions options, const Seeds& seeds)
    : Experiment(std::move(options), nullptr, seeds) {}

template <class Real>
Experiment<Real>::Experiment(ExperimentOptions options, std::unique_ptr<Problem> problem, const Seeds& seeds)
    : options_(prepared(std::move(options), problem.get())),
      seeds_(seeds),
      problem_(problem ? std::move(problem) : draw_problem(options_.data, seeds)),
      model_(started_model<Real>(options_, *problem_, seeds)),
      task_loss_(make_task_loss<Real>(options_.loss, problem_->layout().vocabulary > 0)),
      objective_({*task_loss_, AuxiliaryLosses(options_.loss), masks_of(options_.loss, problem_->layout())}),
      workspace_(model_.network->make_workspace()) {
  if (!options_.phases.empty()) course_.learns = options_.phases.front().learns;
}

template <class Real>
bool Experiment<Real>::next_phase() {
  const std::size_t next = size(course_.phase) + 1;
  if (next >= options_.phases.size()) return false;
  options_ = in_phase(std::move(options_), next);
  const PhaseOptions& phase = options_.phases[next];
  std::unique_ptr<Problem> problem = draw_problem(options_.data, seeds_);
  if (!problem->layout().has_same_rows(problem_->layout())) {
    throw InvalidOption(fmt::format("phases[{}].data", next),
                        "needs inputs and targets of the shape of those before");
  }
  objective_.reset();
  task_loss_ = make_task_loss<Real>(options_.loss, problem->layout().vocabulary > 0);
  objective_.emplace(Objective<Real>{*task_loss_, AuxiliaryLosses(options_.loss),
                                     masks_of(options_.loss, problem->layout())});
  problem_ = std::move(problem);
  if (!phase.keep_optimizer) course_.optimizers.clear();
  course_.learns = phase.learns;
  course_.phase = static_cast<int>(next);
  return true;
}

template <class Real>
TrainOutcome Experiment<Real>::train(const TrainCallbacks& callbacks) {
  const TrainOptions& options = options_.train;
  if (options_.phases.empty()) course_ = {};  // without phases, each call starts a new training
  course_.tasks = problem_->clusters();
  const auto in_course = [&](TrainOutcome outcome) {
    course_.steps = outcome.step;
    return outcome;
  };
  if (options.gradient == TrainOptions::Gradient::population) {
    PopulationBatches<Real> batches(*problem_, options, seeds_, 0, objective_->masks,
                                    task_rounds(options, course_.tasks, seeds_, course_.phase));
    return in_course(moelab::train(model_, *objective_, batches, total_steps(options, 0), options, callbacks,
                                   workspace_, course_));
  }
  const TrainingSet<Real> data =
      draw_training_set<Real>(*problem_, seeds_, *options_.data.train_samples, train_stream(options_.data),
                              needs_labels(options_.model) || options.rounds);
  if (!is_least_squares(options)) {
    return in_course(
        moelab::train(model_, *objective_, data, options, seeds_, callbacks, workspace_, course_));
  }
  if constexpr (std::is_same_v<Real, double>) {
    fit_ = fit_least_squares(model_, options_.model, *objective_, data, options, problem_->true_measure(),
                             seeds_, callbacks, workspace_);
    return {fit_.state, fit_.evaluations};
  } else {
    throw std::invalid_argument("a least-squares fit works in double");
  }
}

template TrainingSet<float> draw_training_set(const Problem&, const Seeds&, int, std::uint64_t, bool);
template TrainingSet<double> draw_training_set(const Problem&, const Seeds&, int, std::uint64_t, bool);
template class Experiment<float>;
template class Experiment<double>;

void check_training(const ExperimentOptions& options) {
  check(options.model);
  check_rule(options.train);
  check_batches(options.train);
  check_epochs(options.train);
  check_length(options.train);
  check_expert_norm(options);
}

void check(const ExperimentOptions& options) {
  check(options.model);
  check_rule(options.train);
  check_warm_start(options);
  check_likelihood(options);
  check_placed_router(options);
  check_steps(options);
  check_learned_gating(options.model);
  check_train_samples(options);
  check_batches(options.train);
  check_law(options);
  check_epochs(options.train);
  check_start(options);
  check_length(options.train);
  check_expert_norm(options);
  check_tokens(options);
  check_loss(options);
  check_sequences(options);
  check_gating_of_losses(options);
  check_rounds(options);
  check_minimum_norm(options.train, options.model, options.loss);
  check_image(options.model, options.data.entry().has_image);
  check_labels(options.model, options.data.entry().has_labels(options.data.options()));
  check_reduction(options);
  check(options.data);
  check_phases(options);
}

}  // namespace moelab
