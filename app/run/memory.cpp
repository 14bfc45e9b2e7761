#include "app/run/memory.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "app/run/measurement.h"
#include "sim/base/error.h"
#include "sim/data/gaussian_mixture.h"
#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "sim/model/transformer.h"

namespace moelab {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// The number in a file of one, or in the line of `name`; infinite where there is none ("max").
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

/// What the groups of this process leave, each with those above it: limit less use.
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
      // Pages of files in the cache make room for others.
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
    // Addresses that nothing lies at are lost to the arrays.
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

namespace {

constexpr double kDouble = sizeof(double), kInt = sizeof(int);
/// Samples that are drawn at a time, and samples of a fit's passes.
constexpr double kDrawnBlock = 4096, kFitBlock = 512;
/// A metric of a record: its name, its number, the room that a growing array keeps; and as it is read again.
constexpr double kMetricBytes = 90, kReadMetricBytes = 55;
/// The first while the record is written: a copy, its JSON, and its text twice.
constexpr double kWrittenMetricBytes = 300;

double real_bytes(const CellShape& shape) {
  return shape.options.experiment.train.precision == TrainOptions::Precision::in_double ? 8 : 4;
}

double padded(double width) {
  return std::ceil(width / kernels::kPadding) * kernels::kPadding;
}

/// Bytes of a drawn sample with its target and labels.
double sample_bytes(const Layout& layout) {
  return kDouble * (layout.sample_dim() + layout.target_dim()) + kInt * layout.labels;
}

/// The pairs of a row and an expert that a training batch computes at most.
double active_pairs(const CellShape& shape, double rows) {
  const GatingRule& gating = shape.options.experiment.model.gating.train;
  const int most =
      gating.entry().most_experts ? gating.entry().most_experts(gating.options()) : shape.network.experts();
  return rows * (most > 0 ? std::min(most, shape.network.experts()) : shape.network.experts());
}

/// Numbers that a bank of experts writes for a batch of rows: values, and on the way back their gradients.
double bank_numbers(const ExpertOptions& expert, double inputs, double outputs, double experts, double rows,
                    double trained_rows, double pairs) {
  if (const auto* const mlp = expert.as<MlpExpertOptions>()) {
    const double hidden = padded(mlp->width);
    const double activations = (mlp->depth - 1) * hidden + padded(outputs);
    const double gathered = pairs < trained_rows * experts ? inputs : 0;
    return std::max(activations * pairs + gathered * pairs, (activations + inputs) * rows) +
           trained_rows * (2 * std::max(hidden, padded(outputs)) + padded(outputs));
  }
  if (expert.chosen() == "constant") return 0;
  const double columns = outputs * padded(experts);
  const bool has_slopes = expert.chosen() != "linear";
  return columns * (rows * (has_slopes ? 2 : 1) + trained_rows);
}

/// Arrays of a transformer's layers, and of its ends, for a batch.
double transformer_numbers(const CellShape& shape, double rows, double trained) {
  const ModelOptions& model = shape.options.experiment.model;
  const double width = *model.width, stride = padded(width), heads = model.transformer.heads.value_or(1);
  const double experts = padded(shape.network.experts()), mixtures = mixtures_of(model);
  // Rows, normalized ones and branches of both parts; queries, keys, values and what heads mix of them.
  const double layer =
      rows * 8 * stride + (rows + trained) * 4 * heads * padded(width / heads) + trained * 4 * stride;
  const double dense = bank_numbers(transformer_network(model), width, width, 1, rows, trained, trained);
  double mixture = 0;
  if (mixtures > 0) {
    mixture = experts * (3 * rows + 2 * trained) + 4 * kInt / real_bytes(shape) * active_pairs(shape, rows) +
              bank_numbers(expert_of(model), width, width, shape.network.experts(), rows, trained,
                           active_pairs(shape, trained));
    const RouterKind& router = model.router.entry();
    const double tokens = padded(shape.layout.tokens);
    if (router.mixes_tokens) mixture += rows * (5 * experts + 3 * tokens + 3 * stride);
    // The attention that it looks at, with gradients.
    if (router.needs_attention) mixture += rows * heads * (6 * tokens + 2 * stride);
  }
  return model.layers * layer + mixtures * mixture + (model.layers - mixtures) * dense + 4 * rows * stride;
}

/// Samples of a step's passes.
double trained_samples(const CellShape& shape) {
  return is_least_squares(shape.options.experiment.train) ? std::min(shape.batch, kFitBlock) : shape.batch;
}

/// Arrays that a pass over `rows` rows leaves in the workspace, of which `trained` go back, too.
double pass_numbers(const CellShape& shape, double rows, double trained) {
  const Layout& layout = shape.layout;
  const ModelOptions& model = shape.options.experiment.model;
  const double width = layout.input_dim, experts = padded(shape.network.experts());
  double numbers = trained / layout.tokens * (layout.sample_dim() + layout.target_dim()) +
                   2 * rows * padded(layout.model_output_dim());
  if (model.kind == ModelOptions::Kind::transformer)
    return numbers + transformer_numbers(shape, rows, trained);
  if (!shape.network.has_router()) {
    const ExpertOptions dense = dense_network(model, shape.layout);
    const Layout read = layout_read_by(model, shape.layout);
    return numbers + bank_numbers(dense, read.input_dim, read.output_dim, 1, rows, trained, trained);
  }
  const double outputs = model.layers > 1 ? width : layout.output_dim;
  const double pairs = active_pairs(shape, trained);
  double layer = experts * (3 * rows + 2 * trained);  // scores, probabilities, gates and their gradients
  // Lists of pairs, by expert and by row, which grow by doubling.
  layer += 4 * kInt / real_bytes(shape) * active_pairs(shape, rows);
  layer += bank_numbers(model.expert, width - layout.image.size(), outputs, shape.network.experts(), rows,
                        trained, pairs);
  if (model.shared_experts > 0) {
    layer += bank_numbers(model.expert, width - layout.image.size(), outputs, model.shared_experts, rows,
                          trained, trained * model.shared_experts) +
             rows * (padded(outputs) + padded(model.shared_experts)) + trained * padded(width);
  }
  if (const auto* const slots = model.gating.train.as<SoftSlotsGatingOptions>()) {
    // Shares and logits with their gradients; slots of each group of rows, their answers and gradients.
    const double of_group = shape.network.experts() * slots->slots,
                 groups = std::ceil(rows / (trained_samples(shape) * layout.tokens));
    layer += 6 * rows * padded(of_group) +
             groups * of_group * (experts + 2 * padded(width) + 2 * padded(outputs)) + rows * padded(width);
  }
  if (model.layers > 1) layer += (2 * rows + 3 * trained) * padded(width);
  if (model.attention) {
    const double heads = model.attention->heads, tokens = padded(layout.tokens);
    layer +=
        heads * rows *
        (2 * tokens + 2 * padded(model.attention->key_dim.value_or(layout.input_dim)) + 2 * padded(width));
  }
  if (const auto* const formula = model.router.as<FormulaRouterOptions>()) {
    layer += (rows + trained) * formula_numbers_per_row(*formula, layout.router_dim(), model.experts);
  }
  if (model.router.entry().mixes_tokens) layer += rows * (5 * experts + 3 * padded(layout.tokens));
  return numbers + layer * model.layers;
}

/// Numbers of all groups' outputs, probabilities and neighbours, of which one is held at a time.
double measuring_bytes(const CellShape& shape) {
  const Layout& layout = shape.layout;
  const double real = real_bytes(shape);
  const double samples = shape.options.experiment.data.test_samples;
  const double rows = samples * layout.tokens, experts = shape.network.experts();
  const double outputs = std::max(samples, shape.measured_train) * layout.target_dim() * (real + 2 * kDouble);
  double routed = 0, layer = 0;
  // E[y | x] of these takes the coordinates that the target depends on.
  if (shape.options.experiment.data.as<GaussianMixtureOptions>())
    layer = samples * (layout.sample_dim() + layout.target_dim()) * kDouble;
  for (const MetricOptions& group : shape.options.metrics) {
    if (!shape.network.has_router() || !group.entry().of_layers) continue;
    const int tables = shape.options.experiment.model.router.entry().leaves_base ? 2 : 1;
    routed = rows * (experts * (kDouble * tables + 1) + kInt) * shape.network.layers();
    if (group.chosen() == "sparsity") layer = std::max(layer, rows * experts * (real + kDouble));
  }
  const double evaluated =
      shape.layout.vocabulary > 0 ? rows * kDouble : samples * shape.layout.target_dim() * real;
  return routed + evaluated + std::max(outputs, layer);
}

double metrics_of_record(const CellShape& shape) {
  double metrics = 0;
  for (const MetricOptions& group : shape.options.metrics) {
    for (const MetricGroup::Metric& metric : group.entry().metrics) {
      const auto is_of = [&](const char* part) { return metric.name.find(part) != std::string::npos; };
      if (is_of("accuracy") && !shape.layout.class_targets) continue;
      if ((is_of("_per_atom") || is_of("_overall")) && shape.layout.labels == 1) continue;
      metrics += group.entry().of_layers ? shape.network.layers() : 1;
    }
  }
  return metrics * (1 + static_cast<double>(shape.options.evaluations.size()));
}

/// What groups of metrics keep of the test sets until the end.
double kept_bytes(const CellShape& shape) {
  const auto rows_of = [&](const DataOptions& data) {
    return static_cast<double>(data.test_samples) * shape.layout.tokens * shape.network.layers();
  };
  double rows = rows_of(shape.options.experiment.data);
  for (const auto& [name, data] : shape.options.evaluations) rows += rows_of(data);
  double bytes = 0;
  for (const MetricOptions& group : shape.options.metrics) {
    if (shape.network.has_router() && group.entry().kept_bytes)
      bytes += group.entry().kept_bytes(group.options()) * rows * shape.records;
  }
  return bytes;
}

/// How many clusters the test rows may be in.
double clusters_of(const CellShape& shape) {
  const DataOptions& data = shape.options.experiment.data;
  const double rows = static_cast<double>(data.test_samples) * shape.layout.tokens;
  const GeneratorKind& kind = data.entry();
  return kind.clusters ? std::min<double>(rows, kind.clusters(data.options())) : rows;
}

/// Arrays of "save" in double, as they are kept until they are written, and the text of one of them.
double saved_bytes(const CellShape& shape) {
  const Layout& layout = shape.layout;
  const double samples = shape.options.experiment.data.test_samples;
  double numbers = 0;
  if (shape.options.saved.contains("weights"))
    numbers += static_cast<double>(shape.network.parameter_count());
  if (shape.options.saved.contains("routing")) {
    numbers +=
        samples * (layout.sample_dim() + 3 * layout.target_dim() + layout.labels +
                   static_cast<double>(layout.tokens) * shape.network.experts() * shape.network.layers());
  }
  if (shape.options.saved.contains("routing_steps")) {
    const double experts = shape.network.experts();
    numbers += shape.records * (shape.network.layers() * experts * (1 + clusters_of(shape)) +
                                static_cast<double>(router_numbers_per_step(shape.network)));
  }
  return 1.5 * kDouble * numbers;
}

/// Bytes of what a drawn problem keeps.
double problem_bytes(const DataOptions& data, const Layout& layout) {
  const GeneratorKind& kind = data.entry();
  return kind.kept_numbers ? kDouble * kind.kept_numbers(data.options(), layout) : 0;
}

}  // namespace

CellShape::CellShape(const Cell& cell)
    : options(read_cell(cell)),
      small_problem(draw_problem(read_small_data(cell.config.at("data")), options.seeds)),
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

PassBytes pass_bytes(const CellShape& shape) {
  const double trained = trained_samples(shape) * shape.layout.tokens, real = real_bytes(shape),
               measured = shape.network.block_samples();
  return {real * pass_numbers(shape, trained, trained),
          real * pass_numbers(shape, measured * shape.layout.tokens, 0) / measured};
}

CellMemory cell_memory(const CellShape& shape) {
  const Layout& layout = shape.layout;
  const ExperimentOptions& experiment = shape.options.experiment;
  const double real = real_bytes(shape);
  const double inputs = layout.sample_dim(), targets = layout.target_dim();
  CellMemory memory;
  memory.problems = problem_bytes(experiment.data, layout);
  // A test set is kept as drawn, as contaminated, with its labels once more, and its inputs once more.
  const auto test_bytes = [&](const DataOptions& data) {
    return data.test_samples * (2 * sample_bytes(layout) + kInt * layout.labels + real * inputs);
  };
  memory.data = test_bytes(experiment.data) + shape.measured_train * (sample_bytes(layout) + real * inputs) +
                shape.train_samples * (real * (inputs + targets) + kInt);
  for (const auto& [name, data] : shape.options.evaluations) {
    memory.problems += problem_bytes(data, layout);
    memory.data += test_bytes(data);
  }
  // Of a population each step has its points in double, too.
  const double drawn =
      shape.train_samples > 0 ? std::min<double>(kDrawnBlock, shape.train_samples) : shape.batch;
  // Evaluation takes blocks of rows through the arrays of a step.
  const double trained = trained_samples(shape) * layout.tokens;
  const double block =
      std::min<double>(shape.network.block_samples(), experiment.data.test_samples) * layout.tokens;
  memory.batch = real * pass_numbers(shape, std::max(trained, block), trained) + drawn * sample_bytes(layout);
  double moments = 0;
  for (const ParameterGroup& group : shape.network.groups()) {
    if (group.trainable) moments += static_cast<double>(group.end - group.begin);
  }
  const auto* const sgd = experiment.train.optimizer.as<SgdOptions>();
  moments *= sgd ? 1 : 2;  // of plain descent, too
  memory.model = real * (2 * static_cast<double>(shape.network.parameter_size()) + moments);
  // Arrays are saved when all is measured.
  memory.measuring = std::max(measuring_bytes(shape), saved_bytes(shape));
  memory.results =
      shape.records * metrics_of_record(shape) * (kMetricBytes + kWrittenMetricBytes) + kept_bytes(shape);
  return memory;
}

double recorded_bytes(const CellShape& shape) {
  return (shape.records + 1) * metrics_of_record(shape) * kReadMetricBytes;
}

}  // namespace moelab
