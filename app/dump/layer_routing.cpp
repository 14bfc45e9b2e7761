#include "app/dump/layer_routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "analysis/metrics/routing.h"
#include "sim/base/error.h"
#include "sim/base/numerics.h"

namespace moelab {
namespace {

/// Entries of a block. Half a megabyte stays in the cache from one metric to the next. Means over rows are
/// sums of blocks' sums, so another size changes their last digits.
constexpr std::int64_t kBlockEntries = 1 << 16;

constexpr double kClosed = -std::numeric_limits<double>::infinity();

std::string row_place(const NpyReader& piece, std::int64_t sample, std::int64_t position) {
  return piece.shape().size() > 2 ? fmt::format("row [{}, {}]", sample, position)
                                  : fmt::format("row {}", sample);
}

/// The scores that experts are selected by: s + b within the kept groups.
Matrix biased_scores(const Matrix& scores, const SelectionRule& rule, const Vector& bias) {
  Matrix selection = scores;
  if (bias.size() > 0) selection.rowwise() += bias.transpose();
  if (rule.groups <= 1 || rule.kept_groups >= rule.groups) return selection;
  const Eigen::Index width = scores.cols() / rule.groups;
  std::vector<double> of_group(size(width));
  std::vector<std::pair<double, int>> order(static_cast<std::size_t>(rule.groups));
  for (Eigen::Index i = 0; i < selection.rows(); ++i) {
    for (int g = 0; g < rule.groups; ++g) {
      std::copy_n(&selection(i, g * width), width, of_group.begin());
      const std::ptrdiff_t counted = rule.groups_by_largest ? 1 : std::min<std::ptrdiff_t>(2, width);
      std::partial_sort(of_group.begin(), of_group.begin() + counted, of_group.end(), std::greater<>());
      order[static_cast<std::size_t>(g)] = {
          -std::accumulate(of_group.begin(), of_group.begin() + counted, 0.0), g};
    }
    std::sort(order.begin(), order.end());
    for (int place = rule.kept_groups; place < rule.groups; ++place)
      selection.block(i, order[static_cast<std::size_t>(place)].second * width, 1, width)
          .setConstant(kClosed);
  }
  return selection;
}

}  // namespace

void select_experts(const Eigen::Ref<const Vector>& selection, int k, int* experts) {
  // K is small beside E: one pass that keeps the K best, the lower index first among equals.
  int kept = 0;
  for (Eigen::Index e = 0; e < selection.size(); ++e) {
    if (!(selection[e] > kClosed)) continue;
    int place = kept < k ? kept++ : k;
    for (; place > 0 && selection[e] > selection[experts[place - 1]]; --place) {
      if (place < k) experts[place] = experts[place - 1];
    }
    if (place < k) experts[place] = static_cast<int>(e);
  }
  std::fill(experts + kept, experts + k, -1);
}

bool LayerRouting::has_probabilities() const {
  return kind == RoutingKind::probabilities || kind == RoutingKind::logits || kind == RoutingKind::scores;
}

std::int64_t LayerRouting::positions(const NpyReader& piece) {
  return piece.row_size() / piece.shape().back();
}

void LayerRouting::visit_blocks(
    const std::vector<NpyReader>& pieces,
    const std::function<void(const NpyReader&, std::int64_t, std::int64_t, std::int64_t)>& visit) {
  std::int64_t before = 0;
  for (const NpyReader& piece : pieces) {
    const std::int64_t block = std::max<std::int64_t>(1, kBlockEntries / piece.row_size());
    for (std::int64_t first = 0; first < piece.rows(); first += block)
      visit(piece, first, std::min(block, piece.rows() - first), before + first * positions(piece));
    before += piece.rows() * positions(piece);
  }
}

void LayerRouting::check_logits(const NpyReader& piece, std::int64_t first, const Matrix& values) const {
  const std::int64_t per_sample = positions(piece);
  for (Eigen::Index i = 0; i < values.rows(); ++i) {
    const std::int64_t sample = first + i / per_sample, position = i % per_sample;
    const auto place_of = [&](Eigen::Index e) {
      return piece.place_of(sample, position * values.cols() + e);
    };
    for (Eigen::Index e = 0; e < values.cols(); ++e) {
      if (!std::isfinite(values(i, e)) && values(i, e) != kClosed)
        piece.refuse(fmt::format("holds {} in {}; needs finite numbers or -inf", values(i, e), place_of(e)));
    }
    if (values.row(i).maxCoeff() == kClosed)
      piece.refuse(fmt::format("holds nothing but -inf from {} to {}; needs a finite number in every row",
                               place_of(0), place_of(values.cols() - 1)));
  }
}

Matrix LayerRouting::probabilities_of(const NpyReader& piece, std::int64_t first,
                                      const Matrix& values) const {
  const std::int64_t per_sample = positions(piece);
  Matrix r = values;
  for (Eigen::Index i = 0; i < r.rows(); ++i) {
    const std::int64_t sample = first + i / per_sample, position = i % per_sample;
    for (Eigen::Index e = 0; e < r.cols(); ++e) {
      if (!std::isfinite(r(i, e)))
        piece.refuse(fmt::format("holds {} in {}; needs finite numbers", r(i, e),
                                 piece.place_of(sample, position * r.cols() + e)));
    }
    Eigen::Index lowest = 0;
    const double least = r.row(i).minCoeff(&lowest), sum = r.row(i).sum();
    if (least < 0)
      piece.refuse(
          fmt::format("holds {} in {}; {}", least, piece.place_of(sample, position * r.cols() + lowest),
                      kind == RoutingKind::scores ? "scores after the sigmoid are not negative"
                                                  : "probabilities are not negative; --logits takes scores"));
    if (kind == RoutingKind::scores) {
      if (sum == 0) piece.refuse(fmt::format("has {} of zeros alone", row_place(piece, sample, position)));
      continue;
    }
    if (std::abs(sum - 1) > sum_tolerance)
      piece.refuse(fmt::format("has {} with the sum {:.6g}; rows of probabilities sum to 1 (within {})",
                               row_place(piece, sample, position), sum, sum_tolerance));
    if (is_renormalised) r.row(i) /= sum;
  }
  return r;
}

std::vector<int> LayerRouting::read_ids(const NpyReader& piece, std::int64_t first, std::int64_t count,
                                        std::int64_t row) const {
  const Matrix values = piece.read(first, count);
  std::vector<int> experts(size(values.size()));
  const double most = piece.type() == NpyType::bfloat16  ? 256
                      : piece.type() == NpyType::float16 ? 2048
                                                         : 1e15;
  const double largest = piece.type() == NpyType::uint8    ? 255
                         : piece.type() == NpyType::uint16 ? 65535
                         : piece.type() == NpyType::uint32 ? 4294967295.0
                                                           : -1;
  const double limit = logical.empty() ? rule.experts : static_cast<double>(logical.size());
  for (Eigen::Index i = 0; i < values.rows(); ++i) {
    for (Eigen::Index j = 0; j < values.cols(); ++j) {
      const double id = values(i, j);
      int& expert = experts[size(i * values.cols() + j)];
      expert = -1;
      if (!rows->is_kept(row + (i * values.cols() + j) / piece.shape().back())) continue;
      // Unsigned types hold −1 as their largest number.
      if (id == -1 || id == -100 || (id == largest && id >= limit)) continue;
      const auto where = [&] { return piece.place_of(first + i, j); };
      if (std::floor(id) != id || !(std::abs(id) <= most))
        piece.refuse(fmt::format(
            "holds {} in {}; ids of experts are whole numbers{}", id, where(),
            most < 1e15 ? fmt::format(", which {} holds exactly to {}", type_name(piece.type()), most) : ""));
      if (id < 0 || id >= limit)
        piece.refuse(fmt::format(
            "holds {} in {}; ids are 0 to {} (-1 and -100 for none). Larger ids are shared or zero experts, "
            "physical experts of a balancer, or packed with a weight: map them first, or give --expert-count",
            id, where(), limit - 1));
      expert = logical.empty() ? static_cast<int>(id) : logical[static_cast<std::size_t>(id)];
    }
  }
  return experts;
}

void LayerRouting::visit(bool wants_sets, const std::function<void(const RoutedBlock&)>& visit) const {
  std::int64_t last_kept = rows->all - 1;
  while (last_kept > 0 && !rows->is_kept(last_kept)) --last_kept;
  const bool keeps_all = rows->flags.empty();
  const int k = rule.top_k, experts = rule.experts;
  Eigen::Index done = 0;
  std::int64_t batch = 0, before = 0;
  visit_blocks(pieces, [&](const NpyReader& piece, std::int64_t first, std::int64_t count, std::int64_t row) {
    while (before + pieces[static_cast<std::size_t>(batch)].rows() *
                        positions(pieces[static_cast<std::size_t>(batch)]) <=
           row) {
      before +=
          pieces[static_cast<std::size_t>(batch)].rows() * positions(pieces[static_cast<std::size_t>(batch)]);
      ++batch;
    }
    const std::int64_t per_sample = positions(piece), all = count * per_sample;
    std::vector<Eigen::Index> chosen;
    for (std::int64_t i = 0; i < all && !keeps_all; ++i) {
      if (rows->is_kept(row + i)) chosen.push_back(i);
    }
    if (!keeps_all && chosen.empty()) return;
    RoutedBlock block;
    block.first = done;
    block.is_last = row + all > last_kept;
    const auto kept = [&](Matrix&& values) {
      return keeps_all ? std::move(values) : Matrix(values(chosen, Eigen::all));
    };
    const auto kept_ids = [&](const std::vector<int>& found) {
      if (keeps_all) return found;
      const std::size_t width = found.size() / size(all);
      std::vector<int> own;
      for (const Eigen::Index i : chosen)
        own.insert(own.end(), found.begin() + static_cast<std::ptrdiff_t>(size(i) * width),
                   found.begin() + static_cast<std::ptrdiff_t>((size(i) + 1) * width));
      return own;
    };
    const auto first_k = [&](std::vector<int>&& found) {
      // Columns beyond K hold −1 alone; missing ones stand for it.
      const std::size_t rows_of_block = keeps_all ? size(all) : chosen.size(),
                        width = found.size() / rows_of_block;
      if (width == static_cast<std::size_t>(k)) return std::move(found);
      std::vector<int> own;
      for (std::size_t i = 0; i < rows_of_block; ++i) {
        for (std::size_t j = 0; j < static_cast<std::size_t>(k); ++j)
          own.push_back(j < width ? found[i * width + j] : -1);
      }
      return own;
    };
    if (kind == RoutingKind::experts) {
      block.sets = first_k(kept_ids(read_ids(piece, first, count, row)));
    } else {
      Matrix values = piece.read(first, count);
      values.resize(all, piece.shape().back());
      Matrix scores;  // of the selection
      if (kind == RoutingKind::gates) {
        values = kept(std::move(values));
        for (double& value : values.reshaped())
          value = value > 0 || (is_closed_by_infinity && std::isfinite(value)) ? value : kClosed;
        scores = std::move(values);
      } else {
        if (keeps_all) {
          if (kind == RoutingKind::logits)
            check_logits(piece, first, values);
          else
            values = probabilities_of(piece, first, values);
        } else {
          // Rows that do not count may hold anything. A row of equal values stands in their place.
          for (std::int64_t i = 0; i < all; ++i) {
            if (!rows->is_kept(row + i)) values.row(i).setConstant(1.0 / static_cast<double>(values.cols()));
          }
          if (kind == RoutingKind::logits)
            check_logits(piece, first, values);
          else
            values = probabilities_of(piece, first, values);
          values = kept(std::move(values));
        }
        if (kind == RoutingKind::logits && rule.score == SelectionRule::Score::sigmoid)
          values = (1 + (-values.array()).exp()).inverse().matrix();
        if (kind == RoutingKind::scores ||
            (kind == RoutingKind::logits && rule.score == SelectionRule::Score::sigmoid)) {
          block.probabilities = values;
          for (Eigen::Index i = 0; i < values.rows(); ++i) block.probabilities.row(i) /= values.row(i).sum();
        } else {
          block.probabilities = kind == RoutingKind::logits ? softmax(values) : values;
        }
        // A bias on a softmax is added to the probabilities.
        scores = bias.size() > 0 && rule.score == SelectionRule::Score::softmax && kind == RoutingKind::logits
                     ? block.probabilities
                     : std::move(values);
      }
      if (wants_sets || rule.score == SelectionRule::Score::selected) {
        block.selection = kind == RoutingKind::gates ? std::move(scores) : biased_scores(scores, rule, bias);
        const Eigen::Index count_of = block.selection.rows();
        block.sets.resize(size(count_of) * static_cast<std::size_t>(k));
        if (ids.empty()) {
          for (Eigen::Index i = 0; i < count_of; ++i)
            select_experts(block.selection.row(i).transpose(), k,
                           &block.sets[size(i) * static_cast<std::size_t>(k)]);
        } else {
          const NpyReader& own = ids[static_cast<std::size_t>(batch)];
          block.sets = first_k(kept_ids(read_ids(own, first, count, row)));
        }
        if (rule.score == SelectionRule::Score::selected) {
          for (Eigen::Index i = 0; i < count_of; ++i) {
            Vector chosen_alone = Vector::Zero(experts);
            for (int j = 0; j < k; ++j) {
              const int expert =
                  block.sets[size(i) * static_cast<std::size_t>(k) + static_cast<std::size_t>(j)];
              if (expert >= 0) chosen_alone[expert] = block.probabilities(i, expert);
            }
            block.probabilities.row(i) = chosen_alone.transpose() / chosen_alone.sum();
          }
        }
      }
    }
    const Eigen::Index count_of = keeps_all ? all : static_cast<Eigen::Index>(chosen.size());
    if (!unserved.empty() && !block.sets.empty()) {
      for (Eigen::Index i = 0; i < count_of; ++i) {
        const std::int64_t of_file = row + (keeps_all ? i : chosen[size(i)]);
        if (unserved[static_cast<std::size_t>(of_file)])
          std::fill_n(block.sets.begin() + static_cast<std::ptrdiff_t>(i * k), k, -1);
      }
    }
    done += count_of;
    visit(block);
  });
}

std::vector<int> LayerRouting::sets() const {
  std::vector<int> all;
  all.reserve(static_cast<std::size_t>(rows->kept) * static_cast<std::size_t>(rule.top_k));
  visit(true, [&](const RoutedBlock& block) { all.insert(all.end(), block.sets.begin(), block.sets.end()); });
  return all;
}

}  // namespace moelab
