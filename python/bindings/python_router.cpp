#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bindings/bindings.h"
#include "sim/base/error.h"
#include "sim/base/kernels/multiply.h"
#include "sim/data/npy.h"

namespace moelab::python {
namespace {

constexpr std::int64_t kMostParameters = std::int64_t{1} << 30;

struct PythonRouterOptions {
  bool trainable = true;
  std::shared_ptr<const RegisteredRouter> functions = nullptr;  ///< set only by router_options()

  void bind(Fields& fields) { fields.add("trainable", trainable, "false freezes the router at its start"); }
};

template <class Real>
class PythonRouter final : public Router<Real> {
 public:
  PythonRouter(const PythonRouterOptions& options, const RouterSetting& setting)
      : functions_(options.functions), dim_(setting.input_dim), experts_(setting.experts) {
    if (!functions_)
      throw InvalidOption("model.router.kind", "a router of moelab.routers works only with moelab.train");
    shape_ = functions_->shape;
    if (shape_.empty()) shape_ = {experts_, dim_};
    count_ = 1;
    for (const std::int64_t size : shape_) count_ *= static_cast<std::size_t>(size);
  }

  std::size_t parameter_count() const override { return count_; }
  std::size_t block_size() const override {
    return static_cast<std::size_t>(kernels::padded(static_cast<int>(count_)));
  }

  void initialize(const Start& start, Real* parameters) const override {
    std::fill_n(parameters, block_size(), Real(0));
    const RegisteredRouter& own = *functions_;
    if (!own.start.empty()) {
      for (std::size_t i = 0; i < count_; ++i) parameters[i] = static_cast<Real>(own.start[i]);
      return;
    }
    std::vector<double> row(static_cast<std::size_t>(dim_));
    for (int e = 0; e < experts_; ++e) {
      start_law("normal").fill(start, e, own.init_scale, row);
      for (const double value : row) *parameters++ = static_cast<Real>(value);
    }
  }

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters, Scratch& /*scratch*/,
                             Real* scores) const override {
    const nb::gil_scoped_acquire locked;
    const nb::object answer = functions_->forward(copied(context.x), copied(parameters));
    write("forward", answer, {context.x.rows, experts_},
          kernels::padded_rows(scores, context.x.rows, experts_));
    return {};
  }

  void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& /*scratch*/,
                const RouterGradients<Real>& gradients) const override {
    const nb::gil_scoped_acquire locked;
    const int rows = context.x.rows;
    const View<const Real> delta = kernels::padded_rows(gradients.scores, rows, experts_);
    const nb::object answer = functions_->backward(copied(context.x), copied(parameters), copied(delta),
                                                   gradients.inputs != nullptr);
    if (gradients.parameters) {
      std::fill_n(gradients.parameters, block_size(), Real(0));
      const int count = static_cast<int>(count_);
      write("backward's first answer", answer[0], shape_, View<Real>(gradients.parameters, 1, count, count));
    }
    if (!gradients.inputs) return;
    std::fill_n(gradients.inputs, entries(rows, kernels::padded(dim_)), Real(0));
    write("backward's second answer", answer[1], {rows, dim_},
          kernels::padded_rows(gradients.inputs, rows, dim_));
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    return {{"router_parameters", shape_, {parameters, parameters + count_}}};
  }

 private:
  /// A copy that Python owns, so it may keep and change the values.
  nb::ndarray<nb::numpy, Real> copied(const View<const Real>& view) const {
    std::vector<Real> values;
    values.reserve(entries(view.rows, view.columns));
    for (int i = 0; i < view.rows; ++i) values.insert(values.end(), view.row(i), view.row(i) + view.columns);
    return owning_array<Real>(std::move(values), {view.rows, view.columns});
  }
  nb::ndarray<nb::numpy, Real> copied(const Real* parameters) const {
    return owning_array<Real>(std::vector<Real>(parameters, parameters + count_), shape_);
  }

  void write(const char* what, const nb::object& answer, const std::vector<std::int64_t>& shape,
             const View<Real>& view) const {
    const MemoryArray array = memory_array(nb::cast<GivenArray>(answer), "model.router");
    if (array.format.shape != shape) {
      throw UserError("model.router", fmt::format("{} has shape {}, needs {}", what,
                                                  shape_text(array.format.shape), shape_text(shape)));
    }
    const Matrix values = NpyReader(array, "model.router").read(0, shape.front());
    for (int i = 0; i < view.rows; ++i) {
      for (int j = 0; j < view.columns; ++j)
        view(i, j) = static_cast<Real>(values.data()[static_cast<std::ptrdiff_t>(i) * view.columns + j]);
    }
  }

  std::shared_ptr<const RegisteredRouter> functions_;
  int dim_, experts_;
  std::vector<std::int64_t> shape_;
  std::size_t count_ = 0;
};

}  // namespace

RegisteredRouter registered_router(const nb::object& forward, const nb::object& backward,
                                   const nb::object& start, double init_scale) {
  RegisteredRouter router{forward, backward, {}, {}, init_scale};
  if (!start.is_none()) {
    const GivenArray kept = nb::cast<GivenArray>(start);
    const NpyReader values(memory_array(kept, "parameters"), "parameters");
    if (values.rows() * values.row_size() > kMostParameters)
      values.refuse(
          fmt::format("has shape {}, needs at most {} entries", shape_text(values.shape()), kMostParameters));
    const Matrix entries_of = values.read_finite(0, values.rows());
    router.shape = values.shape();
    router.start.assign(entries_of.data(), entries_of.data() + entries_of.size());
  }
  return router;
}

void add_python_router_kind() {
  static const Extended<RouterAxis> extended({router_kind<PythonRouterOptions, PythonRouter>(
      kPythonRouter, "γ(x) computed by functions of Python, in this process alone")});
}

RouterOptions router_options(std::shared_ptr<const RegisteredRouter> router, bool trainable) {
  return PythonRouterOptions{trainable, std::move(router)};
}

void refuse_python_routers(const Scenario& scenario) {
  for (const Cell& cell : scenario.cells) {
    if (cell.options->experiment.model.router.chosen() == kPythonRouter)
      throw UserError("model.router.kind", "a router of moelab.routers works only with moelab.train");
  }
}

}  // namespace moelab::python
