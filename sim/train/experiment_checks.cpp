#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"
#include "sim/data/moe_regression.h"
#include "sim/model/measure_places.h"
#include "sim/model/router/oracle_router.h"
#include "sim/train/experiment.h"
#include "sim/train/likelihood_fit.h"
#include "sim/train/train_checks.h"

namespace moelab {
namespace {

/// A warm start of a least-squares fit needs a true measure of the model's form.
void check_warm_start(const ExperimentOptions& options) {
  if (!options.train.start || !options.train.start->as<WarmStartOptions>()) return;
  const ModelOptions& model = options.model;
  const std::string path = "train.start";
  const MoeRegressionOptions* const truth = options.data.as<MoeRegressionOptions>();
  if (!truth) throw InvalidOption(path, "got \"warm\", needs data.generator \"moe_regression\"");
  const std::optional<MixtureForm> form = mixture_form(model);
  if (model.kind != ModelOptions::Kind::moe || model.layers != 1 || !form ||
      !is_same_family(*form, form_of(*truth))) {
    throw InvalidOption(
        path,
        "got \"warm\", needs a mixture of one layer whose router, gating.train and expert are those of the "
        "data");
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

void check_likelihood(const ExperimentOptions& options) {
  const LeastSquaresOptions* const fit = options.train.optimizer.as<LeastSquaresOptions>();
  if (fit && fit->likelihood) check_likelihood_fit(options.model, options.train.start);
}

/// Sample gradients need a training set, population gradients have none.
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

/// A router that starts at training rows needs one for each expert.
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
      fmt::format("got \"train_samples\", needs a training sample for each of model.experts = {}, but there "
                  "are {}",
                  routed_experts(options.model), rows));
}

/// Where later tokens are seen the next one is no task, and where they are not a mask says little.
void check_sight(const ExperimentOptions& options) {
  const bool masks = task_loss_kind(options.loss.task).masks_tokens;
  if (masks != options.model.transformer.is_causal()) return;
  if (masks) {
    throw InvalidOption("loss.task",
                        fmt::format("got \"{}\", but model.causal is true: a token would be told from "
                                    "those before it alone; needs model.causal false",
                                    options.loss.task));
  }
  throw InvalidOption("model.causal",
                      fmt::format("got false, but loss.task is \"{}\": the next token, which every "
                                  "token then sees; needs \"masked_tokens\"",
                                  options.loss.task));
}

/// A loss for classes needs targets that are classes; those of files are looked at when they are read.
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
  if (!kind.needs_classes) return;
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

/// Losses within sequences need some.
void check_sequences(const ExperimentOptions& options) {
  const GeneratorKind& generator = options.data.entry();
  if (generator.tokens && generator.tokens(options.data.options()) > 1) return;
  const std::vector<double>& coefficients = options.loss.coefficients;
  for (std::size_t t = 0; t < coefficients.size(); ++t) {
    const AuxiliaryLossKind& kind = auxiliary_loss_kinds()[t];
    if (coefficients[t] == 0 || !kind.needs_sequences) continue;
    throw InvalidOption(
        "loss." + kind.name,
        fmt::format("got {}, needs samples of several tokens; those of data.generator \"{}\" are "
                    "single rows",
                    coefficients[t], generator.name));
  }
}

/// What losses look at that the gating may not have.
void check_gating_of_losses(const ExperimentOptions& options) {
  if (options.model.width) return;
  const GatingRule& gating = options.model.gating.train;
  const auto* const noisy = gating.as<NoisyTopKGatingOptions>();
  const bool has_noise = noisy && noisy->noise == NoisyTopKGatingOptions::Noise::learned;
  const bool has_slots = gating.as<SoftSlotsGatingOptions>() != nullptr;
  const std::vector<double>& coefficients = options.loss.coefficients;
  for (std::size_t t = 0; t < coefficients.size(); ++t) {
    const AuxiliaryLossKind& kind = auxiliary_loss_kinds()[t];
    if (coefficients[t] == 0) continue;
    if (kind.needs_noise && !has_noise) {
      throw InvalidOption("loss." + kind.name,
                          fmt::format("got {}, needs model.gating.train \"noisy_topk\" with learned noise; "
                                      "\"{}\" gives it no gradient",
                                      coefficients[t], gating.chosen()));
    }
    if (kind.path == AuxiliaryPath::pair_outputs && has_slots) {
      throw InvalidOption("loss." + kind.name,
                          fmt::format("got {}, needs experts that read rows; with model.gating.train "
                                      "\"soft_slots\" they read slots",
                                      coefficients[t]));
    }
  }
}

/// Ids of tokens are no numbers: they need a model that reads them, and cannot be moved but swapped.
void check_tokens(const ExperimentOptions& options) {
  const GeneratorKind& generator = options.data.entry();
  const bool reads_ids = options.model.kind == ModelOptions::Kind::transformer;
  if (generator.token_ids != reads_ids) {
    const std::string samples = fmt::format("samples of data.generator \"{}\" are ", generator.name);
    throw InvalidOption("model.kind", reads_ids ? "got \"transformer\", but " + samples + "no ids of tokens"
                                                : samples + "ids of tokens; needs \"transformer\"");
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

/// What several phases cannot be.
void check_phase(const ExperimentOptions& options, std::size_t place) {
  const PhaseOptions& phase = options.phases[place];
  if (is_least_squares(phase.train))
    throw InvalidOption("train.optimizer", "got \"lbfgs\", which fits to the end; phases need steps");
  if (phase.train.precision != options.train.precision)
    throw InvalidOption("train.precision", "needs that of train: a model has one number type");
  const RouterOptions& router = options.model.router;
  if (!phase.learns.router && reads_mixture(options.model) && router.entry().learns_in_state &&
      is_trainable(router)) {
    throw InvalidOption("learns",
                        fmt::format("leaves out \"router\", but model.router \"{}\" goes on moving, "
                                    "which takes no gradient; needs model.router.trainable false",
                                    router.chosen()));
  }
  if (!phase.keep_optimizer) return;
  if (place == 0) throw InvalidOption("keep_optimizer", "got true, but no phase is before this one");
  if (phase.train.optimizer.chosen() == options.phases[place - 1].train.optimizer.chosen()) return;
  throw InvalidOption("keep_optimizer", "got true, but the phase before has another train.optimizer");
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

/// The one place of a reduction that losses and fits cannot have.
void check_reduction(const ExperimentOptions& options) {
  if (options.loss.reduction == LossOptions::Reduction::sum) return;
  if (is_least_squares(options.train))
    throw InvalidOption("loss.reduction", "got \"mean\", but \"lbfgs\" minimises the sum; needs \"sum\"");
  make_task_loss<float>(options.loss, options.data.entry().token_ids);
}

}  // namespace

void check_training(const ExperimentOptions& options) {
  check(options.model);
  check_rule(options.train);
  check_batches(options.train);
  check_epochs(options.train);
  check_length(options.train);
}

void check(const ExperimentOptions& options) {
  check(options.model);
  check_rule(options.train);
  check_warm_start(options);
  check_likelihood(options);
  check_train_samples(options);
  check_batches(options.train);
  check_law(options);
  check_epochs(options.train);
  check_start(options);
  check_length(options.train);
  check_tokens(options);
  check_loss(options);
  check_sequences(options);
  check_gating_of_losses(options);
  check_image(options.model, options.data.entry().has_image);
  check_labels(options.model, options.data.entry().has_labels(options.data.options()));
  check_reduction(options);
  check(options.data);
  check_phases(options);
}

}  // namespace moelab
