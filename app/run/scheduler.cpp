#include "app/run/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <iostream>
#include <mutex>
#include <new>
#include <thread>

#include "sim/base/error.h"

namespace moelab {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kTick{200};

/// What the threads share. `mutex` guards the counts, the error and the sink.
struct Batch {
  Batch(const std::vector<const Cell*>& cells_, const CellRunner& runner_, const CellSink& sink_,
        const BatchOptions& options_, std::size_t threads)
      : cells(cells_), runner(runner_), sink(sink_), options(options_), shares(threads) {
    running_threads = static_cast<int>(threads);
    progress.total = static_cast<int>(cells.size());
  }

  const std::vector<const Cell*>& cells;
  const CellRunner& runner;
  const CellSink& sink;
  const BatchOptions& options;
  std::atomic<std::size_t> next{0};
  std::atomic<bool> broken{false};
  std::atomic<bool> one_failed{false};
  std::vector<std::atomic<double>> shares;  ///< of the cell that each thread runs
  std::mutex mutex;
  std::condition_variable thread_ended;
  int running_threads = 0;
  BatchProgress progress;
  std::exception_ptr error;

  bool must_stop() const {
    return broken || (options.fail_fast && one_failed) || (options.stop != nullptr && *options.stop);
  }
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

CellResult compute(const Batch& batch, const Cell& cell, std::atomic<double>& share) {
  try {
    return batch.runner(cell, [&](double done) {
      share = std::clamp(done, 0.0, 1.0);
      return batch.must_stop();
    });
  } catch (const EnvironmentError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw EnvironmentError("not enough memory to run cell " + cell.id + "; fewer --threads need less");
  } catch (const std::exception& error) {
    CellResult result;
    result.state = CellResult::State::failed;
    result.message = error.what();
    return result;
  }
}

void hand_over(Batch& batch, const Cell& cell, const CellResult& result, double seconds,
               std::atomic<double>& share) {
  const std::lock_guard lock(batch.mutex);
  share = 0;
  if (batch.broken || result.state == CellResult::State::interrupted) return;
  try {
    batch.sink(cell, result, seconds);
  } catch (...) {
    // Set under the lock: no thread may use the sink once it has failed.
    batch.broken = true;
    throw;
  }
  ++batch.progress.finished;
  if (result.state == CellResult::State::failed) {
    ++batch.progress.failed;
    batch.one_failed = true;
  }
  if (result.state == CellResult::State::diverged) ++batch.progress.diverged;
}

void work(Batch& batch, std::atomic<double>& share) {
  try {
    while (!batch.must_stop()) {
      const std::size_t index = batch.next++;
      if (index >= batch.cells.size()) break;
      const Cell& cell = *batch.cells[index];
      const Clock::time_point start = Clock::now();
      const CellResult result = compute(batch, cell, share);
      hand_over(batch, cell, result, seconds_since(start), share);
    }
  } catch (...) {
    batch.broken = true;
    const std::lock_guard lock(batch.mutex);
    if (!batch.error) batch.error = std::current_exception();
  }
  const std::lock_guard lock(batch.mutex);
  --batch.running_threads;
  batch.thread_ended.notify_all();
}

void wait_for_threads(Batch& batch, const BatchOptions& options) {
  Clock::time_point stopped{};
  bool was_overdue = false;
  std::unique_lock lock(batch.mutex);
  while (batch.running_threads > 0) {
    batch.thread_ended.wait_for(lock, kTick);
    BatchProgress progress = batch.progress;
    for (const std::atomic<double>& share : batch.shares) progress.partial += share;
    // Not under the lock: a blocked terminal must not hold up the threads.
    lock.unlock();
    if (options.watch) options.watch(progress);
    lock.lock();
    if (options.stop == nullptr || !*options.stop) continue;
    if (stopped == Clock::time_point{}) stopped = Clock::now();
    if (!was_overdue && options.overdue && batch.running_threads > 0 &&
        seconds_since(stopped) > kGraceSeconds) {
      was_overdue = true;
      options.overdue();
    }
  }
}

/// One thread for each share, or as many as the system gives.
void start_threads(Batch& batch, std::vector<std::thread>& threads) {
  try {
    for (std::atomic<double>& share : batch.shares)
      threads.emplace_back(work, std::ref(batch), std::ref(share));
  } catch (const std::exception& error) {
    if (threads.empty()) throw EnvironmentError(fmt::format("no thread can be started: {}", error.what()));
    const std::lock_guard lock(batch.mutex);
    batch.running_threads -= static_cast<int>(batch.shares.size() - threads.size());
    std::cerr << fmt::format("moelab: note: {} of {} threads could be started ({}); these run all cells\n",
                             threads.size(), batch.shares.size(), error.what());
  }
}

}  // namespace

BatchProgress run_batch(const std::vector<const Cell*>& cells, const CellRunner& runner, const CellSink& sink,
                        const BatchOptions& options) {
  const std::size_t count =
      std::clamp<std::size_t>(cells.size(), 1, static_cast<std::size_t>(std::max(options.threads, 1)));
  Batch batch(cells, runner, sink, options, count);
  std::vector<std::thread> threads;
  threads.reserve(count);  // what throws from here on finds threads at work
  start_threads(batch, threads);
  std::exception_ptr watching;
  try {
    wait_for_threads(batch, options);
  } catch (...) {
    batch.broken = true;
    watching = std::current_exception();
  }
  for (std::thread& thread : threads) thread.join();
  if (batch.error) std::rethrow_exception(batch.error);
  if (watching) std::rethrow_exception(watching);
  return batch.progress;
}

}  // namespace moelab
