#pragma once

/// The bad inputs of docs/bad_input.md, each with the command line that meets it.

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace moelab::bad_input_page_test {

struct BadInput {
  std::string given;                      ///< Markdown
  std::vector<std::string> words;         ///< of the command line
  std::function<void()> prepare = [] {};  ///< writes the files that the words name into the current folder
  bool takes_json = true;
};

/// Headings of the page and what stands below each.
using BadInputs = std::vector<std::pair<std::string, std::vector<BadInput>>>;
BadInputs bad_inputs();

}  // namespace moelab::bad_input_page_test
