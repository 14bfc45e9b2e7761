#pragma once

/// The readers of router dumps, as targets.h says.

#include <filesystem>
#include <string>
#include <string_view>

#include "app/cli/analyze.h"
#include "sim/base/error.h"
#include "tests/fuzz/property.h"
#include "tests/temporary_folder.h"

namespace moelab {

/// Analyses bytes as a file of this name. Errors name an option.
inline bool fuzz_dump(std::string_view bytes, const std::string& name, ArraySource RoutingInput::*source,
                      int expert_count) {
  static const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / name;
  write_anew(file, bytes);
  AnalyzedArrays arrays;
  (arrays.*source).files = {file};
  arrays.expert_count = expert_count;
  arrays.top_k = 2;
  try {
    const ArrayAnalysis analysis = analyze_arrays(arrays);
    require(!analysis.layers.empty(), "an accepted dump has no layer");
    require(analysis_of(to_json(analysis)).layers.size() == analysis.layers.size(),
            "an analysis reads back as another");
    return true;
  } catch (const UserError& error) {
    require(!error.path().empty(), "an error has no place");
    return false;
  }
}

inline bool fuzz_dump_arrays(std::string_view bytes) {
  return fuzz_dump(bytes, "given.npz", &RoutingInput::logits, 0);
}

inline bool fuzz_dump_lines(std::string_view bytes) {
  return fuzz_dump(bytes, "given.jsonl", &RoutingInput::experts, 4);
}

inline bool fuzz_dump_table(std::string_view bytes) {
  return fuzz_dump(bytes, "given.csv", &RoutingInput::experts, 4);
}

}  // namespace moelab
