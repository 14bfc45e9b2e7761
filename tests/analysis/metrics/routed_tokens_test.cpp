/// Metrics of the experts of tokens, by hand.

#include "analysis/metrics/routed_tokens.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <numeric>

namespace moelab::routed_tokens_test {
namespace {

std::map<std::string, double> by_name(const RoutedValues& values) {
  return {values.begin(), values.end()};
}

/// Four documents of two tokens; documents 0 and 1 are of cluster 0 and go to experts 0 and 1.
RoutedTokens example(int documents = 4) {
  RoutedTokens tokens({.experts = 4, .top_k = 2, .clusters = 2, .documents = documents});
  const std::vector<std::vector<int>> sets = {{0, 1}, {1, 0}, {0, 1}, {0, 1}, {2, 3}, {2, 1}, {2, 3}, {2, 3}};
  for (int t = 0; t < 8; ++t)
    tokens.add({.experts = sets[static_cast<std::size_t>(t)].data(),
                .cluster = t / 4,
                .document = documents > 0 ? t / 2 : 0,
                .position = t % 2,
                .token = t % 2});
  return tokens;
}

}  // namespace

TEST_CASE("routed tokens: loads count K choices, and the first choice is told apart") {
  const std::map<std::string, double> values = by_name(example().values());
  // n_e is 4 5 4 3 of N = 16. First choices are 3 1 4 0 of n = 8.
  CHECK(values.at("tokens") == 8);
  CHECK(values.at("selections") == 16);
  CHECK(values.at("expert_load_max_violation") == 0.25);
  CHECK(values.at("dead_experts_topk") == 0);
  CHECK(values.at("dead_experts_top1") == 0.25);
  CHECK(values.at("coverage_2") == doctest::Approx(9.0 / 16));
  CHECK(values.at("top1_cluster_purity") == 1);
  CHECK(values.at("topk_cluster_purity") == doctest::Approx(15.0 / 16));
  // Three of the four pairs of neighbours have the same first choice.
  CHECK(values.at("repeat_first") == 0.75);
  CHECK(values.at("repeat_any") == 1);
  CHECK_FALSE(values.contains("routing_entropy"));
  // Experts 0 and 3 share all tokens with 1 and 2. Expert 1 shares 4 of 5 with 0. Expert 2 shares 3 of 4
  // with 3.
  CHECK(values.at("co_activation") == doctest::Approx((1 + 0.8 + 0.75 + 1) / 4));
  // The first choices are 0 0 2 2 of token 0 and 1 0 2 2 of token 1.
  CHECK(values.at("token_specialisation_all") == 0.5);
  CHECK_FALSE(values.contains("token_specialisation"));
}

TEST_CASE("routed tokens: matrices") {
  const RoutedTokens tokens = example();
  const Matrix domain = tokens.cluster_specialisation();
  CHECK(domain(0, 0) == 1);
  CHECK(domain(1, 1) == 0.25);
  CHECK(domain.row(1).sum() == 2);
  CHECK(std::isnan(tokens.co_activation()(0, 0)));
  CHECK(tokens.co_activation()(1, 2) == doctest::Approx(0.2));
  CHECK(tokens.cluster_overlap(2)(0, 1) == 0);
  CHECK(tokens.cluster_divergence().size() == 0);
  CHECK(tokens.frequent_tokens(1).first == std::vector<std::int64_t>{0});
}

TEST_CASE("routed tokens: an interval needs four documents in a cluster") {
  Engine engine = Seeds{1, 0}.stream(Purpose::evaluation);
  int fewest = 0;
  CHECK(example().intervals(engine, 100, fewest).empty());
  CHECK(fewest == 2);
  RoutedTokens tokens({.experts = 2, .top_k = 1, .documents = 6});
  for (int document = 0; document < 6; ++document) {
    for (int t = 0; t < 10; ++t) {
      const int expert = t < 5 + document % 3 ? 0 : 1;
      tokens.add({.experts = &expert, .document = document, .position = t});
    }
  }
  const std::map<std::string, Interval> intervals = tokens.intervals(engine, 2000, fewest);
  CHECK(fewest == 6);
  // n_0 ÷ n has the mean 0.6 and the standard deviation √(2/3)/10 over documents.
  const double deviation = 2 * std::sqrt(2.0 / 3) / 10 / std::sqrt(6.0);
  const Interval violation = intervals.at("expert_load_max_violation");
  CHECK(violation.low < 0.2);
  CHECK(violation.high > 0.2);
  CHECK(violation.high - violation.low == doctest::Approx(2 * 1.96 * deviation).epsilon(0.2));
}

TEST_CASE("routed tokens: the chance level of co-activation is what an even router has") {
  Engine engine = Seeds{1, 0}.stream(Purpose::evaluation);
  for (const std::array<int, 3>& setting :
       {std::array{16, 2, 442}, std::array{8, 4, 1000}, std::array{3, 3, 50}}) {
    const int experts = setting[0], k = setting[1], count = setting[2];
    CAPTURE(experts);
    constexpr int kRouters = 20;
    double measured = 0, chance = 0;
    for (int router = 0; router < kRouters; ++router) {
      RoutedTokens tokens({.experts = experts, .top_k = k});
      for (int t = 0; t < count; ++t) {
        const std::vector<int> order = draw_permutation(engine, experts);
        tokens.add({.experts = order.data()});
      }
      measured += by_name(tokens.values()).at("co_activation") / kRouters;
      chance += tokens.chance(engine).at("co_activation") / kRouters;
    }
    CHECK(chance == doctest::Approx(measured).epsilon(0.03));
  }
}

TEST_CASE("routed tokens: the chance levels of token ids are what a router that ignores them has") {
  Engine engine = Seeds{1, 0}.stream(Purpose::evaluation);
  constexpr int kExperts = 16, kTokens = 2000, kIds = 60;
  RoutedTokens tokens({.experts = kExperts, .top_k = 1});
  for (int t = 0; t < kTokens; ++t) {
    const int expert = draw_index(engine, kExperts);
    tokens.add({.experts = &expert, .token = draw_index(engine, kIds)});
  }
  const std::map<std::string, double> values = by_name(tokens.values()), chance = tokens.chance(engine);
  CHECK(values.at("token_nmi") > 0.05);  // though nothing tells the expert
  for (const char* const name : {"token_nmi", "token_specialisation", "token_specialisation_all"})
    CHECK_MESSAGE(chance.at(name) == doctest::Approx(values.at(name)).epsilon(0.1), name);
}

TEST_CASE("routed tokens: r over the chosen experts alone has no mass and no margin of selection") {
  RoutedTokens tokens({.experts = 3, .top_k = 2, .has_probabilities = true, .is_over_chosen = true});
  const std::vector<double> r = {0.75, 0.25, 0};
  const std::array<int, 2> chosen = {0, 1};
  tokens.add({.experts = chosen.data(), .probabilities = r.data(), .selection = r.data(), .next = 2});
  const std::map<std::string, double> values = by_name(tokens.values());
  CHECK(values.at("router_margin") == 0.5);
  for (const char* const name : {"selected_mass", "selection_margin"}) {
    CHECK_MESSAGE(!values.contains(name), name);
    CHECK_MESSAGE(tokens.skipped().at(name) == "r is over the chosen experts alone", name);
  }
}

TEST_CASE("routed tokens: chance is above 0 for a maximum and for a purity") {
  Engine engine = Seeds{1, 0}.stream(Purpose::evaluation);
  const std::map<std::string, double> chance = example().chance(engine);
  CHECK(chance.at("expert_load_max_violation") > 0.25);
  CHECK(chance.at("repeat_first") == 0.25);
  CHECK(chance.at("repeat_any") == doctest::Approx(1 - 1.0 / 6));
  CHECK(chance.at("co_activation") > 1.0 / 3);
  // Of the three ways to pair four documents, one leaves the purity at 1.
  CHECK(chance.at("top1_cluster_purity") > 0.6);
  CHECK(chance.at("top1_cluster_purity") < 0.9);
}

TEST_CASE("routed tokens: a token without an expert is unserved, and a margin of biased scores is theirs") {
  RoutedTokens tokens({.experts = 3, .top_k = 1, .has_probabilities = true, .is_biased = true});
  const std::vector<double> r = {0.5, 0.3, 0.2}, scores = {0.1, 0.4, 0.2};
  const int second = 1, none = -1;
  tokens.add({.experts = &second, .probabilities = r.data(), .selection = scores.data(), .next = 2});
  tokens.add({.experts = &none, .probabilities = r.data()});
  const std::map<std::string, double> values = by_name(tokens.values());
  CHECK(values.at("unserved_share") == 0.5);
  CHECK(values.at("selection_margin") == doctest::Approx(0.2));
  CHECK(values.at("router_margin") == doctest::Approx(0.2));
  CHECK(values.at("selected_mass") == doctest::Approx(0.15));
  CHECK(values.at("rows_where_scores_alone_select_others") == 0.5);
}

TEST_CASE("routed tokens: chance levels leave tokens without a cluster out, as the metrics do") {
  // All tokens with a cluster go to expert 0, half of them from either cluster: every purity is 1/2.
  const int first = 0, second = 1;
  for (const int documents : {8, 0}) {
    CAPTURE(documents);
    RoutedTokens tokens({.experts = 2, .top_k = 1, .clusters = 2, .documents = documents});
    for (int d = 0; d < 8; ++d) {
      for (int t = 0; t < 4; ++t) {
        const bool has_cluster = d < 4 && t < 2;  // four documents have no such token, the others two
        tokens.add({.experts = has_cluster ? &first : &second,
                    .cluster = has_cluster ? d % 2 : -1,
                    .document = documents > 0 ? d : 0,
                    .position = t});
      }
    }
    Engine engine = Seeds{1, 0}.stream(Purpose::evaluation);
    CHECK(by_name(tokens.values()).at("top1_cluster_purity") == 0.5);
    CHECK(tokens.chance(engine).at("top1_cluster_purity") == doctest::Approx(0.5));
  }
}

TEST_CASE("routed tokens: metrics of clusters need a token with a cluster and an expert") {
  RoutedTokens tokens({.experts = 2, .top_k = 1, .clusters = 2, .documents = 1});
  const int expert = 1;
  tokens.add({.experts = &expert});
  Engine engine = Seeds{1, 0}.stream(Purpose::evaluation);
  const std::map<std::string, double> values = by_name(tokens.values()), chance = tokens.chance(engine);
  for (const char* const name : {"top1_cluster_purity", "topk_cluster_purity", "dispatch_entropy"}) {
    CHECK_MESSAGE(!values.contains(name), name);
    CHECK_MESSAGE(!chance.contains(name), name);
    CHECK_MESSAGE(tokens.skipped().at(name) == "no token with a label has an expert", name);
  }
}

TEST_CASE("routed tokens: counts that are all 0 have no loads") {
  const std::map<std::string, double> values =
      by_name(RoutedTokens::of_counts(std::array<std::int64_t, 2>{0, 0}, 1));
  CHECK(values == std::map<std::string, double>{{"tokens", 0}, {"selections", 0}});
  CHECK(by_name(RoutedTokens::of_counts(std::array<std::int64_t, 2>{3, 0}, 1)).at("dead_experts") == 0.5);
}

TEST_CASE("routed tokens: the chance level of a common expert is finite for many chosen experts") {
  constexpr int kExperts = 1600, kChosen = 350;  // either binomial coefficient is above 10^308
  RoutedTokens tokens({.experts = kExperts, .top_k = kChosen});
  std::vector<int> chosen(kChosen);
  std::iota(chosen.begin(), chosen.end(), 0);
  for (int t = 0; t < 2; ++t) tokens.add({.experts = chosen.data(), .position = t});
  Engine engine = Seeds{1, 0}.stream(Purpose::evaluation);
  CHECK(tokens.chance(engine).at("repeat_any") == doctest::Approx(1));
}

}  // namespace moelab::routed_tokens_test
