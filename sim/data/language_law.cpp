#include "sim/data/language_law.h"

#include <algorithm>
#include <cmath>

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
    // One token more is remembered until there are `order` of them.
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

}  // namespace

Eigen::Ref<const Eigen::RowVectorXd> LanguageLaw::row(int domain, int seen, Eigen::Index context) const {
  const bool is_key = seen > 0 && context % vocabulary() >= vocabulary() - keys;
  // Rows after a key do not depend on what went before it: that of one token stands for all.
  if (seen >= order || is_key) return transitions[static_cast<std::size_t>(domain)].row(context);
  return start.row(domain);
}

Eigen::Ref<const Eigen::RowVectorXd> LanguageLaw::next(int domain, std::span<const double> ids) const {
  const std::size_t seen = std::min(ids.size(), static_cast<std::size_t>(order));
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
        rows.row(context) =
            Eigen::RowVectorXd::Unit(vocabulary, values[c][static_cast<std::size_t>(last - first_key)]);
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
      const std::span<const double> seen(ids, static_cast<std::size_t>(t) + 1);
      for (int c = 0; c < count; ++c) likelihood[c] = law.next(c, seen)[next];
      const int domain = domains[static_cast<std::size_t>(i * tokens + t)];
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

}  // namespace moelab
