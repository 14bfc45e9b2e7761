#include "app/cli/array_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "analysis/metrics/routing.h"
#include "sim/base/error.h"
#include "sim/base/numerics.h"
#include "sim/data/row_array.h"

namespace moelab {
namespace {

/// Rows of float32 softmaxes of some thousand experts sum to one within 1e-4. The rest is for probabilities
/// that were computed in half precision.
constexpr double kSumTolerance = 1e-3;

/// The most probabilities that stay in memory: half a gigabyte.
constexpr std::int64_t kMostKept = std::int64_t{1} << 26;

/// Entries of a block. Half a megabyte stays in the cache from one metric to the next. Means over rows are
/// sums of blocks' sums, so another size changes their last digits.
constexpr std::int64_t kBlockEntries = 1 << 16;

std::optional<NpyReader> open(const ArraySource& array, const std::string& option) {
  if (array.memory) return NpyReader(*array.memory, option);
  if (array.file.empty()) return std::nullopt;
  return NpyReader(array.file, option);
}

/// Options whose arrays are scores; their softmax is the routing.
constexpr const char *kLogits = "--logits", *kPreviousLogits = "--previous-logits";

/// The array of probabilities or the array of logits; both together are refused.
std::optional<NpyReader> open_either(const ArraySource& probs, const std::string& option,
                                     const ArraySource& logits, const std::string& logits_option) {
  if (probs.is_given() && logits.is_given())
    throw UserError(logits_option, fmt::format("given, but so is {}; needs one of the two", option));
  return probs.is_given() ? open(probs, option) : open(logits, logits_option);
}

NpyReader open_routing(const AnalyzedArrays& files) {
  std::optional<NpyReader> routing = open_either(files.probs, "--probs", files.logits, kLogits);
  if (!routing) throw UserError("--probs", "missing; needs routing probabilities, or --logits");
  return std::move(*routing);
}

/// Compares the arrays of rows with the routing. `rows` are the axes (n) or (n, s) of the rows.
void check_rows(const ArrayFiles& arrays, const std::vector<ArrayAxis>& rows, ArrayAxes& axes) {
  const auto add = [&](const std::optional<NpyReader>& array, std::initializer_list<ArrayAxis> further) {
    if (!array) return;
    std::vector<ArrayAxis> all = rows;
    all.insert(all.end(), further);
    axes.add(*array, all);
  };
  add(arrays.inputs, {ArrayAxis::width});
  add(arrays.embeddings, {ArrayAxis::width});
  add(arrays.expert_outputs, {ArrayAxis::experts, ArrayAxis::width});
  add(arrays.previous_probs, {ArrayAxis::experts});
  if (!arrays.labels) return;
  // Only rows that are not tokens may have several labels.
  const NpyReader& labels = *arrays.labels;
  if (rows.size() == 1 && labels.shape().size() == 2 && labels.rows() == axes.size(ArrayAxis::samples))
    add(arrays.labels, {ArrayAxis::labels});
  else
    add(arrays.labels, {});
}

void check_router(const ArrayFiles& arrays, const NpyReader& router, ArrayAxes& axes) {
  axes.add(router, {ArrayAxis::experts, ArrayAxis::width});
  if (arrays.inputs && arrays.inputs->shape().back() != router.row_size()) {
    router.refuse(fmt::format("has shape {}, needs ({}, {}) beside --inputs of shape {}",
                              shape_text(router.shape()), arrays.experts, arrays.inputs->shape().back(),
                              shape_text(arrays.inputs->shape())));
  }
}

/// Earlier assignments have one expert to a row, or K.
void check_assignments(const ArrayFiles& arrays) {
  if (!arrays.previous_assignments) return;
  if (arrays.previous_probs)
    throw UserError("--previous-assignments",
                    fmt::format("given, but so is {}; needs one of the two", arrays.previous_probs->place()));
  const NpyReader &previous = *arrays.previous_assignments, &probs = arrays.probs;
  const std::vector<std::int64_t> rows(probs.shape().begin(), probs.shape().end() - 1);
  std::vector<std::int64_t> sets = rows;
  sets.push_back(arrays.top_k);
  if (previous.shape() == sets || (previous.shape() == rows && arrays.top_k == 1)) return;
  previous.refuse(fmt::format("has shape {}, needs {} (--top-k {}) beside {} of shape {}",
                              shape_text(previous.shape()), shape_text(arrays.top_k > 1 ? sets : rows),
                              arrays.top_k, probs.place(), shape_text(probs.shape())));
}

}  // namespace

const NpyReader* ArrayFiles::space() const {
  if (embeddings) return &*embeddings;
  return inputs ? &*inputs : nullptr;
}

GivenArrays ArrayFiles::given() const {
  return {.experts = experts,
          .top_k = top_k,
          .neighbours = neighbours,
          .labels = labels.has_value(),
          .several_labels = labels && probs.shape().size() == 2 && labels->row_size() > 1,
          .inputs = inputs.has_value(),
          .space = space() != nullptr,
          .router = router.has_value(),
          .expert_outputs = expert_outputs.has_value(),
          .previous = previous_probs || previous_assignments,
          .previous_probabilities = previous_probs.has_value()};
}

ArrayFiles open_arrays(const AnalyzedArrays& files) {
  ArrayFiles arrays{
      open_routing(files),
      open(files.labels, "--labels"),
      open(files.inputs, "--inputs"),
      open(files.embeddings, "--embeddings"),
      open(files.expert_outputs, "--expert-outputs"),
      open_either(files.previous_probs, "--previous-probs", files.previous_logits, kPreviousLogits),
      open(files.previous_assignments, "--previous-assignments"),
      {}};
  const NpyReader& probs = arrays.probs;
  const std::int64_t limit = std::numeric_limits<int>::max();
  const std::size_t dimensions = probs.shape().size();
  if (dimensions != 2 && dimensions != 3)
    probs.refuse(
        fmt::format("has shape {}, needs (n, E), or (n, s, E) for sequences", shape_text(probs.shape())));
  if (probs.rows() * (probs.row_size() / probs.shape().back()) > limit || probs.row_size() > limit)
    probs.refuse(fmt::format("has shape {}, needs at most {} rows", shape_text(probs.shape()), limit));
  arrays.experts = static_cast<int>(probs.shape().back());
  arrays.tokens = static_cast<int>(probs.row_size() / arrays.experts);
  arrays.top_k = files.top_k;
  const std::int64_t other_rows = arrays.rows() - 1;
  if (files.top_k > arrays.experts)
    throw UserError("--top-k", fmt::format("got {}, needs at most {}, the experts of {}", files.top_k,
                                           arrays.experts, probs.place()));
  if (files.neighbours > other_rows)
    throw UserError("--neighbours", fmt::format("got {}, needs at most {}, the other rows of {}",
                                                files.neighbours, other_rows, probs.place()));
  if (files.neighbours > 0) arrays.neighbours = files.neighbours;

  ArrayAxes axes;
  std::vector<ArrayAxis> rows = row_axes(probs, ArrayAxis::experts);
  axes.add(probs, rows);
  rows.pop_back();
  check_rows(arrays, rows, axes);
  check_assignments(arrays);
  if (const std::optional<NpyReader> router = open(files.router, "--router")) {
    check_router(arrays, *router, axes);
    arrays.router = router->read_finite(0, router->rows());
  }
  return arrays;
}

namespace {

/// Refuses scores that are not finite. −∞ closes an expert to a row; one expert has to be open.
void check_scores(const ArrayFiles& arrays, const NpyReader& array, std::int64_t first,
                  const Matrix& scores) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  for (Eigen::Index i = 0; i < scores.rows(); ++i) {
    const std::int64_t sample = first + i / arrays.tokens, token = i % arrays.tokens;
    const auto place_of = [&](Eigen::Index e) { return array.place_of(sample, token * arrays.experts + e); };
    for (Eigen::Index e = 0; e < scores.cols(); ++e) {
      if (!std::isfinite(scores(i, e)) && scores(i, e) != kNone)
        array.refuse(fmt::format("holds {} in {}; needs finite numbers or -inf", scores(i, e), place_of(e)));
    }
    if (scores.row(i).maxCoeff() == kNone)
      array.refuse(fmt::format("holds nothing but -inf from {} to {}; needs a finite number in every row",
                               place_of(0), place_of(scores.cols() - 1)));
  }
}

std::vector<ClusterLabels> read_clusters(const ArrayFiles& arrays) {
  if (!arrays.labels) return {};
  const NpyReader& labels = *arrays.labels;
  Layout layout;
  layout.sequences = arrays.probs.shape().size() == 3;
  layout.labels = layout.sequences ? arrays.tokens : static_cast<int>(labels.row_size());
  return cluster_labels(layout, read_labels(labels, 0, labels.rows(), kLabelLimit));
}

}  // namespace

ArrayRows::ArrayRows(const ArrayFiles& files, const NpyReader& routing, std::int64_t step, LayerRows* before)
    : files_(files), routing_(routing), step_(step), before_(before) {
  if (&routing == &files.probs) clusters_ = read_clusters(files);
}

template <class Visit>
void ArrayRows::visit_samples(const NpyReader& array, const Visit& visit) const {
  const std::int64_t block = std::max<std::int64_t>(1, kBlockEntries / array.row_size());
  for (std::int64_t first = 0; first < array.rows(); first += block)
    visit(first, std::min(block, array.rows() - first));
}

Matrix ArrayRows::read_probabilities(std::int64_t first, std::int64_t count) const {
  const NpyReader& array = routing_;
  const std::int64_t tokens = files_.tokens, experts = files_.experts;
  if (array.place() == kLogits || array.place() == kPreviousLogits) {
    Matrix scores = array.read(first, count);
    scores.resize(count * tokens, experts);
    check_scores(files_, array, first, scores);
    return softmax(scores);
  }
  Matrix rows = RowArray::read(array, tokens, first, count).values();
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    const std::int64_t sample = first + i / tokens, token = i % tokens;
    Eigen::Index lowest = 0;
    if (rows.row(i).minCoeff() < 0) {
      const double value = rows.row(i).minCoeff(&lowest);
      array.refuse(fmt::format("holds {} in {}; probabilities are not negative", value,
                               array.place_of(sample, token * experts + lowest)));
    }
    const double sum = rows.row(i).sum();
    if (std::abs(sum - 1) > kSumTolerance) {
      const std::string place =
          tokens > 1 ? fmt::format("row [{}, {}]", sample, token) : fmt::format("row {}", sample);
      array.refuse(fmt::format("has {} with the sum {:.6g}; rows of probabilities sum to 1 (within {})",
                               place, sum, kSumTolerance));
    }
  }
  return rows;
}

void ArrayRows::visit(const std::function<void(const RowBlock&)>& visit) {
  if (has_assignments()) return;
  const bool keeps = files_.rows() * files_.experts <= kMostKept;
  if (keeps) probabilities_.resize(files_.rows(), files_.experts);
  visit_samples(routing_, [&](std::int64_t first, std::int64_t count) {
    const Eigen::Index row = first * files_.tokens, rows = count * files_.tokens;
    const bool is_last = first + count == routing_.rows();
    const Matrix read = is_kept_ ? Matrix() : read_probabilities(first, count);
    if (keeps && !is_kept_) probabilities_.middleRows(row, rows) = read;
    visit({row, {keeps ? &probabilities_(row, 0) : read.data(), rows, files_.experts}, is_last});
  });
  is_kept_ = keeps;
}

std::vector<int> ArrayRows::likeliest(int k) {
  if (set_size_ != k) {
    sets_ = has_assignments() ? read_labels(routing_, 0, routing_.rows(), files_.experts)
                              : LayerRows::likeliest(k);
    set_size_ = k;
  }
  return sets_;
}

std::span<const int> ArrayRows::serving() {
  // Sets are in any order: they do not tell the argmax expert.
  if (serving_.empty() && !(has_assignments() && files_.top_k > 1)) {
    serving_ = has_assignments() ? likeliest(1) : LayerRows::likeliest(1);
  }
  return serving_;
}

std::span<const unsigned char> ArrayRows::selected() {
  if (selected_.empty()) {
    const std::vector<int> sets = likeliest(files_.top_k);
    selected_.assign(entries(files_.rows(), files_.experts), 0);
    for (std::size_t at = 0; at < sets.size(); ++at)
      selected_[at / size(files_.top_k) * size(files_.experts) + size(sets[at])] = 1;
  }
  return selected_;
}

std::vector<std::int64_t> ArrayRows::loads() {
  return files_.top_k > 1 ? expert_loads(likeliest(files_.top_k), files_.experts)
                          : expert_loads(serving(), files_.experts);
}

void ArrayRows::visit_points(Space /*space*/, const PointBlock& visit) {
  const NpyReader& array = *files_.space();
  visit_samples(array, [&](std::int64_t first, std::int64_t count) {
    visit(first * files_.tokens, RowArray::read(array, files_.tokens, first, count).values());
  });
}

std::vector<std::int64_t> ArrayRows::compared_rows(std::int64_t most) {
  std::set<std::int64_t> compared;
  if (files_.rows() <= kMaxAllRows) {
    for (std::int64_t row = 0; row < files_.rows(); ++row) compared.insert(compared.end(), row);
  } else {
    Engine engine = kAnalysisSeeds.stream(Purpose::evaluation);
    while (std::ssize(compared) < most) compared.insert(draw_index(engine, static_cast<int>(files_.rows())));
  }
  return {compared.begin(), compared.end()};
}

Eigen::Ref<const Matrix> ArrayRows::shuffled(const RowBlock& block, int s) {
  if (inputs_first_ != block.first) {
    inputs_ = RowArray::read(*files_.inputs, files_.tokens, block.first / files_.tokens,
                             block.probabilities.rows() / files_.tokens)
                  .values();
    inputs_first_ = block.first;
    if (!router_) router_.emplace(*files_.router, kAnalysisSeeds);
    const ShuffledRouter::Probabilities routed = router_->route(inputs_);
    if (!routed.allFinite()) throw UserError("--router", "too large: its scores of --inputs are not finite");
    router_difference_ = std::max(router_difference_, (routed - block.probabilities).cwiseAbs().maxCoeff());
  }
  shuffles_ = std::max(shuffles_, s + 1);
  return router_->route_shuffled(s, inputs_);
}

void ArrayRows::visit_expert_outputs(const PointBlock& visit) {
  visit_samples(files_.probs, [&](std::int64_t first, std::int64_t count) {
    visit(first * files_.tokens,
          RowArray::read(*files_.expert_outputs, files_.tokens, first, count).values());
  });
}

}  // namespace moelab
