#pragma once

/// Independent work on several threads.

#include <cstddef>
#include <functional>
#include <string>

namespace moelab {

/// Calls work(0) … work(count − 1) on up to `threads` threads, each in turn as a thread is free. After all
/// have ended, throws the error of the first that failed. `what` names the work ("checks") in a note where
/// fewer threads can be started.
void run_in_parallel(std::size_t count, int threads, const std::string& what,
                     const std::function<void(std::size_t)>& work);

}  // namespace moelab
