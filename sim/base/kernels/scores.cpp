#include "sim/base/kernels/scores.h"

#include "sim/base/kernels/levels.h"  // kernels.cpp chooses among the levels
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/base/kernels/scores.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
// Re-included once per level.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sim/base/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace moelab::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using L = Lanes16<double>;
using V = L::V;

constexpr double kBelowAll = -std::numeric_limits<double>::infinity();

void summarize_rows_of(const double* values, int rows, int columns, RowSummary* summaries) {
  const int full = columns / kPadding * kPadding;
  const V most = hn::Set(L::d, std::numeric_limits<double>::max()), zero = hn::Zero(L::d);
  for (int i = 0; i < rows; ++i) {
    const double* const row = values + static_cast<std::ptrdiff_t>(i) * columns;
    RowSummary& summary = summaries[i];
    summary = {row[0], row[0], 0, 0, true};
    if (full > 0) {
      V least = hn::Set(L::d, row[0]), largest = least, sums[L::kVectors];
      for (V& sum : sums) sum = zero;
      auto is_finite = hn::Le(hn::Abs(least), most);
      std::size_t above = 0;
      for (int j = 0; j < full; j += kPadding) {
        for (int v = 0; v < L::kVectors; ++v) {
          const V value = hn::LoadU(L::d, row + j + v * L::kWidth);
          least = hn::Min(least, value);
          largest = hn::Max(largest, value);
          sums[v] = hn::Add(sums[v], value);
          is_finite = hn::And(is_finite, hn::Le(hn::Abs(value), most));
          above += hn::CountTrue(L::d, hn::Gt(value, zero));
        }
      }
      summary.least = hn::GetLane(hn::MinOfLanes(L::d, least));
      summary.largest = hn::GetLane(hn::MaxOfLanes(L::d, largest));
      summary.sum = add_lanes<double>(sums);
      summary.above_zero = static_cast<int>(above);
      summary.is_finite = hn::AllTrue(L::d, is_finite);
    }
    for (int j = full; j < columns; ++j) {
      summary.least = std::min(summary.least, row[j]);
      summary.largest = std::max(summary.largest, row[j]);
      summary.sum += row[j];
      summary.above_zero += row[j] > 0 ? 1 : 0;
      summary.is_finite = summary.is_finite && std::abs(row[j]) <= std::numeric_limits<double>::max();
    }
  }
}

/// Rows with a length that is a multiple of kPadding. The arrays may not overlap.
template <int kRows>
void softmax_entropies_block(const double* HWY_RESTRICT scores, int length,
                             double* HWY_RESTRICT probabilities, double* entropies) {
  // The exponential of this number is 0, like exp(−∞). Unlike with −∞, 0 times it is 0.
  const V lowest = hn::Set(L::d, -1000.0);
  V peaks[kRows], sums[kRows][L::kVectors], products[kRows][L::kVectors];
  for (int i = 0; i < kRows; ++i) {
    const double* const in = scores + i * length;
    peaks[i] = hn::LoadU(L::d, in);
    for (int j = L::kWidth; j < length; j += L::kWidth) peaks[i] = hn::Max(peaks[i], hn::LoadU(L::d, in + j));
    for (V& sum : sums[i]) sum = hn::Zero(L::d);
    for (V& sum : products[i]) sum = hn::Zero(L::d);
  }
  for (V& peak : peaks) peak = hn::MaxOfLanes(L::d, peak);
  for (int j = 0; j < length; j += kPadding) {
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < L::kVectors; ++v) {
        const int at = i * length + j + v * L::kWidth;
        const V below = hn::Max(hn::Sub(hn::LoadU(L::d, scores + at), peaks[i]), lowest);
        const V power = hn::Exp(L::d, below);
        hn::StoreU(power, L::d, probabilities + at);
        sums[i][v] = hn::Add(sums[i][v], power);
        products[i][v] = hn::MulAdd(power, below, products[i][v]);
      }
    }
  }
  for (int i = 0; i < kRows; ++i) {
    const double sum = add_lanes<double>(sums[i]);
    entropies[i] = std::log(sum) - add_lanes<double>(products[i]) / sum;
    const V inverse = hn::Set(L::d, 1 / sum);
    double* const out = probabilities + i * length;
    for (int j = 0; j < length; j += L::kWidth)
      hn::StoreU(hn::Mul(hn::LoadU(L::d, out + j), inverse), L::d, out + j);
  }
}

/// The next `count` rows of `columns` entries with −∞ up to `length`.
void pad_rows(const double* from, int count, int columns, int length, double* to) {
  for (int i = 0; i < count; ++i, to += length) {
    std::copy_n(from + static_cast<std::ptrdiff_t>(i) * columns, columns, to);
    std::fill(to + columns, to + length, kBelowAll);
  }
}

void softmax_entropies_of(const double* scores, int rows, int columns, double* probabilities,
                          double* entropies) {
  const int length = padded(columns);
  std::vector<double> in, out;
  if (length != columns) {
    in.resize(static_cast<std::size_t>(length) * kRowsAtOnce);
    out.resize(in.size());
  }
  for (int row = 0; row < rows;) {
    const int count = row + kRowsAtOnce <= rows ? kRowsAtOnce : 1;
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * columns;
    const double* from = scores + at;
    double* to = probabilities + at;
    if (length != columns) {
      pad_rows(from, count, columns, length, in.data());
      from = in.data();
      to = out.data();
    }
    if (count == kRowsAtOnce)
      softmax_entropies_block<kRowsAtOnce>(from, length, to, entropies + row);
    else
      softmax_entropies_block<1>(from, length, to, entropies + row);
    for (int i = 0; length != columns && i < count; ++i)
      std::copy_n(to + static_cast<std::ptrdiff_t>(i) * length, columns,
                  probabilities + at + static_cast<std::ptrdiff_t>(i) * columns);
    row += count;
  }
}

/// One row, whose vectors are the groups. A round takes the largest of the groups' largest values, the first
/// of its group, and replaces it by −∞. `row` holds whole vectors, and `peaks` a value for each of them, also
/// in whole vectors.
struct Tournament {
  double *row, *peaks;
  int groups;

  static HWY_INLINE auto lane_is(std::ptrdiff_t lane) {
    return hn::Eq(hn::Iota(L::d, 0.0), hn::Set(L::d, static_cast<double>(lane)));
  }

  HWY_INLINE void begin(const double* values, int columns) const {
    const int whole = columns / L::kWidth * L::kWidth;
    for (int j = 0; j < whole; j += L::kWidth) {
      const V value = hn::LoadU(L::d, values + j);
      hn::StoreU(value, L::d, row + j);
      peaks[j / L::kWidth] = hn::GetLane(hn::MaxOfLanes(L::d, value));
    }
    if (whole == columns) return;
    pad_rows(values + whole, 1, columns - whole, L::kWidth, row + whole);
    peaks[groups - 1] = *std::max_element(values + whole, values + columns);
  }

  HWY_INLINE int take() const {
    V best = hn::LoadU(L::d, peaks);
    for (int j = L::kWidth; j < groups; j += L::kWidth) best = hn::Max(best, hn::LoadU(L::d, peaks + j));
    best = hn::MaxOfLanes(L::d, best);
    if (!(hn::GetLane(best) > kBelowAll)) return -1;
    int block = 0;
    std::ptrdiff_t lane = hn::FindFirstTrue(L::d, hn::Eq(hn::LoadU(L::d, peaks), best));
    while (lane < 0) {
      block += L::kWidth;
      lane = hn::FindFirstTrue(L::d, hn::Eq(hn::LoadU(L::d, peaks + block), best));
    }
    const int group = block + static_cast<int>(lane);
    double* const own = row + group * L::kWidth;
    const V values = hn::LoadU(L::d, own), closed = hn::Set(L::d, kBelowAll);
    const std::ptrdiff_t place = hn::FindFirstTrue(L::d, hn::Eq(values, best));
    const V left = hn::IfThenElse(lane_is(place), closed, values);
    hn::StoreU(left, L::d, own);
    const V of_block = hn::LoadU(L::d, peaks + block);
    hn::StoreU(hn::IfThenElse(lane_is(lane), hn::MaxOfLanes(L::d, left), of_block), L::d, peaks + block);
    return group * L::kWidth + static_cast<int>(place);
  }
};

void find_largest_of_rows_of(const double* values, int rows, int columns, int k, int* found, int* next) {
  const int groups = (columns + L::kWidth - 1) / L::kWidth, of_peaks = padded(groups),
            size = groups * L::kWidth + of_peaks;
  std::vector<double> scratch(static_cast<std::size_t>(size) * kRowsAtOnce, kBelowAll);
  for (int row = 0; row < rows; row += kRowsAtOnce) {
    // The rounds of one row wait for each other. The rounds of different rows do not.
    const int count = std::min(kRowsAtOnce, rows - row);
    Tournament of_row[kRowsAtOnce];
    for (int i = 0; i < count; ++i) {
      double* const own = scratch.data() + static_cast<std::ptrdiff_t>(i) * size;
      of_row[i] = {own, own + groups * L::kWidth, groups};
      of_row[i].begin(values + static_cast<std::ptrdiff_t>(row + i) * columns, columns);
    }
    for (int place = 0; place < k; ++place) {
      for (int i = 0; i < count; ++i)
        found[static_cast<std::ptrdiff_t>(row + i) * k + place] = of_row[i].take();
    }
    for (int i = 0; i < count; ++i) next[row + i] = of_row[i].take();
  }
}

}  // namespace moelab::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace moelab::kernels {

HWY_EXPORT(summarize_rows_of);
HWY_EXPORT(softmax_entropies_of);
HWY_EXPORT(find_largest_of_rows_of);

void summarize_rows(const double* values, int rows, int columns, RowSummary* summaries) {
  HWY_DYNAMIC_DISPATCH(summarize_rows_of)(values, rows, columns, summaries);
}

void softmax_entropies(const double* scores, int rows, int columns, double* probabilities,
                       double* entropies) {
  HWY_DYNAMIC_DISPATCH(softmax_entropies_of)(scores, rows, columns, probabilities, entropies);
}

void find_largest_of_rows(const double* values, int rows, int columns, int k, int* found, int* next) {
  HWY_DYNAMIC_DISPATCH(find_largest_of_rows_of)(values, rows, columns, k, found, next);
}

}  // namespace moelab::kernels
#endif
