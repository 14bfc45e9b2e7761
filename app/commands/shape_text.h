#pragma once

/// What a field may be, in a few words.

#include <string>

#include "app/json/schema.h"

namespace moelab {

/// "whole number ≥ 1", "number in [0, 1]", "soft | top1 | topk", "list of number > 0", …
std::string shape_text(const Shape& shape);

/// "required", "optional" or "default 1.5".
std::string default_text(const Field& field);

}  // namespace moelab
