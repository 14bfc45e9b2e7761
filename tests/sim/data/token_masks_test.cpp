/// Masked tokens: which places, what stands there, and whose draws they are.

#include <doctest/doctest.h>

#include <cmath>

#include "sim/data/problem.h"
#include "sim/data/synthetic_language.h"
#include "tests/sim/data/statistics.h"

namespace moelab::token_masks_test {
namespace {

constexpr int kTokens = 10, kVocabulary = 6;

Dataset sentences(int samples) {
  const DataOptions data =
      SyntheticLanguageOptions{.domains = 2, .vocabulary = kVocabulary, .tokens = kTokens};
  return draw_set(*draw_problem(data, {1, 0}), {1, 0}, Purpose::test_data, samples);
}

Dataset masked(Dataset data, double share, const Seeds& seeds = {1, 0}, Purpose set = Purpose::test_data) {
  mask_tokens({share, kVocabulary}, seeds, set, kTokens, data);
  return data;
}

}  // namespace

TEST_CASE("masks: the share of every sequence, all places alike, with the ids that stood there as targets") {
  const Dataset plain = sentences(3000);
  for (const auto& [given_share, count] : {std::pair{0.3, 3}, {0.15, 2}, {0.01, 1}, {1.0, 10}}) {
    const auto& share = given_share;
    CAPTURE(share);
    const Dataset data = masked(plain, share);
    Vector at_place = Vector::Zero(kTokens);
    for (Eigen::Index i = 0; i < data.x.rows(); ++i) {
      int places = 0;
      for (int t = 0; t < kTokens; ++t) {
        const bool is_masked = data.x(i, t) == kVocabulary;
        REQUIRE(data.y(i, t) == (is_masked ? plain.x(i, t) : kNoTarget));
        if (!is_masked) REQUIRE(data.x(i, t) == plain.x(i, t));
        places += is_masked;
        at_place[t] += is_masked;
      }
      REQUIRE(places == count);
    }
    if (count == 1) CHECK(looks_uniform(at_place));
    CHECK((at_place.array() - 3000 * count / 10.0).abs().maxCoeff() <
          5 * std::sqrt(3000 * 0.1 * count * (1 - 0.1 * count)) + 1e-9);
    CHECK(data.cluster == plain.cluster);
  }
}

TEST_CASE("masks: of a set the same each time, of other sets and seeds others, shared where the set is") {
  const Dataset plain = sentences(50);
  const Matrix once = masked(plain, 0.3).x;
  CHECK(masked(plain, 0.3).x == once);
  CHECK(masked(plain, 0.3, {1, 0}, Purpose::train_data).x != once);
  CHECK(masked(plain, 0.3, {1, 1}).x != once);
  CHECK(masked(plain, 0.3, {2, 0}).x != once);
  Seeds shared{1, 1};
  shared.share(Purpose::test_data);
  CHECK(masked(plain, 0.3, shared).x == once);
  CHECK(masked(plain, 0.3, shared, Purpose::train_data).x !=
        masked(plain, 0.3, {1, 0}, Purpose::train_data).x);
  // A shorter set is the beginning of a longer one.
  CHECK(masked(sentences(20), 0.3).x == once.topRows(20));
}

TEST_CASE("masks: of batches anew in each") {
  Engine engine(1);
  const Dataset plain = sentences(20);
  std::vector<float> x(plain.x.data(), plain.x.data() + plain.x.size()), y(x.size()), again = x, other = x;
  mask_tokens<float>({0.3, kVocabulary}, engine, 20, kTokens, x.data(), y.data());
  mask_tokens<float>({0.3, kVocabulary}, engine, 20, kTokens, again.data(), y.data());
  CHECK(x != again);
  Engine same(1);
  mask_tokens<float>({0.3, kVocabulary}, same, 20, kTokens, other.data(), y.data());
  CHECK(x == other);
}

}  // namespace moelab::token_masks_test
