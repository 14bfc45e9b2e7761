#include "app/cli/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <iostream>
#include <system_error>
#include <thread>
#include <vector>

namespace moelab {

void run_in_parallel(std::size_t count, int threads, const std::string& what,
                     const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> errors(count);
  std::atomic<std::size_t> next{0};
  const auto work_on = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> others;
  others.reserve(count);
  try {
    for (std::size_t i = 1; i < std::min(static_cast<std::size_t>(threads), count); ++i)
      others.emplace_back(work_on);
  } catch (const std::system_error& error) {
    std::cerr << fmt::format("moelab: note: {} of {} threads could be started ({}); these run all {}\n",
                             others.size() + 1, threads, error.what(), what);
  }
  work_on();
  for (std::thread& thread : others) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace moelab
