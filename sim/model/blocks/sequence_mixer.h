#pragma once

/// The axis of sequence mixers. A mixer is the part of a transformer's layer that moves information between
/// tokens.

#include "sim/base/options.h"
#include "sim/model/blocks/block.h"

namespace moelab {

/// The setting of a mixer. A mixer maps rows (n·s, d), s of each sequence, to rows (n·s, d).
struct MixerSetting {
  int dim = 0;    ///< d
  int heads = 1;  ///< H, a divisor of d; only if MixerKind::has_heads
  int tokens = 1;
  bool rotary = false;    ///< needs an even d / H
  bool causal = true;     ///< row t must not depend on later rows of its sequence
  bool recorded = false;  ///< leaves LayerSignals::attention, for routers that read it
};

template <class Real>
using MakeMixer = std::unique_ptr<Block<Real>>(const AnyOptions&, const MixerSetting&);

/// An entry of the table of sequence mixers.
struct MixerKind : KindEntry {
  PerPrecision<MakeMixer> make = {};
  bool has_heads = false;         ///< needs model.heads, and can have rotary positions
  bool leaves_attention = false;  ///< can leave LayerSignals::attention
  /// The start of the names of its saved arrays ("block0_<prefix>_…"). Empty: the kind's name.
  std::string prefix = {};
};

/// The table of mixers. A new mixer is one file and one line in model_options.cpp.
struct MixerAxis {
  using Entry = MixerKind;
  static const std::vector<MixerKind>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "mixer";
};
using MixerOptions = OneOf<MixerAxis>;

/// The entry of a block class `Made<Real>` whose constructor takes (Options, MixerSetting).
template <class Options, template <class> class Made>
MixerKind mixer_kind(std::string name, std::string help, Options example = {}) {
  return {{std::move(name), std::move(help), Options{}, std::move(example)},
          {make_from<Block<float>, Options, Made<float>, const MixerSetting&>,
           make_from<Block<double>, Options, Made<double>, const MixerSetting&>}};
}

template <class Real>
std::unique_ptr<Block<Real>> make_mixer(const MixerOptions& options, const MixerSetting& setting) {
  return options.entry().make.of<Real>()(options.options(), setting);
}

/// Multi-head self-attention. Its heads and positions are fields of the transformer.
struct SelfAttentionOptions {
  void bind(Fields& /*fields*/) {}
};

/// Multi-head self-attention (Vaswani et al. 2017) without biases: Y = [A_1 X W_V,1 | … | A_H X W_V,H] W_O,
/// A_h = row-softmax(Q_h K_h^T / √k + M), k = d / H, for each sequence X (s, d).
///
/// Q_h = X W_Q,h and K_h = X W_K,h. M = −∞ above the diagonal if attention is causal, else M = 0. `rotary`
/// rotates the pairs (j, j + k/2) of row t of Q_h and K_h by the angle t 10000^(−2j/k) (Su et al. 2021).
/// Entries of all matrices start N(0, 1 / d).
///
/// The forward pass computes A for a block of queries at a time, and the backward pass computes it again. The
/// whole A is kept only if it is recorded. `model.attention` (attention.h) is a different block: it merges
/// W_V and W_O and averages heads.
///
/// Parameters: [W_Q | W_K | W_V], (d, 3 H padded(k)), and W_O, (H padded(k), padded(d)), with zero padding.
/// Arrays "query", "key", "value" (d, d): q = query x, with the heads one after another in a row of the
/// result. Array "output" (d, d): y = output (the heads' results).
template <class Real>
std::unique_ptr<Block<Real>> make_self_attention(const MixerSetting& setting);

}  // namespace moelab
