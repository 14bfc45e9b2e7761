/// Which gatings look at rows that come later, and that they say so.

#include <doctest/doctest.h>

#include "tests/sim/model/example.h"
#include "tests/sim/model/gating/gated.h"

namespace moelab::looks_ahead_test {
namespace {

constexpr int kRows = 12, kFirst = 6, kExperts = 4;

/// Routes all rows again, as one sequence.
void route_as_sequence(Gated& gated) {
  gated.context.tokens = kRows;
  gated.gating->gate(gated.context, gated.scratch);
}

/// Whether gates of the first rows, or their shares in slots, change with the scores of the others, in any of
/// a few draws.
bool changes_with_later_rows(const GatingRule& rule) {
  Engine engine(7);
  for (int draw = 0; draw < 30; ++draw) {
    std::vector<std::vector<double>> rows(kRows, std::vector<double>(kExperts));
    for (std::vector<double>& row : rows) {
      for (double& score : row) score = 2 * draw_normal(engine);
    }
    Gated before(rule, rows);
    route_as_sequence(before);
    for (int row = kFirst; row < kRows; ++row) {
      for (double& score : rows[size(row)]) score = 2 * draw_normal(engine);
    }
    Gated after(rule, rows);
    route_as_sequence(after);
    for (int row = 0; row < kFirst; ++row) {
      for (int e = 0; e < kExperts; ++e) {
        if (before.gate(row, e) != after.gate(row, e)) return true;
        const std::size_t slot = entries(row, kernels::kPadding) + size(e);
        const auto share = [&](const Gated& gated) {
          return gated.gating->slots() > 0 ? gated.scratch.slots.dispatch[slot] : 0.0;
        };
        if (share(before) != share(after)) return true;
      }
    }
  }
  return false;
}

TEST_CASE("a gating whose gates depend on later rows says where it looks ahead, and no other does") {
  std::vector<NamedGating> gatings = example_gatings();
  using Drop = CapacityOptions::Drop;
  for (const Drop drop : {Drop::order, Drop::probability, Drop::random, Drop::next}) {
    const CapacityOptions capacity{.capacity_factor = 0.8, .drop = drop};
    gatings.push_back({"top-1, limited", TopKGatingOptions{.k = 1, .capacity = capacity}});
    gatings.push_back({"top-2, limited", TopKGatingOptions{.k = 2, .capacity = capacity}});
    gatings.push_back({"top1, limited", Top1GatingOptions{.capacity = capacity}});
    gatings.push_back({"sigmoid, limited", SigmoidGatingOptions{.k = 2, .capacity = capacity}});
    gatings.push_back({"noisy, limited", NoisyTopKGatingOptions{.k = 2, .capacity = capacity}});
  }
  int ahead = 0;
  for (const NamedGating& gating : gatings) {
    CAPTURE(gating.name);
    CAPTURE(gating.rule.chosen());
    const GatingKind& kind = gating.rule.entry();
    const std::string where = kind.looks_ahead ? kind.looks_ahead(gating.rule.options()) : "";
    CHECK(changes_with_later_rows(gating.rule) == !where.empty());
    ahead += !where.empty();
  }
  CHECK(ahead > 10);
}

TEST_CASE("what looks ahead by default says so among the kinds") {
  for (const KindChoice::Kind& kind : GatingRule().kinds()) {
    CAPTURE(kind.name);
    const GatingRule rule = GatingRule::named(kind.name);
    const GatingKind& entry = rule.entry();
    const bool is_ahead = entry.looks_ahead && !entry.looks_ahead(entry.defaults).empty();
    CHECK((kind.help.find("; not causal: ") != std::string::npos) == is_ahead);
  }
}

}  // namespace
}  // namespace moelab::looks_ahead_test
