#include "app/run/cluster_maps.h"

#include <doctest/doctest.h>

#include <fstream>

#include "app/run/store.h"
#include "sim/base/error.h"
#include "sim/data/npy/npy.h"
#include "tests/temporary_folder.h"

namespace moelab::cluster_maps_test {
namespace {

template <class Value>
void save(const std::filesystem::path& folder, const std::string& name,
          const std::vector<std::int64_t>& shape, const std::vector<Value>& values) {
  const std::filesystem::path file = array_file(folder, "cell", name);
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << npy_bytes(shape, std::span<const Value>(values));
}

RunResults one_cell() {
  RunResults results;
  results.plan = {{"title", "Routing"}, {"source", "Fig. 5"}};
  results.table.arms = {"a", "b"};
  results.table.rows.push_back({"cell", "a", 0, {}, "done", {}, {}});
  return results;
}

}  // namespace

TEST_CASE("cluster maps: means over each cluster's rows, clusters in the order of their experts") {
  const TemporaryFolder folder;
  // Clusters 7 (rows 0 and 2), 4 (row 1) and 9 (row 3) go to experts 2, 1 and 0.
  save<std::int64_t>(folder.path(), "test_labels", {4}, {7, 4, 7, 9});
  save<double>(folder.path(), "test_probs", {4, 3}, {0, .2, .8, .1, .9, 0, 0, .4, .6, 1, 0, 0});
  save<double>(folder.path(), "test_inputs", {4, 2}, {0, 2, -3, 0, 0, 4, 5, 0});
  save<double>(folder.path(), "router_weight", {3, 2}, {2, 0, -1, 0, 1, 1});
  const HeatMap map = build_cluster_map({{"id", "m"}}, one_cell(), folder.path());
  REQUIRE(map.panels.size() == 1);
  const std::vector<double> routing = {1, 0, 0, .1, .9, 0, 0, .3, .7};
  REQUIRE(map.panels[0].values.size() == routing.size());
  for (std::size_t i = 0; i < routing.size(); ++i)
    CHECK(map.panels[0].values[i].value() == doctest::Approx(routing[i]));
  CHECK(map.compact);
  CHECK(map.caption.find("Panels left out, no cell done: 1.") != std::string::npos);

  const HeatMap rows = build_cluster_map({{"id", "m"}, {"value", "router_rows"}}, one_cell(), folder.path());
  const double diagonal = std::sqrt(0.5);
  const std::vector<double> cosines = {1, -1, diagonal, -1, 1, -diagonal, 0, 0, diagonal};
  for (std::size_t i = 0; i < cosines.size(); ++i)
    CHECK(rows.panels[0].values[i].value() == doctest::Approx(cosines[i]));
  CHECK(rows.low == -1);
}

TEST_CASE("cluster maps: arrays that were not saved are an error") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(build_cluster_map({{"id", "m"}}, one_cell(), folder.path()), UserError);
}

}  // namespace moelab::cluster_maps_test
