#include "app/run/memory.h"

#include <fmt/format.h>
#include <sys/resource.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "app/run/measurement.h"
#include "sim/base/error.h"
#include "sim/train/least_squares.h"

namespace moelab {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// Reads the number in a file with one number, or on the line that starts with `name`. Infinite for "max" or
/// no number.
double number_in(const std::string& file, const std::string& name = "") {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(name)) continue;
    std::istringstream words(line.substr(name.size()));
    double number = 0;
    if (words >> number) return number;
  }
  return kUnlimited;
}

/// Returns the minimum of limit − use, in bytes, over the control groups of this process and their ancestors.
double left_by_groups() {
  double left = kUnlimited;
  std::ifstream stream("/proc/self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_second = controllers.empty();
    if (!is_second && controllers.find("memory") == std::string::npos) continue;
    const std::string root = is_second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (std::string group = line.substr(second + 1);; group = group.substr(0, group.rfind('/'))) {
      const std::string folder = root + (group == "/" ? "" : group);
      const double limit = number_in(folder + (is_second ? "/memory.max" : "/memory.limit_in_bytes"));
      const double used = number_in(folder + (is_second ? "/memory.current" : "/memory.usage_in_bytes"));
      // The kernel drops cached file pages when memory is needed.
      const double cached = number_in(folder + "/memory.stat", is_second ? "file " : "total_cache ");
      if (std::isfinite(limit) && std::isfinite(used))
        left = std::min(left, std::max(0.0, limit - used + (std::isfinite(cached) ? cached : 0)));
      if (group.empty() || group == "/") break;
    }
  }
  return left;
}

}  // namespace

double available_bytes() {
  constexpr double kKilobyte = 1024;
  double available = std::min(kKilobyte * number_in("/proc/meminfo", "MemAvailable:"), left_by_groups());
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    // Reserved addresses without memory count towards RLIMIT_AS, so arrays cannot use them.
    const std::string status = "/proc/self/status";
    const double unused = kKilobyte * (number_in(status, "VmSize:") - number_in(status, "VmRSS:"));
    available =
        std::min(available, static_cast<double>(limit.rlim_cur) - (std::isfinite(unused) ? unused : 0));
  }
  return available;
}

void check_memory(double process_bytes, double cell_bytes, int threads, double available,
                  const char* way_out) {
  const double needed = process_bytes + cell_bytes * threads;
  if (needed <= available) return;
  const double fitting = std::floor((available - process_bytes) / std::max(cell_bytes, 1.0));
  throw EnvironmentError(
      fmt::format("the run needs about {:.0f} MB on {} threads, and {:.0f} MB are available; {}{}",
                  needed / 1e6, threads, available / 1e6,
                  fitting >= 1 ? fmt::format("--threads {:.0f} would fit", fitting)
                               : std::string("not even --threads 1 would fit"),
                  way_out));
}

void return_holes([[maybe_unused]] std::size_t least_bytes) {
#ifdef __GLIBC__
  if (::mallinfo2().fordblks >= least_bytes) ::malloc_trim(0);
#endif
}

// Allocation counts

namespace {

thread_local AllocationCount* current_count = nullptr;
/// Whether a counted function is running. It may call another counted function.
thread_local bool is_inside = false;

#ifdef __GLIBC__
constexpr bool kIsCounting = true;

/// Calls a function of a library that may itself call counted functions.
template <class Call>
auto inside(const Call& call) {
  struct Scope {
    Scope() { is_inside = true; }
    ~Scope() { is_inside = false; }
  } scope;
  return call();
}

/// Calls `allocate` and counts the block of so many bytes that it returns.
template <class Allocate>
void* allocated(std::size_t bytes, const Allocate& allocate) {
  if (!current_count || is_inside) return allocate();
  return inside([&] {
    void* const block = allocate();
    if (block) current_count->add_block(block, bytes);
    return block;
  });
}

template <class Free>
void freed(void* block, const Free& free) {
  if (!current_count || is_inside) return free();
  inside([&] {
    current_count->remove_block(block);
    free();
  });
}
#else  // macOS, whose linker does not replace functions
constexpr bool kIsCounting = false;
#endif

}  // namespace

AllocationCount::AllocationCount() : outer_(current_count) {
  current_count = this;
}

AllocationCount::~AllocationCount() {
  current_count = outer_;
}

void AllocationCount::begin(MemoryStage stage) {
  if (stage_ == MemoryStage::record && ++records_ > 1) {
    const double kept = static_cast<double>(std::max<std::int64_t>(0, live_ - before_stage_));
    kept_by_record_ = std::min(kept, kept_by_record_.value_or(kept));
  }
  stage_ = stage;
  before_stage_ = live_;
  add(0);
}

void AllocationCount::add_block(void* block, std::size_t bytes) {
  blocks_[block] = static_cast<std::int64_t>(bytes);
  add(static_cast<std::int64_t>(bytes));
}

void AllocationCount::remove_block(void* block) {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return;
  add(-found->second);
  blocks_.erase(found);
}

void AllocationCount::add(std::int64_t bytes) {
  live_ += bytes;
  double& peak = peaks_[static_cast<std::size_t>(stage_)];
  peak = std::max(peak, live());
}

void begin_memory_stage(MemoryStage stage) {
  if (current_count) current_count->begin(stage);
}

}  // namespace moelab

#ifdef __GLIBC__
// The linker replaces functions of the C and C++ libraries by these functions with the prefix __wrap_. The
// prefix __real_ names the originals.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
#define MOELAB_WRAP_NEW(name, parameters, arguments, size)                   \
  void* __real_##name parameters;                                            \
  void* __wrap_##name parameters;                                            \
  void* __wrap_##name parameters {                                           \
    return moelab::allocated(size, [&] { return __real_##name arguments; }); \
  }
#define MOELAB_WRAP_DELETE(name, parameters, arguments)     \
  void __real_##name parameters;                            \
  void __wrap_##name parameters;                            \
  void __wrap_##name parameters {                           \
    moelab::freed(block, [&] { __real_##name arguments; }); \
  }
MOELAB_WRAP_NEW(malloc, (std::size_t bytes), (bytes), bytes)
MOELAB_WRAP_NEW(calloc, (std::size_t count, std::size_t bytes), (count, bytes), (count * bytes))
MOELAB_WRAP_NEW(_Znwm, (std::size_t bytes), (bytes), bytes)
MOELAB_WRAP_NEW(_Znam, (std::size_t bytes), (bytes), bytes)
MOELAB_WRAP_NEW(_ZnwmRKSt9nothrow_t, (std::size_t bytes, const std::nothrow_t& tag), (bytes, tag), bytes)
MOELAB_WRAP_NEW(_ZnwmSt11align_val_t, (std::size_t bytes, std::align_val_t alignment), (bytes, alignment),
                bytes)
MOELAB_WRAP_NEW(_ZnamSt11align_val_t, (std::size_t bytes, std::align_val_t alignment), (bytes, alignment),
                bytes)
MOELAB_WRAP_DELETE(free, (void* block), (block))
MOELAB_WRAP_DELETE(_ZdlPv, (void* block), (block))
MOELAB_WRAP_DELETE(_ZdaPv, (void* block), (block))
MOELAB_WRAP_DELETE(_ZdlPvm, (void* block, std::size_t bytes), (block, bytes))
MOELAB_WRAP_DELETE(_ZdaPvm, (void* block, std::size_t bytes), (block, bytes))
MOELAB_WRAP_DELETE(_ZdlPvSt11align_val_t, (void* block, std::align_val_t alignment), (block, alignment))
MOELAB_WRAP_DELETE(_ZdaPvSt11align_val_t, (void* block, std::align_val_t alignment), (block, alignment))
MOELAB_WRAP_DELETE(_ZdlPvmSt11align_val_t, (void* block, std::size_t bytes, std::align_val_t alignment),
                   (block, bytes, alignment))

void* __real_realloc(void* block, std::size_t bytes);
void* __wrap_realloc(void* block, std::size_t bytes);
void* __wrap_realloc(void* block, std::size_t bytes) {
  if (moelab::current_count && !moelab::is_inside) moelab::current_count->remove_block(block);
  return moelab::allocated(bytes, [&] { return __real_realloc(block, bytes); });
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
}
#endif

namespace moelab {
namespace {

constexpr double kDouble = sizeof(double), kInt = sizeof(int);
/// Bytes of a metric in a record.
/// - kMetricBytes: its name, its number, and the spare capacity of a growing array.
/// - kWrittenMetricBytes: while the record is written, a copy, its JSON, and its text twice.
/// - kReadMetricBytes: after the record is read again.
constexpr double kMetricBytes = 90, kWrittenMetricBytes = 220, kReadMetricBytes = 55;

/// The approximate number of multiplications and additions of a small run, and the most parameters that it
/// allocates.
constexpr double kSmallOperations = 1e8;
constexpr double kMostParameters = 2e7;
/// Passes over each row of a small run: three records with three gatings each, and two steps forward and
/// backward.
constexpr double kPassesOfRow = 24;
/// Matrices of p² numbers while a fit is polished: the curvature, its damped copy, and its decomposition.
constexpr double kSquares = 3;
constexpr double kLeastRows = 64, kMostRows = 2000;
constexpr std::int64_t kSmallSteps = 2;

double real_bytes(const CellShape& shape) {
  return shape.options.experiment.train.precision == TrainOptions::Precision::in_double ? 8 : 4;
}

bool is_fit(const CellShape& shape) {
  return is_least_squares(shape.options.experiment.train);
}

/// The shares of the samples and of the experts that a small run has.
struct Shares {
  double train = 1;   ///< of the training set
  double test = 1;    ///< of the test sets
  double passes = 1;  ///< of the rows per pass, in training and in measuring
  double experts = 1;
};

int part_of(double count, double share) {
  return std::max(1, static_cast<int>(std::lround(count * share)));
}

void shrink(const CellShape& shape, const Shares& shares, DataOptions& data) {
  data.test_samples = part_of(data.test_samples, shares.test);
  if (data.train_samples)
    data.train_samples = std::max(part_of(*data.train_samples, shares.train),
                                  shape.network.starts_at_train_rows() ? shape.network.experts() : 1);
}

/// Whether the fit's polishing forms matrices of p² numbers.
bool is_polished(const TrainOptions& train) {
  const LeastSquaresOptions* const fit = train.optimizer.as<LeastSquaresOptions>();
  return fit != nullptr && !fit->likelihood && many_starts(train.start);
}

/// Two steps with learning rate 0, each with a record. A fit is not polished, because that takes long.
void shrink(const CellShape& shape, const Shares& shares, TrainOptions& train) {
  train.until.reset();
  train.epochs.reset();
  train.steps = kSmallSteps;
  if (!is_fit(shape)) train.record_every = 1;
  train.schedule = ConstantScheduleOptions{};
  if (train.gradient == TrainOptions::Gradient::population) {
    train.points = part_of(population_rule(train).points, shares.passes);
  } else if (!is_fit(shape)) {
    const double batch = static_cast<double>(train.batch_size.value_or(shape.train_samples));
    train.batch_size = part_of(batch, shares.passes);
  }
  if (train.lr) train.lr = PerGroup(0.0);
  if (is_polished(train)) {
    train.start = ColdStartOptions{.tries = 1};
  } else if (std::optional<BestStartOptions> one = many_starts(train.start)) {
    one->starts = one->polished = 1;
    one->evaluations = kSmallSteps;
    train.start = *one;
  }
}

CellOptions shrunk(const CellShape& shape, const Shares& shares, bool with_small_problem) {
  CellOptions options = shape.options;
  ExperimentOptions& experiment = options.experiment;
  if (with_small_problem) {
    DataOptions data = shape.small_data;
    data.contents = experiment.data.contents;
    experiment.data = data;
  }
  experiment.model.experts = part_of(experiment.model.experts, shares.experts);
  experiment.model.block_rows = part_of(experiment.model.block_rows, shares.passes);
  shrink(shape, shares, experiment.data);
  shrink(shape, shares, experiment.train);
  for (auto& [name, data] : options.evaluations) shrink(shape, shares, data);
  for (PhaseOptions& phase : experiment.phases) {
    shrink(shape, shares, phase.data);
    shrink(shape, shares, phase.train);
  }
  for (auto& evaluations : options.phase_evaluations) {
    for (auto& [name, data] : evaluations) shrink(shape, shares, data);
  }
  return options;
}

/// The result of a small run: the peak of each stage, the bytes that each further record keeps, and the
/// number of metrics of a record.
struct SmallRun {
  std::array<double, kMemoryStages> peaks = {};
  double kept_by_record = 0;
  double metrics = 0;
};

/// Nothing where allocations are not counted; then the estimate is the parameters' size.
std::optional<SmallRun> small_run(const CellOptions& options) {
  if constexpr (!kIsCounting) return std::nullopt;
  try {
    const AllocationCount count;
    const CellResult result = run_experiment(options, [](double) { return false; });
    if (result.state == CellResult::State::failed || result.trace.empty()) return std::nullopt;
    SmallRun run{count.peaks(), count.kept_by_record(), 0};
    for (const TraceEntry& entry : result.trace)
      run.metrics = std::max(run.metrics, static_cast<double>(entry.metrics.size()));
    return run;
  } catch (const std::exception&) {
    return std::nullopt;  // the cell itself reports the error when it runs
  }
}

/// Linear interpolation a + (b − a) x of each member.
SmallRun along(const SmallRun& a, const SmallRun& b, double x) {
  SmallRun sum = a;
  for (std::size_t s = 0; s < kMemoryStages; ++s) sum.peaks[s] += (b.peaks[s] - a.peaks[s]) * x;
  sum.kept_by_record += (b.kept_by_record - a.kept_by_record) * x;
  return sum;
}

/// Returns the bytes that the full problem keeps beyond the problem of `small_data`, as its generator
/// reports.
double problem_bytes(const CellShape& shape) {
  const auto kept = [&](const DataOptions& data) {
    const GeneratorKind& kind = data.entry();
    return kind.kept_numbers ? kDouble * kind.kept_numbers(data.options(), shape.layout) : 0;
  };
  return kept(shape.options.experiment.data) - kept(shape.small_data);
}

/// The samples of a pass in measuring.
double block_samples(const CellShape& shape) {
  return std::min<double>(shape.network.block_samples(), shape.options.experiment.data.test_samples);
}

/// Rounds a share of at least one half up to 1, because a smaller run would save little.
double worthwhile(double share) {
  return share >= 0.5 ? 1 : share;
}

/// Returns shares that bound the cost of the small run.
Shares small_shares(const CellShape& shape, double parameters) {
  const double tokens = shape.layout.tokens;
  const double rows =
      std::clamp(kSmallOperations / (kPassesOfRow * std::max(parameters, 1.0)), kLeastRows, kMostRows);
  const double samples = std::max(std::ceil(rows / tokens), 8.0);
  Shares shares;
  shares.test = worthwhile(samples / shape.options.experiment.data.test_samples);
  double least_train = std::max<double>(samples, is_fit(shape) ? 600 : 0);
  if (shape.network.starts_at_train_rows())
    least_train = std::max<double>(least_train, shape.network.experts());
  if (shape.train_samples > 0) shares.train = worthwhile(least_train / shape.train_samples);
  // Twice the rows of a pass must fit into the samples.
  shares.passes =
      std::min(1.0, shares.test * shape.options.experiment.data.test_samples / (2 * block_samples(shape)));
  if (shape.train_samples > 0 && !is_fit(shape))
    shares.passes = std::min(shares.passes, shares.train * shape.train_samples / (2 * shape.batch));
  shares.passes = std::min(shares.passes, samples / std::max(shape.batch, 1.0));
  shares.passes = worthwhile(shares.passes);
  return shares;
}

/// Runs the small version with these shares. Then doubles each share below 1 in turn and extrapolates
/// linearly.
std::optional<SmallRun> measured_run(const CellShape& shape, const Shares& shares, bool with_small_problem) {
  const auto run = [&](const Shares& of) {
    std::optional<SmallRun> made = small_run(shrunk(shape, of, with_small_problem));
    return_holes(0);
    return made;
  };
  const std::optional<SmallRun> least = run(shares);
  if (!least) return std::nullopt;
  SmallRun whole = *least;
  // The number of measured training samples is bounded, also for large training sets.
  const double measured_train =
      shape.train_samples > 0 && !is_fit(shape) ? shape.measured_train / shape.train_samples : 1;
  for (double Shares::*const part : {&Shares::train, &Shares::test, &Shares::passes, &Shares::experts}) {
    const double target = part == &Shares::train ? std::min(1.0, measured_train) : 1;
    const double share = shares.*part;
    if (share >= target) continue;
    Shares more = shares;
    more.*part = 2 * share;
    const std::optional<SmallRun> larger = run(more);
    if (!larger) return std::nullopt;
    const SmallRun difference = along(*least, *larger, (target - share) / share);
    for (std::size_t s = 0; s < kMemoryStages; ++s) whole.peaks[s] += difference.peaks[s] - least->peaks[s];
    whole.kept_by_record += difference.kept_by_record - least->kept_by_record;
  }
  return whole;
}

/// Returns the largest share of experts, a power of 1/2, whose parameters can be allocated. Returns 0 if one
/// expert has too many parameters.
double share_of_experts(const CellShape& shape) {
  for (double share = 1; share * shape.options.experiment.model.experts >= 2; share /= 2) {
    if (share * static_cast<double>(shape.network.parameter_size()) > kMostParameters) continue;
    ModelOptions model = shape.options.experiment.model;
    model.experts = part_of(model.experts, share);
    try {
      Network<float>(model, shape.layout);
      return share;
    } catch (const InvalidOption&) {
      break;
    }
  }
  return 0;
}

/// Returns the bytes of the parameters, their gradient and the optimizer's state.
double parameter_bytes(const CellShape& shape) {
  constexpr std::size_t kSome = 4096;
  double kept = 0;
  if (!is_fit(shape)) {
    const AllocationCount count;
    const auto optimizer = make_optimizer<float>(shape.options.experiment.train.optimizer, kSome);
    kept = count.live() / (kSome * sizeof(float));
  }
  return real_bytes(shape) * (2 + kept) * static_cast<double>(shape.network.parameter_size());
}

}  // namespace

CellShape::CellShape(const Cell& cell)
    : options(options_of(cell)),
      model_text(options_json(options.experiment.model).dump()),
      small_data(moelab::small_data(options.experiment.data)),
      small_problem(draw_problem(small_data, options.seeds)),
      layout(small_problem->layout()),
      network(options.experiment.model, layout) {
  const auto add = [&](const TrainOptions& train, const DataOptions& data) {
    const bool is_population = train.gradient == TrainOptions::Gradient::population;
    const int samples = data.train_samples.value_or(is_population ? 0 : kMeasuredTrainSamples);
    const std::int64_t count = total_steps(train, samples);
    steps += static_cast<double>(count);
    batch = std::max(batch, is_population ? population_rule(train).points
                                          : std::min(static_cast<double>(train.batch_size.value_or(samples)),
                                                     static_cast<double>(samples)));
    records +=
        2 + std::floor(static_cast<double>(count) / static_cast<double>(record_interval(train, count)));
    measured_train = std::max<double>(
        measured_train,
        std::min(is_population ? kMeasuredTrainSamples : samples, most_measured_train_samples(data)));
    train_samples = std::max(train_samples, samples);
  };
  const std::vector<PhaseOptions>& phases = options.experiment.phases;
  if (phases.empty()) add(options.experiment.train, options.experiment.data);
  for (const PhaseOptions& phase : phases) add(phase.train, phase.data);
}

CellMemory cell_memory(const CellShape& shape) {
  const double size = static_cast<double>(shape.network.parameter_size());
  const double kept_by_problem = problem_bytes(shape);
  const bool with_small_problem = kept_by_problem > kDouble * 1e6;
  double experts = 1;
  if (size > kMostParameters) experts = shape.network.has_router() ? share_of_experts(shape) : 0;
  std::optional<SmallRun> run;
  if (experts > 0) {
    Shares shares = small_shares(shape, size * experts);
    shares.experts = experts;
    run = measured_run(shape, shares, with_small_problem);
  }
  if (!run) {
    run = SmallRun{};
    run->peaks.fill(parameter_bytes(shape));
  }
  const double records = std::max(0.0, shape.records - 1 - static_cast<double>(kSmallSteps));
  const double kept = records * run->kept_by_record;
  double peak = 0;
  for (std::size_t s = 0; s < kMemoryStages; ++s)
    peak = std::max(peak, run->peaks[s] + (s > static_cast<std::size_t>(MemoryStage::set_up) ? kept : 0));
  // Training samples that are not measured still need their numbers and labels.
  const double beyond = is_fit(shape) ? 0 : std::max(0.0, shape.train_samples - shape.measured_train);
  peak += beyond * (real_bytes(shape) * (shape.layout.sample_dim() + shape.layout.target_dim()) + kInt);
  if (with_small_problem) peak += kept_by_problem;
  const TrainOptions& train = shape.options.experiment.train;
  const auto& library_numbers = train.optimizer.entry().library_numbers;
  const double parameters = static_cast<double>(shape.network.parameter_count());
  double numbers = library_numbers ? library_numbers(train.optimizer.options(), parameters, shape.steps) : 0;
  if (is_polished(train)) numbers = std::max(numbers, kSquares * parameters * parameters);
  peak += kDouble * numbers;
  const double metrics = shape.records * run->metrics;
  return {peak + metrics * (kMetricBytes + kWrittenMetricBytes),
          (shape.records + 1) * run->metrics * kReadMetricBytes};
}

namespace {

/// Returns the growth of workspaces per sample, in bytes: in the passes of a training step and in a measuring
/// pass.
PassBytes bytes_of_sample(const CellShape& shape) {
  constexpr double kMostPassed = 1e6;
  constexpr int kSamples = 4;
  PassBytes bytes;
  if (static_cast<double>(shape.network.parameter_size()) > kMostPassed) return bytes;
  const ModelOptions options = resolved_for(shape.options.experiment.model, shape.options.experiment.train);
  const Matrix rows = Matrix::Random(shape.network.experts(), shape.layout.input_dim);
  const Model<float> model(options, shape.layout, {shape.options.seeds, &rows});
  const Network<float>& network = *model.network;
  const Dataset drawn =
      draw_set(*shape.small_problem, shape.options.seeds, Purpose::evaluation, 2 * kSamples);
  const MatrixOf<float> x = drawn.x.cast<float>();
  const auto grown = [&](bool is_step) {
    Pass<float> pass;
    pass.tokens = network.layout().tokens;
    pass.keep = pass.training = is_step;
    pass.gating = is_step ? &network.train_gating() : &network.eval_gating();
    pass.labels = drawn.cluster.data();
    Workspace<float> workspace = network.make_workspace();
    const auto pass_over = [&](int samples) {
      const View<const float> outputs =
          network.forward(pass, x.data(), samples, model.parameters, model.state, workspace);
      if (is_step) {
        reserve_entries(workspace.output_gradient, entries(outputs.rows, outputs.row_stride));
        network.backward(pass, model.parameters, model.state, workspace.output_gradient.data(), workspace,
                         nullptr);
      }
    };
    const AllocationCount count;
    pass_over(kSamples);
    const double few = count.live();
    pass_over(2 * kSamples);
    return std::max(0.0, count.live() - few) / kSamples;
  };
  bytes.step = grown(true);
  bytes.measured_sample = grown(false);
  return bytes;
}

}  // namespace

PassBytes PassMeter::of(const CellShape& shape) {
  const Layout& layout = shape.layout;
  const std::string key = fmt::format("{} {} {} {} {}", shape.model_text, layout.sample_dim(), layout.tokens,
                                      layout.output_dim, layout.vocabulary);
  auto known = of_row_.find(key);
  if (known == of_row_.end()) {
    PassBytes measured;
    try {
      measured = bytes_of_sample(shape);
    } catch (const std::exception&) {
      // The cell itself reports the error when it runs.
    }
    known = of_row_.emplace(key, measured).first;
  }
  const double wider = real_bytes(shape) / sizeof(float);
  return {known->second.step * shape.batch * wider, known->second.measured_sample * wider};
}

}  // namespace moelab
