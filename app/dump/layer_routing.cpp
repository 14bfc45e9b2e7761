#include "app/dump/layer_routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "analysis/metrics/routing.h"
#include "sim/base/error.h"
#include "sim/base/kernels/scores.h"
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
void bias_scores(const MatrixView& scores, const SelectionRule& rule, const Vector& bias, Matrix& selection) {
  selection = scores;
  if (bias.size() > 0) selection.rowwise() += bias.transpose();
  if (rule.groups <= 1 || rule.kept_groups >= rule.groups) return;
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
}

std::span<const double> values_of(const Matrix& matrix) {
  return {matrix.data(), size(matrix.size())};
}

}  // namespace

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
  if (is_finite || all_finite(values_of(values))) return;
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

void LayerRouting::check_probabilities(const NpyReader& piece, std::int64_t first, Matrix& r) const {
  const std::int64_t per_sample = positions(piece);
  const bool may_be_infinite = !is_finite && !all_finite(values_of(r));
  for (Eigen::Index i = 0; i < r.rows(); ++i) {
    const std::int64_t sample = first + i / per_sample, position = i % per_sample;
    for (Eigen::Index e = 0; may_be_infinite && e < r.cols(); ++e) {
      if (!std::isfinite(r(i, e)))
        piece.refuse(fmt::format("holds {} in {}; needs finite numbers", r(i, e),
                                 piece.place_of(sample, position * r.cols() + e)));
    }
    const double sum = r.row(i).sum();
    if (r.row(i).minCoeff() < 0) {
      Eigen::Index lowest = 0;
      const double least = r.row(i).minCoeff(&lowest);
      piece.refuse(
          fmt::format("holds {} in {}; {}", least, piece.place_of(sample, position * r.cols() + lowest),
                      kind == RoutingKind::scores ? "scores after the sigmoid are not negative"
                                                  : "probabilities are not negative; --logits takes scores"));
    }
    if (kind == RoutingKind::scores) {
      if (sum == 0) piece.refuse(fmt::format("has {} of zeros alone", row_place(piece, sample, position)));
      continue;
    }
    if (std::abs(sum - 1) > sum_tolerance)
      piece.refuse(fmt::format("has {} with the sum {:.6g}; rows of probabilities sum to 1 (within {})",
                               row_place(piece, sample, position), sum, sum_tolerance));
    if (is_renormalised) r.row(i) /= sum;
  }
}

/// Gives each row's chosen experts all of its mass.
void LayerRouting::keep_chosen_alone(std::span<const int> sets, Matrix& probabilities) const {
  const std::size_t k = static_cast<std::size_t>(rule.top_k);
  Vector chosen_alone(probabilities.cols());
  for (Eigen::Index i = 0; i < probabilities.rows(); ++i) {
    chosen_alone.setZero();
    for (const int expert : sets.subspan(size(i) * k, k)) {
      if (expert >= 0) chosen_alone[expert] = probabilities(i, expert);
    }
    probabilities.row(i) = chosen_alone.transpose() / chosen_alone.sum();
  }
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
                         : piece.type() == NpyType::uint64 ? 18446744073709551616.0
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
  const int k = rule.top_k;
  const bool is_sigmoid = kind == RoutingKind::logits && rule.score == SelectionRule::Score::sigmoid;
  Eigen::Index done = 0;
  std::int64_t batch = 0, before = 0;
  // Their memory serves all blocks.
  Matrix values, picked, r, biased;
  std::vector<int> sets, next;
  std::vector<double> entropies;
  std::vector<Eigen::Index> chosen;
  visit_blocks(pieces, [&](const NpyReader& piece, std::int64_t first, std::int64_t count, std::int64_t row) {
    while (before + pieces[static_cast<std::size_t>(batch)].rows() *
                        positions(pieces[static_cast<std::size_t>(batch)]) <=
           row) {
      before +=
          pieces[static_cast<std::size_t>(batch)].rows() * positions(pieces[static_cast<std::size_t>(batch)]);
      ++batch;
    }
    const std::int64_t all = count * positions(piece);
    chosen.clear();
    for (std::int64_t i = 0; i < all && !keeps_all; ++i) {
      if (rows->is_kept(row + i)) chosen.push_back(i);
    }
    if (!keeps_all && chosen.empty()) return;
    const Eigen::Index kept = keeps_all ? all : std::ssize(chosen);
    const auto kept_sets = [&](std::vector<int>&& found) {
      // Columns beyond K hold −1 alone; missing ones stand for it.
      const std::size_t width = found.size() / size(all);
      if (keeps_all && width == size(k)) {
        sets = std::move(found);
        return;
      }
      sets.assign(size(kept * k), -1);
      for (Eigen::Index i = 0; i < kept; ++i) {
        const int* const own = &found[size(keeps_all ? i : chosen[size(i)]) * width];
        std::copy_n(own, std::min(width, size(k)), &sets[size(i * k)]);
      }
    };
    sets.clear();
    next.clear();
    entropies.clear();
    const double *of_r = nullptr, *of_selection = nullptr;
    Eigen::Index experts = 0;
    if (kind == RoutingKind::experts) {
      kept_sets(read_ids(piece, first, count, row));
    } else {
      piece.read(first, count, values);
      experts = piece.shape().back();
      values.resize(all, experts);
      if (kind != RoutingKind::gates) {
        // Rows that do not count may hold anything. Equal values replace them.
        for (std::int64_t i = 0; i < all && !keeps_all; ++i) {
          if (!rows->is_kept(row + i)) values.row(i).setConstant(1.0 / static_cast<double>(experts));
        }
        if (kind == RoutingKind::logits)
          check_logits(piece, first, values);
        else
          check_probabilities(piece, first, values);
      }
      if (!keeps_all) picked = values(chosen, Eigen::all);
      Matrix& own = keeps_all ? values : picked;
      of_selection = own.data();
      if (kind == RoutingKind::gates) {
        for (double& value : own.reshaped())
          value = value > 0 || (is_closed_by_infinity && std::isfinite(value)) ? value : kClosed;
      } else if (kind == RoutingKind::probabilities) {
        of_r = own.data();
      } else {
        r.resize(kept, experts);
        if (is_sigmoid) own = (1 + (-own.array()).exp()).inverse().matrix();
        if (is_sigmoid || kind == RoutingKind::scores) {
          for (Eigen::Index i = 0; i < kept; ++i) r.row(i) = own.row(i) / own.row(i).sum();
        } else if (is_only_layer) {
          r = softmax(own);
        } else {
          entropies.resize(size(kept));
          kernels::softmax_entropies(own.data(), static_cast<int>(kept), static_cast<int>(experts), r.data(),
                                     entropies.data());
        }
        of_r = r.data();
        // A bias on a softmax is added to the probabilities, and groups are ranked by sums of them.
        if (kind == RoutingKind::logits && (bias.size() > 0 || rule.groups > 1) &&
            rule.score == SelectionRule::Score::softmax)
          of_selection = r.data();
      }
    }
    const bool keeps_chosen_alone = rule.score == SelectionRule::Score::selected;
    if (kind != RoutingKind::experts && (wants_sets || keeps_chosen_alone)) {
      if (kind != RoutingKind::gates && (bias.size() > 0 || rule.groups > 1)) {
        bias_scores({of_selection, kept, experts}, rule, bias, biased);
        of_selection = biased.data();
      }
      if (ids.empty()) {
        sets.resize(size(kept * k));
        next.resize(size(kept));
        kernels::find_largest_of_rows(of_selection, static_cast<int>(kept), static_cast<int>(experts), k,
                                      sets.data(), next.data());
      } else {
        kept_sets(read_ids(ids[static_cast<std::size_t>(batch)], first, count, row));
      }
      if (keeps_chosen_alone) keep_chosen_alone(sets, r);
    }
    const MatrixView probabilities(of_r, of_r ? kept : 0, of_r ? experts : 0);
    if (wants_sets && of_r && (entropies.empty() || keeps_chosen_alone)) {
      const Vector own = routing_entropies(probabilities);
      entropies.assign(own.begin(), own.end());
    }
    if (!unserved.empty()) {
      for (Eigen::Index i = 0; i < kept && !sets.empty(); ++i) {
        if (unserved[static_cast<std::size_t>(row + (keeps_all ? i : chosen[size(i)]))])
          std::fill_n(&sets[size(i * k)], k, -1);
      }
    }
    const bool has_selection = of_selection && wants_sets;
    visit({done, kept, probabilities,
           MatrixView(of_selection, has_selection ? kept : 0, has_selection ? experts : 0), sets, next,
           entropies, row + all > last_kept});
    done += kept;
  });
}

std::vector<int> LayerRouting::sets() const {
  std::vector<int> all;
  all.reserve(static_cast<std::size_t>(rows->kept) * static_cast<std::size_t>(rule.top_k));
  visit(true, [&](const RoutedBlock& block) { all.insert(all.end(), block.sets.begin(), block.sets.end()); });
  return all;
}

}  // namespace moelab
