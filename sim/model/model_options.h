#pragma once

/// The `model` section of a scenario: fields of every model, and the table of model kinds with their options.

#include <optional>
#include <string>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/options.h"
#include "sim/data/layout.h"
#include "sim/model/blocks/attention.h"
#include "sim/model/blocks/residual.h"
#include "sim/model/blocks/sequence_mixer.h"
#include "sim/model/expert/expert.h"
#include "sim/model/gating/gating.h"
#include "sim/model/router/router.h"

namespace moelab {

struct ModelOptions;
template <class Real>
struct PlacedBlock;

/// The gatings whose parameters and state a model's mixtures hold; null for none. They outlive the blocks.
template <class Real>
struct Gatings {
  const Gating<Real>* learned = nullptr;  ///< has parameters
  const Gating<Real>* train = nullptr;    ///< has state
};

template <class Real>
using MakeBlocks = std::vector<PlacedBlock<Real>>(const ModelOptions&, const Layout& data_layout,
                                                  const Gatings<Real>&);

/// An entry of the table of model kinds. A null function has the default given here.
struct ModelKind : KindEntry {
  /// The blocks of a model in their order, see network.h.
  PerPrecision<MakeBlocks> make_blocks = {};
  /// Checks the options independently of the data. Throws InvalidOption at "model.…". Null: nothing to check.
  void (*check)(const ModelOptions&) = nullptr;
  /// Layers with a mixture. Null: none.
  int (*mixtures)(const ModelOptions&) = nullptr;
  /// Whether router, experts and gating describe a mixture that the model only matches. Null: no.
  bool (*matches_mixture)(const ModelOptions&) = nullptr;
  /// The sample layout that the model reads. Null: the layout of the data.
  Layout (*layout_read)(const ModelOptions&, const Layout&) = nullptr;
  /// The layout of the rows that blocks read, from `layout_read`. Null: the same.
  Layout (*layout_of_blocks)(const ModelOptions&, const Layout&) = nullptr;
  /// The experts if model.expert is not given. Null: model.expert is required.
  ExpertOptions (*default_expert)(const ModelOptions&) = nullptr;
  /// Whether the model reads token ids.
  bool reads_ids = false;
  /// Whether a token sees no later token. Null: the model has no causal order.
  bool (*is_causal)(const ModelOptions&) = nullptr;
  /// Whether its blocks leave the attention that some routers read. Null: only model.attention does this.
  bool (*has_attention)(const ModelOptions&) = nullptr;
};

/// The table of model kinds. A new kind is one file and one line in model_options.cpp.
struct ModelAxis {
  using Entry = ModelKind;
  static const std::vector<ModelKind>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "kind";
};

/// The entry of a kind with these options, whose blocks `make<Real>` makes.
template <class Options>
ModelKind model_kind(std::string name, std::string help, PerPrecision<MakeBlocks> make,
                     Options example = {}) {
  return {{std::move(name), std::move(help), Options{}, std::move(example)}, make};
}

/// The parameter count that a model without a mixture matches. `expert` and `moe` are for dense models,
/// `active` and `total` for transformers.
enum class Match { expert, moe, active, total };

/// Model kind "moe": f(x) = MoE(x). With two or more layers h_{ℓ+1} = h_ℓ + MoE_ℓ(h_ℓ), then a linear
/// read-out.
struct MoeOptions {
  std::optional<int> input_width = {};  ///< output width of a linear layer before the mixtures
  void bind(Fields& fields);
};

/// Model kind "dense": one network without a router, with a given width and depth or matched to a mixture's
/// size.
struct DenseOptions {
  enum class Reads { tokens, sequence };
  std::optional<Match> match = {};
  std::optional<int> width = {};  ///< hidden units; excludes `match`
  std::optional<int> depth = {};  ///< weight matrices
  Reads reads = Reads::tokens;
  void bind(Fields& fields);
};

/// Model kind "transformer": h_0 = E[id] (+ P[place]); each of L layers computes h ← h + mixer(norm(h)), then
/// h ← h + f(norm(h)).
///
/// The mixer is self-attention by default. f is a mixture or a network of depth 2. The scores of the next
/// token are f(x) = A norm(h_L) + b, or norm(h_L) E^T / √d with a tied embedding (Vaswani et al. 2017, with a
/// norm before each part as in Xiong et al. 2020).
///
/// In a model that is not causal, attention sees the whole sequence. E then has one more row for the mask,
/// and the scores belong to the masked token.
///
/// Dropout p applies in training steps only: h ← h + D ∘ part(norm(h)). Entries of D are 0 with probability
/// p, else 1 / (1 − p). Each step draws D anew.
struct TransformerOptions {
  enum class Positions { learned, rotary };
  std::optional<int> width = {};    ///< d; required
  std::optional<Match> match = {};  ///< only if no layer has a mixture
  MixerOptions mixer = SelfAttentionOptions{};
  std::optional<int> heads = {};
  std::optional<int> feed_forward = {};  ///< unset: 4 width
  std::optional<std::vector<std::string>> moe_layers = {};
  std::optional<Positions> positions = {};
  std::optional<Normalization> norm = {};
  std::optional<bool> tied_embedding = {};
  std::optional<bool> causal = {};     ///< unset: true
  std::optional<double> dropout = {};  ///< p; unset: 0

  bool is_causal() const { return causal.value_or(true); }
  int hidden_units() const { return feed_forward.value_or(4 * width.value_or(1)); }
  void bind(Fields& fields);
};

/// The layers with a mixture, ascending, in a model with `layers` layers. Throws InvalidOption at
/// "model.moe_layers".
std::vector<int> moe_layers(const TransformerOptions& options, int layers);

/// The gating options of a model.
struct GatingOptions {
  GatingRule train = SoftGatingOptions{};
  GatingRule eval = Top1GatingOptions{};
  std::optional<double> balance_rate;  ///< rate of loss-free balancing
  BalanceRule balance_rule = BalanceRule::sign;
  double jitter = 0;  ///< training steps multiply what routers read by U[1 − jitter, 1 + jitter]
  void bind(Fields& fields);
};

/// The options of a model: a kind with its own options, and the fields that all kinds share. In a scenario
/// all fields stand side by side.
struct ModelOptions {
  OneOf<ModelAxis> kind = MoeOptions{};
  int layers = 1;
  std::optional<AttentionOptions> attention;
  int experts = 0;
  int shared_experts = 0;  ///< experts that serve every row without a gate
  int null_experts = 0;    ///< experts that the router scores, without a network
  RouterOptions router;
  ExpertOptions expert;
  GatingOptions gating;
  /// Samples that gatings route together in measuring, if they group rows: the size of a mini-batch. 0: all
  /// samples that are measured at a time. The experiment fills it in.
  int group_samples = 0;
  /// Rows in a block of measuring. The default keeps the kernels busy and fits in the cache. Memory estimates
  /// set it lower.
  int block_rows = 1024;
  /// Given fields that the kind does not have, and missing fields that it requires. check() throws them.
  std::vector<InvalidOption> refused = {};

  void bind(Fields& fields);
};

/// Checks the options independently of the data. Throws InvalidOption at "model.…".
void check(const ModelOptions& options);
/// Checks the options for data with this layout. Throws InvalidOption at "model.…".
void check(const ModelOptions& options, const Layout& layout);
/// The part of this check for images: options that conflict with an image in every row, and options that need
/// one.
void check_image(const ModelOptions& options, bool has_image);

/// Whether the model's router reads the true cluster of every row.
bool needs_labels(const ModelOptions& options);
/// Throws InvalidOption if the router needs labels and the data have none.
void check_labels(const ModelOptions& options, bool has_labels);

/// The experts that the router scores: networks and null experts.
inline int routed_experts(const ModelOptions& options) {
  return options.experts + options.null_experts;
}
inline bool reads_ids(const ModelOptions& options) {
  return options.kind.entry().reads_ids;
}
bool is_causal(const ModelOptions& options);
/// Whether a trainable projection stands between the data and the mixture.
inline bool has_projection(const ModelOptions& options) {
  const MoeOptions* const moe = options.kind.as<MoeOptions>();
  return moe && moe->input_width;
}
/// Layers with a mixture.
int mixtures_of(const ModelOptions& options);
/// Whether router, experts and gating affect the model: it has mixtures, or it matches a model with mixtures.
bool reads_mixture(const ModelOptions& options);
/// Whether the router learns by gradient, but no gradient of the task reaches its scores: gate 1 for the
/// argmax expert, one expert, or one renormalised gate.
bool is_untaught(const ModelOptions& options);
/// The experts of the mixtures: model.expert, or the kind's default.
ExpertOptions expert_of(const ModelOptions& options);

/// The layout in which the model reads a sample. The entries are the same as in the data's layout.
Layout layout_read_by(const ModelOptions& options, const Layout& layout);
/// The layout of the rows that its blocks read.
Layout layout_of_blocks(const ModelOptions& options, const Layout& layout);
/// Width of the rows that routers read.
int router_dim(const ModelOptions& options, const Layout& layout);
/// The setting of the model's gatings.
GatingSetting gating_setting(const ModelOptions& options, const Layout& layout);

/// The network of a dense model. It has the given `depth` and `width`. With `match` it has `depth` layers, or
/// one layer more than an expert, and the width nearest to the parameter count that `match` names.
ExpertOptions dense_network(const ModelOptions& options, const Layout& layout);
/// The network of a transformer's layer without a router. With `match` its parameter count is close to the
/// count of the mixture that the other fields describe. `total` counts the router, the gating's parameters,
/// the shared experts and all experts. `active` counts only as many of the experts as a row is sent to at
/// most. Null experts have rows in the router and no other parameters.
ExpertOptions transformer_network(const ModelOptions& options);

/// Sets the width at which the network's parameter count is nearest to `target` (the smaller width of two).
/// At depth 1 there is no width.
void set_matching_width(MlpExpertOptions& network, int input_dim, int output_dim, std::size_t target);

// Fields that several kinds share. They all bind a shared field with the same range and meaning.
void bind_match(Fields& fields, std::optional<Match>& match);
void bind_width(Fields& fields, std::optional<int>& width);

}  // namespace moelab
