#pragma once

/// Readable names of what figures show.

#include <string>

namespace moelab {

/// "data.train_samples" → "training samples", "test_nmse_top1" → "test loss ÷ label variance (top-1)"; a
/// metric of an evaluation ("contaminated.test_nmse_top1") has its name appended; names without an entry
/// stand for themselves.
std::string axis_label(const std::string& name);

/// A shorter form for legends: "test, top-1".
std::string legend_label(const std::string& name);

}  // namespace moelab
