/// What every generator of the table has to keep, by its example.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "sim/base/error.h"
#include "sim/data/gaussian_mixture.h"
#include "sim/data/problem.h"
#include "tests/sim/data/data_of.h"
#include "tests/sim/data/pieces.h"

namespace moelab::generators_test {
namespace {

const Seeds kSeeds{7, 0};

/// The examples of the table, but those whose samples lie in files.
std::vector<DataOptions> drawn_examples() {
  std::vector<DataOptions> examples;
  for (const GeneratorKind& kind : GeneratorAxis::table()) {
    DataOptions data = kind.example;
    data.train_samples = 100;
    data.test_samples = 100;
    if (files_of(data).empty()) examples.push_back(std::move(data));
  }
  return examples;
}

bool equal(const Dataset& a, const Dataset& b) {
  return a.x == b.x && a.y == b.y && a.cluster == b.cluster;
}

/// Shapes as the layout says, finite values, labels of clusters.
void check_shapes(const Problem& problem, const Dataset& data, int samples) {
  const Layout layout = problem.layout();
  CHECK(data.x.rows() == samples);
  CHECK(data.x.cols() == layout.sample_dim());
  CHECK(data.y.rows() == samples);
  CHECK(data.y.cols() == layout.target_dim());
  CHECK(data.cluster.size() == static_cast<std::size_t>(samples) * static_cast<std::size_t>(layout.labels));
  CHECK(data.x.allFinite());
  CHECK(data.y.allFinite());
  CHECK(std::all_of(data.cluster.begin(), data.cluster.end(),
                    [&](int label) { return label >= 0 && label < problem.clusters(); }));
  if (!layout.class_targets) return;
  const MatrixView rows(data.y.data(), data.y.size() / layout.output_dim, layout.output_dim);
  CHECK(rows.minCoeff() >= 0);
  CHECK((rows.rowwise().sum().array() == 1).all());
}

TEST_CASE("every generator that reads files says which fields name them") {
  for (const GeneratorKind& kind : GeneratorAxis::table()) {
    CAPTURE(kind.name);
    CHECK((kind.files != nullptr) == !kind.file_fields.empty());
    const DataOptions data = kind.example;
    for (const auto& file : files_of(data))
      CHECK(std::find(kind.file_fields.begin(), kind.file_fields.end(), file.first) !=
            kind.file_fields.end());
  }
}

TEST_CASE("every generator: shapes are the layout's, sets are nested, and a seed means its data") {
  for (const DataOptions& data : drawn_examples()) {
    CAPTURE(data.chosen());
    check(data);
    const std::unique_ptr<Problem> problem = draw_problem(data, kSeeds);
    CHECK((problem->layout().image.size() > 0) == data.entry().has_image);
    CHECK(problem->layout().input_dim >= problem->layout().router_dim());
    for (const Purpose purpose : {Purpose::train_data, Purpose::test_data}) {
      const Dataset whole = draw_set(*problem, kSeeds, purpose, 100);
      check_shapes(*problem, whole, 100);
      const Dataset first = draw_set(*problem, kSeeds, purpose, 37);
      CHECK(first.x == whole.x.topRows(37));
      CHECK(first.y == whole.y.topRows(37));
      check_pieces(*problem, kSeeds, purpose, {1, 30, 69});
      CHECK(equal(whole, draw_set(*draw_problem(data, kSeeds), kSeeds, purpose, 100)));
      CHECK_FALSE(equal(whole, draw_set(*problem, {7, 1}, purpose, 100)));
      CHECK_FALSE(equal(whole, draw_set(*problem, {8, 0}, purpose, 100)));
    }
    CHECK_FALSE(equal(draw_set(*problem, kSeeds, Purpose::train_data, 100),
                      draw_set(*problem, kSeeds, Purpose::test_data, 100)));
  }
}

TEST_CASE("every generator: uniforms map to samples, and what is known of the law has its shape") {
  for (const DataOptions& data : drawn_examples()) {
    CAPTURE(data.chosen());
    const std::unique_ptr<Problem> problem = draw_problem(data, kSeeds);
    const Layout layout = problem->layout();
    const int uniforms = problem->uniforms_per_sample();
    if (uniforms > 0) {
      Engine engine(1);
      Matrix cube(40, uniforms);
      for (Eigen::Index i = 0; i < cube.size(); ++i) cube.data()[i] = draw_uniform(engine);
      const Dataset mapped = problem->map_uniforms(cube);
      check_shapes(*problem, mapped, 40);
      // Each sample is a function of its uniforms.
      const Dataset some = problem->map_uniforms(cube.middleRows(10, 5));
      CHECK(some.x == mapped.x.middleRows(10, 5));
      CHECK(some.y == mapped.y.middleRows(10, 5));
    }
    const Dataset test = draw_set(*problem, kSeeds, Purpose::test_data, 50);
    if (const std::optional<Matrix> best = problem->bayes_prediction(test.x)) {
      CHECK(best->rows() == 50);
      CHECK(best->cols() == layout.target_dim());
      CHECK(best->allFinite());
    }
    const Matrix basis = problem->signal_basis();
    if (basis.size() > 0) CHECK(basis.rows() == layout.input_dim);
  }
}

TEST_CASE("the table: names differ, class targets are kinds of target, a scenario may name every generator") {
  std::set<std::string> names;
  for (const GeneratorKind& kind : GeneratorAxis::table()) {
    CAPTURE(kind.name);
    CHECK(names.insert(kind.name).second);
    CHECK_FALSE(kind.help.empty());
    CHECK((kind.draw != nullptr));
    const DataOptions data = kind.example;
    CHECK(data.chosen() == kind.name);
    CHECK(kind.class_targets.empty() == (kind.target_kind == nullptr));
    if (kind.target_kind) CHECK_FALSE(kind.target_kind(data.options()).empty());
  }
  CHECK_THROWS_AS(data_of({{"generator", "gausian_mixture"}}), InvalidOption);
  CHECK_THROWS_AS(check(DataOptions{}), InvalidOption);
  CHECK_THROWS_AS(draw_problem(DataOptions{}, kSeeds), InvalidOption);
}

TEST_CASE("options in code and the words of a scenario mean the same data") {
  DataOptions typed =
      GaussianMixtureOptions{.clusters = 5,
                             .dim = 3,
                             .separation = 0.2,
                             .covariance = gaussian_mixture::TightSubsets{.tight_features = 1},
                             .weights = {{1, 2, 3, 4, 5}},
                             .target = gaussian_mixture::LinearTarget{.dim = 2}};
  typed.train_samples = 10;
  const DataOptions read = data_of({{"generator", "gaussian_mixture"},
                                    {"clusters", 5},
                                    {"dim", 3},
                                    {"separation", 0.2},
                                    {"covariance", {{"kind", "tight_subsets"}, {"tight_features", 1}}},
                                    {"weights", {1, 2, 3, 4, 5}},
                                    {"target", {{"kind", "linear"}, {"dim", 2}}},
                                    {"train_samples", 10}});
  CHECK(read.train_samples == typed.train_samples);
  CHECK(read.test_samples == typed.test_samples);
  CHECK(read.contamination.chosen() == typed.contamination.chosen());
  CHECK(equal(draw_set(*draw_problem(typed, kSeeds), kSeeds, Purpose::train_data, 10),
              draw_set(*draw_problem(read, kSeeds), kSeeds, Purpose::train_data, 10)));
}

}  // namespace
}  // namespace moelab::generators_test
