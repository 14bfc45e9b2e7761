#include "tests/app/scenario/example.h"
#include "tests/app/scenario/refused.h"

namespace moelab::objective_test {
namespace {

Scenario with_objective(const char* objective) {
  return expand_scenario(example_with("/objective", objective), "", {});
}

TEST_CASE("the objective is a metric, and has a direction of its own or that of the metric") {
  const auto choice = [](const char* objective) { return main_choice(with_objective(objective)); };
  CHECK(choice(R"("test_loss_soft")").name == "test_loss_soft");
  CHECK(choice(R"("test_loss_soft")").reason == "the scenario's objective");
  CHECK(!choice(R"("test_loss_soft")").is_maximized);
  CHECK(choice(R"("top1_cluster_ari")").is_maximized);
  CHECK(!choice(R"({"metric": "top1_cluster_ari", "direction": "min"})").is_maximized);
  CHECK(choice(R"({"metric": "effective_experts", "direction": "max"})").is_maximized);
  CHECK(!choice(R"({"metric": "effective_experts"})").is_maximized);
  CHECK(main_metric_note(with_objective(R"("test_loss_soft")")).empty());
}

TEST_CASE("without an objective, the program says which metric it took and why") {
  Json document = example_scenario();
  CHECK(main_metric_note(expand_scenario(document, "", {})) ==
        "the scenario has no \"objective\"; took test_nmse_top1, the first figure's metric (the least is "
        "best)");
  document["figures"][0]["y"] = "top1_cluster_purity";
  document["figures"][0]["arms"] = {"learned", "frozen"};
  CHECK(main_metric_note(expand_scenario(document, "", {})).find("(the greatest is best)") !=
        std::string::npos);
  document["figures"] = Json::array();
  CHECK(main_choice(expand_scenario(document, "", {})).reason == "the default");
}

TEST_CASE("objectives that no arm measures are refused, and those of some arms are not") {
  const auto refused = [](const char* objective, const char* path, const char* message) {
    check_refused(example_with("/objective", objective), "", {}, path, message);
  };
  refused(R"("test_nmse_topp1")", "objective", "did you mean 'test_nmse_top1'?");
  refused(R"({"metric": "ari"})", "objective.metric", "did you mean 'top1_cluster_ari'?");
  refused(R"({"metric": "train_loss", "direction": "least"})", "objective.direction", "min");
  refused(R"({"direction": "max"})", "objective.metric", "missing");
  refused(R"("dead_experts")", "objective", "belongs to the group 'load'");
  CHECK(with_objective(R"("top1_cluster_ari")").arms.size() == 4);  // dense arms have none
}

TEST_CASE("a tuned claim has the metric that its arms were tuned by") {
  Json document = example_with("/objective", R"("test_loss_soft")");
  document["tune"] = Json::parse(R"({"train.lr.router": {"low": 0.01, "high": 1}})");
  for (const char* arm : {"learned", "frozen"}) document["arms"][arm]["train.lr.router"] = 0.1;
  document["claims"][0]["tuned"] = true;
  CHECK(expand_scenario(document, "", {}).claims[0].tuned_by == "test_loss_soft");
  document.erase("objective");
  CHECK(expand_scenario(document, "", {}).claims[0].tuned_by == "test_nmse_top1");
  document["claims"][0].erase("tuned");
  CHECK(expand_scenario(document, "", {}).claims[0].tuned_by.empty());
}

}  // namespace
}  // namespace moelab::objective_test
