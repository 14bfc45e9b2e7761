#include "app/commands/array_space.h"

#include <set>

#include "app/commands/array_analysis.h"

namespace moelab {

QueryPoints query_points(const ArrayFiles& arrays, const NpyReader& space, const std::vector<int>& top1,
                         const Seeds& seeds) {
  std::set<std::int64_t> rows;
  if (arrays.rows() <= kMaxAllRows) {
    for (std::int64_t row = 0; row < arrays.rows(); ++row) rows.insert(row);
  } else {
    Engine engine = seeds.stream(Purpose::evaluation);
    while (static_cast<std::int64_t>(rows.size()) < kQueryRows)
      rows.insert(draw_index(engine, static_cast<int>(arrays.rows())));
  }
  QueryPoints queries;
  queries.rows.assign(rows.begin(), rows.end());
  queries.points.resize(static_cast<Eigen::Index>(rows.size()), space.row_size() / arrays.tokens);
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const std::int64_t row = queries.rows[i];
    queries.points.row(static_cast<Eigen::Index>(i)) =
        arrays.token_rows(space, row / arrays.tokens, 1).row(row % arrays.tokens);
    queries.experts.push_back(top1[static_cast<std::size_t>(row)]);
  }
  return queries;
}

}  // namespace moelab
