#include "sim/data/task_pool.h"

#include <fmt/format.h>

#include "sim/base/error.h"

namespace moelab {
namespace {

/// N rows (d): directions of the groups, of length `norm`, and copies of them moved by N(0, within²). Only
/// the first `support` coordinates are used.
Matrix draw_grouped(Engine& engine, const TaskPoolOptions& options, double norm, double within) {
  const int support = options.support.value_or(options.dim);
  Matrix rows = Matrix::Zero(options.tasks, options.dim);
  for (int n = 0; n < options.tasks; ++n) {
    const Matrix draw = draw_normals(engine, 1, support);
    if (n < options.groups)
      rows.row(n).head(support) = norm * draw / draw.norm();
    else
      rows.row(n).head(support) = rows.row(n % options.groups).head(support) + within * draw;
  }
  return rows;
}

class TaskPoolProblem final : public Problem {
 public:
  TaskPoolProblem(const TaskPoolOptions& options, const Seeds& seeds) : options_(options) {
    Engine engine = seeds.stream(Purpose::problem);
    pool_.weights = draw_grouped(engine, options, options.weight_norm, options.within);
    using Signal = TaskPoolOptions::Signal;
    if (options.signal == Signal::parallel)
      pool_.signals = options.signal_norm * pool_.weights.rowwise().normalized();
    if (options.signal == Signal::independent) {
      pool_.signals = draw_grouped(engine, options, options.signal_norm,
                                   options.signal_norm * options.within / options.weight_norm);
    }
    for (int n = 0; n < options.tasks; ++n) pool_.groups.push_back(n % options.groups);
  }

  Layout layout() const override {
    return {.input_dim = options_.dim,
            .output_dim = 1,
            .sequences = true,
            .tokens = options_.rows,
            .target_per_token = true,
            .labels = options_.rows};
  }
  int clusters() const override { return options_.tasks; }
  const TaskPool* task_pool() const override { return &pool_; }

  Dataset draw(Engine& engine, const SampleRange& range) const override {
    const int rows = options_.rows, dim = options_.dim;
    Dataset data{Matrix(range.count, rows * dim), Matrix(range.count, rows), {}};
    for (int i = 0; i < range.count; ++i) {
      const int task = draw_index(engine, options_.tasks);
      const Matrix x = draw_rows(engine, task);
      data.x.row(i) = Eigen::Map<const Eigen::RowVectorXd>(x.data(), x.size());
      data.y.row(i) = (x * pool_.weights.row(task).transpose()).transpose();
      data.cluster.insert(data.cluster.end(), size(rows), task);
    }
    return data;
  }

 private:
  Matrix draw_rows(Engine& engine, int task) const {
    constexpr double kCopies = 1e-3;
    const int support = options_.support.value_or(options_.dim);
    Matrix x = draw_normals(engine, options_.rows, options_.dim, options_.noise_std);
    x.rightCols(options_.dim - support).setZero();
    if (options_.noise_norm) x = *options_.noise_norm * x.rowwise().normalized().eval();
    const int place = draw_index(engine, options_.rows);
    if (pool_.signals.size() > 0) x.row(place) = options_.signal_scale * pool_.signals.row(task);
    for (int j = support; j < options_.dim; ++j)
      x.col(j) = x.col((j - support) % support) * (kCopies * draw_normal(engine));
    return x;
  }

  TaskPoolOptions options_;
  TaskPool pool_;
};

}  // namespace

void TaskPoolOptions::bind(Fields& fields) {
  fields.add("tasks", tasks, between(1, 1e5), "tasks of the pool N, the clusters");
  fields.add("groups", groups, between(1, 1e5), "groups of similar tasks K; task n is in group n mod K");
  fields.add("dim", dim, between(1, 1e5), "d");
  fields.add("rows", rows, between(1, 1e5), "rows s of a sample, the columns of X_t");
  fields.add("weight_norm", weight_norm, positive(), "σ0: ‖w‖ of the first task of a group");
  fields.add("within", within, at_least(0),
             "standard deviation by which other tasks of a group differ from it");
  fields.add("signal", signal, {"none", "independent", "parallel"},
             "one row of a sample is β v of its task: none; v in a separate direction; or v along w");
  fields.add("signal_norm", signal_norm, positive(), "‖v‖");
  fields.add("signal_scale", signal_scale, at_least(0), "β");
  fields.add("noise_std", noise_std, positive(), "standard deviation of the other rows' entries");
  fields.add("noise_norm", noise_norm, positive(), "norm to which the other rows are scaled (default: none)");
  fields.add("support", support, between(1, 1e5),
             "coordinates that are drawn; the others are copies of these times 1e-3 N(0, 1) (default: all)");
}

GeneratorKind task_pool_generator() {
  GeneratorKind kind{
      {"task_pool",
       "linear tasks y = w_n·x in groups, one task to a sample of s rows, one of them the task's "
       "signal (Li et al. 2025)",
       TaskPoolOptions{}, TaskPoolOptions{}}};
  kind.draw = draw_as<TaskPoolProblem, TaskPoolOptions>;
  kind.check = [](const DataOptions& data) {
    const TaskPoolOptions& own = data.options().get<TaskPoolOptions>();
    if (own.groups > own.tasks)
      throw InvalidOption("data.groups",
                          fmt::format("got {}, needs at most data.tasks = {}", own.groups, own.tasks));
    if (own.support.value_or(1) > own.dim)
      throw InvalidOption("data.support",
                          fmt::format("got {}, needs at most data.dim = {}", *own.support, own.dim));
    if (own.noise_norm && own.noise_std != TaskPoolOptions{}.noise_std)
      throw InvalidOption("data.noise_std", "given, but data.noise_norm sets the norm of the other rows");
  };
  kind.tokens = [](const AnyOptions& options) { return options.get<TaskPoolOptions>().rows; };
  kind.kept_numbers = [](const AnyOptions& options, const Layout& layout) {
    return 2.0 * options.get<TaskPoolOptions>().tasks * layout.input_dim;
  };
  return kind;
}

}  // namespace moelab
