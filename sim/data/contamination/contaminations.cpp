#include "sim/data/contamination/contamination.h"

// Adding a contamination or an attack is a new file that defines <name>_contamination() and a line here.
// clang-format off
#define MOELAB_CONTAMINATIONS(entry) \
  entry(none)                        \
  entry(noise)                       \
  entry(replaced)                    \
  entry(swapped)                     \
  entry(fgsm)                        \
  entry(pgd)                         \
  entry(spsa)
// clang-format on

namespace moelab {

#define MOELAB_DECLARE(name) ContaminationKind name##_contamination();
MOELAB_CONTAMINATIONS(MOELAB_DECLARE)
#undef MOELAB_DECLARE

namespace {

std::vector<ContaminationKind>& contaminations() {
#define MOELAB_CALL(name) name##_contamination(),
  static std::vector<ContaminationKind> table = {MOELAB_CONTAMINATIONS(MOELAB_CALL)};
#undef MOELAB_CALL
  return table;
}

}  // namespace

const std::vector<ContaminationKind>& ContaminationAxis::table() {
  return contaminations();
}

void add_contamination_kind(ContaminationKind kind) {
  contaminations().push_back(std::move(kind));
}

void contaminate(const ContaminationOptions& options, const Layout& layout, const Seeds& seeds, Matrix& x) {
  const ContaminationKind& kind = options.entry();
  if (kind.contaminate) kind.contaminate(options.options(), layout, seeds, x);
}

void contaminate(const ContaminationOptions& options, const Layout& layout, const Seeds& seeds, Matrix& x,
                 Matrix& y) {
  contaminate(options, layout, seeds, x);
  const ContaminationKind& kind = options.entry();
  if (!kind.change_ids) return;
  Matrix ids(x.rows(), x.cols() + 1);
  ids << x, y.rightCols(1);
  kind.change_ids(options.options(), layout, seeds, ids);
  x = ids.leftCols(x.cols());
  y = ids.rightCols(y.cols());
}

ContaminationKind none_contamination() {
  return {{"none", "test inputs as drawn", NoContaminationOptions{}, NoContaminationOptions{}}};
}

}  // namespace moelab
