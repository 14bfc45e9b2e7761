#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>

#include "app/cli/command_line.h"

namespace {

std::atomic<bool> memory_ran_out = false;

void note_and_throw() {
  memory_ran_out = true;
  throw std::bad_alloc();
}

/// command_line.cpp reports an allocation that fails. Destructors of JSON values allocate. If they fail while
/// that error is thrown, nobody can catch them. This function then reports the same error, as status 3.
[[noreturn]] void end_without_memory() {
  if (!memory_ran_out) std::abort();
  ::_exit(moelab::tell_lack_of_memory());
}

}  // namespace

int main(int argc, char** argv) {
  std::set_new_handler(note_and_throw);
  std::set_terminate(end_without_memory);
  return moelab::run_command_line(argc, argv);
}
