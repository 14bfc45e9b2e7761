#pragma once

/// The axis of contamination: changes of test inputs. Targets and labels stay the clean ones, except that a
/// swapped token that is itself a target becomes the target.

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/options.h"
#include "sim/base/random.h"
#include "sim/data/layout.h"

namespace moelab {

/// What an attack may ask of the model, for a block of n samples x (n, s·d) and their targets.
template <class Real>
class AttackedLoss {
 public:
  virtual ~AttackedLoss() = default;
  /// ∂L/∂x of the block's task loss, (n, s·d).
  virtual void gradient(const std::vector<Real>& x, std::vector<Real>& gradient) = 0;
  /// sums[i] += factor · (task loss of sample i, averaged over its targets).
  virtual void add_losses(const std::vector<Real>& x, double factor, std::vector<double>& sums) = 0;
};

template <class Real>
using Attack = void(const AnyOptions&, AttackedLoss<Real>&, Engine& engine, int samples,
                    std::vector<Real>& x);

/// An entry of the table of contaminations: an attack on a model, or a change that needs no model.
struct ContaminationKind : KindEntry {
  /// Changes the rows (n, s·d). Null for attacks and for `none`. Throws InvalidOption if the options do not
  /// fit the layout.
  void (*contaminate)(const AnyOptions&, const Layout&, const Seeds&, Matrix& x) = nullptr;
  /// Moves the samples `x` (n, s·d) of a block within the budget to raise the loss. `engine` serves one block
  /// after another. Null for other kinds.
  PerPrecision<Attack> attack = {};
  /// Changes sequences of ids (n, s + 1): the inputs and the token after them. Null for kinds that change
  /// numbers.
  void (*change_ids)(const AnyOptions&, const Layout&, const Seeds&, Matrix& ids) = nullptr;

  bool is_attack() const { return static_cast<bool>(attack); }
};

/// The table. To add a contamination or an attack, add a function and a line in contamination.cpp.
struct ContaminationAxis {
  using Entry = ContaminationKind;
  static const std::vector<ContaminationKind>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "contamination";
};
using ContaminationOptions = OneOf<ContaminationAxis>;

struct NoContaminationOptions {
  void bind(Fields& /*fields*/) {}
};

/// Contaminates rows (n, s·d). Does nothing for `none`, attacks and kinds that change ids.
void contaminate(const ContaminationOptions& options, const Layout& layout, const Seeds& seeds, Matrix& x);
/// The same for samples. Ids are x and y (n, s), where y is the token after each of x.
void contaminate(const ContaminationOptions& options, const Layout& layout, const Seeds& seeds, Matrix& x,
                 Matrix& y);

/// The streams of Purpose::evaluation. The numbers are part of the key: never renumber them, only add. Rows
/// and their replacements have different streams, so that a larger share also replaces the rows of a smaller
/// one.
enum EvaluationStream : std::uint64_t { kNoise = 0, kReplacedRows = 1, kReplacement = 2, kAttacks = 3 };

/// Gaussian noise: x + N(0, diag(deviations²)).
struct NoiseOptions {
  std::vector<double> deviations = {};  ///< one, or one for each input column (d)

  void bind(Fields& fields);
};

/// Lost rows: one fixed row, drawn N(0, scale² I), replaces a share of the rows (tokens).
struct ReplacedOptions {
  double share = 0.025;  ///< probability of a row to be replaced
  double scale = 1;

  void bind(Fields& fields);
};

/// Swapped tokens: each of the s + 1 ids of a sequence is replaced with probability `share` by another id of
/// the vocabulary, all equally likely, as an input and as a target. A larger share makes the swaps of a
/// smaller one and more. (Word swaps of TextAttack, Morris et al. 2020, as in Nielsen et al. 2025 and Nguyen
/// et al. 2025, insert one generic word.)
struct SwappedOptions {
  double share = 0.025;

  void bind(Fields& fields);
};

/// The fast gradient sign method (Goodfellow et al. 2015): x + ε sign(∂L/∂x).
struct FgsmOptions {
  double budget = 0;  ///< largest change of an input entry, ε

  void bind(Fields& fields);
};

/// Projected gradient steps (Madry et al. 2018): repeated steps along sign(∂L/∂x), kept within ε of x entry
/// by entry.
struct PgdOptions {
  double budget = 0;  ///< largest change of an input entry, ε
  int steps = 10;
  std::optional<double> step_size = std::nullopt;  ///< default 2.5 ε / steps, or ε for a single step

  void bind(Fields& fields);
};

/// Projected steps along gradients estimated from losses (Uesato et al. 2018): pgd with
/// Σ_v v (ℓ(x + δv) − ℓ(x − δv)) over random signs v instead of ∂L/∂x, sample by sample.
struct SpsaOptions {
  double budget = 0;  ///< largest change of an input entry, ε
  int steps = 10;
  std::optional<double> step_size = std::nullopt;  ///< default 2.5 ε / steps, or ε for a single step
  int directions = 32;                             ///< signs v of a step
  double difference = 0.01;                        ///< δ

  void bind(Fields& fields);
};

}  // namespace moelab
