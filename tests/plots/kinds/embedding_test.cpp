#include "plots/kinds/embedding.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "app/store/store.h"
#include "plots/kinds/saved_arrays.h"
#include "sim/base/error.h"
#include "sim/data/npy.h"
#include "tests/app/scenario/refused.h"
#include "tests/plots/kinds/built_figure.h"
#include "tests/temporary_folder.h"

namespace moelab::app_embedding_test {
namespace {

void save(const std::filesystem::path& file, const std::vector<std::int64_t>& shape,
          const std::vector<double>& values) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << npy_bytes(shape, values);
}

/// Arms a and b at n = 1, 2 with two seeds; the cells' names tell which. The first seed of b at n = 2
/// diverged.
RunResults example() {
  RunResults results;
  set_head(results, {{"title", "Routing"}, {"source", "Fig. 5"}});
  results.table.arms = {"a", "b"};
  results.table.sweep_paths = {"data.n"};
  for (const std::string& arm : results.table.arms)
    for (const int n : {1, 2})
      for (int seed = 0; seed < 2; ++seed)
        results.table.rows.push_back(
            {arm + std::to_string(n) + std::to_string(seed), arm, seed, {{"data.n", n}}, "done", {}, {}});
  results.table.rows[6].state = "diverged";
  return results;
}

}  // namespace

TEST_CASE("a panel shows the last sweep point's first seed that is done, drawn experts in their order") {
  const TemporaryFolder folder;
  // Four rows on a line; expert 2 has three. In b a sample has two tokens.
  const std::vector<double> inputs = {0, 0, 3, 4, 6, 8, 9, 12};
  const std::vector<double> probabilities = {.1, .2, .7, .5, .3, .2, .1, .1, .8, 0, .4, .6};
  save(array_file(folder.path(), "a20", "test_inputs"), {4, 2}, inputs);
  save(array_file(folder.path(), "a20", "test_probs"), {4, 3}, probabilities);
  save(array_file(folder.path(), "b21", "test_inputs"), {2, 2, 2}, inputs);
  save(array_file(folder.path(), "b21", "test_probs_layer0"), {2, 2, 3}, probabilities);
  const RunResults results = example();
  const Embedding embedding =
      built_figure<Embedding>(Json::parse(R"({"id": "e", "kind": "embedding"})"), results, folder.path());
  REQUIRE(embedding.panels.size() == 2);
  for (const EmbeddingPanel& panel : embedding.panels) {
    REQUIRE(panel.points.size() == 4);
    const int labels[] = {2, 0, 2, 2}, colours[] = {1, 0, 1, 1};
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(panel.points[i].x == doctest::Approx(5 * static_cast<double>(i) - 7.5));
      CHECK(panel.points[i].y == doctest::Approx(0).epsilon(1e-9));
      CHECK(panel.points[i].label == labels[i]);
      CHECK(panel.points[i].colour == colours[i]);
    }
  }
  CHECK(embedding.title == "Routing");
  CHECK(embedding.caption.find("Fig. 5. ") == 0);
  // The arms' last points that are done are the same; the first seed of b diverged there.
  CHECK(embedding.caption.find(" Shown: data.n = 2.") != std::string::npos);
  CHECK(embedding.caption.find("100 % and 0 % of the variance") != std::string::npos);
}

TEST_CASE(
    "of more drawn experts than looks, those with the fewest rows are grey, and the legend counts them") {
  const TemporaryFolder folder;
  RunResults results;
  set_head(results, {{"title", "Many"}});
  results.table.arms = {"a"};
  results.table.rows.push_back({"cell", "a", 0, {}, "done", {}, {}});
  // Row i goes to expert i / 2, but the last five experts have one row each, and expert 60 has none.
  constexpr int kExperts = 61, kRows = 2 * 60 - 5;
  std::vector<double> inputs, probabilities;
  for (int row = 0; row < kRows; ++row) {
    const int expert = row < 110 ? row / 2 : row - 55;
    inputs.insert(inputs.end(), {1.0 * row, 1.0 * (row % 7)});
    for (int e = 0; e < kExperts; ++e) probabilities.push_back(e == expert ? 1 : 0);
  }
  save(array_file(folder.path(), "cell", "test_inputs"), {kRows, 2}, inputs);
  save(array_file(folder.path(), "cell", "test_probs"), {kRows, kExperts}, probabilities);
  const Embedding embedding =
      built_figure<Embedding>(Json::parse(R"({"id": "e", "kind": "embedding"})"), results, folder.path());
  for (int e = 0; e < kExperts; ++e)
    CHECK(embedding.colours.at(static_cast<std::size_t>(e)) == (e < kMostLooks ? e : -1));
  const PageMarks marks = EmbeddingLayout(embedding).panels.at(0).marks;
  CHECK(std::ranges::any_of(marks, [](const PageMark& mark) { return mark.text == "18 other experts"; }));
}

TEST_CASE("a token of a sequence of ids is a row: its id and its position") {
  const TemporaryFolder folder;
  RunResults results;
  set_head(results, {{"title", "Tokens"}});
  results.table.arms = {"a"};
  results.table.rows.push_back({"cell", "a", 0, {}, "done", {}, {}});
  const auto save_ids = [&](const char* name, const std::vector<std::int64_t>& values) {
    const std::filesystem::path file = array_file(folder.path(), "cell", name);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << npy_bytes({2, 3}, values);
  };
  save_ids("test_inputs", {7, 5, 9, 4, 5, 6});
  save_ids("test_labels", {0, 0, 1, 1, 1, 0});
  save(array_file(folder.path(), "cell", "test_probs"), {2, 3, 2},
       {.9, .1, .2, .8, .9, .1, .3, .7, .6, .4, .1, .9});
  const auto build = [&] {
    return built_figure<Embedding>(Json::parse(R"({"kind": "embedding", "id": "e"})"), results,
                                   folder.path());
  };
  const Embedding embedding = build();
  const EmbeddingPanel& panel = embedding.panels.at(0);
  REQUIRE(panel.points.size() == 6);
  const double ids[] = {7, 5, 9, 4, 5, 6};
  const int experts[] = {0, 1, 0, 1, 0, 1};
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(panel.points[i].x == ids[i]);
    CHECK(panel.points[i].y == static_cast<double>(i % 3));
    CHECK(panel.points[i].label == experts[i]);
  }
  REQUIRE(panel.means.size() == 2);
  CHECK(panel.means[0].x == 6);
  CHECK(embedding.x_label == "id of the token");
  CHECK(embedding.caption.find("variance") == std::string::npos);

  // Arrays that do not belong together are refused, whatever their sizes.
  save(array_file(folder.path(), "cell", "test_probs"), {3, 3, 2}, std::vector<double>(18, .5));
  CHECK_THROWS_WITH_AS(build(), doctest::Contains("has shape (2, 3), needs (3, 3) to match"), UserError);
}

TEST_CASE("a linear router's regions and rows, in the plane of two inputs, where its weights were saved") {
  const TemporaryFolder folder;
  RunResults results;
  set_head(results, {{"title", "Regions"}});
  results.table.arms = {"a"};
  results.table.rows.push_back({"cell", "a", 0, {}, "done", {}, {}});
  // Expert 0 where the second input is below the third, else expert 1; the first input plays no part.
  save(array_file(folder.path(), "cell", "test_inputs"), {4, 3}, {5, -1, 1, 5, 1, -1, 5, 3, 1, 5, 1, 3});
  save(array_file(folder.path(), "cell", "test_probs"), {4, 2}, {.9, .1, .1, .9, .2, .8, .8, .2});
  const Json figure = Json::parse(R"({"kind": "embedding", "id": "e", "inputs": [1, 2]})");
  const auto build = [&] { return built_figure<Embedding>(figure, results, folder.path()); };
  CHECK(build().panels.at(0).regions.empty());

  save(array_file(folder.path(), "cell", "router_weight"), {2, 3}, {0, -1, 1, 0, 1, -1});
  const Embedding embedding = build();
  CHECK(embedding.x_label == "input 1");
  const EmbeddingPanel& panel = embedding.panels.at(0);
  CHECK(panel.points.at(2).x == 3);
  CHECK(panel.points.at(2).y == 1);
  REQUIRE_FALSE(panel.regions.empty());
  double area = 0;
  for (const EmbeddingRegion& region : panel.regions) {
    const double middle = (region.y_low + region.y_high) / 2;
    if (region.label == 0) CHECK(region.x_low < middle);
    if (region.label == 1) CHECK(region.x_high > middle);
    area += (region.x_high - region.x_low) * (region.y_high - region.y_low);
  }
  const auto [low, high] = embedding_range(embedding, &EmbeddingPoint::x);
  CHECK(area == doctest::Approx((high - low) * (high - low)));
  REQUIRE(panel.arrows.size() == 2);
  CHECK(panel.arrows[0].x == doctest::Approx(-panel.arrows[0].y));
  CHECK(panel.arrows[1].x > 0);

  // At recorded steps, where these were saved and end with the weights: the experts were swapped at first.
  CHECK(panel.frames.empty());
  CHECK(drawing_of(embedding).html.empty());
  const auto save_ints = [&](const char* name, const std::vector<std::int64_t>& values) {
    std::ofstream(array_file(folder.path(), "cell", name), std::ios::binary)
        << npy_bytes({static_cast<std::int64_t>(values.size())}, values);
  };
  save_ints("recorded_steps", {0, 70});
  save(array_file(folder.path(), "cell", "router_weight_steps"), {2, 2, 3},
       {0, 2, -2, 0, -2, 2, 0, -1, 1, 0, 1, -1});
  const Embedding moving = build();
  const std::vector<EmbeddingFrame>& frames = moving.panels.at(0).frames;
  REQUIRE(frames.size() == 2);
  CHECK(frames[0].name == "step 0");
  CHECK(frames[1].name == "step 70");
  CHECK(frames[0].labels == std::vector<int>{1, 0, 0, 1});
  CHECK(frames[1].labels == std::vector<int>{0, 1, 1, 0});
  // The plane's origin is where both inputs are 0; the first stays at its mean, and plays no part.
  CHECK(frames[0].scores.at(0).x == 2);
  CHECK(frames[0].scores.at(0).y == -2);
  CHECK(frames[0].scores.at(0).offset == 0);
  CHECK(moving.colours.size() == 2);
  CHECK(embedding_csv(moving) == embedding_csv(embedding));
  CHECK(drawing_of(moving).html.find("\"kind\":\"embedding\"") != std::string::npos);
  save(array_file(folder.path(), "cell", "router_bias_steps"), {2, 2}, {0, 3, 0, 0});
  CHECK(build().panels.at(0).frames.at(0).scores.at(1).offset == 3);
  save(array_file(folder.path(), "cell", "router_bias_steps"), {2, 2}, {0, 3, 0, 1});  // not those saved
  CHECK(build().panels.at(0).frames.empty());

  // Beside a panel with regions one without says so.
  CHECK(embedding.panels[0].note.empty());
  RunResults two = results;
  two.table.arms.push_back("b");
  two.table.rows.push_back({"other", "b", 0, {}, "done", {}, {}});
  for (const char* name : {"test_inputs", "test_probs"})
    std::filesystem::create_directories(array_file(folder.path(), "other", name).parent_path());
  for (const char* name : {"test_inputs", "test_probs"})
    std::filesystem::copy(array_file(folder.path(), "cell", name), array_file(folder.path(), "other", name));
  const Embedding mixed = built_figure<Embedding>(figure, two, folder.path());
  CHECK(mixed.panels.at(0).note.empty());
  CHECK(mixed.panels.at(1).note == "(no regions)");
  CHECK(mixed.caption.find(" No regions of b: they need a linear router of the inputs") != std::string::npos);

  // Rows of another router, whose largest scores are not the largest probabilities, decide nothing here.
  save(array_file(folder.path(), "cell", "router_weight"), {2, 3}, {0, 1, 1, 0, 1, -1});
  CHECK(build().panels.at(0).regions.empty());
  CHECK(build().caption.find("Pale") == std::string::npos);
  CHECK_THROWS_AS(
      built_figure<Embedding>(Json::parse(R"({"kind": "embedding", "id": "e", "inputs": [1, 3]})"), results,
                              folder.path()),
      UserError);
}

TEST_CASE("each arm's sweep point is told where they differ") {
  RunResults results = example();
  for (std::size_t i : {6U, 7U}) results.table.rows[i].state = "failed";
  const DisplayNames names(figure_source(results, ".").run);
  const auto text = [&](const SweepPoint& where) {
    std::vector<const ResultRow*> shown;
    for (const std::string& arm : results.table.arms)
      if (const ResultRow* const row = shown_row(results.table, arm, where)) shown.push_back(row);
    return shown_points_text(results.table, shown, where, names);
  };
  CHECK(text({}) == " Shown: a: data.n = 2; b: data.n = 1.");
  CHECK(text({{"data.n", 1}}).empty());
}

TEST_CASE("inputs that an arm's data do not have are refused before anything is trained") {
  Json document = example_with(
      "/figures/0", R"({"id": "e", "kind": "embedding", "arms": ["learned", "frozen"], "inputs": [0, 23]})");
  CHECK_NOTHROW(expand_scenario(document, "", {}));
  document["data"]["dim"] = 4;
  document["figures"][0]["inputs"] = {0, 9};
  check_refused(document, "", {}, "figures[0].inputs[1]", "got 9, needs numbers of the 4 inputs, from 0");
  document["figures"][0]["inputs"] = {0, 3};
  CHECK_NOTHROW(expand_scenario(document, "", {}));
}

TEST_CASE("embedding: points that differ by rounding alone have a range around them") {
  const auto range_of = [](double low, double high) {
    Embedding embedding;
    embedding.panels.emplace_back().points = {{.x = low}, {.x = high}};
    return embedding_range(embedding, &EmbeddingPoint::x);
  };
  CHECK(range_of(5, 5) == std::pair(4.0, 6.0));
  const auto [below, above] = range_of(-4.1540001e-16, -4.154e-16);
  CHECK(below == doctest::Approx(-1));
  CHECK(above == doctest::Approx(1));
  const auto [low, high] = range_of(1, 2);
  CHECK(low < 1);
  CHECK(high > 2);
  CHECK(high < 3);
}

TEST_CASE("panels without a cell are named; arrays that were not saved are an error") {
  const TemporaryFolder folder;
  RunResults results = example();
  CHECK_THROWS_AS(built_figure<Embedding>({{"kind", "embedding"}, {"id", "e"}}, results, folder.path()),
                  UserError);
  for (ResultRow& row : results.table.rows) row.state = "failed";
  const Embedding embedding =
      built_figure<Embedding>({{"kind", "embedding"}, {"id", "e"}}, results, folder.path());
  CHECK(embedding.panels.empty());
  CHECK(embedding.caption.find("Panels left out, no cell done: 2.") != std::string::npos);
}

}  // namespace moelab::app_embedding_test
