#pragma once

/// The axis of contamination: what is done to test inputs. Targets and labels stay those of the clean
/// samples, but for tokens that are swapped: where the task is to tell them, the target is the new one.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/options.h"
#include "sim/base/random.h"
#include "sim/data/layout.h"

namespace moelab {

/// What an attack may ask of the model that it attacks, for a block of n samples x (n, s·d) and their
/// targets.
template <class Real>
class AttackedLoss {
 public:
  virtual ~AttackedLoss() = default;
  /// ∂L/∂x of the block's task loss, (n, s·d).
  virtual void gradient(const std::vector<Real>& x, std::vector<Real>& gradient) = 0;
  /// sums[i] += factor · the task loss of sample i, averaged over its targets.
  virtual void add_losses(const std::vector<Real>& x, double factor, std::vector<double>& sums) = 0;
};

template <class Real>
using Attack = void(const AnyOptions&, AttackedLoss<Real>&, Engine& engine, int samples,
                    std::vector<Real>& x);

/// An entry of the table of contaminations: one that needs no model, or an attack on one.
struct ContaminationKind : KindEntry {
  /// Changes the rows (n, s·d); null for attacks and for `none`. Throws InvalidOption where the options do
  /// not fit the layout.
  void (*contaminate)(const AnyOptions&, const Layout&, const Seeds&, Matrix& x) = nullptr;
  /// Moves the samples `x` (n, s·d) of a block within the budget so as to raise the loss; `engine` draws what
  /// the attack draws, block after block. Null for others.
  PerPrecision<Attack> attack = {};
  /// Changes sequences of ids (n, s + 1), the inputs and the token after them; null for what moves numbers.
  void (*change_ids)(const AnyOptions&, const Layout&, const Seeds&, Matrix& ids) = nullptr;

  bool is_attack() const { return static_cast<bool>(attack); }
};

/// The table: adding a contamination or an attack is a new file and a line in contaminations.cpp.
struct ContaminationAxis {
  using Entry = ContaminationKind;
  static const std::vector<ContaminationKind>& table();
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "contamination";
};
using ContaminationOptions = OneOf<ContaminationAxis>;
void add_contamination_kind(ContaminationKind kind);

struct NoContaminationOptions {
  void bind(Fields& /*fields*/) {}
};

/// Contaminates rows (n, s·d) where that needs no model; nothing for `none`, attacks and what changes ids.
void contaminate(const ContaminationOptions& options, const Layout& layout, const Seeds& seeds, Matrix& x);
/// The same of samples; of ids x and y (n, s), y the token after each of x.
void contaminate(const ContaminationOptions& options, const Layout& layout, const Seeds& seeds, Matrix& x,
                 Matrix& y);

// The streams of Purpose::evaluation.

/// The numbers are part of the key: never renumber, only add. Rows and their replacements are drawn apart, so
/// that a larger share replaces the rows of a smaller one and more; attacks draw from one of their own.
enum EvaluationStream : std::uint64_t { kNoise = 0, kReplacedRows = 1, kReplacement = 2, kAttacks = 3 };

// Steps along the signs of a gradient within an l∞ budget: what the attacks fgsm, pgd and spsa share.

/// The fields of attacks that repeat a step.
inline void bind_steps(Fields& fields, double& budget, int& steps, std::optional<double>& step_size) {
  fields.required().add("budget", budget, at_least(0), "largest change of an input entry, ε");
  fields.add("steps", steps, between(1, 1e6), "steps");
  fields.add("step_size", step_size, positive(), "change of an entry in a step (default 2.5 ε / steps)");
}

/// The change of an entry in a step where none is given: 2.5 ε / steps, or ε in a single step.
inline double default_step_size(double budget, int steps) {
  return steps > 1 ? 2.5 * budget / steps : budget;
}

/// x ← clamp(x + step_size · sign(g(x)), clean − ε, clean + ε) `steps` times, clean the x that is given and
/// ε the budget; `gradient_at(x, g)` writes a gradient g of the length of x.
template <class Real, class Gradient>
void ascend(std::vector<Real>& x, double budget, int steps, double step_size, const Gradient& gradient_at) {
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

// Gaussian noise on test inputs.

/// x + N(0, diag(deviations²)).
struct NoiseOptions {
  std::vector<double> deviations = {};  ///< one, or one for each input column (d)

  void bind(Fields& fields);
};

// Rows (tokens) of test inputs that are lost.

/// A share of the rows (tokens) is replaced by one fixed row, drawn N(0, scale² I).
struct ReplacedOptions {
  double share = 0.025;  ///< probability of a row to be replaced
  double scale = 1;

  void bind(Fields& fields);
};

// Tokens of test sequences that are swapped for others.

/// Each of the s + 1 ids of a sequence is swapped, with probability `share`, for another of the vocabulary,
/// all others alike: as an input and where it is a target. A larger share swaps the tokens of a smaller one,
/// for the same, and more. (Word swaps of TextAttack, Morris et al. 2020, as in Nielsen et al. 2025 and
/// Nguyen et al. 2025, put one generic word in their place.)
struct SwappedOptions {
  double share = 0.025;

  void bind(Fields& fields);
};

// The fast gradient sign method (Goodfellow et al. 2015).

/// x + ε sign(∂L/∂x).
struct FgsmOptions {
  double budget = 0;  ///< largest change of an input entry, ε

  void bind(Fields& fields);
};

// Projected gradient steps (Madry et al. 2018).

/// Repeated steps along sign(∂L/∂x), kept within ε of x entry by entry.
struct PgdOptions {
  double budget = 0;  ///< largest change of an input entry, ε
  int steps = 10;
  std::optional<double> step_size = std::nullopt;  ///< none: 2.5 ε / steps, of a single step ε

  void bind(Fields& fields);
};

// Projected steps along gradients that are estimated from losses alone (Uesato et al. 2018).

/// pgd with Σ_v v (ℓ(x + δv) − ℓ(x − δv)) over random signs v in place of ∂L/∂x, sample by sample.
struct SpsaOptions {
  double budget = 0;  ///< largest change of an input entry, ε
  int steps = 10;
  std::optional<double> step_size = std::nullopt;  ///< none: 2.5 ε / steps, of a single step ε
  int directions = 32;                             ///< signs v of a step
  double difference = 0.01;                        ///< δ

  void bind(Fields& fields);
};

}  // namespace moelab
