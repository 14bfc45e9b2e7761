#include <fmt/format.h>
#include <nanobind/stl/shared_ptr.h>

#include <limits>

#include "app/scenario/schema.h"
#include "bindings/bindings.h"
#include "bindings/trained_model.h"
#include "sim/base/error.h"

namespace moelab::python {
namespace {

/// Reads a member that must be an integer ≥ `least`. Throws UserError, because a file may contain any value.
int whole_number(const Json& object, const char* name, int least) {
  const Json& value = object.at(name);
  if (!value.is_number_integer() || value < least || value > std::numeric_limits<int>::max())
    throw UserError("file", fmt::format("has {} {}, needs a whole number of at least {}", name,
                                        json_text(value, -1), least));
  return value.get<int>();
}

using GivenRouter = std::shared_ptr<RegisteredRouter>;

/// Reads {"model", "loss", "train", "seed"}. With `router`, a router defined in Python, "trainable_router"
/// says whether training moves its parameters.
TrainingSpec read_spec(const Json& given, const GivenRouter& router) {
  TrainingSpec spec;
  spec.options.model = resolve_options<ModelOptions>(given.at("model"), "model");
  if (router) spec.options.model.router = router_options(router, given.at("trainable_router").get<bool>());
  spec.options.loss = resolve_options<LossOptions>(given.at("loss"), "loss");
  spec.options.train = resolve_options<TrainOptions>(given.at("train"), "train");
  spec.seed = whole_number(given, "seed", 0);
  return spec;
}

/// The data for restoring a model, in addition to the spec and the arrays.
Json about(const TrainedModel& model) {
  const Layout& layout = model.layout();
  return {{"input_dim", layout.input_dim},
          {"output_dim", layout.output_dim},
          {"sequences", layout.sequences},
          {"tokens", layout.tokens},
          {"target_per_token", layout.target_per_token},
          {"state", model.outcome().state == TrainState::diverged ? "diverged" : "done"},
          {"steps", model.outcome().step},
          {"layers", model.layers()},
          {"experts", model.experts()}};
}

/// The given labels, or none. They are valid during the lifetime of `kept`.
Labels given_labels(const nb::object& labels, GivenArray& kept) {
  if (labels.is_none()) return std::nullopt;
  kept = nb::cast<GivenArray>(labels);
  return memory_array(kept, "labels");
}

/// `record(step, model)` is called at each record; a true answer ends the training.
std::shared_ptr<TrainedModel> train(const std::string& spec, const GivenArray& x, const GivenArray& y,
                                    const nb::object& labels, const GivenRouter& router,
                                    const nb::object& record) {
  TrainingArrays arrays{memory_array(x, "x"), memory_array(y, "y"), {}};
  GivenArray kept;
  arrays.labels = given_labels(labels, kept);
  std::unique_ptr<nb::python_error> error;
  TrainingCallbacks callbacks;
  callbacks.progress = [&](double /*share*/) {
    const nb::gil_scoped_acquire locked;
    if (!error && PyErr_CheckSignals() != 0) error = std::make_unique<nb::python_error>();
    return error != nullptr;
  };
  if (!record.is_none()) {
    callbacks.record = [&](std::int64_t step, std::shared_ptr<TrainedModel> model) {
      const nb::gil_scoped_acquire locked;
      try {
        return nb::cast<bool>(record(step, std::move(model)));
      } catch (nb::python_error& raised) {
        error = std::make_unique<nb::python_error>(std::move(raised));
      }
      return true;
    };
  }
  std::shared_ptr<TrainedModel> model =
      released([&] { return train_model(read_spec(parse_json(spec, "train"), router), arrays, callbacks); });
  if (error) throw nb::python_error(std::move(*error));
  return model;
}

std::shared_ptr<TrainedModel> restore_from(const std::string& spec, const std::string& about,
                                           const nb::dict& given, const GivenRouter& router) {
  std::vector<NamedArray<double>> arrays;
  for (const auto& [name, value] : given) {
    const std::string own_name = nb::cast<std::string>(name);
    const NpyReader reader(memory_array(nb::cast<GivenArray>(value), own_name), own_name);
    const Matrix values = reader.read(0, reader.rows());
    arrays.push_back({own_name, reader.shape(), {values.data(), values.data() + values.size()}});
  }
  return released([&]() -> std::shared_ptr<TrainedModel> {
    try {
      const Json sizes = parse_json(about, "about");
      Layout layout;
      layout.input_dim = whole_number(sizes, "input_dim", 1);
      layout.output_dim = whole_number(sizes, "output_dim", 1);
      layout.sequences = sizes.at("sequences").get<bool>();
      layout.tokens = whole_number(sizes, "tokens", 1);
      layout.target_per_token = sizes.at("target_per_token").get<bool>();
      layout.labels = layout.tokens;
      // Without sequences each row is one token. More tokens would read beyond the inputs.
      if (!layout.sequences && (layout.tokens != 1 || layout.target_per_token))
        throw UserError("file", "holds no model of moelab: has tokens without sequences");
      const TrainOutcome outcome{sizes.at("state") == "diverged" ? TrainState::diverged : TrainState::done,
                                 sizes.at("steps").get<std::int64_t>()};
      return restored_model(read_spec(parse_json(spec, "file"), router), layout, outcome, arrays);
    } catch (const Json::exception& error) {
      throw UserError("file", fmt::format("holds no model of moelab: {}", error.what()));
    }
  });
}

nb::ndarray<nb::numpy, double> predict(const TrainedModel& model, const GivenArray& x,
                                       const std::string& gating, const nb::object& labels) {
  const MemoryArray inputs = memory_array(x, "x");
  GivenArray kept;
  const Labels clusters = given_labels(labels, kept);
  Matrix outputs = released([&] { return model.predict(inputs, gating, clusters); });
  return owning_array<double>(std::move(outputs), model.layout().target_shape(inputs.format.shape[0]));
}

nb::ndarray<nb::numpy, double> route(const TrainedModel& model, const GivenArray& x, int layer,
                                     const nb::object& labels) {
  const MemoryArray inputs = memory_array(x, "x");
  GivenArray kept;
  const Labels clusters = given_labels(labels, kept);
  Matrix probabilities = released([&] { return model.route(inputs, layer, clusters); });
  return owning_array<double>(std::move(probabilities),
                              model.layout().row_shape(inputs.format.shape[0], model.experts()));
}

nb::dict arrays(const TrainedModel& model) {
  nb::dict named;
  for (NamedArray<double>& array : model.arrays())
    named[array.name.c_str()] = owning_array<double>(std::move(array.values), array.shape);
  return named;
}

}  // namespace

void bind_training(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<TrainedModel>(module, "TrainedModel", "A trained model in either precision.")
      .def(
          "about", [](const TrainedModel& model) { return json_text(about(model)); },
          "Sizes, and how training ended (JSON).")
      .def("predict", predict, "x"_a, "gating"_a, "labels"_a.none(), "Outputs (n, o) or (n, s, o).")
      .def("route", route, "x"_a, "layer"_a, "labels"_a.none(), "Routing probabilities (n, E) or (n, s, E).")
      .def("arrays", arrays, "Parameters and state by name.");
  nb::class_<RegisteredRouter>(module, "RegisteredRouter", nb::is_weak_referenceable(),
                               "A router whose scores Python computes.")
      .def(
          "forget", [](RegisteredRouter& router) { router.forward = router.backward = nb::none(); },
          "Drops the functions, which may refer to a model that refers to the router.");
  module.def("register_router", registered_router, "forward"_a, "backward"_a, "start"_a.none(),
             "init_scale"_a, "A router from its functions.");
  module.def("train", train, "spec"_a, "x"_a, "y"_a, "labels"_a.none(), "router"_a.none(), "record"_a.none(),
             "Trains a model on contiguous arrays.");
  module.def("restore", restore_from, "spec"_a, "about"_a, "arrays"_a, "router"_a.none(),
             "A model from arrays() of another.");
}

}  // namespace moelab::python
