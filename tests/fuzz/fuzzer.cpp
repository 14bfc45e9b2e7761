/// The entry that libFuzzer calls; MOELAB_FUZZ_TARGET names the function of targets.h that takes its bytes.

#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  moelab::MOELAB_FUZZ_TARGET({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
