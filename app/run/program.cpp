#include "app/run/program.h"

// The build passes these three, the commit as a header; a build without them still runs.
#if __has_include("commit.h")
#include "commit.h"
#endif
#ifndef MOELAB_VERSION
#define MOELAB_VERSION "unknown"
#endif
#ifndef MOELAB_COMMIT
#define MOELAB_COMMIT "unknown"
#endif
#ifndef MOELAB_FLAGS
#define MOELAB_FLAGS "unknown"
#endif

namespace moelab {

std::string program_version() {
  return MOELAB_VERSION;
}

std::string program_commit() {
  return MOELAB_COMMIT;
}

std::string program_flags() {
  return MOELAB_FLAGS;
}

}  // namespace moelab
