#include "sim/train/field_uses.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/data/gaussian_mixture.h"
#include "sim/data/task_pool.h"
#include "sim/model/router/routers.h"
#include "sim/train/minimum_norm.h"

namespace moelab {
namespace {

/// Collects uses. An empty reason means that the field is read.
class Uses {
 public:
  void add(const std::string& path, const std::string& reason) {
    add_note(path, reason.empty() ? "" : "given, but nothing reads it: " + reason);
  }
  void add_note(const std::string& path, const std::string& note) { all.push_back({path, path, note}); }
  void add_kind(const std::string& path, const std::string& kind, const std::string& note) {
    all.push_back({path + " " + kind, path, note});
  }

  std::vector<FieldUse> all;
};

/// The reason if the condition holds; empty otherwise.
std::string reason_if(bool holds, const std::string& reason) {
  return holds ? reason : "";
}

bool has_single_rows(const DataOptions& data) {
  const GeneratorKind& generator = data.entry();
  return !generator.tokens || generator.tokens(data.options()) == 1;
}

/// Whether something that learns surrounds the mixture: attention, a projection, other layers or embeddings.
bool has_layers_around(const ModelOptions& model) {
  return mixtures_of(model) > 1 || reads_ids(model) || model.attention || has_projection(model);
}

bool has_learned_gating(const ModelOptions& model) {
  const GatingSetting setting{.input_dim = 1, .experts = std::max(routed_experts(model), 1)};
  return make_gating<float>(model.gating.train, setting)->block_size() > 0;
}

/// Whether a gradient in the scores moves a parameter.
bool learns_from_scores(const ModelOptions& model) {
  if (has_layers_around(model) || model.router.entry().needs_image) return true;
  if (!is_trainable(model.router)) return false;
  const bool is_given = model.router.as<HashRouterOptions>() || model.router.as<RandomRouterOptions>() ||
                        model.router.as<OracleRouterOptions>() || model.router.entry().learns_in_state;
  return !is_given || has_learned_gating(model);
}

/// Whether the router looks at the token's own inputs or label, so that noise on what it reads changes
/// nothing.
bool ignores_read_rows(const RouterOptions& router) {
  const auto* const hash = router.as<HashRouterOptions>();
  return (hash && hash->of == HashRouterOptions::Of::token) || router.as<RandomRouterOptions>() ||
         router.as<OracleRouterOptions>();
}

// Losses

/// Why nothing learns from an auxiliary loss; empty if something does.
std::string unheard(const ExperimentOptions& options, const AuxiliaryLossKind& loss) {
  const ModelOptions& model = options.model;
  if (mixtures_of(model) == 0) return "the model has no router";
  const GatingRule& gating = model.gating.train;
  if (loss.needs_noise) {
    const auto* const noisy = gating.as<NoisyTopKGatingOptions>();
    if (!noisy || noisy->noise != NoisyTopKGatingOptions::Noise::learned)
      return "model.gating.train has no learned noise; needs \"noisy_topk\" with learned noise";
    if (noisy->k >= routed_experts(model))
      return "every expert is selected; needs model.gating.train.k below model.experts";
  }
  if (loss.needs_moves && !is_solved(options.train))
    return "no step moves experts first; needs train.optimizer \"minimum_norm\"";
  if (loss.path == AuxiliaryPath::pair_outputs) {
    if (gating.as<SoftSlotsGatingOptions>())
      return "with model.gating.train \"soft_slots\" experts read slots, not rows";
    return reason_if(is_solved(options.train) && !has_layers_around(model),
                     "train.optimizer \"minimum_norm\" moves experts by the task alone");
  }
  return reason_if(!learns_from_scores(model), "no router learns by gradient, and nothing before it learns");
}

void add_losses(const ExperimentOptions& options, Uses& uses) {
  const LossOptions& loss = options.loss;
  bool has_groups = false;
  for (std::size_t t = 0; t < loss.coefficients.size(); ++t) {
    const AuxiliaryLossKind& kind = auxiliary_loss_kinds()[t];
    if (loss.coefficients[t] == 0) continue;
    has_groups = has_groups || kind.name == "aux_sequence" || kind.name == "aux_mixed";
    const std::string reason = unheard(options, kind);
    uses.add_note("loss." + kind.name, reason.empty() ? "" : "given, but nothing learns from it: " + reason);
  }
  if (loss.aux_group != LossOptions{}.aux_group) {
    uses.add("loss.aux_group",
             reason_if(!has_groups, "neither loss.aux_sequence nor loss.aux_mixed is given"));
  }
}

// Models

bool is_default(const GatingOptions& gating) {
  const GatingOptions defaults;
  return gating.train.chosen() == defaults.train.chosen() && gating.eval.chosen() == defaults.eval.chosen() &&
         !gating.balance_rate && gating.balance_rule == defaults.balance_rule && gating.jitter == 0;
}

/// The fields that describe a mixture, for models that have none and match none.
void add_parts_of_mixtures(const ModelOptions& model, Uses& uses) {
  const std::string why = reason_if(!reads_mixture(model), "the model has no mixture and matches none");
  if (model.experts > 0) uses.add("model.experts", why);
  if (model.shared_experts > 0) uses.add("model.shared_experts", why);
  if (model.null_experts > 0) uses.add("model.null_experts", why);
  if (!model.router.chosen().empty()) uses.add("model.router", why);
  if (!model.expert.chosen().empty()) uses.add("model.expert", why);
  if (!is_default(model.gating)) uses.add("model.gating", why);
  if (model.layers > 1)
    uses.add("model.layers", reason_if(!why.empty() && model.kind.as<DenseOptions>(),
                                       "model.depth is the depth of a dense model with model.width"));
}

void add_feed_forward(const ModelOptions& model, Uses& uses) {
  const TransformerOptions* const own = model.kind.as<TransformerOptions>();
  if (!own || !own->feed_forward) return;
  const bool are_all_mixtures = mixtures_of(model) == model.layers;
  const bool is_read =
      own->match || are_all_mixtures ? reads_mixture(model) && model.expert.chosen().empty() : true;
  uses.add(
      "model.feed_forward",
      reason_if(!is_read, own->match ? "model.match sets the width, and model.expert describes the experts"
                                     : "every layer has a mixture, and model.expert describes its experts"));
}

void add_widths(const ModelOptions& model, Uses& uses) {
  const char* const why = "at depth 1 there are no hidden units";
  if (const auto* const router = model.router.as<MlpRouterOptions>();
      router && router->width != MlpRouterOptions{}.width)
    uses.add("model.router.width", reason_if(router->depth == 1, why));
  if (const auto* const expert = model.expert.as<MlpExpertOptions>();
      expert && expert->width != MlpExpertOptions{}.width)
    uses.add("model.expert.width", reason_if(expert->depth == 1, why));
}

void add_gating(const GatingRule& gating, const std::string& path, const DataOptions& data, Uses& uses) {
  if (const auto* const own = gating.as<SoftSlotsGatingOptions>();
      own && own->init_scale != SoftSlotsGatingOptions{}.init_scale)
    uses.add(path + ".init_scale", reason_if(own->slots == 1,
                                             "the first slot of an expert has no vector, and "
                                             "slots is 1"));
  if (const auto* const own = gating.as<NoisyTopKGatingOptions>();
      own && own->noise_per == NoisyTopKGatingOptions::NoisePer::sequence)
    uses.add(path + ".noise_per", reason_if(has_single_rows(data), "each sample has a single row"));
}

std::string unused_balance(const ModelOptions& model) {
  const GatingRule& gating = model.gating.train;
  const auto* const sigmoid = gating.as<SigmoidGatingOptions>();
  if (sigmoid && !sigmoid->k) return "model.gating.train \"sigmoid\" selects experts only with k";
  // Every expert then has the load of every other one, unless a capacity drops rows.
  bool has_capacity = false;
  if (const auto* const topk = gating.as<TopKGatingOptions>())
    has_capacity = topk->capacity.capacity_factor.has_value();
  if (sigmoid) has_capacity = sigmoid->capacity.capacity_factor.has_value();
  const int most = most_experts(gating);
  return reason_if(!has_capacity && most >= routed_experts(model), "every expert is selected");
}

// Routers

/// Whether a layer of the model has the weights of adaptive clustering.
bool has_cluster_weights(const ModelOptions& model) {
  const int layers = mixtures_of(model);
  for (int layer = 0; layer < layers; ++layer) {
    const RouterSetting setting{
        .input_dim = 1, .experts = routed_experts(model), .layer = layer, .layers = layers};
    if (!make_router<float>(model.router, setting)->state_arrays().empty()) return true;
  }
  return false;
}

void add_adaptive_clustering(const ModelOptions& model, Uses& uses) {
  const auto* const own = model.router.as<AdaptiveClusteringRouterOptions>();
  if (!own) return;
  using Weights = AdaptiveClusteringRouterOptions::Weights;
  uses.add_kind(
      "model.router", "adaptive_clustering",
      reason_if(!has_cluster_weights(model),
                "got \"adaptive_clustering\", but no layer has its cluster weights, so the router is "
                "linear; needs more layers with a mixture, or memberships \"own\" or \"oracle\""));
  const AdaptiveClusteringRouterOptions defaults;
  const auto add = [&](const char* field, bool is_given, Weights needed, const char* name) {
    if (!is_given) return;
    uses.add(std::string("model.router.") + field,
             reason_if(own->weights != needed, fmt::format("only weights \"{}\" have it", name)));
  };
  add("lambda", own->lambda != defaults.lambda, Weights::optimal, "optimal");
  const ClusterWeighting &weighting = own->weighting, &other = defaults.weighting;
  add("normalize", weighting.normalize != other.normalize, Weights::inverse, "inverse");
  add("guard", weighting.guard != other.guard, Weights::inverse, "inverse");
  add("clip", weighting.clip != other.clip, Weights::inverse, "inverse");
}

// Training

/// Kinds that move from step to step, under a fit, which takes no steps.
void add_kinds_of_steps(const ExperimentOptions& options, Uses& uses) {
  const bool is_fit = options.train.optimizer.as<LeastSquaresOptions>() != nullptr;
  const RouterOptions& router = options.model.router;
  const GatingRule& gating = options.model.gating.train;
  const auto add = [&](const char* path, const std::string& kind, bool moves, const char* consequence) {
    if (!moves) return;
    uses.add_kind(path, kind + " in steps",
                  reason_if(is_fit, fmt::format("got \"{}\", but train.optimizer \"lbfgs\" takes no training "
                                                "steps, so {}",
                                                kind, consequence)));
  };
  const auto* const relu = gating.as<ReluGatingOptions>();
  add("model.gating.train", "relu", relu && relu->k, "k has no effect and λ stays at l1_start");
  const auto* const sparse = gating.as<DenseToSparseGatingOptions>();
  add("model.gating.train", "dense_to_sparse", sparse && sparse->tau_end != sparse->tau, "τ stays at tau");
  const auto* const similarity = router.as<SimilarityAwareRouterOptions>();
  add("model.router", "similarity_aware",
      similarity && similarity->tau_end && *similarity->tau_end != similarity->tau, "τ stays at tau");
  add("model.router", "nearest_centroid", router.as<NearestCentroidRouterOptions>() && is_trainable(router),
      "centroids stay at their start");
  const auto* const random = router.as<RandomRouterOptions>();
  add("model.router", "random", random && random->draws == RandomRouterOptions::Draws::redrawn,
      "draws stay as the first ones");
  const auto* const adaptive = router.as<AdaptiveClusteringRouterOptions>();
  using Adaptive = AdaptiveClusteringRouterOptions;
  add("model.router", "adaptive_clustering",
      adaptive && (adaptive->weights == Adaptive::Weights::redrawn ||
                   adaptive->statistics == Adaptive::Statistics::frozen),
      "weights are not redrawn and statistics have no running mean");
  add("model.router", "stable", router.as<StableRouterOptions>() && is_trainable(router),
      "the router is never frozen");
}

void add_training(const ExperimentOptions& options, Uses& uses) {
  const TrainOptions& train = options.train;
  const bool has_mixture = mixtures_of(options.model) > 0;
  const bool solves = is_solved(train);
  if (train.weight_decay.expert > 0) {
    uses.add_note(
        "train.weight_decay",
        reason_if(solves && !has_layers_around(options.model),
                  "given for experts, but nothing reads it: train.optimizer \"minimum_norm\" solves "
                  "for them; give {\"expert\": 0, \"router\": …}"));
  }
  if (train.expert_norm != TrainOptions::ExpertNorm::none) {
    uses.add("train.expert_norm", !has_mixture ? "the model has no experts"
                                  : solves ? "train.optimizer \"minimum_norm\" takes no gradient of experts"
                                           : "");
  }
  const auto* const cosine = train.schedule.as<CosineScheduleOptions>();
  if (!cosine || cosine->warmup_steps == 0) return;
  const std::int64_t steps = total_steps(train, options.data.train_samples.value_or(0));
  uses.add_note("train.schedule.warmup_steps",
                reason_if(cosine->warmup_steps >= steps,
                          fmt::format("got {}, but training has {} steps, so all of it is warm-up",
                                      cosine->warmup_steps, steps)));
}

}  // namespace

std::vector<FieldUse> field_uses(const DataOptions& data) {
  Uses uses;
  if (const auto* const pool = data.as<TaskPoolOptions>()) {
    const TaskPoolOptions defaults;
    const std::string why =
        reason_if(pool->signal == TaskPoolOptions::Signal::none, "data.signal is \"none\"");
    if (pool->signal_norm != defaults.signal_norm) uses.add("data.signal_norm", why);
    if (pool->signal_scale != defaults.signal_scale) uses.add("data.signal_scale", why);
  }
  if (const auto* const mixture = data.as<GaussianMixtureOptions>()) {
    const GaussianMixtureOptions defaults;
    if (mixture->mean_std != defaults.mean_std)
      uses.add("data.mean_std", reason_if(mixture->hierarchy.has_value(), "data.hierarchy draws the means"));
    if (mixture->spurious_law != defaults.spurious_law)
      uses.add("data.spurious_law", reason_if(mixture->spurious_dims == 0, "data.spurious_dims is 0"));
  }
  return std::move(uses.all);
}

std::vector<FieldUse> field_uses(const ExperimentOptions& options) {
  const ModelOptions& model = options.model;
  Uses uses;
  uses.all = field_uses(options.data);
  add_parts_of_mixtures(model, uses);
  add_feed_forward(model, uses);
  if (reads_mixture(model)) add_widths(model, uses);
  if (mixtures_of(model) > 0) {
    add_gating(model.gating.train, "model.gating.train", options.data, uses);
    add_gating(model.gating.eval, "model.gating.eval", options.data, uses);
    if (model.gating.balance_rate) uses.add("model.gating.balance_rate", unused_balance(model));
    if (model.gating.jitter > 0) {
      uses.add("model.gating.jitter",
               reason_if(ignores_read_rows(model.router) && !has_learned_gating(model),
                         fmt::format("model.router \"{}\" does not read the rows", model.router.chosen())));
    }
    add_adaptive_clustering(model, uses);
    add_kinds_of_steps(options, uses);
  }
  add_losses(options, uses);
  add_training(options, uses);
  return std::move(uses.all);
}

}  // namespace moelab
