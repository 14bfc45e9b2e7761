/// What lines leave out: what a range hides, and metrics that have no values on the way.

#include <doctest/doctest.h>

#include "plots/kinds/lines.h"
#include "tests/app/scenario/refused.h"
#include "tests/plots/kinds/built_figure.h"

namespace moelab::line_ranges_test {

TEST_CASE("a range of y is told, with the lines that lie outside of it") {
  RunResults results;
  set_head(results, {{"title", "Ranges"}, {"figures", Json::array()}});
  results.table.arms = {"low", "rising", "high"};
  results.table.sweep_paths = {"data.n"};
  for (const std::string& arm : results.table.arms)
    for (const int n : {10, 20}) {
      const double loss = arm == "low" ? 0.1 : arm == "high" ? 8 : 0.1 * n;
      results.table.rows.push_back({"", arm, 0, {{"data.n", n}}, "done", {{"train_loss", loss}}, {}});
    }
  const auto caption = [&](const char* range) {
    Json figure = {{"id", "f"}, {"x", "data.n"}, {"y", "train_loss"}, {"y_label", "loss"}};
    figure.update(Json::parse(range));
    return built_figure<Figure>(figure, results).caption;
  };
  CHECK(caption("{}").find("Shown") == std::string::npos);
  CHECK(caption(R"({"y_range": [0.05, 9]})").find(" Shown: loss from 0.05 to 9.") != std::string::npos);
  CHECK(caption(R"({"y_range": [0.05, 9]})").find("outside") == std::string::npos);
  CHECK(caption(R"({"y_range": [0.05, 1.5]})").find(" Wholly outside: high.") != std::string::npos);
  CHECK(caption(R"({"y_range": [0.05, 1.5], "x_range": [15, 30]})").find(" Wholly outside: rising; high.") !=
        std::string::npos);
  CHECK(caption(R"({"x_range": [15, 30]})").find("Nothing") == std::string::npos);
  for (const char* range : {R"({"x_range": [100, 300]})", R"({"y_range": [20, 30]})",
                            R"({"x_range": [100, 300], "y_range": [0.05, 9]})"}) {
    CAPTURE(range);
    CHECK(caption(range).find(" Nothing lies within.") != std::string::npos);
    CHECK(caption(range).find("Wholly outside") == std::string::npos);
  }
}

TEST_CASE("over steps a metric that is known at the end alone is refused") {
  Json document = example_scenario();
  document["metrics"].push_back("convergence");
  document["metrics"].push_back("fluctuation");
  document["figures"][0] = {{"id", "f"}, {"x", "step"}, {"y", "steps_to_target"}};
  check_refused(document, "", {}, "figures[0].y", "'steps_to_target', which is known at the end alone");
  document["figures"][0]["y"] = {"train_loss", "train_loss / steps_to_target"};
  check_refused(document, "", {}, "figures[0].y[1]", "'steps_to_target', which is known at the end alone");
  document["figures"][0]["x"] = "data.train_samples";
  CHECK_NOTHROW(expand_scenario(document, "", {}));
  // At the start alone there is no step before.
  document["figures"][0] = {
      {"id", "f"}, {"x", "step"}, {"y", "routing_fluctuation"}, {"arms", {"learned", "frozen"}}};
  CHECK_NOTHROW(expand_scenario(document, "", {}));
}

}  // namespace moelab::line_ranges_test
