#pragma once

/// A scenario and a stand-in for training, for tests of what surrounds it.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "app/run/cell.h"
#include "tests/temporary_folder.h"

namespace moelab {

inline std::string file_text(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// Two arms × two sweep points × two seeds.
inline Scenario small_scenario(const std::string& name = "small") {
  Scenario scenario;
  scenario.name = name;
  scenario.arms = {"learned", "frozen"};
  scenario.sweep_paths = {"data.train_samples"};
  scenario.document = {{"name", name}};
  scenario.written_claims = Json::array();
  scenario.written_figures = Json::array();
  for (const std::string& arm : scenario.arms) {
    for (const int samples : {10, 20}) {
      for (const int seed : {0, 1}) {
        Cell cell;
        cell.id = arm + std::to_string(samples) + "s" + std::to_string(seed);
        cell.arm = arm;
        cell.seed = seed;
        cell.point = {{"data.train_samples", samples}};
        scenario.cells.push_back(cell);
      }
    }
  }
  return scenario;
}

/// Numbers that depend on the cell alone and need every digit of a double.
inline CellResult pretend_run(const Cell& cell) {
  const double value = std::sqrt(2.0 + cell.seed) / static_cast<double>(cell.id.size());
  CellResult result;
  result.metrics = {{"test_nmse_top1", value}, {"a_metric", value / 3}};
  if (cell.arm == "frozen") result.metrics.erase("a_metric");
  result.trace = {{0, {{"test_nmse_top1", 1.0}}}, {10, result.metrics}};
  return result;
}

}  // namespace moelab
