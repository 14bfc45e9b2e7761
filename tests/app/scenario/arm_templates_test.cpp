#include "app/scenario/arms.h"
#include "tests/app/scenario/example.h"
#include "tests/app/scenario/refused.h"

namespace moelab::arm_templates_test {
namespace {

/// The example with top-2 routing and these arms.
Json with_arms(const char* arms) {
  Json document = example_with("/arms", arms);
  document["model"]["gating"]["train"] = {{"kind", "topk"}, {"k", 2}};
  document["claims"] = Json::array();
  return document;
}

TEST_CASE("a template makes an arm for each combination of its values, the first list varying slowest") {
  const Scenario scenario = expand_scenario(
      with_arms(R"({"none": {}, "{loss}_{c}": {"for": {"loss": ["aux", "z"], "c": [0.01, 0.1]},
                    "set": {"loss.{loss}": "{c}", "model.router": {"kind": "linear", "init_scale": "{c}"}}}})"),
      "", {});
  CHECK(scenario.arms == std::vector<std::string>{"none", "aux_0.01", "aux_0.1", "z_0.01", "z_0.1"});
  const std::vector<Override>& last = scenario.arm_overrides.back().overrides;
  REQUIRE(last.size() == 2);
  CHECK(last[0].path == "loss.z");
  CHECK(last[0].value == Json(0.1));  // a number, not a text
  CHECK(last[1].value.at("init_scale") == Json(0.1));
  CHECK(last[0].place == "arms.{loss}_{c}.set.loss.z");
}

TEST_CASE("a template's arms have the cells of the same arms written out") {
  const Json written = with_arms(R"({"aux_0.01": {"loss.aux": 0.01}, "aux_0.1": {"loss.aux": 0.1}})");
  const Json made = with_arms(R"({"aux_{c}": {"for": {"c": [0.01, 0.1]}, "set": {"loss.aux": "{c}"}}})");
  const std::vector<Cell> left = expand_scenario(written, "", {}).cells,
                          right = expand_scenario(made, "", {}).cells;
  REQUIRE(left.size() == right.size());
  for (std::size_t i = 0; i < left.size(); ++i) CHECK(left[i].id == right[i].id);
}

TEST_CASE("templates that are wrong are refused where they are written") {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {R"({"a_{c}": {"for": {"c": []}, "set": {}}})", "arms.a_{c}.for.c",
       "needs a list of at least one value"},
      {R"({"a_{c}": {"for": {}, "set": {}}})", "arms.a_{c}.for", "needs an object"},
      {R"({"a_{c}": {"for": {"c": [1]}}})", "arms.a_{c}.set", "missing"},
      {R"({"a_{c}": {"set": {}}})", "arms.a_{c}.for", "missing"},
      {R"({"a_{c}": {"for": {"c": [1]}, "set": 3}})", "arms.a_{c}.set", "got 3"},
      {R"({"a_{c}": {"for": {"c": [1]}, "set": {}, "sets": {}}})", "arms.a_{c}.sets", "did you mean 'set'?"},
      {R"({"a": {"for": {"c": [1, 2]}, "set": {"loss.aux": "{c}"}}})", "arms.a.for.c", "needs {c} there"},
      {R"({"a_{c}": {"for": {"c": [1]}, "set": {"loss.aux": "{d}"}}})", "arms.a_{c}.set.loss.aux",
       "unknown placeholder 'd'"},
      {R"({"a_{c}": {"for": {"c": [1]}, "set": {"loss.{d}": 1}}})", "arms.a_{c}.set",
       "unknown placeholder 'd'"},
      {R"({"a_1": {}, "a_{c}": {"for": {"c": [1]}, "set": {"loss.aux": "{c}"}}})", "arms.a_{c}",
       "'a_1' a second time"},
      {R"({"a_{c}": {"for": {"c": [1]}, "set": {"loss.auxx": "{c}"}}})", "arms.a_{c}.set.loss.auxx",
       "did you mean 'aux'?"},
      {R"({"a_{c}": {"for": {"c": [-1]}, "set": {"loss.aux": "{c}"}}})", "arms.a_{c}.set.loss.aux",
       "got -1"}};
  for (const auto& [arms, path, message] : cases) check_refused(with_arms(arms), "", {}, path, message);
}

TEST_CASE("* in a pattern stands for any text") {
  for (const char* pattern : {"*", "aux_*", "*1", "a*_*1", "aux_1", "**"})
    CHECK(matches_pattern(pattern, "aux_1"));
  for (const char* pattern : {"", "aux", "aux_*2", "x*", "aux_1_*"})
    CHECK(!matches_pattern(pattern, "aux_1"));
  CHECK(matching_arms({"b*", "a", "*"}, {"a", "b1", "b2"}, "") == std::vector<std::string>{"b1", "b2", "a"});
}

// Sweeps of some arms

Json with_partial_sweep(const char* range) {
  Json document = example_scenario();
  document["sweep"]["model.router.init_scale"] = Json::parse(range);
  return document;
}

TEST_CASE("an arm that does not sweep a path has one cell for each point of the others") {
  const Json document = with_partial_sweep(R"({"values": [1, 2, 4], "arms": ["learned", "fro*"]})");
  const Scenario scenario = expand_scenario(document, "", {});
  std::map<std::string, int> cells;
  for (const Cell& cell : scenario.cells) {
    ++cells[cell.arm];
    const bool sweeps = cell.arm == "learned" || cell.arm == "frozen";
    CHECK((coordinate_of(cell.point, "model.router.init_scale") != nullptr) == sweeps);
  }
  CHECK(cells == std::map<std::string, int>{
                     {"dense_large", 20}, {"dense_small", 20}, {"frozen", 60}, {"learned", 60}});
  // A scenario without the sweep has the same cells.
  CHECK(scenario.cells.back().id == expand_scenario(example_scenario(), "", {}).cells.back().id);
  CHECK(expand_scenario(with_partial_sweep(R"({"log2range": [1, 4], "arms": ["learned", "fro*"]})"), "", {})
            .cells.size() == scenario.cells.size());
  CHECK(expand_scenario(document, "", {"sweep.model.router.init_scale.values=[1]"}).cells.size() == 80);
}

TEST_CASE("sweeps of some arms that are wrong are refused") {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {R"({"values": [1, 2], "arms": ["learnt"]})", ".arms[0]", "did you mean 'learned'?"},
      {R"({"values": [1, 2], "arms": [3]})", ".arms", "needs a list of names"},
      {R"({"arms": ["learned"]})", "", "needs a list of values"},
      {R"({"values": [1, 1], "arms": ["learned"]})", ".values[1]", "a second time"},
      {R"({"value": [1, 2]})", ".value", "did you mean 'values'?"},
      {R"({"values": [1, -2], "arms": ["learned"]})", ".values[1]", "got -2"}};
  for (const auto& [range, place, message] : cases)
    check_refused(with_partial_sweep(range), "", {}, std::string("sweep.model.router.init_scale") + place,
                  message);
  Json along = with_partial_sweep(R"({"values": [1, 2], "arms": ["learned"]})");
  along["claims"] =
      Json::parse(R"([{"id": "c", "arm": "frozen", "metric": "test_nmse_top1", "op": "decreases",
                                     "along": "model.router.init_scale"}])");
  check_refused(along, "", {}, "claims[0].along", "which the arm 'frozen' does not sweep");
  Json searched = along;
  searched["claims"] = Json::array();
  searched["sweep"]["data.noise_std"] =
      Json::parse(R"({"crossing": {"metric": "test_nmse_top1", "level": 0.5, "low": 1, "high": 4}})");
  check_refused(searched, "", {}, "sweep.model.router.init_scale.arms", "which is searched for a crossing");
}

// Claims and figures of patterns

TEST_CASE("a comparison of several arms is one for each match, with its name in sides, id and text") {
  Json document = example_scenario();
  document["claims"] = Json::parse(R"([
    {"id": "{arm}_loses", "arms": ["dense_*"], "left": {"arm": "learned", "metric": "test_nmse_top1"}, "op": "<",
     "right": {"arm": "{arm}", "metric": "test_nmse_top1"}, "text": "{arm} loses."},
    {"id": "rises", "arms": ["dense_*", "learned"], "op": "increases", "metric": "test_nmse_top1",
     "relative_to": "frozen", "along": "data.train_samples"}])");
  document["figures"][0]["arms"] = {"dense_*", "learned"};
  const Scenario scenario = expand_scenario(document, "", {});
  std::vector<std::string> ids;
  for (const Claim& claim : scenario.claims) ids.push_back(claim.id);
  CHECK(ids == std::vector<std::string>{"dense_small_loses", "dense_large_loses", "rises_dense_small",
                                        "rises_dense_large", "rises_learned"});
  CHECK(std::get<Comparison>(scenario.claims[1].statement).right.arm == "dense_large");
  CHECK(scenario.claims[0].text == "dense_small loses.");
  CHECK(std::get<Trend>(scenario.claims[2].statement).side.arm == "dense_small");
  CHECK(common_of(scenario.figures[0]).arms ==
        std::vector<std::string>{"dense_small", "dense_large", "learned"});

  document["claims"][0]["arms"] = {"dense_*", "sparse_*"};
  check_refused(document, "", {}, "claims[0].arms[1]", "unknown arm 'sparse_*'");
  document["claims"][0]["arms"] = {"dense_*"};
  document["claims"][0]["right"]["arm"] = "frozen";
  check_refused(document, "", {}, "claims[0].left", "has no \"{arm}\"");
}

}  // namespace
}  // namespace moelab::arm_templates_test
