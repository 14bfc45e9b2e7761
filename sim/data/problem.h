#pragma once

/// The axis of data. A generator draws a Problem (means, subspaces, teachers), and a Problem draws Datasets.

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
struct SingleIndexDirections;
struct TaskPool;

/// The directions of patch data: signals v_k (d, K) and, where there are any, centres c_k (d, K).
struct PatchDirections {
  Matrix signals, centres;
};

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

/// One drawn world: fixed parameters that generate any number of samples.
class Problem {
 public:
  virtual ~Problem() = default;
  virtual Layout layout() const = 0;
  virtual int clusters() const = 0;  ///< k
  /// Draws the samples of the range. `engine` has drawn the samples before the range. So sets drawn in pieces
  /// equal sets drawn at once, and the first m of n samples do not depend on n.
  virtual Dataset draw(Engine& engine, const SampleRange& range) const = 0;
  /// The number of independent uniform variables from which map_uniforms() computes one sample, or 0 without
  /// a map.
  virtual int uniforms_per_sample() const { return 0; }
  /// Samples of the same law as functions of uniforms in (0, 1), (n, uniforms_per_sample()). This turns a
  /// quasi-random rule for the unit cube into a rule for the population.
  virtual Dataset map_uniforms(const Matrix& /*uniforms*/) const { return {}; }
  /// An orthonormal basis (d, s) of the subspace on which the target depends. Empty if unknown.
  virtual Matrix signal_basis() const { return {}; }
  /// E[y | x], the predictor of least squared error, (n, o). None without a closed form.
  virtual std::optional<Matrix> bayes_prediction(const Matrix& /*x*/) const { return std::nullopt; }
  /// Whether the law of the next token is known.
  virtual bool knows_language() const { return false; }
  /// Losses of next-token predictors that know the law, on samples of ids. None unless knows_language().
  virtual std::optional<LanguageLosses> language_losses(const Dataset& /*data*/) const {
    return std::nullopt;
  }
  /// Bytes of text behind the ids, where ids below 0 have none. None if ids are not text.
  virtual std::optional<double> bytes_of(const Matrix& /*ids*/) const { return std::nullopt; }
  /// The mixing measure whose regression function is E[y | x]. Null if there is none.
  virtual const MixingMeasure* true_measure() const { return nullptr; }
  /// The linear tasks that are the clusters. Null if there are none.
  virtual const TaskPool* task_pool() const { return nullptr; }
  /// The directions of clusters of single-index models. Null if there are none.
  virtual const SingleIndexDirections* single_index() const { return nullptr; }
  /// Null unless samples are patches.
  virtual const PatchDirections* patch_directions() const { return nullptr; }
};

class DataOptions;

/// An entry of the table of generators.
struct GeneratorKind : KindEntry {
  std::unique_ptr<Problem> (*draw)(const DataOptions& data, const Seeds& seeds) = nullptr;
  /// Checks rules between fields before anything is drawn: a rank below the width, complete files with enough
  /// samples. Throws InvalidOption at "data.<field>". Null for no rules.
  void (*check)(const DataOptions& data) = nullptr;
  bool has_image = false;  ///< rows begin with an image (Layout::image)
  /// Whether each row has one true cluster.
  bool (*has_labels)(const AnyOptions& options) = [](const AnyOptions& /*options*/) { return true; };
  bool token_ids = false;  ///< inputs and targets are ids of tokens (Layout::vocabulary)
  /// s of the sequences. Null if a sample is one row.
  int (*tokens)(const AnyOptions& options) = nullptr;
  /// The fields that can name files (or folders) of samples, as dotted paths below "data".
  std::vector<std::string> file_fields = {};
  /// The fields of these options that name files, with their values. Null for none.
  std::vector<std::pair<std::string, std::string>> (*files)(const AnyOptions& options) = nullptr;
  /// The kinds of target with class targets, and the kind that the options have. Empty for none.
  std::vector<std::string> class_targets = {};
  std::string (*target_kind)(const AnyOptions& options) = nullptr;
  /// Count of the numbers that a drawn problem keeps (means, subspaces, teachers), for the plan's memory.
  /// Null if there are few.
  double (*kept_numbers)(const AnyOptions& options, const Layout& layout) = nullptr;
};

/// The table. To add a generator, add a file and a line in problem.cpp.
struct GeneratorAxis {
  using Entry = GeneratorKind;
  static const std::vector<GeneratorKind>& table();
  static constexpr const char* kTag = "generator";
  static constexpr const char* kNoun = "generator";
};

/// `data` of a scenario: a generator with its options, and the fields of every generator.
class DataOptions final : public OneOf<GeneratorAxis> {
 public:
  using OneOf<GeneratorAxis>::OneOf;
  std::optional<int> train_samples;  ///< of sample gradients
  int test_samples = 10000;
  /// Training sets of different sizes are independent. Otherwise a smaller set is the beginning of a larger
  /// one.
  bool independent = false;
  ContaminationOptions contamination = NoContaminationOptions{};
  /// The content that files must keep from their first use on. Null if files may change.
  std::shared_ptr<FileContents> contents = nullptr;

  /// The generator's fields, then those above.
  void bind(Fields& fields) override;
};

/// The `draw` of a generator that makes its problem from its options and seeds.
template <class OwnProblem, class Options>
std::unique_ptr<Problem> draw_as(const DataOptions& data, const Seeds& seeds) {
  return std::make_unique<OwnProblem>(data.options().get<Options>(), seeds);
}

/// Throws InvalidOption at "data.<field>".
void check(const DataOptions& options);

/// The fields that name files, with their values. None if all samples are drawn.
std::vector<std::pair<std::string, std::string>> files_of(const DataOptions& options);

/// Draws the problem. Throws InvalidOption when it cannot be drawn (a c-separation that is not reached).
std::unique_ptr<Problem> draw_problem(const DataOptions& options, const Seeds& seeds);

/// The first `count` samples of a set. Sets with different `stream` are independent.
Dataset draw_set(const Problem& problem, const Seeds& seeds, Purpose purpose, int count,
                 std::uint64_t stream = 0);

/// The stream of the training set: one for all sizes, or one for each size with `independent`.
std::uint64_t train_stream(const DataOptions& options);

// Choices inside a generator's options: its targets, its covariance, its law of inputs

/// Options without fields.
struct NoFields {
  void bind(Fields& /*fields*/) {}
};

/// The base of axes whose entries have only options. They add table() and kNoun.
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

/// The base of the axes of targets. They add table().
struct TargetAxis {
  using Entry = TargetKind;
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "target";
};

/// All sets of `members` of 0 … count − 1 in lexicographic order, or none if there are more than `most`.
std::vector<std::vector<int>> subsets_of(int count, int members, std::size_t most);

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

// Masked tokens, which a model predicts from the tokens around them

/// The target of a token that is not predicted.
constexpr int kNoTarget = -1;

/// Masks m = max(1, round(share · s)) random places of every sequence of s tokens. There x becomes `mask` and
/// y the id that was there. Elsewhere x stays and y is kNoTarget. This is the masked language model of Devlin
/// et al. 2019 (share 0.15), except that they keep or swap a fifth of the chosen places instead of masking
/// them.
struct TokenMasks {
  double share = 0;  ///< 0 for no masks
  int mask = 0;      ///< the id after the last one of the vocabulary

  explicit operator bool() const { return share > 0; }
};

/// Masks x and sets y, (n, s), with new masks from `engine`.
template <class Real>
void mask_tokens(const TokenMasks& masks, Engine& engine, int samples, int tokens, Real* x, Real* y);

/// The same for a set that is measured, with the same masks each time. train_data and test_data have
/// different masks. Seeds that share the set's stream share its masks.
void mask_tokens(const TokenMasks& masks, const Seeds& seeds, Purpose set, int tokens, Dataset& data);

}  // namespace moelab
