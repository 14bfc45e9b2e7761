/// Writes a run folder of very many recorded cells, in the store's own format, without training them.
///
///     moelab_store_folder FOLDER [CELLS [STEPS]]
///
/// The run has two arms at a hundred points with CELLS / 200 seeds each, random metrics at STEPS recorded
/// steps, eight journals, and a claim of each kind over all cells.

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "analysis/metrics/metric_groups.h"
#include "app/store/run_folder.h"
#include "app/store/store.h"
#include "sim/base/random.h"

namespace moelab {
namespace {

constexpr std::size_t kJournals = 8;

Scenario scenario_of(int cells, int steps) {
  Json document = Json::parse(R"({
    "name": "many",
    "data": {"generator": "gaussian_mixture", "clusters": 4, "dim": 4, "target": {"kind": "constant", "dim": 2}},
    "model": {"experts": 8, "router": "linear", "expert": "constant"},
    "train": {"lr": 0.1, "batch_size": 16},
    "metrics": ["task", "sparsity", "router_norms"],
    "arms": {"learned": {}, "frozen": {"model.router.trainable": false}},
    "claims": [
      {"id": "each", "left": {"arm": "learned", "metric": "test_nmse_top1"}, "op": "<",
       "right": {"arm": "frozen", "metric": "test_nmse_top1"}, "at": "each"},
      {"id": "elsewhere", "left": {"arm": "learned", "metric": "test_nmse_top1"}, "op": "<",
       "right": {"arm": "learned", "metric": "test_nmse_top1", "where": {"data.train_samples": 640}}},
      {"id": "along", "arm": "learned", "metric": "test_nmse_top1", "op": "decreases",
       "along": "data.train_samples"}],
    "figures": [{"id": "loss", "x": "data.train_samples", "y": "test_nmse_top1", "series": "arm",
                 "where": {"model.experts": 8}}]})");
  document["train"]["steps"] = steps;
  document["train"]["record_every"] = 1;
  for (int i = 0; i < 10; ++i) {
    document["sweep"]["data.train_samples"].push_back(640 << i);
    document["sweep"]["model.experts"].push_back(8 << i);
  }
  document["seeds"]["count"] = std::max(1, cells / 200);
  return expand_scenario(document, "", {});
}

std::vector<std::string> measured_names() {
  std::vector<std::string> names;
  for (const char* group : {"task", "sparsity", "router_norms"})
    for (const MetricGroup::Metric& metric : metrics_of_group(group)) names.push_back(metric.name);
  return names;
}

Record record_of(const Cell& cell, int steps, const std::vector<std::string>& names, Engine& engine) {
  Record record{cell.id, state_name(CellResult::State::done), "", {}, {}, 1.5, "2026-01-31T12:00:00Z"};
  for (int step = 0; step <= steps; ++step) {
    record.trace.push_back({step, {}});
    for (const std::string& name : names) record.trace.back().metrics[name] = draw_uniform(engine);
  }
  record.metrics = record.trace.back().metrics;
  return record;
}

void write_folder(const std::filesystem::path& folder, int cells, int steps) {
  const Scenario scenario = scenario_of(cells, steps);
  keep_plan(folder, scenario);
  std::filesystem::create_directories(folder / "journal");
  std::vector<std::ofstream> journals;
  for (std::size_t i = 0; i < kJournals; ++i)
    journals.emplace_back(folder / "journal" / fmt::format("{}.jsonl", i), std::ios::binary);
  const std::vector<std::string> names = measured_names();
  Engine engine = Seeds{}.stream(Purpose::test_data);
  // The store's own writer waits for the disk after each record and would take hours. Readers see no
  // difference.
  for (const Cell& cell : scenario.cells) {
    const std::size_t journal = static_cast<std::size_t>(draw_uniform(engine) * kJournals);
    journals[journal] << record_line(record_of(cell, steps, names, engine)) << '\n';
  }
}

}  // namespace
}  // namespace moelab

int main(int count, char** words) {
  if (count < 2 || count > 4) {
    std::cerr << "moelab_store_folder FOLDER [CELLS [STEPS]]\n";
    return 2;
  }
  try {
    moelab::write_folder(words[1], count > 2 ? std::stoi(words[2]) : 100000,
                         count > 3 ? std::stoi(words[3]) : 2);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 3;
  }
}
