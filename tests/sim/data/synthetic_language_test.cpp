/// A synthetic language: its law against what it draws, and what cannot be.

#include "sim/data/synthetic_language.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <set>

#include "sim/base/error.h"
#include "sim/data/problem.h"

namespace moelab::synthetic_language_test {
namespace {

constexpr int kDomains = 3, kVocabulary = 6, kTokens = 20, kSamples = 2000;

SyntheticLanguageOptions language() {
  return {.domains = kDomains, .vocabulary = kVocabulary, .tokens = kTokens};
}

Dataset drawn(const SyntheticLanguageOptions& options, int samples = kSamples, const Seeds& seeds = {3, 0}) {
  return draw_set(*draw_problem(options, seeds), seeds, Purpose::test_data, samples);
}

int label_of(const Dataset& data, Eigen::Index row, Eigen::Index token) {
  return data.cluster[static_cast<std::size_t>(row * data.x.cols() + token)];
}

/// Share of tokens whose domain differs from the previous token's.
double switch_share(const Dataset& data) {
  int switches = 0;
  for (Eigen::Index i = 0; i < data.x.rows(); ++i) {
    for (Eigen::Index t = 1; t < data.x.cols(); ++t)
      switches += label_of(data, i, t) != label_of(data, i, t - 1);
  }
  return switches / static_cast<double>(data.x.rows() * (data.x.cols() - 1));
}

/// Mean of −log of the observed share of the next token among those after the same domain and token: the
/// entropy of the chains as they were drawn.
double observed_loss(const Dataset& data) {
  std::map<std::pair<int, double>, std::map<double, int>> counts;
  for (Eigen::Index i = 0; i < data.x.rows(); ++i) {
    for (Eigen::Index t = 0; t < data.x.cols(); ++t)
      ++counts[{label_of(data, i, t), data.x(i, t)}][data.y(i, t)];
  }
  double sum = 0;
  for (const auto& [context, next] : counts) {
    double all = 0;
    for (const auto& [token, count] : next) all += count;
    for (const auto& [token, count] : next) sum -= count * std::log(count / all);
  }
  return sum / static_cast<double>(data.x.size());
}

void check_refused(SyntheticLanguageOptions options, const std::string& path, const std::string& message) {
  try {
    check(DataOptions(options));
    FAIL("accepted");
  } catch (const InvalidOption& error) {
    CHECK(error.path() == path);
    CHECK_MESSAGE(std::string(error.message()).find(message) != std::string::npos, error.message());
  }
}

}  // namespace

TEST_CASE("targets are the next ids; a sequence has one domain, and all are drawn alike") {
  const Dataset data = drawn(language());
  CHECK(data.x.rightCols(kTokens - 1) == data.y.leftCols(kTokens - 1));
  CHECK(data.x.minCoeff() == 0);
  CHECK(data.x.maxCoeff() == kVocabulary - 1);
  CHECK(switch_share(data) == 0);
  std::map<int, int> counts;
  for (Eigen::Index i = 0; i < kSamples; ++i) ++counts[label_of(data, i, 0)];
  // Five standard errors of a binomial share of 1/3.
  const double error = std::sqrt(kSamples * 2.0 / 9.0);
  for (const auto& [domain, count] : counts) CHECK(std::abs(count - kSamples / 3.0) < 5 * error);
}

TEST_CASE("the law that is known is the one that was drawn from") {
  for (const double switch_rate : {0.0, 0.25}) {
    SyntheticLanguageOptions options = language();
    options.switch_rate = switch_rate;
    const std::unique_ptr<Problem> problem = draw_problem(options, {3, 0});
    const Dataset data = draw_set(*problem, {3, 0}, Purpose::test_data, kSamples);
    const std::optional<LanguageLosses> known = problem->language_losses(data);
    REQUIRE(known.has_value());
    // Knowing more never costs, on average; differences here are far above the noise of 40000 tokens.
    CHECK(known->oracle_domain < known->bayes);
    CHECK(known->bayes < known->bigram);
    CHECK(known->bigram < known->unigram);
    CHECK(known->unigram < std::log(kVocabulary));
    const double share = switch_share(data);
    const double error = std::sqrt((switch_rate * (1 - switch_rate) + 1e-12) / (kSamples * (kTokens - 1.0)));
    CHECK(std::abs(share - switch_rate) < 5 * error);
    // Counts fit k V (V − 1) = 90 free numbers to n = 40000 tokens and then lie below the law by 90 / 2n ≈
    // 0.001 nats, and by chance by less; the losses of a law of other chains differ by tenths.
    if (switch_rate == 0) {
      CHECK(std::abs(observed_loss(data) - known->oracle_domain) < 0.005);
      const Dataset other = drawn(options, kSamples, {4, 0});
      CHECK(problem->language_losses(other)->oracle_domain > known->oracle_domain + 0.1);
    }
  }
}

TEST_CASE("of order 2 the token before the last tells more") {
  SyntheticLanguageOptions options = language();
  options.order = 2;
  const std::unique_ptr<Problem> problem = draw_problem(options, {3, 0});
  const LanguageLosses known =
      *problem->language_losses(draw_set(*problem, {3, 0}, Purpose::test_data, kSamples));
  CHECK(known.bayes < known.bigram - 0.1);
}

TEST_CASE("domains with tokens of their own use those alone, and are known from the first") {
  SyntheticLanguageOptions options = language();
  options.tokens_of_domains = SyntheticLanguageOptions::Tokens::own;
  const std::unique_ptr<Problem> problem = draw_problem(options, {3, 0});
  const Dataset data = draw_set(*problem, {3, 0}, Purpose::test_data, 100);
  for (Eigen::Index i = 0; i < data.x.rows(); ++i) {
    for (Eigen::Index t = 0; t < data.x.cols(); ++t)
      CHECK(static_cast<int>(data.x(i, t)) / (kVocabulary / kDomains) == label_of(data, i, t));
  }
  const LanguageLosses known = *problem->language_losses(data);
  CHECK(known.bayes == doctest::Approx(known.oracle_domain).epsilon(1e-12));
}

TEST_CASE("a Zipf base makes the first tokens the commonest; a small concentration, rows of few tokens") {
  SyntheticLanguageOptions options = language();
  options.transitions = {.concentration = 100, .base = TransitionOptions::Base::zipf};
  const Dataset data = drawn(options);
  std::vector<double> shares(kVocabulary);
  for (Eigen::Index i = 0; i < data.x.size(); ++i) shares[static_cast<std::size_t>(data.x.data()[i])] += 1;
  double harmonic = 0;
  for (int v = 0; v < kVocabulary; ++v) harmonic += 1.0 / (1 + v);
  for (int v = 0; v < kVocabulary; ++v) {
    const double expected = 1 / (1.0 + v) / harmonic;
    CHECK(shares[static_cast<std::size_t>(v)] / static_cast<double>(data.x.size()) ==
          doctest::Approx(expected).epsilon(0.1));
  }
  options.transitions = {.concentration = 0.01};
  const std::unique_ptr<Problem> problem = draw_problem(options, {3, 0});
  CHECK(problem->language_losses(draw_set(*problem, {3, 0}, Purpose::test_data, 100))->oracle_domain < 0.3);
}

TEST_CASE("one domain more leaves the others as they were") {
  const auto transitions_after = [](int domains) {
    SyntheticLanguageOptions options = language();
    options.domains = domains;
    return drawn(options, 1);
  };
  // Of the same seed the first sequence starts in the same domain where the draw falls there either way.
  const Dataset of_three = transitions_after(3), of_four = transitions_after(4);
  if (label_of(of_three, 0, 0) == label_of(of_four, 0, 0)) CHECK(of_three.x == of_four.x);
}

TEST_CASE("facts: keys come at their rate and alike, each with one value in a domain") {
  constexpr int kPairs = 2, kFirstKey = kVocabulary - kPairs;
  SyntheticLanguageOptions options = language();
  options.facts = {.pairs = kPairs, .rate = 0.3};
  const std::unique_ptr<Problem> problem = draw_problem(options, {3, 0});
  const Dataset data = draw_set(*problem, {3, 0}, Purpose::test_data, kSamples);
  std::map<std::pair<int, double>, std::set<double>> values;
  double keys = 0, others = 0, first_keys = 0;
  for (Eigen::Index i = 0; i < data.x.rows(); ++i) {
    for (Eigen::Index t = 0; t < data.x.cols(); ++t) {
      if (data.x(i, t) >= kFirstKey) {
        values[{label_of(data, i, t), data.x(i, t)}].insert(data.y(i, t));
        continue;
      }
      ++others;
      keys += data.y(i, t) >= kFirstKey;
      first_keys += data.y(i, t) == kFirstKey;
    }
  }
  REQUIRE(values.size() == kDomains * kPairs);
  std::set<double> of_first_key;
  for (const auto& [key, following] : values) {
    CHECK(following.size() == 1);
    CHECK(*following.begin() < kFirstKey);
    if (key.second == kFirstKey) of_first_key.insert(*following.begin());
  }
  CHECK(of_first_key.size() > 1);  // a value is the domain's own, for these seeds
  // Five standard errors of binomial shares.
  CHECK(std::abs(keys / others - 0.3) < 5 * std::sqrt(0.3 * 0.7 / others));
  CHECK(std::abs(first_keys / keys - 0.5) < 5 * std::sqrt(0.25 / keys));
  const LanguageLosses known = *problem->language_losses(data);
  CHECK(known.oracle_domain < known.bayes);
  CHECK(known.bayes < known.bigram);
  // Without switches the oracle is the entropy of the chains as they were drawn, as above.
  CHECK(std::abs(observed_loss(data) - known.oracle_domain) < 0.005);
}

TEST_CASE("facts of domains with tokens of their own have values among these") {
  SyntheticLanguageOptions options = language();
  options.vocabulary = 11;
  options.facts = {.pairs = 2, .rate = 0.5};
  options.tokens_of_domains = SyntheticLanguageOptions::Tokens::own;
  const Dataset data = drawn(options, 200);
  for (Eigen::Index i = 0; i < data.x.rows(); ++i) {
    for (Eigen::Index t = 0; t < data.x.cols(); ++t) {
      if (data.x(i, t) < 9) CHECK(static_cast<int>(data.x(i, t)) / 3 == label_of(data, i, t));
    }
  }
}

TEST_CASE("what a language cannot be") {
  SyntheticLanguageOptions options = language();
  options.tokens_of_domains = SyntheticLanguageOptions::Tokens::own;
  options.domains = 7;
  check_refused(options, "data.vocabulary", "got 6, needs a token for each of data.domains = 7");
  options.domains = 5;
  options.facts = {.pairs = 2, .rate = 0.1};
  check_refused(
      options, "data.vocabulary",
      "got 6, needs a token for each of data.domains = 5 besides the tokens of data.facts.pairs = 2");
  options = language();
  options.facts = {.pairs = kVocabulary, .rate = 0.1};
  check_refused(options, "data.facts.pairs", "got 6, needs fewer keys than tokens, data.vocabulary = 6");
  options = language();
  options.vocabulary = 300;
  options.order = 2;
  check_refused(options, "data.vocabulary", "needs at most 20000000 transitions in all");
}

}  // namespace moelab::synthetic_language_test
