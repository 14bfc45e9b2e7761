#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace moelab {

/// What a number of a run is of. Its text is the column of exports and the name in JSON:
/// [<evaluation>.]<metric>[_layer<layer>][.<variant>].
struct MetricKey {
  std::string evaluation = {};  ///< empty for the cell's own test data
  std::string metric;           ///< as its group declares it
  std::string variant = {};     ///< name of an entry of a group that is measured by entries, or empty
  std::optional<int> layer = std::nullopt;  ///< in models of several layers

  std::string text() const;
  /// The inverse of text(). A text that no metric has is a key whose metric there is not.
  static MetricKey parse(std::string_view text);
  auto operator<=>(const MetricKey&) const = default;
};

/// The metrics of one test set at one step.
using MeasuredValues = std::map<MetricKey, double>;

}  // namespace moelab
