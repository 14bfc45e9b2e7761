#include "app/scenario/experiment_reader.h"

#include "app/json/options.h"

namespace moelab {

DataOptions read_data(const Json& data) {
  return read_options<DataOptions>(data);
}

ExperimentOptions read_experiment(const Json& config) {
  return {read_data(config.at("data")), read_options<ModelOptions>(config.at("model")),
          read_options<LossOptions>(config.at("loss")), read_options<TrainOptions>(config.at("train"))};
}

Seeds read_seeds(const Json& config) {
  const Json& seed = config.at("seed");
  return {seed.at("root").get<std::uint64_t>(), seed.at("index").get<std::uint64_t>()};
}

CellOptions read_cell(const Json& config) {
  CellOptions cell{read_experiment(config), {}, {}, {}, read_seeds(config)};
  for (const Json& group : config.at("metrics")) cell.metrics.push_back(read_options<MetricOptions>(group));
  for (const Json& name : config.at("save")) cell.saved.insert(name.get<std::string>());
  for (const auto& [name, data] : config.at("evaluations").items())
    cell.evaluations.emplace_back(name, read_data(data));
  return cell;
}

}  // namespace moelab
