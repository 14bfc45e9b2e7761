#pragma once

/// The memory that a cell needs, measured before a run, and the memory that the machine has.
///
/// No formula here knows a router, an expert, a gating, a model or a metric. The program runs a small version
/// of the cell, with few samples and two steps, and counts the allocations. Memory that depends on samples is
/// proportional to their number. So a second small run with twice as many samples determines the slope.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "app/scenario/cells.h"
#include "sim/model/network.h"

namespace moelab {

/// The options of a cell, and how its model reads its data. They determine the sizes of all arrays.
struct CellShape {
  explicit CellShape(const Cell& cell);

  CellOptions options;
  std::string model_text;  ///< equal for equal models
  /// Data with the same layout that are drawn quickly: with few clusters if the number of clusters is free.
  DataOptions small_data;
  std::unique_ptr<Problem> small_problem;
  Layout layout;
  Network<float> network;  ///< structure only, without parameters
  int train_samples = 0;   ///< size of the training set; 0 for population gradients
  double batch = 0;        ///< samples per step
  double steps = 0;
  double records = 0;         ///< recorded steps, including the first and the last
  double measured_train = 0;  ///< training samples that are measured
};

/// Returns the holes of the heap to the system, if they have so many bytes. They are what a finished cell has
/// freed, and blocks of the next cell need not fit into them.
void return_holes(std::size_t least_bytes);

// Allocation counts. Programs that link this library route malloc, operator new and related calls through it
// (CMakeLists.txt). The overhead is zero while no count is active.

/// The stages of a cell. The peak of each stage is linear in the numbers of samples. Which stage has the
/// largest peak depends on these numbers.
enum class MemoryStage { set_up, step, record, finish };
constexpr std::size_t kMemoryStages = 4;

/// Tells the count of this thread, if there is one, that a stage begins.
void begin_memory_stage(MemoryStage stage);

/// Counts the bytes that this thread has requested and not freed since the object's construction. Freeing a
/// block that was not counted changes nothing: it is older, or a library allocated it internally.
class AllocationCount {
 public:
  AllocationCount();
  ~AllocationCount();
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;

  double live() const { return static_cast<double>(live_); }
  /// The largest live() in each stage, in bytes.
  const std::array<double, kMemoryStages>& peaks() const { return peaks_; }
  /// The least bytes that a record after the first has kept; 0 without such a record. Arrays grow by
  /// doubling, so a single record may keep more.
  double kept_by_record() const { return kept_by_record_.value_or(0); }

  void begin(MemoryStage stage);
  void add_block(void* block, std::size_t bytes);
  void remove_block(void* block);

 private:
  void add(std::int64_t bytes);

  /// The size of each counted block. The allocator returns blocks that are larger than requested, by sizes
  /// that vary from call to call.
  std::unordered_map<void*, std::int64_t> blocks_;
  std::int64_t live_ = 0;
  MemoryStage stage_ = MemoryStage::set_up;
  std::array<double, kMemoryStages> peaks_ = {};
  std::int64_t before_stage_ = 0;  ///< live() at the start of the stage
  int records_ = 0;
  std::optional<double> kept_by_record_;
  AllocationCount* outer_;
};

/// The bytes of a cell: `peak` while it runs, and `recorded` for its trace when results are read for claims
/// and figures.
struct CellMemory {
  double peak = 0;
  double recorded = 0;
};

/// Runs the small version, in tenths of a second. If the parameters are too large to allocate in this time,
/// the small version has fewer experts, or the function only counts the parameters.
CellMemory cell_memory(const CellShape& shape);

/// The bytes of the arrays in a pass: `step` for a training step (forward and backward), `measured_sample`
/// for a measured sample.
struct PassBytes {
  double step = 0, measured_sample = 0;
};
/// Measures passes on a few rows, once for each model and layout. Returns 0 for models with very many
/// parameters, where arithmetic dominates memory traffic.
class PassMeter {
 public:
  PassBytes of(const CellShape& shape);

 private:
  std::map<std::string, PassBytes> of_row_;  ///< bytes per row, by model and layout
};

/// Bytes of the program with its libraries, and of a planned cell with its line of plan.json.
constexpr double kProgramBytes = 14e6;
constexpr double kPlannedCellBytes = 2000;

// Memory check

/// Returns the bytes that this process may still allocate. It is the minimum of the machine's available
/// memory, the remainder of its control groups (version 1 or 2) and RLIMIT_AS. Infinite if none of them can
/// be read.
double available_bytes();

/// Throws EnvironmentError if a run on `threads` threads needs more than `available` bytes. The message gives
/// both numbers, the number of threads that would fit, and `way_out`.
void check_memory(double process_bytes, double cell_bytes, int threads, double available,
                  const char* way_out = ", or --force runs it all the same");

}  // namespace moelab
