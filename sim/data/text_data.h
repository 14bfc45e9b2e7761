#pragma once

/// Text of the user's own as data: UTF-8 files, cut into sequences of tokens.

#include <string>
#include <vector>

#include "sim/base/options.h"

namespace moelab {

/// Tokens are bytes, V = 256. The last `test_share` of each file is for testing, what is before it for
/// training, so that no sequence lies in both. A sample is a window of s + 1 tokens inside one file: inputs
/// are the first s, targets the next token of each, (n, s); windows are drawn uniformly, of a file in
/// proportion to its length. The label of every token, (n, s), is the place of its file among `paths`, a
/// folder's files in the order of their names.
struct TextOptions {
  std::vector<std::string> paths = {};
  int tokens = 0;  ///< s
  double test_share = 0.1;

  void bind(Fields& fields);
};

}  // namespace moelab
