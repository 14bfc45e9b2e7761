#pragma once

/// The configuration of a cell, of which a scenario of very many cells keeps equal parts once.

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "app/json/json.h"

namespace moelab {

/// Every field that affects numbers but the seed, defaults filled in: {"data", "model", "loss", "train",
/// "metrics", "save", "evaluations": {name: its data}}. Copies share their parts, which do not change.
class CellConfig {
 public:
  CellConfig() = default;
  CellConfig(const Json& config);

  /// A part by its name. Throws std::out_of_range for one that there is not.
  const Json& at(std::string_view name) const;
  /// All of them as one object.
  Json json() const;

 private:
  friend class SharedParts;
  using Part = std::pair<std::string, Json>;
  std::shared_ptr<const std::vector<std::shared_ptr<const Part>>> parts_;
};

/// Makes configurations that share the parts in which they are equal, to the last digit. Several threads may
/// ask.
class SharedParts {
 public:
  CellConfig config(const Json& config);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const CellConfig::Part>> known_;  ///< by name and text
};

}  // namespace moelab
