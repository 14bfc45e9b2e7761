#include "app/scenario/experiment_reader.h"

#include "app/json/options.h"

namespace moelab {

DataOptions read_data(const Json& data, std::shared_ptr<FileContents> contents) {
  DataOptions options = read_options<DataOptions>(data);
  options.contents = std::move(contents);
  return options;
}

ExperimentOptions read_experiment(const Json& config) {
  return {read_data(config.at("data")), read_options<ModelOptions>(config.at("model")),
          read_options<LossOptions>(config.at("loss")), read_options<TrainOptions>(config.at("train"))};
}

CellOptions read_cell(const Cell& cell) {
  const Json config = cell.config.json();
  CellOptions options{read_experiment(config), {}, {}, {}, cell.seeds()};
  options.experiment.data.contents = cell.contents;
  for (const Json& group : config.at("metrics"))
    options.metrics.push_back(read_options<MetricOptions>(group));
  for (const Json& name : config.at("save")) options.saved.insert(name.get<std::string>());
  for (const auto& [name, data] : config.at("evaluations").items())
    options.evaluations.emplace_back(name, read_data(data, cell.contents));
  return options;
}

std::vector<std::string> files_read_by(const Cell& cell) {
  std::vector<std::string> files;
  const auto add = [&](const Json& data) {
    for (const auto& [field, file] : files_of(read_data(data))) files.push_back(file);
  };
  add(cell.config.at("data"));
  for (const auto& [name, data] : cell.config.at("evaluations").items()) add(data);
  return files;
}

}  // namespace moelab
