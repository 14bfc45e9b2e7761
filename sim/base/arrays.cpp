#include "sim/base/arrays.h"

#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace moelab {

void ask_for_large_pages([[maybe_unused]] void* block, [[maybe_unused]] std::size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr std::size_t kLargePage = std::size_t{1} << 21;
  if (bytes < 2 * kLargePage) return;
  // Only the large pages that lie wholly in the block, so that it takes no more memory.
  auto* const first = static_cast<char*>(block);
  const std::size_t skipped =
      (kLargePage - reinterpret_cast<std::uintptr_t>(block) % kLargePage) % kLargePage;
  const std::size_t covered = (bytes - skipped) / kLargePage * kLargePage;
  (void)::madvise(first + skipped, covered, MADV_HUGEPAGE);  // only advice: a refusal changes nothing
#endif
}

}  // namespace moelab
