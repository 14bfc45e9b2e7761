#include "bindings/array_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/error.h"

namespace moelab::python {
namespace {

/// Allowed error of a row sum of class probabilities, which may come from single precision.
constexpr double kClassRounding = 1e-4;

using Shape = std::vector<std::int64_t>;

void require_shape(bool fits, const NpyReader& array, const std::string& needed) {
  if (!fits) array.refuse(fmt::format("has shape {}, needs {}", shape_text(array.shape()), needed));
}

void require_label_shape(const NpyReader& labels, const Layout& layout, const Shape& inputs) {
  const Shape needed = layout.label_shape(inputs.front());
  require_shape(labels.shape() == needed, labels,
                fmt::format("{} to match x of shape {}", shape_text(needed), shape_text(inputs)));
}

class ArrayProblem final : public Problem {
 public:
  explicit ArrayProblem(const TrainingArrays& arrays)
      : layout_(layout_of(arrays)), x_(arrays.x, "x"), y_(arrays.y, "y") {
    labels_.assign(static_cast<std::size_t>(x_.rows() * layout_.labels), 0);
    if (arrays.labels) labels_ = labels_of(*arrays.labels, layout_, x_.shape());
    clusters_ = *std::max_element(labels_.begin(), labels_.end()) + 1;
  }

  Layout layout() const override { return layout_; }
  int clusters() const override { return clusters_; }

  Dataset draw(Engine& /*engine*/, const SampleRange& range) const override {
    const auto place = static_cast<std::ptrdiff_t>(range.first) * layout_.labels;
    const auto count = static_cast<std::ptrdiff_t>(range.count) * layout_.labels;
    return {x_.read_finite(range.first, range.count), y_.read_finite(range.first, range.count),
            std::vector<int>(labels_.begin() + place, labels_.begin() + place + count)};
  }

 private:
  Layout layout_;
  NpyReader x_, y_;
  std::vector<int> labels_;
  int clusters_ = 1;
};

}  // namespace

Layout layout_of(const TrainingArrays& arrays) {
  const NpyReader x(arrays.x, "x"), y(arrays.y, "y");
  const Shape &inputs = x.shape(), &targets = y.shape();
  const bool sequences = inputs.size() == 3;
  require_shape(inputs.size() == 2 || sequences, x, "(n, d), or (n, s, d) for sequences");
  const std::int64_t limit = std::numeric_limits<int>::max();
  require_shape(
      x.rows() * (x.row_size() / inputs.back()) <= limit && x.row_size() <= limit && y.row_size() <= limit, x,
      fmt::format("at most {} rows and columns", limit));
  const bool per_token = sequences && targets.size() == 3 && targets[1] == inputs[1];
  require_shape(
      y.rows() == x.rows() && (targets.size() <= 2 || per_token), y,
      fmt::format("({0}, o){1} to match x of shape {2}", x.rows(),
                  sequences ? fmt::format(" or ({}, {}, o)", inputs[0], inputs[1]) : "", shape_text(inputs)));
  Layout layout;
  layout.input_dim = static_cast<int>(inputs.back());
  layout.output_dim = static_cast<int>(targets.size() == 1 ? 1 : targets.back());
  layout.sequences = sequences;
  layout.tokens = sequences ? static_cast<int>(inputs[1]) : 1;
  layout.target_per_token = per_token;
  layout.labels = layout.tokens;
  if (arrays.labels) require_label_shape(NpyReader(*arrays.labels, "labels"), layout, inputs);
  return layout;
}

void require_labels(const ModelOptions& options, bool has_labels) {
  if (has_labels || !needs_labels(options)) return;
  throw UserError(
      "labels", fmt::format("missing; needs the true cluster of every row, which the router \"{}\" looks at",
                            options.router.chosen()));
}

std::vector<int> labels_of(const MemoryArray& labels, const Layout& layout,
                           const std::vector<std::int64_t>& inputs) {
  const NpyReader reader(labels, "labels");
  require_label_shape(reader, layout, inputs);
  return read_labels(reader, 0, reader.rows(), kLabelLimit);
}

std::unique_ptr<Problem> problem_of(const TrainingArrays& arrays) {
  return std::make_unique<ArrayProblem>(arrays);
}

void check_classes(const TrainingArrays& arrays) {
  constexpr std::int64_t kBlock = 4096;
  const NpyReader y(arrays.y, "y");
  const std::int64_t classes = y.shape().size() == 1 ? 1 : y.shape().back();
  for (std::int64_t first = 0; first < y.rows(); first += kBlock) {
    Matrix rows = y.read_finite(first, std::min(kBlock, y.rows() - first));
    rows.resize(rows.size() / classes, classes);
    for (Eigen::Index i = 0; i < rows.rows(); ++i) {
      if (rows.row(i).minCoeff() >= 0 && std::abs(rows.row(i).sum() - 1) <= kClassRounding) continue;
      y.refuse(
          fmt::format("holds a row, among those from {} on, that is no indicator of a class: with "
                      "loss.task \"cross_entropy\" rows need entries of at least 0 that sum to 1",
                      first));
    }
  }
}

}  // namespace moelab::python
