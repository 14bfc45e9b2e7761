#pragma once

/// Texts in shell scripts and in commands that people copy.

#include <string>

namespace moelab {

/// `word` as one word of a command for sh, quoted where it has to be; sh reads back the same bytes, line
/// breaks included.
std::string shell_word(const std::string& word);

}  // namespace moelab
