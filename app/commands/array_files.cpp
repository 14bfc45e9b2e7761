#include "app/commands/array_files.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/softmax.h"

namespace moelab {
namespace {

/// Rows of float32 softmaxes of some thousand experts sum to one within 1e-4; the rest is for probabilities
/// that were computed in half precision.
constexpr double kSumTolerance = 1e-3;

using ArrayShape = std::vector<std::int64_t>;

[[noreturn]] void refuse_shape(const NpyReader& array, const std::string& needed, const NpyReader& probs) {
  array.refuse(fmt::format("has shape {}, needs {} beside {} of shape {}", shape_text(array.shape()), needed,
                           probs.place(), shape_text(probs.shape())));
}

/// `rows` followed by one dimension that may be of any length, by its name.
std::string needed_text(ArrayShape rows, const std::string& last) {
  return fmt::format("({}, {})", fmt::join(rows, ", "), last);
}

std::optional<NpyReader> open(const ArraySource& array, const std::string& option) {
  if (array.memory) return NpyReader(*array.memory, option);
  if (array.file.empty()) return std::nullopt;
  return NpyReader(array.file, option);
}

/// Options whose arrays are scores, of which probabilities() takes the softmax.
constexpr const char *kLogits = "--logits", *kPreviousLogits = "--previous-logits";

/// The first file, of probabilities, or else the second, of logits; both are refused.
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

/// Scores are finite, or −∞ for experts that a row cannot go to; it can go to one.
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

bool begins_with(const ArrayShape& shape, const ArrayShape& start) {
  return shape.size() >= start.size() && std::equal(start.begin(), start.end(), shape.begin());
}

/// (n, …, width) of any width.
void check_rows(const std::optional<NpyReader>& array, const ArrayShape& rows, const NpyReader& probs) {
  if (!array) return;
  if (array->shape().size() != rows.size() + 1 || !begins_with(array->shape(), rows))
    refuse_shape(*array, needed_text(rows, "d"), probs);
}

void check_router(const ArrayFiles& arrays, const NpyReader& router) {
  if (router.shape().size() != 2 || router.rows() != arrays.experts)
    refuse_shape(router, fmt::format("({}, d)", arrays.experts), arrays.probs);
  if (arrays.inputs && arrays.inputs->shape().back() != router.row_size()) {
    router.refuse(fmt::format("has shape {}, needs ({}, {}) beside --inputs of shape {}",
                              shape_text(router.shape()), arrays.experts, arrays.inputs->shape().back(),
                              shape_text(arrays.inputs->shape())));
  }
}

void check_labels(const NpyReader& labels, const ArrayShape& rows, const NpyReader& probs) {
  // Several labels to a row are for rows that are no tokens.
  const bool has_parts = rows.size() == 1 && labels.shape().size() == 2 && labels.rows() == rows.front();
  if (labels.shape() != rows && !has_parts) refuse_shape(labels, shape_text(rows), probs);
}

void check_snapshots(const ArrayFiles& arrays, const ArrayShape& rows, int top_k) {
  if (arrays.previous_probs && arrays.previous_probs->shape() != arrays.probs.shape())
    refuse_shape(*arrays.previous_probs, shape_text(arrays.probs.shape()), arrays.probs);
  if (!arrays.previous_assignments) return;
  if (arrays.previous_probs)
    throw UserError("--previous-assignments",
                    fmt::format("given, but so is {}; needs one of the two", arrays.previous_probs->place()));
  const NpyReader& previous = *arrays.previous_assignments;
  ArrayShape sets = rows;
  sets.push_back(top_k);
  if (previous.shape() != sets && (previous.shape() != rows || top_k > 1))
    refuse_shape(previous, shape_text(top_k > 1 ? sets : rows) + fmt::format(" (--top-k {})", top_k),
                 arrays.probs);
}

}  // namespace

const NpyReader* ArrayFiles::space() const {
  if (embeddings) return &*embeddings;
  return inputs ? &*inputs : nullptr;
}

Matrix ArrayFiles::token_rows(const NpyReader& array, std::int64_t first, std::int64_t count) const {
  Matrix rows = array.read_finite(first, count);
  rows.resize(count * tokens, array.row_size() / tokens);
  return rows;
}

Matrix ArrayFiles::probabilities(const NpyReader& array, std::int64_t first, std::int64_t count) const {
  if (array.place() == kLogits || array.place() == kPreviousLogits) {
    Matrix scores = array.read(first, count);
    scores.resize(count * tokens, experts);
    check_scores(*this, array, first, scores);
    return softmax(scores);
  }
  Matrix rows = token_rows(array, first, count);
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
  if (files.top_k > arrays.experts)
    throw UserError("--top-k", fmt::format("got {}, needs at most {}, the experts of {}", files.top_k,
                                           arrays.experts, probs.place()));
  if (files.neighbours > arrays.other_rows())
    throw UserError("--neighbours", fmt::format("got {}, needs at most {}, the other rows of {}",
                                                files.neighbours, arrays.other_rows(), probs.place()));

  const ArrayShape rows(probs.shape().begin(), probs.shape().end() - 1);
  check_rows(arrays.inputs, rows, probs);
  check_rows(arrays.embeddings, rows, probs);
  check_rows(arrays.expert_outputs, probs.shape(), probs);
  if (arrays.labels) check_labels(*arrays.labels, rows, probs);
  check_snapshots(arrays, rows, files.top_k);
  if (const std::optional<NpyReader> router = open(files.router, "--router")) {
    check_router(arrays, *router);
    arrays.router = router->read_finite(0, router->rows());
  }
  return arrays;
}

}  // namespace moelab
