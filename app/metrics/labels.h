#pragma once

/// Readable names of what figures show.

#include <string>

namespace moelab {

/// A swept path or a metric at an axis: "data.train_samples" → "training samples", "test_nmse_top1" → "test
/// loss ÷ label variance (top-1)", as its group declares it. A layer, an entry and an evaluation are appended
/// ("test loss ÷ label variance (top-1), contaminated"); names without a label stand for themselves.
std::string axis_label(const std::string& name);

/// A shorter form for legends: "test, top-1".
std::string legend_label(const std::string& name);

}  // namespace moelab
