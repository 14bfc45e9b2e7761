#pragma once

/// The configuration of a cell, of which a scenario of very many cells keeps equal parts once.

#include <memory>
#include <mutex>
#include <set>
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

  /// A part's name and value; those of configurations that SharedParts made are one object where they are
  /// equal.
  using Part = std::pair<std::string, Json>;
  using Parts = std::vector<std::shared_ptr<const Part>>;
  /// None where there is nothing.
  const Parts* parts() const { return parts_.get(); }

 private:
  friend class SharedParts;
  std::shared_ptr<const Parts> parts_;
};

/// Makes configurations that share the parts in which they are equal, to the last digit. Several threads may
/// ask.
class SharedParts {
 public:
  CellConfig config(const Json& config);
  /// The same where all but the `changed` parts are those of `before`, one of these.
  CellConfig config(const Json& config, const CellConfig& before, const std::set<std::string>& changed);

 private:
  std::shared_ptr<const CellConfig::Part> shared(const std::string& name, const Json& value);

  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const CellConfig::Part>> known_;  ///< by name and text
};

}  // namespace moelab
