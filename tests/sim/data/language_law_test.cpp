/// What predictors of the next token lose, against sums over all paths of domains (language_law.py wrote
/// language_law.json).

#include <doctest/doctest.h>

#include "sim/data/synthetic_language.h"
#include "tests/sim/reference_numbers.h"

namespace moelab::language_law_test {
namespace {

Matrix matrix_of(const Json& rows) {
  const std::vector<double> values = numbers_of(rows);
  return MatrixView(values.data(), static_cast<Eigen::Index>(rows.size()),
                    static_cast<Eigen::Index>(rows[0].size()));
}

LanguageLaw law_of(const Json& item) {
  LanguageLaw law{
      item.at("order").get<int>(), item.at("switch_rate").get<double>(), matrix_of(item.at("start")), {}};
  for (const Json& rows : item.at("transitions")) law.transitions.push_back(matrix_of(rows));
  if (!item.contains("facts")) return law;
  const Json& facts = item.at("facts");
  std::vector<std::vector<int>> values;
  for (const Json& of_domain : facts.at("values")) values.push_back(of_domain.get<std::vector<int>>());
  add_facts(law, facts.at("rate"), values);
  return law;
}

std::vector<double> losses_on(const LanguageLaw& law, const Json& item) {
  const Matrix ids = matrix_of(item.at("ids"));
  std::vector<int> domains;
  for (const double label : numbers_of(item.at("labels"))) domains.push_back(static_cast<int>(label));
  const LanguageLosses losses =
      losses_of(law, ids.leftCols(ids.cols() - 1), ids.rightCols(ids.cols() - 1), domains);
  return {losses.bayes, losses.oracle_domain, losses.bigram, losses.unigram};
}

}  // namespace

TEST_CASE("losses of predictors that know the law are those of all paths, added up") {
  const Json reference = read_json_file(MOELAB_TEST_DATA "/sim/data/language_law.json");
  for (const Json& item : reference.at("cases")) {
    const Json& expected = item.at("losses");
    const std::vector<double> numbers = {expected.at("bayes"), expected.at("oracle_domain"),
                                         expected.at("bigram"), expected.at("unigram")};
    LanguageLaw law = law_of(item);
    CHECK(misses(losses_on(law, item), numbers) == 0);
    if (item.contains("facts")) {
      LanguageLaw other = law;  // another law is not taken for it: values that are not quite sure
      for (Matrix& rows : other.transitions) rows = 0.999 * rows.array() + 0.001 / law.vocabulary();
      CHECK(misses(losses_on(other, item), numbers) == 4);
    }
    if (law.domains() == 1) continue;
    law.switch_rate += 1e-6;
    CHECK(misses(losses_on(law, item), numbers) >= 3);
  }
}

TEST_CASE("facts: rows are laws, keys are alike, and a value follows surely") {
  LanguageLaw law{2, 0, Matrix(2, 4), {Matrix(16, 4), Matrix(16, 4)}};
  law.start << 0.5, 0.5, 0, 0, 0.25, 0.75, 0, 0;
  for (Matrix& rows : law.transitions) rows = law.start.row(0).replicate(16, 1);
  add_facts(law, 0.2, {{0, 1}, {1, 1}});
  CHECK(law.keys == 2);
  CHECK(law.start(1, 1) == doctest::Approx(0.8 * 0.75));
  for (const Matrix& rows : law.transitions)
    CHECK((rows.rowwise().sum().array() - 1).abs().maxCoeff() < 1e-15);
  const auto next = [&](int domain, const std::vector<double>& ids) -> Eigen::RowVectorXd {
    return law.next(domain, ids);
  };
  const auto surely = [](int v) -> Eigen::RowVectorXd { return Eigen::RowVectorXd::Unit(4, v); };
  CHECK(next(0, {2}) == surely(0));  // after one token, though chains look at two
  CHECK(next(1, {2}) == surely(1));
  CHECK(next(0, {1, 3}) == surely(1));
  CHECK(next(0, {3, 1}) == law.transitions[0].row(0));
  CHECK(next(0, {1})[2] == doctest::Approx(0.1));
}

TEST_CASE("what is known of a language of one domain: the oracle knows no more than the past tells") {
  LanguageLaw law{1, 0, Matrix::Constant(1, 2, 0.5), {Matrix(2, 2)}};
  law.transitions[0] << 0.9, 0.1, 0.2, 0.8;
  const Matrix x = Matrix::Zero(1, 1), y = Matrix::Zero(1, 1);
  const std::vector<int> domains = {0};
  const LanguageLosses losses = losses_of(law, x, y, domains);
  CHECK(losses.bayes == doctest::Approx(-std::log(0.9)).epsilon(1e-14));
  CHECK(losses.oracle_domain == losses.bayes);
  CHECK(losses.bigram == doctest::Approx(losses.bayes).epsilon(1e-14));
  CHECK(losses.unigram == doctest::Approx(-std::log(0.55)).epsilon(1e-14));
}

}  // namespace moelab::language_law_test
