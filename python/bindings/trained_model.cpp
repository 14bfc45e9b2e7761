#include "bindings/trained_model.h"

#include <fmt/format.h>

#include <limits>

#include "app/run/memory.h"
#include "sim/base/error.h"
#include "sim/model/loss/task_loss.h"
#include "sim/model/router/routers.h"

namespace moelab::python {
namespace {

constexpr std::uint64_t kRootSeed = 1;

Seeds seeds_of(const TrainingSpec& spec) {
  return {kRootSeed, static_cast<std::uint64_t>(spec.seed)};
}

template <class To, class From>
std::vector<NamedArray<To>> converted(const std::vector<NamedArray<From>>& arrays) {
  std::vector<NamedArray<To>> all;
  for (const NamedArray<From>& array : arrays) {
    all.push_back({array.name, array.shape, {}});
    for (const From value : array.values) all.back().values.push_back(static_cast<To>(value));
  }
  return all;
}

template <class Real>
class TypedModel final : public TrainedModel {
 public:
  TypedModel(Model<Real> model, const ModelOptions& options, const Layout& layout,
             const TrainOutcome& outcome)
      : model_(std::move(model)), options_(options), layout_(layout), outcome_(outcome) {}

  const Layout& layout() const override { return layout_; }
  int layers() const override { return network().has_router() ? network().layers() : 0; }
  int experts() const override { return network().experts(); }
  TrainOutcome outcome() const override { return outcome_; }

  Matrix predict(const MemoryArray& x, const std::string& gating, const Labels& labels) const override {
    const Gating<Real>& chosen = gating_of(gating);
    const Inputs inputs = inputs_of(x, labels);
    const Eigen::Index width = layout_.target_dim();
    MatrixOf<Real> outputs(inputs.samples, width);
    Workspace<Real> workspace = network().make_workspace();
    moelab::predict(model_, chosen, inputs.given(), inputs.samples, workspace, outputs.data());
    return outputs.template cast<double>();
  }

  Matrix route(const MemoryArray& x, int layer, const Labels& labels) const override {
    if (layer < 0 || layer >= layers()) {
      throw UserError("layer", layers() == 0 ? "the model has no router"
                                             : fmt::format("got {}, needs 0 to {}", layer, layers() - 1));
    }
    const Inputs inputs = inputs_of(x, labels);
    MatrixOf<Real> probabilities(inputs.samples * layout_.tokens, experts());
    Workspace<Real> workspace = network().make_workspace();
    moelab::route(model_, layer, inputs.given(), inputs.samples, workspace, probabilities.data());
    return probabilities.template cast<double>();
  }

  std::vector<NamedArray<double>> arrays() const override {
    return converted<double>(moelab::arrays(model_));
  }

 private:
  struct Inputs {
    int samples;
    MatrixOf<Real> x;
    std::vector<int> labels;  ///< empty if not given

    Samples<Real> given() const { return {x.data(), labels.empty() ? nullptr : labels.data()}; }
  };

  const Network<Real>& network() const { return *model_.network; }

  const Gating<Real>& gating_of(const std::string& name) const {
    if (name == "eval") return network().eval_gating();
    if (name == "train") return network().train_gating();
    if (name == "soft") return network().soft_gating();
    if (name == "top1") return network().top1_gating();
    throw UserError("gating", unknown_name("gating", name, {"eval", "train", "soft", "top1"}));
  }

  Inputs inputs_of(const MemoryArray& array, const Labels& labels) const {
    const NpyReader x(array, "x");
    std::vector<std::int64_t> needed = layout_.input_shape(x.rows());
    if (x.shape() != needed || x.rows() * layout_.tokens > std::numeric_limits<int>::max()) {
      needed.erase(needed.begin());
      x.refuse(fmt::format("has shape {}, needs (n, {}), as in training", shape_text(x.shape()),
                           fmt::join(needed, ", ")));
    }
    require_labels(options_, labels.has_value());
    return {static_cast<int>(x.rows()), x.read_finite(0, x.rows()).template cast<Real>(),
            labels ? labels_of(*labels, layout_, x.shape()) : std::vector<int>()};
  }

  Model<Real> model_;
  ModelOptions options_;
  Layout layout_;
  TrainOutcome outcome_;
};

/// Checks that arrays support the options. Unlike a generator, arrays have no true distribution. Throws
/// UserError.
void check_fit(const ExperimentOptions& options, const TrainingArrays& arrays, const Layout& layout) {
  if (options.train.gradient == TrainOptions::Gradient::population)
    throw UserError("train.gradient",
                    "got \"population\", but arrays are a sample without a law; needs \"sample\"");
  if (options.train.start && options.train.start->as<WarmStartOptions>())
    throw UserError("train.start", "got \"warm\", but arrays have no true measure; needs \"cold\"");
  if (reads_mixture(options.model)) {  // a dense model of its own size has no router
    const RouterKind& router = options.model.router.entry();
    if (router.needs_image) throw no_image_error(router.name);
    require_labels(options.model, arrays.labels.has_value());
    const std::int64_t rows = arrays.x.format.shape.front() * layout.tokens;
    if (router.needs_train_rows(options.model.router.options()) && rows < options.model.experts) {
      throw UserError("model.router.init", fmt::format("got \"train_samples\", needs a row for each of "
                                                       "model.experts = {}, but there are {}",
                                                       options.model.experts, rows));
    }
  }
  if (task_loss_kind(options.loss.task).needs_classes) {
    if (is_least_squares(options.train))
      throw UserError("loss.task", fmt::format("got \"{}\", but train.optimizer is \"lbfgs\", which fits by "
                                               "\"mse\"",
                                               options.loss.task));
    check_classes(arrays);
  }
}

/// Checks that memory can hold the parameters, their gradient and the optimizer's moments. Throws
/// EnvironmentError otherwise.
template <class Real>
void check_room(const ExperimentOptions& options, const Layout& layout) {
  constexpr double kArrays = 4;
  const Network<Real> network(resolved_for(options.model, options.train), layout);
  const double bytes = kArrays * sizeof(Real) * static_cast<double>(network.parameter_size());
  const double available = available_bytes();
  if (bytes <= available) return;
  throw EnvironmentError(fmt::format("the model needs about {:.0f} MB, and {:.0f} MB are available",
                                     bytes / 1e6, available / 1e6));
}

template <class Real>
std::shared_ptr<TrainedModel> trained(TrainingSpec spec, const TrainingArrays& arrays, const Layout& layout,
                                      const TrainingCallbacks& asked) {
  check_room<Real>(spec.options, layout);
  Experiment<Real> experiment(spec.options, problem_of(arrays), seeds_of(spec));
  const auto model_now = [&](const TrainOutcome& outcome) {
    return std::make_shared<TypedModel<Real>>(experiment.model(), spec.options.model, layout, outcome);
  };
  TrainCallbacks callbacks;
  callbacks.progress = asked.progress;
  bool ends = false;
  if (asked.record) {
    callbacks.record = [&](std::int64_t step) {
      if (!ends) ends = asked.record(step, model_now({TrainState::done, step}));
    };
    callbacks.stop = [&](std::int64_t) { return ends; };
  }
  return model_now(experiment.train(callbacks));
}

bool is_double(const TrainingSpec& spec) {
  return spec.options.train.precision == TrainOptions::Precision::in_double;
}

template <class Real>
std::shared_ptr<TrainedModel> restored(const TrainingSpec& spec, const Layout& layout,
                                       const TrainOutcome& outcome,
                                       const std::vector<NamedArray<double>>& arrays) {
  check_room<Real>(spec.options, layout);
  const ModelOptions options = resolved_for(spec.options.model, spec.options.train);
  const auto network = std::make_shared<const Network<Real>>(options, layout);
  // restore() replaces these values like all others.
  const Matrix no_rows =
      Matrix::Zero(network->starts_at_train_rows() ? network->experts() : 0, layout.input_dim);
  Model<Real> model(network, {seeds_of(spec), &no_rows});
  try {
    restore(model, converted<Real>(arrays));
  } catch (const std::invalid_argument& error) {
    throw UserError("file", error.what());
  }
  return std::make_shared<TypedModel<Real>>(std::move(model), spec.options.model, layout, outcome);
}

}  // namespace

std::shared_ptr<TrainedModel> train_model(TrainingSpec spec, const TrainingArrays& arrays,
                                          const TrainingCallbacks& callbacks) {
  const Layout layout = layout_of(arrays);
  check_training(spec.options);
  check_fit(spec.options, arrays, layout);
  spec.options.data.train_samples = static_cast<int>(arrays.x.format.shape.front());
  return is_double(spec) ? trained<double>(std::move(spec), arrays, layout, callbacks)
                         : trained<float>(std::move(spec), arrays, layout, callbacks);
}

std::shared_ptr<TrainedModel> restored_model(const TrainingSpec& spec, const Layout& layout,
                                             const TrainOutcome& outcome,
                                             const std::vector<NamedArray<double>>& arrays) {
  check_training(spec.options);
  return is_double(spec) ? restored<double>(spec, layout, outcome, arrays)
                         : restored<float>(spec, layout, outcome, arrays);
}

}  // namespace moelab::python
