#include "sim/base/contract.h"
#include "sim/model/start.h"

namespace moelab {
namespace {

/// w_e ← init_scale x_e, x_e row e of the training set (Dikkala et al. 2023, Theorem 2): the router of the
/// first layer. Where there are no such rows, as for later layers, the law is `normal`.
void fill_train_samples(const Start& start, int expert, double init_scale, std::span<double> row) {
  if (!start.train_rows) return start_law("normal").fill(start, expert, init_scale, row);
  const Matrix& rows = *start.train_rows;
  MOELAB_EXPECT(expert < rows.rows() && static_cast<Eigen::Index>(row.size()) <= rows.cols());
  for (std::size_t j = 0; j < row.size(); ++j) {
    row[j] = init_scale * rows(expert, static_cast<Eigen::Index>(j));
  }
}

}  // namespace

StartLaw train_samples_start_law() {
  return {"train_samples", "init_scale times the first E training samples", true, fill_train_samples};
}

}  // namespace moelab
