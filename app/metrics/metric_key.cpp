#include "app/metrics/metric_key.h"

#include <charconv>

#include "app/metrics/metric_groups.h"

namespace moelab {
namespace {

constexpr std::string_view kLayerEnding = "_layer";

/// Takes the ending of a layer off the name.
std::optional<int> take_layer(std::string_view& name) {
  const std::size_t place = name.rfind(kLayerEnding);
  if (place == std::string_view::npos) return std::nullopt;
  const std::string_view number = name.substr(place + kLayerEnding.size());
  int layer = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), layer);
  if (error != std::errc() || end != number.data() + number.size() || number.front() == '-')
    return std::nullopt;
  name = name.substr(0, place);
  return layer;
}

}  // namespace

std::string MetricKey::text() const {
  std::string text = evaluation.empty() ? metric : evaluation + '.' + metric;
  if (layer) text.append(kLayerEnding).append(std::to_string(*layer));
  return variant.empty() ? text : text + '.' + variant;
}

MetricKey MetricKey::parse(std::string_view text) {
  MetricKey key;
  std::size_t dot = text.find('.');
  if (dot != std::string_view::npos) {
    const MetricGroup* const group = group_of(text.substr(0, dot));
    if (group && group->of_entries) {
      key.metric = text.substr(0, dot);
      key.variant = text.substr(dot + 1);
      return key;
    }
    dot = text.rfind('.');
    key.evaluation = text.substr(0, dot);
    text = text.substr(dot + 1);
  }
  key.layer = take_layer(text);
  key.metric = text;
  return key;
}

}  // namespace moelab
