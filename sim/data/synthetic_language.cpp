#include "sim/data/synthetic_language.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/random/gamma_distribution.hpp>
#include <cmath>

#include "sim/base/error.h"
#include "sim/data/layout.h"
#include "sim/data/problem.h"

namespace moelab {
namespace {

/// P(x_t = u, x_{t+1} = v), averaged over t < tokens, (V, V): by recursion over the joint law of the domain
/// and the last `order` tokens.
Matrix pair_law(const LanguageLaw& law, int tokens) {
  const Eigen::Index vocabulary = law.vocabulary(), domains = law.domains();
  Matrix pairs = Matrix::Zero(vocabulary, vocabulary);
  Matrix joint = law.start / static_cast<double>(domains);  // (k, contexts)
  for (int t = 0; t < tokens; ++t) {
    const int seen = std::min(t + 1, law.order);
    const bool is_starting = seen < law.order;
    // The context grows by one token until it has `order` tokens.
    Matrix next = Matrix::Zero(domains, is_starting ? joint.cols() * vocabulary : joint.cols());
    for (Eigen::Index context = 0; context < joint.cols(); ++context) {
      const Vector belief = joint.col(context);
      const double mass = belief.sum();
      if (mass == 0) continue;
      const Vector moved = mass * law.switched(belief / mass);
      for (Eigen::Index c = 0; c < domains; ++c) {
        const Eigen::RowVectorXd weighted = moved[c] * law.row(static_cast<int>(c), seen, context);
        pairs.row(context % vocabulary) += weighted;
        const Eigen::Index first = context * vocabulary % next.cols();
        next.row(c).segment(first, vocabulary) += weighted;
      }
    }
    joint = std::move(next);
  }
  return pairs / static_cast<double>(tokens);
}

/// The largest number of entries of all chains: 160 MB.
constexpr double kMostTransitions = 2e7;

/// The base of the tokens first … first + count − 1, and 0 elsewhere.
Eigen::RowVectorXd base_law(TransitionOptions::Base base, int vocabulary, int first, int count) {
  Eigen::RowVectorXd law = Eigen::RowVectorXd::Zero(vocabulary);
  for (int place = 0; place < count; ++place)
    law[first + place] = base == TransitionOptions::Base::zipf ? 1.0 / (1 + place) : 1.0;
  return law / law.sum();
}

/// A draw of Dirichlet(weight · base), with zeros at the zeros of the base.
Eigen::RowVectorXd draw_dirichlet(Engine& engine, const Eigen::RowVectorXd& base, double weight) {
  Eigen::RowVectorXd row = Eigen::RowVectorXd::Zero(base.size());
  // With small weights every entry may underflow.
  while (row.sum() <= 0) {
    for (Eigen::Index v = 0; v < base.size(); ++v) {
      if (base[v] > 0) row[v] = boost::random::gamma_distribution<double>(weight * base[v])(engine);
    }
  }
  return row / row.sum();
}

class SyntheticLanguage final : public Problem {
 public:
  SyntheticLanguage(const SyntheticLanguageOptions& options, const Seeds& seeds) : tokens_(options.tokens) {
    const int vocabulary = options.vocabulary, domains = options.domains;
    const bool are_own = options.tokens_of_domains == SyntheticLanguageOptions::Tokens::own;
    law_.order = options.order;
    law_.switch_rate = options.switch_rate;
    law_.start.resize(domains, vocabulary);
    std::vector<std::vector<int>> values;  // of facts, by domain
    const Eigen::Index contexts = options.order == 1 ? vocabulary : Eigen::Index{vocabulary} * vocabulary;
    for (int c = 0; c < domains; ++c) {
      const int first = are_own ? place_of(c, options) : 0;
      const int count = are_own ? place_of(c + 1, options) - first : options.chained();
      law_.start.row(c) = base_law(options.transitions.base, vocabulary, first, count);
      // A stream for each domain: adding one leaves the others unchanged.
      const int stream = options.first_domain + c;
      Engine engine = seeds.stream(Purpose::problem, static_cast<std::uint64_t>(stream));
      Matrix& rows = law_.transitions.emplace_back(contexts, vocabulary);
      for (Eigen::Index context = 0; context < contexts; ++context)
        rows.row(context) =
            draw_dirichlet(engine, law_.start.row(c), options.transitions.concentration * count);
      if (!options.facts) continue;
      std::vector<int>& of_domain = values.emplace_back();
      for (int p = 0; p < options.facts->pairs; ++p) of_domain.push_back(first + draw_index(engine, count));
    }
    if (options.facts) add_facts(law_, options.facts->rate, values);
  }

  Layout layout() const override { return token_layout(tokens_, law_.vocabulary()); }
  int clusters() const override { return law_.domains(); }

  Dataset draw(Engine& engine, const SampleRange& range) const override {
    Dataset data{Matrix(range.count, tokens_), Matrix(range.count, tokens_), {}};
    data.cluster.reserve(size(data.x.size()));
    std::vector<double> ids(size(tokens_) + 1);
    for (int i = 0; i < range.count; ++i) {
      int domain = draw_index(engine, law_.domains());
      for (int t = 0; t <= tokens_; ++t) {
        if (t > 0) domain = draw_switch(engine, domain);
        const std::span<const double> seen(ids.data(), size(t));
        ids[size(t)] = draw_category(engine, law_.next(domain, seen));
        if (t < tokens_) data.cluster.push_back(domain);
      }
      data.x.row(i) = Eigen::Map<const Eigen::RowVectorXd>(ids.data(), tokens_);
      data.y.row(i) = Eigen::Map<const Eigen::RowVectorXd>(ids.data() + 1, tokens_);
    }
    return data;
  }

  bool knows_language() const override { return true; }
  std::optional<LanguageLosses> language_losses(const Dataset& data) const override {
    return losses_of(law_, data.x, data.y, data.cluster);
  }

 private:
  /// The first token of a domain with separate tokens.
  static int place_of(int domain, const SyntheticLanguageOptions& options) {
    return static_cast<int>(std::int64_t{domain} * options.chained() / options.domains);
  }

  int draw_switch(Engine& engine, int domain) const {
    if (law_.switch_rate == 0 || law_.domains() == 1 || draw_uniform(engine) >= law_.switch_rate)
      return domain;
    const int other = draw_index(engine, law_.domains() - 1);
    return other < domain ? other : other + 1;
  }

  int tokens_;
  LanguageLaw law_;
};

void check_language(const DataOptions& data) {
  const SyntheticLanguageOptions& options = data.options().get<SyntheticLanguageOptions>();
  if (options.chained() < 1) {
    throw InvalidOption("data.facts.pairs",
                        fmt::format("got {}, needs fewer keys than tokens, data.vocabulary = {}",
                                    options.facts->pairs, options.vocabulary));
  }
  if (options.tokens_of_domains == SyntheticLanguageOptions::Tokens::own &&
      options.chained() < options.domains) {
    throw InvalidOption(
        "data.vocabulary",
        fmt::format(
            "got {}, needs a token for each of data.domains = {}{}", options.vocabulary, options.domains,
            options.facts ? fmt::format(" besides the tokens of data.facts.pairs = {}", options.facts->pairs)
                          : ""));
  }
  const double transitions = options.domains * std::pow(options.vocabulary, options.order + 1);
  if (transitions <= kMostTransitions) return;
  throw InvalidOption(
      "data.vocabulary",
      fmt::format("got {}, needs at most {:.0f} transitions in all, but {} chains of order {} have {:.3g}",
                  options.vocabulary, kMostTransitions, options.domains, options.order, transitions));
}

}  // namespace

Eigen::Ref<const Eigen::RowVectorXd> LanguageLaw::row(int domain, int seen, Eigen::Index context) const {
  const bool is_key = seen > 0 && context % vocabulary() >= vocabulary() - keys;
  // Rows after a key do not depend on earlier tokens, so the row of any context serves.
  if (seen >= order || is_key) return transitions[size(domain)].row(context);
  return start.row(domain);
}

Eigen::Ref<const Eigen::RowVectorXd> LanguageLaw::next(int domain, std::span<const double> ids) const {
  const std::size_t seen = std::min(ids.size(), size(order));
  Eigen::Index context = 0;
  for (const double id : ids.last(seen)) context = context * vocabulary() + static_cast<Eigen::Index>(id);
  return row(domain, static_cast<int>(seen), context);
}

Vector LanguageLaw::switched(const Vector& belief) const {
  if (belief.size() == 1) return belief;
  const double others = switch_rate / static_cast<double>(belief.size() - 1);
  return ((1 - switch_rate) * belief.array() + others * (1 - belief.array())).matrix();
}

void add_facts(LanguageLaw& law, double rate, const std::vector<std::vector<int>>& values) {
  const Eigen::Index vocabulary = law.vocabulary();
  law.keys = static_cast<int>(values.front().size());
  const Eigen::Index first_key = vocabulary - law.keys;
  const auto mix_in_keys = [&](Eigen::Ref<Eigen::RowVectorXd> row) {
    row *= 1 - rate;
    row.tail(law.keys).setConstant(rate / law.keys);
  };
  for (std::size_t c = 0; c < values.size(); ++c) {
    mix_in_keys(law.start.row(static_cast<Eigen::Index>(c)));
    Matrix& rows = law.transitions[c];
    for (Eigen::Index context = 0; context < rows.rows(); ++context) {
      const Eigen::Index last = context % vocabulary;
      if (last < first_key) {
        mix_in_keys(rows.row(context));
      } else {
        rows.row(context) = Eigen::RowVectorXd::Unit(vocabulary, values[c][size(last - first_key)]);
      }
    }
  }
}

LanguageLosses losses_of(const LanguageLaw& law, const Matrix& x, const Matrix& y,
                         std::span<const int> domains) {
  const int tokens = static_cast<int>(x.cols()), count = law.domains();
  const Matrix pairs = pair_law(law, tokens);
  const Vector of_last = pairs.rowwise().sum();
  const Eigen::RowVectorXd of_next = pairs.colwise().sum();
  LanguageLosses sums;
  Vector likelihood(count);
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    const double* const ids = x.data() + i * tokens;
    Vector belief = law.start.col(static_cast<Eigen::Index>(ids[0]));
    belief /= belief.sum();
    for (int t = 0; t < tokens; ++t) {
      const Eigen::Index last = static_cast<Eigen::Index>(ids[t]), next = static_cast<Eigen::Index>(y(i, t));
      const std::span<const double> seen(ids, size(t) + 1);
      for (int c = 0; c < count; ++c) likelihood[c] = law.next(c, seen)[next];
      const int domain = domains[size(i * tokens + t)];
      const Vector predicted = law.switched(belief).cwiseProduct(likelihood);
      sums.bayes -= std::log(predicted.sum());
      sums.oracle_domain -= std::log(law.switched(Vector::Unit(count, domain)).dot(likelihood));
      sums.bigram -= std::log(pairs(last, next) / of_last[last]);
      sums.unigram -= std::log(of_next[next]);
      belief = predicted / predicted.sum();
    }
  }
  const double all = static_cast<double>(x.size());
  return {sums.bayes / all, sums.oracle_domain / all, sums.bigram / all, sums.unigram / all};
}

void TransitionOptions::bind(Fields& fields) {
  fields.add("concentration", concentration, between(1e-3, 1e6),
             "of the Dirichlet law of a row, a token: the smaller, the fewer tokens follow one");
  fields.add("base", base, {"uniform", "zipf"},
             "mean of that law: all tokens of the domain alike, or ∝ 1 / (1 + place among them)");
}

void FactOptions::bind(Fields& fields) {
  fields.required().add("pairs", pairs, between(1, 65535),
                        "facts P: keys, the last tokens, the same in all domains, each with a value in each");
  fields.required().add("rate", rate, fraction(),
                        "probability r that a token which is no value is a key; its value follows");
}

void SyntheticLanguageOptions::bind(Fields& fields) {
  fields.required().add("domains", domains, between(1, 1e4), "number of domains k");
  fields.add("first_domain", first_domain, between(0, 1e9),
             "place of the first among all domains of the seed: held-out ones begin at the k of training");
  fields.required().add("vocabulary", vocabulary, between(2, 65536), "number of tokens V");
  fields.add("order", order, between(1, 2), "tokens that the next one depends on");
  fields.add("switch_rate", switch_rate, fraction(),
             "probability that the domain changes before a token; 0: a sequence has one domain");
  fields.required().add("tokens", tokens, between(1, 1e5),
                        "tokens of a sequence s; one more is drawn, the target of the last");
  fields.add("transitions", transitions, "rows of the chains");
  fields.add("tokens_of_domains", tokens_of_domains, {"shared", "own"},
             "every domain uses all tokens, or V / k separate ones");
  fields.add("facts", facts,
             "tokens that are keys, each followed by its value in the domain: what a model has to know by "
             "heart (default: none)");
}

GeneratorKind synthetic_language_generator() {
  GeneratorKind kind = {
      {"synthetic_language",
       "sequences of tokens from domains, each a Markov chain. The next token is the target, and the domain "
       "is the label. The lowest possible loss is known",
       SyntheticLanguageOptions{}, SyntheticLanguageOptions{.domains = 2, .vocabulary = 6, .tokens = 4}},
      draw_as<SyntheticLanguage, SyntheticLanguageOptions>,
      check_language};
  kind.tokens = [](const AnyOptions& options) { return options.get<SyntheticLanguageOptions>().tokens; };
  kind.token_ids = true;
  kind.kept_numbers = [](const AnyOptions& any, const Layout& /*layout*/) -> double {
    const SyntheticLanguageOptions& options = any.get<SyntheticLanguageOptions>();
    return options.domains * std::pow(options.vocabulary, options.order + 1);
  };
  return kind;
}

}  // namespace moelab
