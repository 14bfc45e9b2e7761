#pragma once

/// The axis of data: a generator draws a Problem (means, subspaces, teachers); a Problem draws Datasets.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/base/options.h"
#include "sim/base/random.h"
#include "sim/data/contamination.h"
#include "sim/data/file_contents.h"
#include "sim/data/layout.h"
#include "sim/data/synthetic_language.h"

namespace moelab {

struct MixingMeasure;

struct Dataset {
  Matrix x;                  ///< (n, d) inputs, or (n, s·d): the tokens of a sequence one after another
  Matrix y;                  ///< (n, o) targets, or (n, s·o)
  std::vector<int> cluster;  ///< (n · labels) latent components of each sample
};

/// Samples first … first + count − 1 of the set that `purpose` names (train_data, test_data, population).
struct SampleRange {
  Purpose purpose = Purpose::train_data;
  std::int64_t first = 0;
  int count = 0;
};

/// One drawn world: fixed parameters from which any number of samples come.
class Problem {
 public:
  virtual ~Problem() = default;
  virtual Layout layout() const = 0;
  virtual int clusters() const = 0;  ///< k
  /// The samples of the range, from an engine that has drawn those before it: sets drawn in pieces equal sets
  /// drawn at once, and the first m of n samples do not depend on n.
  virtual Dataset draw(Engine& engine, const SampleRange& range) const = 0;
  /// Independent uniform variables from which one sample can be computed; 0 where the generator offers no
  /// such map.
  virtual int uniforms_per_sample() const { return 0; }
  /// Samples of the same law as functions of uniforms in (0, 1), (n, uniforms_per_sample()): what turns a
  /// quasi-random rule for the unit cube into one for the population.
  virtual Dataset map_uniforms(const Matrix& /*uniforms*/) const { return {}; }
  /// An orthonormal basis (d, s) of the subspace on which the target depends; empty when unknown.
  virtual Matrix signal_basis() const { return {}; }
  /// E[y | x], the predictor of least squared error, (n, o); none where it has no closed form.
  virtual std::optional<Matrix> bayes_prediction(const Matrix& /*x*/) const { return std::nullopt; }
  /// Losses of predictors of the next token that know the law, on samples of ids; none where it is not known.
  virtual std::optional<LanguageLosses> language_losses(const Dataset& /*data*/) const {
    return std::nullopt;
  }
  /// Bytes of text that ids stand for, those below 0 for none; none where they stand for no text.
  virtual std::optional<double> bytes_of(const Matrix& /*ids*/) const { return std::nullopt; }
  /// The mixing measure of which E[y | x] is the regression function; null where there is none.
  virtual const MixingMeasure* true_measure() const { return nullptr; }
};

class DataOptions;

/// An entry of the table of generators.
struct GeneratorKind : KindEntry {
  std::unique_ptr<Problem> (*draw)(const DataOptions& data, const Seeds& seeds) = nullptr;
  /// What data have to satisfy beyond their fields one by one (a rank below the width, files that are whole
  /// and have as many samples), before anything is drawn. Throws InvalidOption at "data.<field>". Null for
  /// nothing.
  void (*check)(const DataOptions& data) = nullptr;
  bool has_image = false;  ///< rows lead with an image (Layout::image)
  /// Whether each row has one true cluster.
  bool (*has_labels)(const AnyOptions& options) = [](const AnyOptions& /*options*/) { return true; };
  bool token_ids = false;  ///< inputs and targets are ids of tokens (Layout::vocabulary)
  /// s of the sequences; null where a sample is one row.
  int (*tokens)(const AnyOptions& options) = nullptr;
  /// The fields that name files (or folders) from which samples are read, with their values; null for none.
  std::vector<std::pair<std::string, std::string>> (*files)(const AnyOptions& options) = nullptr;
  /// Kinds of target whose targets are classes; and the kind that the options have. Empty for none.
  std::vector<std::string> class_targets = {};
  std::string (*target_kind)(const AnyOptions& options) = nullptr;
  /// Numbers that a drawn problem keeps (means, subspaces, teachers), for the plan's memory; null where they
  /// are few.
  double (*kept_numbers)(const AnyOptions& options, const Layout& layout) = nullptr;
  /// k of the options, for the plan's memory of what is kept for each; null: there may be as many as rows.
  int (*clusters)(const AnyOptions& options) = nullptr;
};

/// The table: adding a generator is a new file and a line in generators.cpp.
struct GeneratorAxis {
  using Entry = GeneratorKind;
  static const std::vector<GeneratorKind>& table();
  static constexpr const char* kTag = "generator";
  static constexpr const char* kNoun = "generator";
};
void add_generator_kind(GeneratorKind kind);

/// `data` of a scenario: a generator with its options, and what every generator has.
class DataOptions final : public OneOf<GeneratorAxis> {
 public:
  using OneOf<GeneratorAxis>::OneOf;
  std::optional<int> train_samples;  ///< of sample gradients
  int test_samples = 10000;
  /// Training sets of different sizes are independent; otherwise a smaller one is the beginning of a larger.
  bool independent = false;
  ContaminationOptions contamination = NoContaminationOptions{};
  /// What files have to hold, those not asked for yet what they hold then; null: files may change.
  std::shared_ptr<FileContents> contents = nullptr;

  /// The generator's fields, then those above.
  void bind(Fields& fields) override;
};

/// The `draw` of a generator whose problem is made of its options and seeds.
template <class OwnProblem, class Options>
std::unique_ptr<Problem> draw_as(const DataOptions& data, const Seeds& seeds) {
  return std::make_unique<OwnProblem>(data.options().get<Options>(), seeds);
}

/// Throws InvalidOption at "data.<field>".
void check(const DataOptions& options);

/// The fields that name files, with their values; none where all samples are drawn.
std::vector<std::pair<std::string, std::string>> files_of(const DataOptions& options);

/// Draws the problem. Throws InvalidOption when it cannot be drawn (a c-separation that is not reached).
std::unique_ptr<Problem> draw_problem(const DataOptions& options, const Seeds& seeds);

/// The first `count` samples of a set. Sets of another `stream` are independent.
Dataset draw_set(const Problem& problem, const Seeds& seeds, Purpose purpose, int count,
                 std::uint64_t stream = 0);

/// The stream of the training set: one for all sizes, or with `independent` one for each.
std::uint64_t train_stream(const DataOptions& options);

// Choices inside a generator's options: its targets, its covariance, its law of inputs.

/// Axes whose entries have no more than their options derive from this; they add table() and kNoun.
struct PlainAxis {
  using Entry = KindEntry;
  static constexpr const char* kTag = "kind";
};

template <class Options>
KindEntry plain_kind(std::string name, std::string help) {
  return {std::move(name), std::move(help), Options{}, Options{}};
}

/// An entry of a generator's table of targets.
struct TargetKind : KindEntry {
  std::function<int(const AnyOptions&)> outputs;  ///< o
};

/// What the axes of targets derive from; they add table().
struct TargetAxis {
  using Entry = TargetKind;
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "target";
};

/// A target whose member `outputs` is o.
template <class Options>
TargetKind target_kind(std::string name, std::string help, int Options::*outputs) {
  return {plain_kind<Options>(std::move(name), std::move(help)),
          [outputs](const AnyOptions& options) { return options.get<Options>().*outputs; }};
}

/// o of the chosen target.
template <class Axis>
int outputs_of(const OneOf<Axis>& target) {
  return target.entry().outputs(target.options());
}

/// The field of a target with o outputs.
inline void bind_outputs(Fields& fields, int& dim) {
  fields.add("dim", dim, between(1, 1e4), "outputs o");
}

// Tokens that are hidden and to be told from those around them.

/// The target of a token that is not asked for.
constexpr int kNoTarget = -1;

/// Of every sequence of s tokens m = max(1, round(share · s)) places, all sets of m alike. There x is `mask`
/// and y the id that stood there; elsewhere x stays and y is kNoTarget (the masked language model of Devlin
/// et al. 2019, whose share is .15; there a fifth of the chosen places are not masked but kept or swapped,
/// here none).
struct TokenMasks {
  double share = 0;  ///< 0 for no masks
  int mask = 0;      ///< the id after the last of the vocabulary

  explicit operator bool() const { return share > 0; }
};

/// x, y (n, s) ← those of the masks, anew from `engine`.
template <class Real>
void mask_tokens(const TokenMasks& masks, Engine& engine, int samples, int tokens, Real* x, Real* y);

/// The same for a set that is measured: the same masks each time, of `set` (train_data or test_data) its own.
/// Seeds that share the set's stream share its masks.
void mask_tokens(const TokenMasks& masks, const Seeds& seeds, Purpose set, int tokens, Dataset& data);

}  // namespace moelab
