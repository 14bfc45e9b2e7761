/// One expert for all rows of a sequence.

#include <doctest/doctest.h>

#include <numeric>

#include "sim/model/loss/auxiliary_loss.h"
#include "tests/sim/model/gating/gated.h"

namespace moelab::sequence_gating_test {
namespace {

/// Routes rows of `tokens` each again.
void route(Gated& gated, int tokens) {
  gated.context.tokens = tokens;
  gated.gating->gate(gated.context, gated.scratch);
}

}  // namespace

TEST_CASE("all rows of a sequence go to the expert of the largest summed score") {
  Gated gated(SequenceTop1GatingOptions{}, {{1, 0, 0}, {0, 3, 0}, {2, 0, 0}, {0, 1, 0}});
  route(gated, 2);
  for (const int row : {0, 1}) CHECK(gated.gate(row, 1) == 1);
  for (const int row : {2, 3}) CHECK(gated.gate(row, 0) == 1);
  const double whole = std::exp(1.0) + std::exp(3.0) + 1;
  CHECK(gated.probability(0, 1) == doctest::Approx(std::exp(3.0) / whole));
  CHECK(gated.probability(1, 1) == gated.probability(0, 1));
}

TEST_CASE("the gradient in r reaches each row of the sequence through the sum") {
  Gated gated(SequenceTop1GatingOptions{}, {{1, 0, 0}, {0.5, 0.3, 0}});
  route(gated, 2);
  const std::size_t stride = size(gated.routing().stride);
  AlignedVector<double> gradient(2 * stride, 0.0);
  // The loss is r_0 of the first row plus 2 r_1 of the second.
  gradient[0] = 1;
  gradient[stride + 1] = 2;
  gated.gating->backward_probabilities(gated.scratch, gradient.data());
  const auto loss = [&] {
    route(gated, 2);
    return gated.probability(0, 0) + 2 * gated.probability(1, 1);
  };
  constexpr double kStep = 1e-6;
  for (std::size_t place = 0; place < 2 * stride; ++place) {
    if (place % stride >= 3) continue;
    gated.scores[place] += kStep;
    const double above = loss();
    gated.scores[place] -= 2 * kStep;
    const double below = loss();
    gated.scores[place] += kStep;
    CHECK(gradient[place] == doctest::Approx((above - below) / (2 * kStep)).epsilon(1e-6));
  }
}

TEST_CASE("noise is drawn for each sequence, in training steps alone") {
  Gated gated(SequenceTop1GatingOptions{.noise = 1}, std::vector<std::vector<double>>(40, {0, 0, 0}), {},
              true);
  route(gated, 2);
  std::vector<int> served(3, 0);
  for (int row = 0; row < 40; row += 2) {
    CHECK(serving_expert(gated.routing(), row) == serving_expert(gated.routing(), row + 1));
    ++served[size(serving_expert(gated.routing(), row))];
  }
  CHECK(*std::min_element(served.begin(), served.end()) > 0);
  Gated quiet(SequenceTop1GatingOptions{.noise = 1}, {{0, 0, 1e-9}});
  CHECK(quiet.gate(0, 2) == 1);
}

TEST_CASE("the router freezes once the score of every expert was close to the chosen one") {
  const TerminationOptions termination{.gap = 0.5, .after = 2};
  Gated gated(SequenceTop1GatingOptions{.termination = termination}, {{1, 0.8, 0}}, {}, true);
  const auto step = [&](std::vector<double> scores) {
    std::copy(scores.begin(), scores.end(), gated.scores.begin());
    gated.gating->gate(gated.context, gated.scratch);
    gated.gating->end_step(gated.scratch, gated.state.data());
  };
  const auto is_frozen = [&] {
    gated.gating->gate(gated.context, gated.scratch);
    AlignedVector<double> gradient(size(gated.routing().stride), 0.0);
    gradient[0] = 1;
    gated.gating->backward_probabilities(gated.scratch, gradient.data());
    return gradient[0] == 0;
  };
  const double* const dispatched = gated.state.data() + 3;
  const double* const settled = dispatched + 3;
  step({1, 0.8, 0});  // before `after`
  CHECK(std::accumulate(settled, settled + 3, 0.0) == 0);
  step({1, 0.8, 0});
  CHECK(settled[1] == 1);
  CHECK(std::accumulate(settled, settled + 3, 0.0) == 1);
  CHECK(!is_frozen());
  step({0.8, 1, 0.7});
  CHECK(is_frozen());
  CHECK(dispatched[0] == 2);
  CHECK(dispatched[1] == 1);
}

TEST_CASE("balance over the history counts the sequences of earlier steps") {
  Gated gated(SequenceTop1GatingOptions{}, {{1, 0, 0}, {1, 0, 0}});
  route(gated, 2);
  RoutedBatch<double> batch{gated.scores.data(), gated.scratch.probabilities.data(), &gated.routing()};
  batch.tokens = 2;
  const std::vector<double> dispatched = {2, 3, 4};
  batch.dispatched = dispatched.data();
  AuxiliaryScratch scratch;
  const auto value = [&](const char* name) {
    return auxiliary_loss_kinds()[auxiliary_loss_place(name)].value.in_double(batch, scratch);
  };
  const double r = gated.probability(0, 0);
  CHECK(value("history") == doctest::Approx(3 * 0.3 * r / 10));  // E f r / t with f = 3/10, t = 10
  CHECK(value("history_code") == doctest::Approx(3 * r / 10));
  CHECK(value("locality") == 0);
  const std::vector<double> moves = {0.5, 7, 7};
  batch.moves = moves.data();
  CHECK(value("locality") ==
        doctest::Approx(0.5 * r + 7 * gated.probability(0, 1) + 7 * gated.probability(0, 2)));
}

}  // namespace moelab::sequence_gating_test
