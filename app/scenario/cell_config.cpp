#include "app/scenario/cell_config.h"

#include <algorithm>
#include <stdexcept>

namespace moelab {

CellConfig::CellConfig(const Json& config) {
  *this = SharedParts().config(config);
}

const Json& CellConfig::at(std::string_view name) const {
  if (parts_) {
    const auto found =
        std::find_if(parts_->begin(), parts_->end(), [&](const auto& part) { return part->first == name; });
    if (found != parts_->end()) return (*found)->second;
  }
  throw std::out_of_range("a configuration without '" + std::string(name) + "'");
}

Json CellConfig::json() const {
  Json config = Json::object();
  if (!parts_) return config;
  for (const auto& part : *parts_) config[part->first] = part->second;
  return config;
}

std::shared_ptr<const CellConfig::Part> SharedParts::shared(const std::string& name, const Json& value) {
  const std::string text = name + value.dump();
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const CellConfig::Part>& part = known_[text];
  if (!part) part = std::make_shared<const CellConfig::Part>(name, value);
  return part;
}

CellConfig SharedParts::config(const Json& config) {
  CellConfig::Parts parts;
  for (const auto& [name, value] : config.items()) parts.push_back(shared(name, value));
  CellConfig made;
  made.parts_ = std::make_shared<const CellConfig::Parts>(std::move(parts));
  return made;
}

CellConfig SharedParts::config(const Json& config, const CellConfig& before,
                               const std::set<std::string>& changed) {
  CellConfig::Parts parts = *before.parts_;
  for (auto& part : parts) {
    if (changed.contains(part->first)) part = shared(part->first, config.at(part->first));
  }
  CellConfig made;
  made.parts_ = std::make_shared<const CellConfig::Parts>(std::move(parts));
  return made;
}

}  // namespace moelab
