#include <doctest/doctest.h>

#include <string>

#include "app/run/memory.h"
#include "sim/base/error.h"

namespace moelab::available_memory_test {
namespace {

std::string refusal(double process, double cell, int threads, double available) {
  try {
    check_memory(process, cell, threads, available);
  } catch (const EnvironmentError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("available memory: a run that fits is not refused, one that does not is told what would") {
  CHECK(refusal(10e6, 20e6, 4, 90e6).empty());
  CHECK(refusal(10e6, 20e6, 4, 89e6) ==
        "the run needs about 90 MB on 4 threads, and 89 MB are available; --threads 3 would fit, or --force "
        "runs it all the same");
  CHECK(refusal(10e6, 20e6, 4, 29e6).find("not even --threads 1 would fit") != std::string::npos);
}

TEST_CASE("available memory: the machine says how much it has") {
  CHECK(available_bytes() > 1e6);
}

}  // namespace
}  // namespace moelab::available_memory_test
