/// moelab_workloads NAME: runs one workload with the library's Model and train(), and prints the measurements
/// as one line of JSON.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numeric>

#include "analysis/metrics/task.h"
#include "bench/workload.h"
#include "sim/base/kernels/kernels.h"
#include "sim/data/npy.h"
#include "sim/data/problem.h"
#include "sim/train/trainer.h"

namespace moelab {
namespace {

using Clock = std::chrono::steady_clock;

const Seeds kSeeds{1, 0};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The largest resident memory of the process. Unlike getrusage, it excludes the parent's memory before exec.
double peak_memory_mb() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    double kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes / 1024;
  }
  throw EnvironmentError("/proc/self/status has no VmHWM");
}

/// A workload ready to run.
struct Run {
  explicit Run(const Workload& workload) : Run(workload, *draw_problem(workload.options.data, kSeeds)) {}
  Run(const Workload& workload, const Problem& problem)
      : set(draw_training_set<float>(problem, kSeeds, *workload.options.data.train_samples)),
        model(workload.options.model, problem.layout(), {kSeeds}),
        workspace(model.network->make_workspace()) {}
  const Network<float>& network() const { return *model.network; }
  /// The error over the first `rows` rows under the training gating: train_nmse, or nats per token.
  double error(int rows) {
    if (network().layout().vocabulary > 0) {
      const std::vector<double> y(set.y.begin(), set.y.end());
      const std::vector<double> losses =
          token_losses<float>(model, network().train_gating(), set.x.data(), y.data(), rows, workspace);
      return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
    }
    const int o = network().layout().target_dim();
    std::vector<float> outputs(static_cast<std::size_t>(rows) * static_cast<std::size_t>(o));
    predict(model, network().train_gating(), set.x.data(), rows, workspace, outputs.data());
    const Matrix fitted = Eigen::Map<const MatrixOf<float>>(outputs.data(), rows, o).cast<double>();
    const Matrix targets = Eigen::Map<const MatrixOf<float>>(set.y.data(), rows, o).cast<double>();
    return normalised_mean_squared_error(fitted, targets).value();
  }

  TrainingSet<float> set;
  Model<float> model;
  Workspace<float> workspace;
};

/// Measures steps per second over `seconds`, without the first tenth of a second. The trainer reports the
/// share of completed steps, which gives their number exactly.
void measure_rate(const Workload& workload, Run& run, double seconds, Json& result) {
  const double total = workload.train.at("steps").get<double>();
  Clock::time_point start;
  std::clock_t start_ticks = 0;
  double first = -1;
  const auto progress = [&](double share) {
    const double done = std::round(share * total);
    if (first < 0) {
      first = done;
      start = Clock::now();
      start_ticks = std::clock();
      return false;
    }
    const double elapsed = seconds_since(start);
    if (elapsed < seconds) return false;
    result["steps"] = done - first;
    result["seconds"] = elapsed;
    result["processor_seconds"] = static_cast<double>(std::clock() - start_ticks) / CLOCKS_PER_SEC;
    result["steps_per_second"] = (done - first) / elapsed;
    return true;
  };
  LossOptions loss_options;
  loss_options.task = workload.task;
  const std::unique_ptr<TaskLoss<float>> loss =
      make_task_loss<float>(loss_options, run.network().layout().vocabulary > 0);
  const TrainOutcome outcome = train<float>(run.model, {*loss}, run.set, workload.options.train, kSeeds,
                                            {[](std::int64_t) {}, progress}, run.workspace);
  if (outcome.state != TrainState::interrupted) throw std::runtime_error("the training diverged");
}

/// Measures seconds and steps until train_nmse over the whole training set reaches the target, including
/// evaluations.
void measure_to_target(const Workload& workload, Run& run, Json& result) {
  Clock::time_point start;
  bool reached = false;
  const auto record = [&](std::int64_t step) {
    if (reached) return;
    const double nmse = run.error(run.set.rows);
    if (step == 0) start = Clock::now();
    result["train_nmse"] = nmse;
    result["steps"] = step;
    result["seconds"] = seconds_since(start);
    reached = nmse <= kTargetNmse;
  };
  const std::unique_ptr<TaskLoss<float>> loss = make_task_loss<float>("mse");
  train<float>(run.model, {*loss}, run.set, workload.options.train, kSeeds,
               {record, [&](double) { return reached; }}, run.workspace);
  result["reached"] = reached;
  result["steps_per_second"] = result.at("steps").get<double>() / result.at("seconds").get<double>();
}

template <class Work>
double microseconds_of(const Work& work) {
  constexpr double kSeconds = 0.1;
  work();
  const Clock::time_point start = Clock::now();
  int calls = 0;
  while (seconds_since(start) < kSeconds || calls < 3) {
    work();
    ++calls;
  }
  return 1e6 * seconds_since(start) / calls;
}

/// Measures the cost of the router in a step: its products and the softmax, forward and backward.
void measure_router(const Workload& workload, const Run& run, Json& result) {
  const int experts = workload.model.at("experts");
  const int rows = std::min(workload.train.at("batch_size").get<int>(), run.set.rows);
  const int stride = kernels::padded(experts);
  const RouterSetting setting{run.network().layout().input_dim, experts};
  const std::unique_ptr<Router<float>> router = make_router<float>(workload.options.model.router, setting);
  AlignedVector<float> parameters(router->block_size()), gradient(router->block_size());
  AlignedVector<float> scores(static_cast<std::size_t>(rows) * static_cast<std::size_t>(stride));
  AlignedVector<float> probabilities(scores.size());
  router->initialize({kSeeds}, parameters.data());
  const std::unique_ptr<Scratch> scratch = router->make_scratch();
  RouterContext<float> context;
  context.x = rows_of(run.set.x.data(), rows, setting.input_dim);
  const bool trainable = is_trainable(workload.options.model.router);
  result["router_product_microseconds"] = microseconds_of([&] {
    router->forward(context, parameters.data(), *scratch, scores.data());
    if (trainable) {
      router->backward(context, parameters.data(), *scratch,
                       {.scores = scores.data(), .parameters = gradient.data()});
    }
  });
  result["router_softmax_microseconds"] = microseconds_of([&] {
    kernels::softmax_rows(scores.data(), probabilities.data(), rows, experts, stride);
    if (trainable) {
      kernels::softmax_backward_rows(probabilities.data(), probabilities.data(), probabilities.data(), rows,
                                     experts, stride);
    }
  });
}

Json measure(const Workload& workload, double seconds) {
  Json result = {
      {"workload", workload.name}, {"program", "moelab"}, {"vector_level", kernels::vector_level_name()}};
  Run run(workload);
  const int rows = std::min(workload.train.at("batch_size").get<int>(), run.set.rows);
  result["first_batch_error"] = run.error(rows);
  if (workload.to_target) {
    measure_to_target(workload, run, result);
  } else {
    measure_rate(workload, run, seconds, result);
  }
  result["peak_memory_mb"] = peak_memory_mb();
  result["trained_batch_error"] = run.error(rows);
  if (run.network().layout().vocabulary > 0)
    result["tokens_per_second"] =
        result.at("steps_per_second").get<double>() * rows * run.network().layout().tokens;
  // The rest applies to a single layer without attention.
  if (run.network().layers() > 1 || workload.model.contains("attention")) return result;

  const std::vector<std::int64_t> loads =
      expert_loads(run.model, 0, run.network().train_gating(), run.set.x.data(), rows, run.workspace);
  const double pairs = static_cast<double>(std::accumulate(loads.begin(), loads.end(), std::int64_t{0}));
  result["active_experts_per_row"] = pairs / rows;
  result["active_experts_per_batch"] =
      std::count_if(loads.begin(), loads.end(), [](std::int64_t load) { return load > 0; });
  result["needed_memory_mb"] = needed_bytes(workload, pairs) / (1 << 20);
  const SoftGatingOptions* const soft = workload.options.model.gating.train.as<SoftGatingOptions>();
  if (soft && soft->skip_below == 0.0) {
    const double operations = step_operations(workload);
    result["exponentials"] = step_exponentials(workload);
    result["bytes"] = step_bytes(workload);
    result["mflop_per_step"] = operations / 1e6;
    result["gflops"] = operations * result.at("steps_per_second").get<double>() / 1e9;
  }
  measure_router(workload, run, result);
  return result;
}

/// F: draws of fig2's mixture.
Json measure_draws(double seconds) {
  const Workload workload = make_workload("A", {});
  const std::unique_ptr<Problem> problem = draw_problem(workload.options.data, kSeeds);
  const int samples = workload.data.at("train_samples");
  Engine engine = kSeeds.stream(Purpose::train_data);
  const double microseconds = [&] {
    problem->draw(engine, {Purpose::train_data, 0, samples});
    const Clock::time_point start = Clock::now();
    int calls = 0;
    do {
      problem->draw(engine, {Purpose::train_data, 0, samples});
      ++calls;
    } while (seconds_since(start) < seconds);
    return 1e6 * seconds_since(start) / calls;
  }();
  const double rate = 1e6 * samples / microseconds;
  return {{"workload", "F"},
          {"program", "moelab"},
          {"samples_per_second", rate},
          {"normals_per_second", rate * problem->layout().input_dim},
          {"peak_memory_mb", peak_memory_mb()}};
}

void write_array(const std::filesystem::path& file, const std::vector<std::int64_t>& shape,
                 const std::vector<float>& values) {
  std::ofstream out(file, std::ios::binary);
  out << npy_header("<f4", shape);
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(float)));
  if (!out.flush()) throw EnvironmentError("cannot write " + file.string());
}

/// Writes the training set and the starting weights as .npy files, and the settings as workload.json, for the
/// peers.
void save(const Workload& workload, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const Run run(workload);
  write_array(folder / "x.npy", run.network().layout().input_shape(run.set.rows), run.set.x);
  write_array(folder / "y.npy", run.network().layout().target_shape(run.set.rows), run.set.y);
  for (const NamedArray<float>& array : run.network().arrays(run.model.parameters)) {
    write_array(folder / (array.name + ".npy"), array.shape, array.values);
  }
  const Json settings = {{"workload", workload.name},
                         {"model", workload.model},
                         {"expert", workload.model.value("expert", Json())},
                         {"router_trainable", workload.model.at("router").at("trainable")},
                         {"train", workload.train},
                         {"to_target", workload.to_target},
                         {"target_nmse", kTargetNmse}};
  std::ofstream out(folder / "workload.json");
  out << settings.dump(2) << '\n';
  if (!out.flush()) throw EnvironmentError("cannot write " + (folder / "workload.json").string());
}

int run_program(int count, char** arguments) {
  CLI::App program("Measures one workload of moelab's training and prints one line of JSON.");
  std::string name, folder;
  double seconds = 2;
  WorkloadSizes sizes;
  std::vector<std::string> names = workload_names();
  names.push_back("F");
  program.add_option("workload", name, "what is measured")->required()->check(CLI::IsMember(names));
  program.add_option("--seconds", seconds, "length of the measurement")->check(CLI::PositiveNumber);
  program.add_option("--experts", sizes.experts, "experts E, instead of the workload's own")
      ->check(CLI::PositiveNumber);
  program.add_option("--dim", sizes.dim, "input width d")->check(CLI::PositiveNumber);
  program.add_option("--batch", sizes.batch, "rows of a batch")->check(CLI::PositiveNumber);
  program.add_option("--samples", sizes.samples, "rows of the training set")->check(CLI::PositiveNumber);
  program.add_option("--save", folder, "only write the data and the starting weights here, for the peers");
  CLI11_PARSE(program, count, arguments);
  if (name == "F") {
    std::cout << measure_draws(seconds).dump() << '\n';
    return 0;
  }
  const Workload workload = make_workload(name, sizes);
  if (folder.empty()) {
    std::cout << measure(workload, seconds).dump() << '\n';
  } else {
    save(workload, folder);
  }
  return 0;
}

}  // namespace
}  // namespace moelab

int main(int count, char** arguments) {
  return moelab::guarded("moelab_workloads", moelab::run_program, count, arguments);
}
