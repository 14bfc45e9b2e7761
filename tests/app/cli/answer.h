#pragma once

/// Commands run in this process, with what they print.

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "app/cli/command_line.h"

namespace moelab {

struct Answer {
  int status = 0;
  std::string out, err;
};

/// Runs `command` and catches what it prints.
template <class Command>
Answer caught(const Command& command) {
  std::ostringstream out, err;
  std::streambuf* const old_out = std::cout.rdbuf(out.rdbuf());
  std::streambuf* const old_err = std::cerr.rdbuf(err.rdbuf());
  Answer answer;
  answer.status = command();
  std::cout.rdbuf(old_out);
  std::cerr.rdbuf(old_err);
  answer.out = out.str();
  answer.err = err.str();
  return answer;
}

/// Runs the command line `moelab words…`.
inline Answer ask(std::vector<std::string> words) {
  words.insert(words.begin(), "moelab");
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  return caught([&] { return run_command_line(static_cast<int>(arguments.size()), arguments.data()); });
}

}  // namespace moelab
