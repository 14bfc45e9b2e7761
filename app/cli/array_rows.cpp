#include "app/cli/array_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "analysis/metrics/routing.h"
#include "app/dump/routing_source.h"
#include "sim/base/error.h"
#include "sim/data/row_array.h"

namespace moelab {
namespace {

/// The most probabilities that stay in memory: half a gigabyte.
constexpr std::int64_t kMostKept = std::int64_t{1} << 26;

/// Entries of a block. Half a megabyte stays in the cache from one metric to the next. Means over rows are
/// sums of blocks' sums, so another size changes their last digits.
constexpr std::int64_t kBlockEntries = 1 << 16;

std::optional<NpyReader> open_one(const ArraySource& source, const std::string& option) {
  if (!source.is_given()) return std::nullopt;
  SideArray side = side_array(option, source, {});
  if (side.arrays.size() != 1 || !side.texts.empty())
    throw UserError(option, fmt::format("holds {} arrays of numbers, needs one", side.arrays.size()));
  return std::move(side.arrays.front());
}

/// Compares the arrays beside the routing with its rows, (n, E) or (n, s, E).
void check_beside(const ArrayFiles& arrays, const NpyReader& routing,
                  const std::optional<NpyReader>& router) {
  ArrayAxes axes;
  std::vector<ArrayAxis> rows = row_axes(routing, ArrayAxis::experts);
  axes.add(routing, rows);
  rows.pop_back();
  const auto add = [&](const std::optional<NpyReader>& array, std::initializer_list<ArrayAxis> further) {
    if (!array) return;
    std::vector<ArrayAxis> all = rows;
    all.insert(all.end(), further);
    axes.add(*array, all);
  };
  add(arrays.inputs, {ArrayAxis::width});
  add(arrays.embeddings, {ArrayAxis::width});
  add(arrays.expert_outputs, {ArrayAxis::experts, ArrayAxis::width});
  if (!router) return;
  axes.add(*router, {ArrayAxis::experts, ArrayAxis::width});
  if (arrays.inputs && arrays.inputs->shape().back() != router->row_size()) {
    router->refuse(fmt::format("has shape {}, needs ({}, {}) to match --inputs of shape {}",
                               shape_text(router->shape()), arrays.routing.experts,
                               arrays.inputs->shape().back(), shape_text(arrays.inputs->shape())));
  }
}

}  // namespace

const NpyReader* ArrayFiles::space() const {
  if (embeddings) return &*embeddings;
  return inputs ? &*inputs : nullptr;
}

GivenArrays ArrayFiles::given(const LayerRouting& layer) const {
  const LayerRouting* const earlier = routing.previous.empty() ? nullptr : &routing.previous.front();
  return {.experts = routing.experts,
          .top_k = routing.top_k,
          .neighbours = neighbours,
          .probabilities = layer.has_probabilities(),
          .first_choice = layer.has_first_choice(),
          .labels = !routing.labels.empty(),
          .several_labels = routing.parts > 1,
          .inputs = inputs.has_value(),
          .space = space() != nullptr,
          .router = router.has_value(),
          .expert_outputs = expert_outputs.has_value(),
          .previous = earlier != nullptr,
          .previous_probabilities = earlier && earlier->has_probabilities()};
}

ArrayFiles open_arrays(const AnalyzedArrays& given) {
  ArrayFiles arrays;
  arrays.stop = given.stop;
  arrays.inputs = open_one(given.inputs, "--inputs");
  arrays.embeddings = open_one(given.embeddings, "--embeddings");
  arrays.expert_outputs = open_one(given.expert_outputs, "--expert-outputs");
  std::optional<NpyReader> router = open_one(given.router, "--router");
  RoutingInput input = given;
  for (const std::optional<NpyReader>* const array : {&arrays.inputs, &arrays.embeddings}) {
    if (*array && (*array)->shape().size() == 3)
      input.side_shapes.push_back({(*array)->shape()[0], (*array)->shape()[1]});
  }
  if (arrays.expert_outputs && arrays.expert_outputs->shape().size() == 4)
    input.side_shapes.push_back({arrays.expert_outputs->shape()[0], arrays.expert_outputs->shape()[1]});
  arrays.routing = read_routing(input);
  for (const std::optional<NpyReader>* const array :
       {&arrays.inputs, &arrays.embeddings, &arrays.expert_outputs, &router}) {
    if (*array && !arrays.routing.is_one_array)
      throw UserError((*array)->place(),
                      "is of the rows of one layer; needs one array of --probs or --logits, without "
                      "a mask, documents or tokens");
  }
  if (arrays.routing.is_one_array) check_beside(arrays, arrays.routing.layers.front().pieces.front(), router);
  if (router) arrays.router = router->read_finite(0, router->rows());
  const std::int64_t other_rows = arrays.routing.rows ? arrays.rows() - 1 : 0;
  if (given.neighbours > other_rows)
    throw UserError(
        "--neighbours",
        fmt::format("got {}, needs at most {}, the other rows of {}", given.neighbours, other_rows,
                    arrays.routing.layers.empty() ? "--counts"
                                                  : arrays.routing.layers.front().pieces.front().place()));
  if (given.neighbours > 0) arrays.neighbours = given.neighbours;
  return arrays;
}

ArrayRows::ArrayRows(const ArrayFiles& files, const LayerRouting& routing, std::int64_t step,
                     LayerRows* before, RowSums* sums)
    : files_(files), routing_(routing), step_(step), before_(before), sums_(sums) {
  if (step == 0 || files.routing.labels.empty()) return;
  Layout layout;
  layout.sequences = files.routing.is_one_array && routing.pieces.front().shape().size() == 3;
  layout.labels = files.routing.parts;
  clusters_ = cluster_labels(layout, files.routing.labels);
}

template <class Visit>
void ArrayRows::visit_samples(const NpyReader& array, const Visit& visit) const {
  const std::int64_t block = std::max<std::int64_t>(1, kBlockEntries / array.row_size());
  for (std::int64_t first = 0; first < array.rows(); first += block) {
    files_.check_stop();
    visit(first, std::min(block, array.rows() - first));
  }
}

void ArrayRows::look(const std::function<void(const RowBlock&)>& visit) {
  const RouterDump& all = files_.routing;
  const bool comes_again = !all.labels.empty() || !all.previous.empty() || files_.router;
  const bool keeps = routing_.has_probabilities() && comes_again && files_.rows() * experts() <= kMostKept;
  if (keeps) probabilities_.resize(files_.rows(), experts());
  loads_.assign(size(experts()), 0);
  // Sets in any order do not tell the first choice.
  const bool has_first = routing_.has_first_choice();
  if (has_first) serving_.reserve(size(files_.rows()));
  routing_.visit(true, [&](const RoutedBlock& read) {
    files_.check_stop();
    for (std::size_t at = 0; at < read.sets.size(); ++at) {
      if (read.sets[at] >= 0) ++loads_[size(read.sets[at])];
    }
    const std::size_t k = size(routing_.rule.top_k);
    for (std::size_t at = 0; has_first && at < read.sets.size(); at += k) serving_.push_back(read.sets[at]);
    if (!all.previous.empty()) sets_.insert(sets_.end(), read.sets.begin(), read.sets.end());
    if (sums_) sums_->add(read);
    if (!routing_.has_probabilities()) return;
    if (keeps) {
      probabilities_.middleRows(read.first, read.rows) = read.probabilities;
      blocks_.push_back({read.first, read.rows, read.is_last});
    }
    visit({read.first, read.probabilities, read.is_last, read.entropies});
  });
  has_looked_ = true;
}

void ArrayRows::look() {
  if (!has_looked_) look([](const RowBlock&) {});
}

void ArrayRows::visit(const std::function<void(const RowBlock&)>& visit) {
  if (!routing_.has_probabilities()) return;
  if (!has_looked_) return look(visit);
  for (const KeptBlock& block : blocks_) {
    files_.check_stop();
    visit({block.first, {&probabilities_(block.first, 0), block.rows, experts()}, block.is_last});
  }
  if (!blocks_.empty()) return;
  routing_.visit(false, [&](const RoutedBlock& read) {
    files_.check_stop();
    visit({read.first, read.probabilities, read.is_last});
  });
}

std::vector<int> ArrayRows::likeliest(int k) {
  look();
  std::vector<int> sets = sets_.empty() ? routing_.sets() : sets_;
  const std::size_t width = size(routing_.rule.top_k), wanted = size(k);
  if (wanted >= width) return sets;
  for (std::size_t row = 0; row * width < sets.size(); ++row)
    std::copy_n(sets.begin() + static_cast<std::ptrdiff_t>(row * width), wanted,
                sets.begin() + static_cast<std::ptrdiff_t>(row * wanted));
  sets.resize(sets.size() / width * wanted);
  return sets;
}

std::span<const int> ArrayRows::serving() {
  look();
  return serving_;
}

std::span<const unsigned char> ArrayRows::selected() {
  if (selected_.empty()) {
    const int k = files_.routing.top_k;
    const std::vector<int> sets = likeliest(k);
    selected_.assign(entries(files_.rows(), experts()), 0);
    for (std::size_t at = 0; at < sets.size(); ++at) {
      if (sets[at] >= 0) selected_[at / size(k) * size(experts()) + size(sets[at])] = 1;
    }
  }
  return selected_;
}

std::vector<std::int64_t> ArrayRows::loads() {
  look();
  return loads_;
}

std::optional<double> ArrayRows::co_activation() {
  look();
  return sums_ ? sums_->co_activation() : LayerRows::co_activation();
}

void ArrayRows::visit_points(Space /*space*/, const PointBlock& visit) {
  const NpyReader& array = *files_.space();
  visit_samples(array, [&](std::int64_t first, std::int64_t count) {
    visit(first * tokens(), RowArray::read(array, tokens(), first, count).values());
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
    inputs_ = RowArray::read(*files_.inputs, tokens(), block.first / tokens(),
                             block.probabilities.rows() / tokens())
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
  visit_samples(routing_.pieces.front(), [&](std::int64_t first, std::int64_t count) {
    visit(first * tokens(), RowArray::read(*files_.expert_outputs, tokens(), first, count).values());
  });
}

}  // namespace moelab
