/// docs/extending.md and its examples: the page names what there is, and the examples are in the tables that
/// the tests go through.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "analysis/metrics/metric_groups.h"
#include "analysis/stats/claims.h"
#include "sim/base/kernels/kernels.h"
#include "sim/data/problem.h"
#include "sim/model/model_options.h"
#include "tests/app/run/test_scenario.h"
#include "tests/docs/page_text.h"

namespace moelab::examples_test {
namespace {

namespace fs = std::filesystem;

/// The rows of the page's table: axis, contract, new file, table, example.
std::vector<std::vector<std::string>> axes_of(const std::string& page) {
  std::vector<std::vector<std::string>> rows = table_rows(page);
  std::erase_if(rows, [](const std::vector<std::string>& row) { return row[0].starts_with("axis"); });
  return rows;
}

/// The example sources, by stem.
std::vector<std::string> examples() {
  std::vector<std::string> stems;
  for (const auto& file : fs::directory_iterator(kRoot / "docs" / "example")) {
    if (file.path().extension() == ".cpp") stems.push_back(file.path().stem().string());
  }
  return stems;
}

}  // namespace

TEST_CASE("examples: every one is in its table") {
  const std::map<std::string, std::vector<std::string>> tables = {
      {"router", names_of(RouterAxis::table())},       {"gating", names_of(GatingAxis::table())},
      {"expert", names_of(ExpertAxis::table())},       {"loss", names_of(auxiliary_loss_kinds())},
      {"generator", names_of(GeneratorAxis::table())}, {"mixer", names_of(MixerAxis::table())},
      {"metrics", names_of(MetricAxis::table())},      {"operator", names_of(ClaimAxis::table())},
  };
  for (const std::string& stem : examples()) {  // <name>_<axis>
    CAPTURE(stem);
    const std::size_t end = stem.rfind('_');
    REQUIRE(tables.contains(stem.substr(end + 1)));
    const std::vector<std::string>& names = tables.at(stem.substr(end + 1));
    CHECK(std::count(names.begin(), names.end(), stem.substr(0, end)) == 1);
  }
  CHECK(examples().size() == tables.size());
}

TEST_CASE("examples: a row at a centre prefers its expert; the array to save has no padding") {
  constexpr int kInputs = 3, kExperts = 4;
  const std::unique_ptr<Router<double>> router =
      make_router<double>(RouterOptions::named("distance"), {.input_dim = kInputs, .experts = kExperts});
  AlignedVector<double> parameters(router->block_size()), scores(entries(1, kernels::padded(kExperts)));
  router->initialize({{1, 0}}, parameters.data());
  const std::vector<NamedArray<double>> arrays = router->arrays(parameters.data());
  REQUIRE(arrays.size() == 1);
  REQUIRE(arrays[0].values.size() == kExperts * kInputs);
  RouterContext<double> context;
  context.x = rows_of<const double>(arrays[0].values.data() + 2 * kInputs, 1, kInputs);
  router->forward(context, parameters.data(), *router->make_scratch(), scores.data());
  CHECK(scores[2] == 0);
  for (const std::size_t other : {0U, 1U, 3U}) CHECK(scores[other] < 0);
}

TEST_CASE("examples: the page names them all, contracts and tables that there are, and files that are new") {
  const std::string page = file_text(kRoot / "docs" / "extending.md");
  for (const std::string& stem : examples()) {
    CAPTURE(stem);
    CHECK(page.find("](example/" + stem + ".cpp)") != std::string::npos);
  }
  int linked = 0;
  for (const std::vector<std::string>& row : axes_of(page)) {
    REQUIRE(row.size() == 5);
    CAPTURE(row[0]);
    for (const std::size_t column : {1U, 3U}) {
      const std::vector<std::string> files = quoted_names(row[column]);
      REQUIRE(files.size() == 1);
      CAPTURE(files[0]);
      CHECK(fs::exists(kRoot / files[0]));
    }
    const std::vector<std::string> made = quoted_names(row[2]);  // the file and its function
    REQUIRE(made.size() == 2);
    const std::string folder = made[0].substr(0, made[0].rfind('/', made[0].find('<')));
    CAPTURE(folder);
    CHECK(fs::is_directory(kRoot / folder));
    CHECK_FALSE(fs::exists(kRoot / made[0]));
    const std::size_t link = row[4].find("](");
    if (link != std::string::npos) {
      ++linked;
      const std::string file = row[4].substr(link + 2, row[4].find(')', link) - link - 2);
      CHECK(file_text(kRoot / "docs" / file).find(" " + made[1] + " {") != std::string::npos);
    }
    for (const std::string& there : quoted_names(row[4])) {
      CAPTURE(there);
      CHECK(fs::exists(kRoot / folder / there));
    }
  }
  CHECK(linked == static_cast<int>(examples().size()));
}

}  // namespace moelab::examples_test
