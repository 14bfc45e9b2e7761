#pragma once

/// A long work in parts: computed side by side, taken one after the other.

#include <algorithm>
#include <deque>
#include <future>
#include <thread>
#include <type_traits>

namespace moelab {

/// take(i, compute(i)) for i = 0 … count - 1 in this order on the calling thread, while as many threads as
/// there are processors compute the parts that follow. One part alone needs no thread; where none can be
/// started, a part is computed when it is its turn. Throws what either throws.
template <class Compute, class Take>
void in_ordered_parts(std::size_t count, const Compute& compute, const Take& take) {
  using Part = std::invoke_result_t<Compute, std::size_t>;
  const auto policy = count == 1 ? std::launch::deferred : std::launch::async | std::launch::deferred;
  const std::size_t most = std::max(1u, std::thread::hardware_concurrency());
  std::deque<std::future<Part>> parts;
  std::size_t next = 0;
  const auto start = [&] {
    for (; next < count && parts.size() < most; ++next)
      parts.push_back(std::async(policy, std::cref(compute), next));
  };
  start();
  for (std::size_t i = 0; i < count; ++i) {
    Part part = parts.front().get();
    parts.pop_front();
    start();
    take(i, std::move(part));
  }
}

}  // namespace moelab
