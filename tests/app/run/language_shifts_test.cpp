/// Language models on test data of another law than the one that they were trained on.

#include <doctest/doctest.h>

#include <cmath>

#include "tests/app/run/language_scenario.h"
#include "tests/app/scenario/refused.h"

namespace moelab::language_shifts_test {

using namespace language_scenario;

TEST_CASE("swapped tokens cost where they are told and where others are told from them") {
  Json scenario = document();
  scenario["metrics"].push_back("swapped");
  scenario["evaluations"] = Json::parse(R"({
    "none": {"data.contamination": {"kind": "swapped", "share": 0}},
    "some": {"data.contamination": {"kind": "swapped", "share": 0.1}},
    "many": {"data.contamination": {"kind": "swapped", "share": 0.4}},
    "all": {"data.contamination": {"kind": "swapped", "share": 1}}})");
  const CellResult result = run(scenario);
  const auto metric = [&](const std::string& name) { return result.metrics.at(name); };
  CHECK(result.metrics.at("test_loss_eval") == run(document()).metrics.at("test_loss_eval"));
  CHECK(metric("none.test_loss_eval") == metric("test_loss_eval"));
  CHECK(metric("none.test_loss_unswapped") == doctest::Approx(metric("test_loss_eval")).epsilon(1e-12));
  // Tokens that stayed are predicted from a context with replaced tokens; replaced tokens are no targets.
  CHECK(metric("test_loss_eval") < metric("some.test_loss_unswapped"));
  CHECK(metric("some.test_loss_unswapped") < metric("some.test_loss_eval"));
  CHECK(metric("some.test_loss_unswapped") < metric("many.test_loss_unswapped"));
  CHECK(metric("some.test_loss_eval") < metric("many.test_loss_eval"));
  CHECK_FALSE(result.metrics.contains("all.test_loss_unswapped"));
  CHECK_FALSE(result.metrics.contains("test_loss_unswapped"));
  CHECK(result.metrics.contains("bayes_loss"));
  CHECK_FALSE(result.metrics.contains("some.bayes_loss"));
  CHECK(run(scenario).metrics == result.metrics);
  Json claims = scenario;
  claims["claims"] =
      Json::parse(R"([{"id": "floor", "left": {"arm": "base", "metric": "some.test_loss_eval"}, "op": ">",
                                      "right": {"arm": "base", "metric": "some.bayes_loss"}}])");
  check_refused(claims, "", {}, "claims[0].right.metric", "none swapped");
}

TEST_CASE("swapped tokens that are masked are asked for as they are") {
  Json scenario = document();
  scenario["model"]["causal"] = false;
  scenario["loss"] = {{"task", "masked_tokens"}, {"mask_share", 0.25}};
  scenario["metrics"].push_back("swapped");
  scenario["evaluations"] =
      Json::parse(R"({"none": {"data.contamination": {"kind": "swapped", "share": 0}}})");
  const CellResult plain = run(scenario);
  CHECK(plain.metrics.at("none.test_loss_unswapped") ==
        doctest::Approx(plain.metrics.at("test_loss_eval")).epsilon(1e-12));
  scenario.erase("evaluations");
  const CellResult clean = run(scenario);
  scenario["data"]["contamination"] = {{"kind", "swapped"}, {"share", 0.5}};
  const CellResult swapped = run(scenario);
  CHECK(swapped.metrics.at("test_loss_unswapped") < swapped.metrics.at("test_loss_eval"));
  const SavedArray &before = array_of(clean, "test_inputs"), &after = array_of(swapped, "test_inputs");
  const SavedArray &asked = array_of(clean, "test_targets"), &told = array_of(swapped, "test_targets");
  int moved = 0;
  for (std::size_t at = 0; at < before.labels.size(); ++at) {
    const bool is_masked = before.labels[at] == 8;
    CHECK(is_masked == (after.labels[at] == 8));
    CHECK(is_masked == (told.labels[at] >= 0));
    moved += is_masked ? asked.labels[at] != told.labels[at] : before.labels[at] != after.labels[at];
  }
  const double share = moved / static_cast<double>(before.labels.size());
  CHECK(std::abs(share - 0.5) < 4 * std::sqrt(0.25 / static_cast<double>(before.labels.size())));
}

TEST_CASE("domains that were held out are others of the same law") {
  Json scenario = document();
  scenario["evaluations"] =
      Json::parse(R"({"held_out": {"data.first_domain": 2}, "beside": {"data.first_domain": 1}})");
  const CellResult result = run(scenario);
  const auto metric = [&](const std::string& name) { return result.metrics.at(name); };
  CHECK(metric("held_out.test_loss_eval") > metric("test_loss_eval") + 0.5);
  CHECK(metric("held_out.test_loss_eval") > metric("held_out.bayes_loss"));
  // One of the two domains of `beside` was learned.
  CHECK(metric("beside.test_loss_eval") > metric("test_loss_eval"));
  CHECK(metric("beside.test_loss_eval") < metric("held_out.test_loss_eval"));
  const std::string id = expand_scenario(document(), "", {}).cells.front().id;
  Json first = document();
  first["data"]["first_domain"] = 0;
  CHECK(expand_scenario(first, "", {}).cells.front().id == id);
  first["data"]["first_domain"] = 2;
  CHECK(expand_scenario(first, "", {}).cells.front().id != id);
}

TEST_CASE("losses of facts and of all other tokens are the two parts of the test loss") {
  Json scenario = document();
  scenario["metrics"].push_back("facts");
  scenario["data"]["facts"] = {{"pairs", 2}, {"rate", 0.25}};
  scenario["data"]["test_samples"] = 400;
  const CellResult result = run(scenario);
  const auto metric = [&](const std::string& name) { return result.metrics.at(name); };
  // A token that is no value is a key with probability r: a share of r / (1 + r) of all tokens are keys.
  const double share = (metric("test_loss_eval") - metric("test_loss_elsewhere")) /
                       (metric("fact_loss") - metric("test_loss_elsewhere"));
  CHECK(std::abs(share - 0.2) < 0.03);
  scenario["data"].erase("facts");
  CHECK_FALSE(run(scenario).metrics.contains("fact_loss"));
}

}  // namespace moelab::language_shifts_test
