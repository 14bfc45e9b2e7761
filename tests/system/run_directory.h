#pragma once

/// What the program under test left in a run directory.

#include <algorithm>
#include <filesystem>
#include <string>

#include "tests/app/run/test_scenario.h"
#include "tests/system/process.h"

namespace moelab {

inline std::ptrdiff_t recorded_lines(const std::filesystem::path& run) {
  std::ptrdiff_t lines = 0;
  if (!std::filesystem::exists(run / "journal")) return lines;
  for (const std::filesystem::directory_entry& file : std::filesystem::directory_iterator(run / "journal")) {
    const std::string text = file_text(file.path());
    lines += std::count(text.begin(), text.end(), '\n');
  }
  return lines;
}

inline std::string exported(const TemporaryFolder& folder, const std::filesystem::path& run, bool trace) {
  std::vector<std::string> words = {"export", run.string()};
  if (trace) words.push_back("--trace");
  REQUIRE(call(words, folder.path() / "export.csv") == 0);
  return file_text(folder.path() / "export.csv");
}

}  // namespace moelab
