#pragma once

/// The axis of contamination: what is done to test inputs. Targets and labels stay those of the clean
/// samples, but for tokens that are swapped: where the task is to tell them, the target is the new one.

#include <vector>

#include "sim/base/per_precision.h"
#include "sim/base/random.h"
#include "sim/base/types.h"
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

}  // namespace moelab
