#include "app/scenario/cell_identity.h"

#include <fmt/format.h>

#include <boost/uuid/name_generator.hpp>
#include <boost/uuid/uuid.hpp>

#include "app/scenario/experiment_reader.h"
#include "app/scenario/scenario_shape.h"

namespace moelab {
namespace {

/// Part of every cell's id: raised when a change of the program changes results, so that old ones are not
/// reused.
constexpr int kNumericsVersion = 3;

Json identity_of_data(const Json& data, FileContents& contents) {
  Json identity = without_defaults(data_shape(), data);
  for (const auto& [field, path] : files_of(read_data(data))) identity[field] = contents.name_of(path);
  return identity;
}

Json identity_of_phase(const Json& phase, FileContents& contents) {
  // As a scenario's parts, of which a phase has its own.
  Json identity = phase;
  for (const Field& field : config_shape().fields) {
    if (field.name == "loss" || field.name == "train")
      identity[field.name] = without_defaults(field.shape, phase.at(field.name));
  }
  identity["data"] = identity_of_data(phase.at("data"), contents);
  for (const auto& [name, data] : phase.at("evaluations").items())
    identity["evaluations"][name] = identity_of_data(data, contents);
  return identity;
}

Json identity_of(const Json& config, FileContents& contents) {
  Json identity = without_defaults(config_shape(), config);
  identity["data"] = identity_of_data(config.at("data"), contents);
  for (const auto& [name, data] : config.at("evaluations").items())
    identity["evaluations"][name] = identity_of_data(data, contents);
  for (std::size_t i = 0; i < config.at("phases").size(); ++i)
    identity["phases"][i] = identity_of_phase(config.at("phases")[i], contents);
  return identity;
}

}  // namespace

CellIds::CellIds(const Json& config, FileContents& contents) {
  // The canonical text of all of it, with the seeds where the order of keys has them: written once for what
  // is the same in very many cells.
  const Json identity = identity_of(config, contents);
  Json before = Json::object(), after = Json::object();
  for (const auto& [part, value] : identity.items()) (part < "seed" ? before : after)[part] = value;
  before_ = fmt::format("{}\n{}", kNumericsVersion, canonical_text(before));
  before_.back() = ',';
  after_ = canonical_text(after);
  after_.front() = ',';
}

std::string CellIds::id(const Seeds& seeds) const {
  const std::string shared = seeds.shared == 0 ? "" : fmt::format(R"(,"shared":{})", seeds.shared);
  const boost::uuids::name_generator_sha1 generator(boost::uuids::ns::oid());
  const boost::uuids::uuid hash = generator(fmt::format(R"({}"seed":{{"index":{},"root":{}{}}}{})", before_,
                                                        seeds.index, seeds.root, shared, after_));
  std::uint64_t digits = 0;
  for (std::size_t byte = 0; byte < 8; ++byte) digits = digits << 8 | hash.data[byte];
  return fmt::format("{:016x}", digits);
}

}  // namespace moelab
