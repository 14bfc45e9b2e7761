#include "app/dump/value_scan.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "sim/base/kernels/scores.h"

namespace moelab {
namespace {

bool is_low_precision_number(double value) {
  const auto single = static_cast<float>(value);
  return static_cast<double>(single) == value && (static_cast<float>(Eigen::bfloat16(single)) == single ||
                                                  static_cast<float>(Eigen::half(single)) == single);
}

bool is_of_low_precision(NpyType type) {
  return type == NpyType::bfloat16 || type == NpyType::float16;
}

/// One row, and what a kernel found of it.
void add_row(const double* values, const kernels::RowSummary& row, bool may_be_precise, ValueScan& scan) {
  const std::span<const double> all(values, scan.ever_open.size());
  std::int64_t above = row.above_zero, open = std::ssize(all);
  double sum = row.sum;
  bool is_uniform = row.least == row.largest;
  if (row.is_finite) {
    scan.all_nan = false;
    if (row.least != 0 || row.largest != 0) scan.all_zero = false;
    if (row.least < 0) scan.has_negative = true;
    if (!(row.least >= 0 && row.largest <= 1)) scan.in_unit = false;
    scan.largest = std::max(scan.largest, row.largest);
  } else {
    scan.is_finite = false;
    above = open = 0;
    sum = 0;
    is_uniform = true;
    for (const double value : all) {
      if (std::isnan(value)) {
        scan.in_unit = scan.sums_to_one = scan.is_constant_count = scan.all_zero = scan.all_whole = false;
        continue;
      }
      scan.all_nan = false;
      if (value != 0) scan.all_zero = false;
      if (value < 0 && std::isfinite(value)) scan.has_negative = true;
      if (std::isfinite(value)) scan.largest = std::max(scan.largest, value);
      if (!(value >= 0 && value <= 1)) scan.in_unit = false;
      if (value > 0) ++above;
      if (std::isfinite(value)) ++open;
      if (value != all.front()) is_uniform = false;
      sum += value;
    }
  }
  for (std::size_t e = 0; scan.ever_open_count < std::ssize(all) && e < all.size(); ++e) {
    if (!std::isfinite(all[e]) || scan.ever_open[e]) continue;
    scan.ever_open[e] = true;
    ++scan.ever_open_count;
  }
  for (std::size_t e = 0; scan.all_whole && e < all.size(); ++e)
    scan.all_whole = std::isnan(all[e]) || (all[e] >= 0 && std::floor(all[e]) == all[e]);
  for (std::size_t e = 0; may_be_precise && scan.is_low_precision && e < all.size(); ++e)
    scan.is_low_precision = std::isnan(all[e]) || is_low_precision_number(all[e]);
  if (scan.open < 0) scan.open = open;
  if (scan.open != open) scan.is_constant_open = false;
  if (above == 0) {
    ++scan.zero_rows;
  } else {
    if (scan.above_zero < 0) scan.above_zero = above;
    if (scan.above_zero != above) scan.is_constant_count = false;
    scan.most_above_zero = std::max(scan.most_above_zero, above);
  }
  if (is_uniform) ++scan.uniform_rows;
  const double error = std::abs(sum - 1);
  scan.largest_error = std::max(scan.largest_error, std::isnan(error) ? 1e300 : error);
  if (!(error <= 4e-3)) {
    scan.sums_to_one = false;
    if (!row.is_finite || row.least != 0 || row.largest != 0) scan.others_sum_to_one = false;
  }
}

}  // namespace

ValueScan scan_values(const LayerRouting& layer, int experts) {
  ValueScan scan;
  scan.ever_open.assign(static_cast<std::size_t>(experts), false);
  Matrix values;
  std::vector<kernels::RowSummary> summaries;
  LayerRouting::visit_blocks(
      layer.pieces, [&](const NpyReader& piece, std::int64_t first, std::int64_t count, std::int64_t row) {
        piece.read(first, count, values);
        values.resize(values.size() / experts, experts);
        summaries.resize(size(values.rows()));
        kernels::summarize_rows(values.data(), static_cast<int>(values.rows()), experts, summaries.data());
        for (Eigen::Index i = 0; i < values.rows(); ++i) {
          if (!layer.rows->is_kept(row + i)) continue;
          ++scan.rows;
          add_row(&values(i, 0), summaries[size(i)], !is_of_low_precision(piece.type()), scan);
          if (summaries[size(i)].is_finite || !scan.nan_place.empty()) continue;
          for (Eigen::Index e = 0; e < experts && scan.nan_place.empty(); ++e) {
            const std::int64_t per_sample = LayerRouting::positions(piece);
            if (std::isnan(values(i, e)))
              scan.nan_place = piece.place_of(first + i / per_sample, i % per_sample * experts + e);
          }
        }
      });
  if (scan.has_negative) scan.is_constant_count = false;
  return scan;
}

IdScan scan_ids(const LayerRouting& layer, const std::vector<NpyReader>& pieces) {
  IdScan scan;
  scan.is_absent.assign(static_cast<std::size_t>(layer.rows->all), 0);
  LayerRouting::visit_blocks(
      pieces, [&](const NpyReader& piece, std::int64_t first, std::int64_t count, std::int64_t row) {
        const std::vector<int> ids = layer.read_ids(piece, first, count, row);
        const std::size_t width = static_cast<std::size_t>(piece.shape().back()), rows = ids.size() / width;
        for (std::size_t i = 0; i < rows; ++i) {
          const int* const own = &ids[i * width];
          const std::int64_t place = row + static_cast<std::int64_t>(i);
          if (!layer.rows->is_kept(place)) continue;
          ++scan.rows;
          bool is_absent = true, repeats = false;
          for (std::size_t j = 0; j < width; ++j) {
            if (own[j] > 0) scan.all_zero = false;
            if (own[j] < 0) continue;
            is_absent = false;
            scan.used_columns = std::max(scan.used_columns, static_cast<std::int64_t>(j) + 1);
            if (j > 0 && own[j - 1] >= 0 && own[j] < own[j - 1]) scan.is_ascending = false;
            repeats = repeats || std::find(own, own + j, own[j]) != own + j;
          }
          if (is_absent) {
            ++scan.absent;
            scan.is_absent[static_cast<std::size_t>(place)] = 1;
          } else {
            scan.all_absent = false;
          }
          if (repeats) ++scan.repeated;
        }
      });
  return scan;
}

}  // namespace moelab
