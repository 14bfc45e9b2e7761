#include "app/scenario/experiment_reader.h"

#include <algorithm>

#include "app/json/options.h"

namespace moelab {

DataOptions read_data(const Json& data, std::shared_ptr<FileContents> contents) {
  DataOptions options = read_options<DataOptions>(data);
  options.contents = std::move(contents);
  return options;
}

DataOptions read_small_data(Json data) {
  // Quarters of the clusters are there from four on.
  if (data.contains("clusters")) data["clusters"] = std::min(data["clusters"].get<int>(), 4);
  // Its depth says which levels there are.
  if (data.contains("hierarchy")) data["hierarchy"]["branching"] = 2;
  for (const char* field : {"separation", "scale_to_separation", "weights"}) data.erase(field);
  return read_data(data);
}

namespace {

PhaseOptions read_phase(const Json& phase) {
  PhaseOptions options;
  options.name = phase.at("name");
  options.data = read_data(phase.at("data"));
  options.loss = read_options<LossOptions>(phase.at("loss"));
  options.train = read_options<TrainOptions>(phase.at("train"));
  const Json& learns = phase.at("learns");
  const auto has = [&](const char* part) {
    return std::find(learns.begin(), learns.end(), part) != learns.end();
  };
  options.learns = {has("router"), has("experts"), has("layers")};
  options.keep_optimizer = phase.at("keep_optimizer");
  return options;
}

std::vector<std::pair<std::string, DataOptions>> read_evaluations(
    const Json& evaluations, const std::shared_ptr<FileContents>& contents) {
  std::vector<std::pair<std::string, DataOptions>> read;
  for (const auto& [name, data] : evaluations.items()) read.emplace_back(name, read_data(data, contents));
  return read;
}

}  // namespace

ExperimentOptions read_experiment(const Json& config) {
  ExperimentOptions options{read_data(config.at("data")), read_options<ModelOptions>(config.at("model")),
                            read_options<LossOptions>(config.at("loss")),
                            read_options<TrainOptions>(config.at("train"))};
  for (const Json& phase : config.value("phases", Json::array())) options.phases.push_back(read_phase(phase));
  return options;
}

CellOptions in_phase(const CellOptions& cell, std::size_t phase) {
  CellOptions own = cell;
  if (phase >= cell.experiment.phases.size()) return own;
  const PhaseOptions& options = cell.experiment.phases[phase];
  own.experiment.data = options.data;
  own.experiment.loss = options.loss;
  own.experiment.train = options.train;
  own.evaluations = cell.phase_evaluations.at(phase);
  return own;
}

CellOptions read_cell(const Cell& cell) {
  const Json config = cell.config.json();
  CellOptions options{read_experiment(config), {}, {}, {}, cell.seeds()};
  options.experiment.data.contents = cell.contents;
  for (const Json& group : config.at("metrics"))
    options.metrics.push_back(read_options<MetricOptions>(group));
  for (const Json& name : config.at("save")) options.saved.insert(name.get<std::string>());
  options.evaluations = read_evaluations(config.at("evaluations"), cell.contents);
  for (PhaseOptions& phase : options.experiment.phases) phase.data.contents = cell.contents;
  for (const Json& phase : config.at("phases"))
    options.phase_evaluations.push_back(read_evaluations(phase.at("evaluations"), cell.contents));
  return options;
}

std::vector<const Json*> data_of(const CellConfig& config) {
  std::vector<const Json*> all = {&config.at("data")};
  for (const auto& [name, data] : config.at("evaluations").items()) all.push_back(&data);
  for (const Json& phase : config.at("phases")) {
    all.push_back(&phase.at("data"));
    for (const auto& [name, data] : phase.at("evaluations").items()) all.push_back(&data);
  }
  return all;
}

std::vector<std::string> files_read_by(const Cell& cell) {
  std::vector<std::string> files;
  const auto add = [&](const Json& data) {
    for (const auto& [field, file] : files_of(read_data(data))) files.push_back(file);
  };
  for (const Json* data : data_of(cell.config)) add(*data);
  return files;
}

}  // namespace moelab
