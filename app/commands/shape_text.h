#pragma once

/// What a field may be, and what a metric needs, in a few words.

#include <string>
#include <vector>

#include "app/json/schema.h"
#include "app/metrics/metric_needs.h"

namespace moelab {

/// "whole number ≥ 1", "number in [0, 1]", "soft | top1 | topk", "list of number > 0", …
std::string shape_text(const Shape& shape);

/// "required", "optional" or "default 1.5".
std::string default_text(const Field& field);

/// The needs that not every run meets, "a model with a router; two experts or more"; empty where there are
/// none.
std::string needs_text(const std::vector<const Need*>& all);

/// The same for what all metrics of a group need.
std::string needs_of_group_text(const std::string& group);

}  // namespace moelab
