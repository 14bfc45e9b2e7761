#include <doctest/doctest.h>

#include <stdexcept>

#include "app/scenario/scenario.h"
#include "tests/app/scenario/example.h"

namespace moelab::cell_config_test {
namespace {

TEST_CASE("cell config: parts by name, and all of them in their order") {
  const Json json = Json::parse(R"({"data": {"dim": 2}, "model": "moe", "save": []})");
  const CellConfig config = json;
  CHECK(config.at("data").at("dim") == 2);
  CHECK(config.json().dump() == json.dump());
  CHECK_THROWS_AS(config.at("dat"), std::out_of_range);
  CHECK_THROWS_AS(CellConfig().at("data"), std::out_of_range);
  CHECK(CellConfig().json() == Json::object());
}

TEST_CASE("cell config: equal parts are kept once, parts that differ in a digit are not") {
  SharedParts parts;
  const CellConfig first = parts.config(Json::parse(R"({"data": {"dim": 2}, "model": {"experts": 4}})"));
  const CellConfig second = parts.config(Json::parse(R"({"data": {"dim": 2}, "model": {"experts": 5}})"));
  const CellConfig third = parts.config(Json::parse(R"({"data": {"dim": 2.0}, "model": {"dim": 2}})"));
  CHECK(&first.at("data") == &second.at("data"));
  CHECK(&first.at("model") != &second.at("model"));
  CHECK(&first.at("data") != &third.at("data"));
  CHECK(third.at("data").dump() == R"({"dim":2.0})");
  CHECK(&third.at("data") != &third.at("model"));
}

TEST_CASE("cell config: the cells of a sweep share what it does not change, their seeds all of it") {
  const Scenario scenario = expand_scenario(example_scenario(), "", {});
  const Cell &first = scenario.cells[0], &seed = scenario.cells[1], &point = scenario.cells[5];
  REQUIRE(seed.seed == 1);
  REQUIRE(point.point != first.point);
  CHECK(&first.config.at("data") == &seed.config.at("data"));
  CHECK(&first.config.at("data") != &point.config.at("data"));
  CHECK(&first.config.at("model") == &point.config.at("model"));
}

}  // namespace
}  // namespace moelab::cell_config_test
