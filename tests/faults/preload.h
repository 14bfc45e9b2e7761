#pragma once

/// What the wrappers of a library for LD_PRELOAD share: which calls count, which of them fails, and the
/// trace. Nothing here allocates.

#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>
#include <cstddef>

#include "tests/faults/call_table.h"

/// The C library's own function behind a wrapper.
#define MOELAB_NEXT(name) (reinterpret_cast<decltype(&::name)>(::dlsym(RTLD_NEXT, #name)))

namespace moelab::faults {

/// Whether this call, which counts, is to fail; errno is then set. With kHalf for an errno, `half` says so in
/// place of a failure.
bool fails(Call call, bool* half = nullptr);

/// The same for calls on files. Calls on files outside the folder do not count.
bool fails(Call call, const char* path);
bool fails(Call call, int descriptor, bool* half = nullptr);

/// The errno of a call that fails.
int failing_error();

bool is_inside(const char* path);
bool is_inside(int descriptor);
/// Says of a descriptor that was opened or closed whether it is of a file of the folder.
void mark(int descriptor, bool inside);

/// Appends to the trace, where there is one. Keeps errno.
void tell(TraceHeader header, const char* first = "", const char* second = "", const void* data = nullptr);

/// Held while something is done and told, so that the trace has the order of what was done.
class Ordered {
 public:
  Ordered();
  ~Ordered();
  Ordered(const Ordered&) = delete;
  Ordered& operator=(const Ordered&) = delete;
};

}  // namespace moelab::faults
