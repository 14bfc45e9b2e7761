#include "sim/data/contamination/swapped.h"

#include "sim/data/contamination/contamination.h"
#include "sim/data/contamination/evaluation_streams.h"

namespace moelab {
namespace {

void swap_tokens(const AnyOptions& any, const Layout& layout, const Seeds& seeds, Matrix& ids) {
  const double share = any.get<SwappedOptions>().share;
  Engine places = seeds.stream(Purpose::evaluation, kReplacedRows);
  Engine tokens = seeds.stream(Purpose::evaluation, kReplacement);
  for (double& id : ids.reshaped<Eigen::RowMajor>()) {
    const int other = draw_index(tokens, layout.vocabulary - 1);
    if (draw_uniform(places) < share) id = other < id ? other : other + 1;
  }
}

}  // namespace

void SwappedOptions::bind(Fields& fields) {
  fields.add("share", share, fraction(), "probability of a token to be swapped");
}

ContaminationKind swapped_contamination() {
  return {{"swapped",
           "a share of the tokens of sequences, targets among them, is swapped for others of the vocabulary",
           SwappedOptions{}, SwappedOptions{.share = 0.3}},
          nullptr,
          {},
          swap_tokens};
}

}  // namespace moelab
