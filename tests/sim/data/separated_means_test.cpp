#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/error.h"
#include "sim/data/cluster_means.h"
#include "tests/sim/data/statistics.h"

namespace moelab::separated_means_test {
namespace {

const Seeds kSeeds{1, 0};

Matrix drawn(const SeparatedMeans& options, int count) {
  Engine engine = kSeeds.stream(Purpose::problem);
  return draw_separated_means(options, count, engine);
}

TEST_CASE("means keep the distance that is asked for") {
  const SeparatedMeans free{.dim = 6, .mean_std = 1.0, .noise_std = 0.8};
  SeparatedMeans wide = free;
  wide.separation = 1.4;
  const double distance = 1.4 * 0.8 * std::sqrt(6.0);
  CHECK(closest_pair(drawn(wide, 30)) >= distance);
  CHECK(closest_pair(drawn(free, 30)) < distance);
  // The first means are the same whatever follows them; they are drawn again only where they are too close.
  CHECK((drawn(wide, 30).topRows(7) == drawn(wide, 7)));
  CHECK((drawn(wide, 30).row(0) == drawn(free, 1).row(0)));
}

TEST_CASE("a distance that finds no place is an error of the user") {
  const SeparatedMeans impossible{.dim = 6, .mean_std = 1.0, .noise_std = 0.8, .separation = 50};
  try {
    drawn(impossible, 30);
    FAIL("an impossible separation was accepted");
  } catch (const InvalidOption& error) {
    CHECK(error.path() == "data.separation");
    CHECK(error.message().find("got 50") != std::string::npos);
    CHECK(error.message().find("mean 2 of 30") != std::string::npos);
  }
}

}  // namespace
}  // namespace moelab::separated_means_test
