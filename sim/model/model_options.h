#pragma once

/// `model` of a scenario.

#include <optional>
#include <string>
#include <vector>

#include "sim/base/options.h"
#include "sim/data/layout.h"
#include "sim/model/blocks/attention.h"
#include "sim/model/blocks/residual.h"
#include "sim/model/expert/expert.h"
#include "sim/model/gating/gating.h"
#include "sim/model/router/router.h"

namespace moelab {

// What `model` of a scenario says of transformers beside the fields of every model.

/// With h_0 = E[id] (+ P[place]), for each of L layers h ← h + attention(norm(h)), h ← h + f(norm(h)) with f
/// a mixture or a network of depth 2, then f(x) = A norm(h_L) + b (tied: norm(h_L) E^T / √d), the scores of
/// the next token (Vaswani et al. 2017, with the norms of Xiong et al. 2020 before each part). Where it is
/// not causal, attention looks at the whole sequence, E has a row more, for the mask, and f are scores of the
/// masked token. In training steps dropout p makes of each part h ← h + D ∘ part(norm(h)), the entries of D
/// independently 0 with probability p and else 1 / (1 − p), drawn anew in each step; measuring has none.
struct TransformerOptions {
  enum class Positions { learned, rotary };
  std::optional<int> heads = {};
  std::optional<int> feed_forward = {};  ///< unset: 4 width
  std::optional<std::vector<std::string>> moe_layers = {};
  std::optional<Positions> positions = {};
  std::optional<Normalization> norm = {};
  std::optional<bool> tied_embedding = {};
  std::optional<bool> causal = {};     ///< unset: true
  std::optional<double> dropout = {};  ///< p; unset: 0

  bool is_causal() const { return causal.value_or(true); }

  void bind(Fields& fields);
};

/// The layers, of `layers`, with a mixture, ascending. Throws InvalidOption at "model.moe_layers".
std::vector<int> moe_layers(const TransformerOptions& options, int layers);

/// What cannot be, for `width` and `layers` of the model. Throws InvalidOption at "model.…".
void check(const TransformerOptions& options, std::optional<int> width, int layers);

/// Throws InvalidOption at "model.…" where a field is given that only transformers have.
void check_no_transformer(const TransformerOptions& options);

/// How scores become gates.
struct GatingOptions {
  GatingRule train = SoftGatingOptions{};
  GatingRule eval = Top1GatingOptions{};
  std::optional<double> balance_rate;  ///< of loss-free balancing
  double jitter = 0;  ///< training steps multiply what routers read by U[1 − jitter, 1 + jitter]
  void bind(Fields& fields);
};

struct ModelOptions {
  enum class Kind { moe, dense, transformer };
  enum class Match { expert, moe, active, total };
  enum class Reads { tokens, sequence };
  Kind kind = Kind::moe;
  std::optional<Match> match;  ///< of dense models: the parameter count to match
  std::optional<int> width;    ///< of dense models: hidden units, in place of `match`; of transformers: d
  std::optional<int> depth;    ///< of dense models: weight matrices
  Reads reads = Reads::tokens;
  int layers = 1;
  std::optional<int> input_width;  ///< of mixtures: what a linear layer before them maps rows to
  std::optional<AttentionOptions> attention;
  int experts = 0;
  int shared_experts = 0;  ///< that serve every row without a gate
  int null_experts = 0;    ///< that routers score as well, and no network is behind
  RouterOptions router;
  ExpertOptions expert;
  GatingOptions gating;
  TransformerOptions transformer;
  /// Samples that gatings route together in measuring, where they do: those of a mini-batch; 0 for as many as
  /// are measured at a time. Filled in from how the model is trained.
  int group_samples = 0;

  void bind(Fields& fields);
};

/// Experts that the router scores: networks and null ones.
inline int routed_experts(const ModelOptions& options) {
  return options.experts + options.null_experts;
}

/// Whether the model's router reads the true cluster of every row.
bool needs_labels(const ModelOptions& options);
/// Throws InvalidOption where it does and the data have none.
void check_labels(const ModelOptions& options, bool has_labels);

/// What a model of these options cannot be, whatever the data. Throws InvalidOption at "model.…".
void check(const ModelOptions& options);
/// Ids of tokens go with transformers alone. Throws InvalidOption at "model.kind".
void check_ids(const ModelOptions& options, bool are_ids);
/// What goes with an image that leads every row, and what needs one. Throws InvalidOption at "model.…".
void check_image(const ModelOptions& options, bool has_image);
/// All of these for data of that layout: a router without its image, a stack on images.
void check(const ModelOptions& options, const Layout& layout);

/// Whether router, experts and gating say anything of the model: it has mixtures, or matches one that has.
bool reads_mixture(const ModelOptions& options);
/// Mixtures of the model; 0 for dense ones.
int mixtures_of(const ModelOptions& options);
/// Width of the rows that routers read, for data of that layout.
int router_dim(const ModelOptions& options, const Layout& layout);
/// How the model reads a sample: the data's layout, or that of one long row for a dense model that reads
/// whole sequences. A sample has the same entries either way.
Layout layout_read_by(const ModelOptions& options, const Layout& layout);

/// How the blocks of a mixture read rows: as the model does, or as wide as its projection makes them.
Layout layout_of_blocks(const ModelOptions& options, const Layout& layout);

/// Where the gatings of a model stand.
GatingSetting gating_setting(const ModelOptions& options, const Layout& layout);

/// The network of a dense model: `depth` and `width`, or one more layer than an expert has (or `depth`) and
/// the nearest width to the parameter count that `match` names.
ExpertOptions dense_network(const ModelOptions& options, const Layout& layout);

/// Gives a network of its depth the width at which its parameters are nearest to `target` (the smaller of
/// two). At depth 1 there is no width.
void set_matching_width(MlpExpertOptions& network, int input_dim, int output_dim, std::size_t target);

}  // namespace moelab
