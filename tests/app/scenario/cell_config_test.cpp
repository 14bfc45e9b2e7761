#include <doctest/doctest.h>

#include "app/scenario/scenario.h"
#include "tests/app/scenario/example.h"

namespace moelab::cell_config_test {
namespace {

TEST_CASE("cell options: the seeds of an arm at a point share them, and each has its own streams") {
  const Scenario scenario = expand_scenario(example_scenario(), "", {});
  const Cell &first = scenario.cells[0], &seed = scenario.cells[1], &point = scenario.cells[5];
  REQUIRE(seed.seed == 1);
  REQUIRE(point.point != first.point);
  CHECK(first.options == seed.options);
  CHECK(first.options != point.options);
  CHECK(options_of(seed).seeds.index == 1);
  CHECK(options_of(seed).seeds.root == seed.root_seed);
}

TEST_CASE("cell options: written as a configuration and read again, they are the same") {
  for (const Cell& cell : expand_scenario(example_scenario(), "", {}).cells) {
    if (cell.seed != 0) continue;
    const Json config = config_json(*cell.options);
    CHECK(config_json(read_config(config)).dump() == config.dump());
    CHECK(resolve(config_shape(), config, "").dump() == config.dump());
  }
}

}  // namespace
}  // namespace moelab::cell_config_test
