#pragma once

/// What the numbers of a layer look like: whether they can be logits, probabilities, gates or ids. Rows that
/// do not count may hold anything.

#include <cstdint>
#include <string>
#include <vector>

#include "app/dump/layer_routing.h"

namespace moelab {

/// What the values of a layer look like.
struct ValueScan {
  bool all_nan = true, all_zero = true, in_unit = true, sums_to_one = true;
  bool others_sum_to_one = true;  ///< rows that are not zeros
  bool is_low_precision = true;   ///< all numbers are bfloat16 or float16 numbers
  bool is_constant_count =
      true;                   ///< every row that is not zero has as many entries above 0, the others are 0
  bool has_negative = false;  ///< finite numbers below 0
  bool is_finite = true;      ///< all numbers
  bool all_whole = true;      ///< whole numbers of at least 0
  double largest = 0;         ///< finite number
  std::int64_t rows = 0, zero_rows = 0, uniform_rows = 0;
  std::int64_t above_zero = -1, most_above_zero = 0;
  bool is_constant_open = true;  ///< every row has as many finite entries
  std::int64_t open = -1;
  std::vector<bool> ever_open;  ///< experts with a finite entry
  std::ptrdiff_t ever_open_count = 0;
  double largest_error = 0;
  std::string nan_place;
};

/// What the ids of a layer look like.
struct IdScan {
  bool all_zero = true, all_absent = true, is_ascending = true;  ///< absent ids are no zeros
  std::int64_t rows = 0, absent = 0, repeated = 0, used_columns = 0;
  std::vector<unsigned char> is_absent;  ///< of all rows of the files
};

/// Looks at all rows of the layer that count. `experts` is its width.
ValueScan scan_values(const LayerRouting& layer, int experts);
/// The same for ids in `pieces`. Throws UserError for ids outside 0 … E − 1.
IdScan scan_ids(const LayerRouting& layer, const std::vector<NpyReader>& pieces);

}  // namespace moelab
