#pragma once

/// Cache-line-aligned arrays for everything that kernels touch.

#include <cstddef>
#include <new>
#include <vector>

namespace moelab {

constexpr std::size_t kAlignment = 64;

template <class T>
struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>& /*other*/) {}
  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t(kAlignment)));
  }
  void deallocate(T* pointer, std::size_t /*count*/) {
    ::operator delete(pointer, std::align_val_t(kAlignment));
  }
  template <class U>
  bool operator==(const AlignedAllocator<U>& /*other*/) const {
    return true;
  }
};

template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

/// A count or an index, never negative, as arrays take it.
constexpr std::size_t size(std::ptrdiff_t value) {
  return static_cast<std::size_t>(value);
}

/// Entries of `rows` rows, `stride` apart.
constexpr std::size_t entries(std::ptrdiff_t rows, std::ptrdiff_t stride) {
  return size(rows) * size(stride);
}

/// Grows `values` to at least `count` entries; a no-op once it is large enough.
template <class T>
void reserve_entries(AlignedVector<T>& values, std::size_t count) {
  if (values.size() < count) values.resize(count);
}

}  // namespace moelab
