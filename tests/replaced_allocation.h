#pragma once

/// operator new and delete for all of a test program, whose every allocation passes through
/// before_allocation. For one source of a program.

#include <cstddef>
#include <cstdlib>
#include <new>

namespace moelab {

/// Called before each allocation; defined by the source that includes this. What it throws, operator new
/// throws.
void before_allocation();

}  // namespace moelab

void* operator new(std::size_t bytes, std::align_val_t alignment) {
  moelab::before_allocation();
  const std::size_t unit = static_cast<std::size_t>(alignment);
  const std::size_t rounded = (bytes + unit - 1) / unit * unit;
  void* const memory = std::aligned_alloc(unit, rounded > 0 ? rounded : unit);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes) {
  return ::operator new(bytes, std::align_val_t(alignof(std::max_align_t)));
}
// std::stable_sort asks with these forms; under AddressSanitizer their own versions would not match the
// delete below.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return ::operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  try {
    return ::operator new(bytes, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
// Inlined, GCC takes these for the deletes of other news.
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
