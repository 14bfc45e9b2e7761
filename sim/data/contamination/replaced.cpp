#include "sim/data/contamination/replaced.h"

#include "sim/data/contamination/contamination.h"
#include "sim/data/contamination/evaluation_streams.h"

namespace moelab {
namespace {

void replace_rows(const AnyOptions& any, const Layout& layout, const Seeds& seeds, Matrix& x) {
  const ReplacedOptions& options = any.get<ReplacedOptions>();
  const int dim = layout.input_dim;
  Engine rows = seeds.stream(Purpose::evaluation, kReplacedRows);
  Engine values = seeds.stream(Purpose::evaluation, kReplacement);
  Vector replacement(dim);
  fill_normal(values, options.scale, replacement.data(), static_cast<std::size_t>(dim));
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    for (Eigen::Index start = 0; start < x.cols(); start += dim) {
      if (draw_uniform(rows) < options.share) x.row(i).segment(start, dim) = replacement;
    }
  }
}

}  // namespace

void ReplacedOptions::bind(Fields& fields) {
  fields.add("share", share, fraction(), "probability of a row to be replaced");
  fields.add("scale", scale, at_least(0), "scale of the fixed row");
}

ContaminationKind replaced_contamination() {
  return {{"replaced", "a share of the rows (tokens) is replaced by one fixed row, drawn N(0, scale² I)",
           ReplacedOptions{}, ReplacedOptions{.share = 0.3}},
          replace_rows};
}

}  // namespace moelab
