/// Training sets that are nested, and such that are not; seeds that share streams.

#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "sim/data/gaussian_mixture.h"
#include "sim/train/experiment.h"
#include "tests/sim/train/small_runs.h"

namespace moelab::independent_test {
namespace {

DataOptions data_of(int samples, bool independent) {
  DataOptions data =
      GaussianMixtureOptions{.clusters = 3, .dim = 4, .target = gaussian_mixture::ConstantTarget{2}};
  data.train_samples = samples;
  data.independent = independent;
  return data;
}

Matrix drawn(const DataOptions& data, const Seeds& seeds) {
  return draw_set(*draw_problem(data, seeds), seeds, Purpose::train_data, *data.train_samples,
                  train_stream(data))
      .x;
}

}  // namespace

TEST_CASE("a smaller training set is the beginning of a larger one, unless they are independent") {
  const Seeds seeds{4, 2};
  CHECK(drawn(data_of(10, false), seeds) == drawn(data_of(20, false), seeds).topRows(10));
  const Matrix small = drawn(data_of(10, true), seeds), large = drawn(data_of(20, true), seeds);
  for (Eigen::Index i = 0; i < small.rows(); ++i) {
    for (Eigen::Index j = 0; j < large.rows(); ++j) CHECK(small.row(i) != large.row(j));
  }
  CHECK(drawn(data_of(10, true), seeds) == small);
}

TEST_CASE("what a training takes is the independent set") {
  const Seeds seeds{4, 2};
  const DataOptions data = data_of(10, true);
  const TrainingSet<double> set =
      draw_training_set<double>(*draw_problem(data, seeds), seeds, 10, train_stream(data));
  const Matrix x = drawn(data, seeds);
  CHECK(std::equal(set.x.begin(), set.x.end(), x.data()));
  DataOptions none = data;
  none.train_samples.reset();
  check_refused(none, "data.independent", "got true, needs data.train_samples");
}

TEST_CASE("streams that are shared are those of seed 0, the others a seed's own") {
  Seeds shared{7, 3};
  shared.share(Purpose::problem);
  const Seeds plain{7, 3}, first{7, 0};
  CHECK(shared.stream(Purpose::problem, 5)() == first.stream(Purpose::problem, 5)());
  CHECK(shared.stream(Purpose::problem, 5)() != plain.stream(Purpose::problem, 5)());
  CHECK(shared.stream(Purpose::train_data)() == plain.stream(Purpose::train_data)());
  CHECK(shared.of_layer(2).stream(Purpose::problem)() == first.of_layer(2).stream(Purpose::problem)());
}

}  // namespace moelab::independent_test
