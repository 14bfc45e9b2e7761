#include "bench/workload.h"

#include <functional>
#include <iostream>

#include "app/scenario/schema.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

/// More steps than any measurement needs, because the clock ends a run.
constexpr std::int64_t kEndless = 1'000'000'000'000;

Json constant_mixture(int samples) {
  return {{"generator", "gaussian_mixture"},
          {"clusters", 64},
          {"dim", 24},
          {"mean_std", 2.0},
          {"target", {{"kind", "constant"}, {"dim", 10}}},
          {"train_samples", samples}};
}

Json mixture(const Json& router, const Json& expert, const Json& gating, int experts) {
  return {{"experts", experts}, {"router", router}, {"expert", expert}, {"gating", {{"train", gating}}}};
}

Json training(const Json& optimizer, double expert_rate, double router_rate, int batch) {
  return {{"optimizer", optimizer},
          {"lr", {{"expert", expert_rate}, {"router", router_rate}}},
          {"batch_size", batch},
          {"steps", kEndless},
          {"record_every", kEndless}};
}

const Json kMlp = {{"kind", "mlp"}, {"depth", 3}, {"width", 96}, {"init_scale", 0.408}};
const Json kMomentum = {{"kind", "sgd"}, {"momentum", 0.9}};
const Json kEveryPair = {{"kind", "soft"}, {"skip_below", 0.0}};
const Json kSkip = {{"kind", "soft"}, {"skip_below", 1e-8}};

Json linear_router(double init_scale, bool trainable = true) {
  return {{"kind", "linear"}, {"init_scale", init_scale}, {"trainable", trainable}};
}

Workload fig2() {
  return {"A", constant_mixture(20480), mixture(linear_router(1.0), "constant", kEveryPair, 64),
          training("adam", 3.2e-4, 3.2e-3, 256)};
}

Json formula(const char* score, Json parameters) {
  return {{"kind", "formula"}, {"score", score}, {"parameters", std::move(parameters)}};
}

struct FormulaTwin {
  std::string name;
  Json router, formula;
};

/// Routers of the program, and their formulas.
std::vector<FormulaTwin> formula_twins() {
  return {{"linear", {{"kind", "linear"}}, formula("dot(x, w)", {{"w", "d"}})},
          {"cosine", {{"kind", "cosine"}}, formula("cos(x, w) + b", {{"w", "d"}, {"b", {{"start", 0}}}})},
          {"perturbed_cosine",
           {{"kind", "perturbed_cosine"}, {"tau1", 0.1}, {"tau2", 0.3}},
           formula("dot(x, w) / ((norm(w) + tau1) * (norm(x) + tau2)) + b",
                   {{"w", "d"}, {"b", {{"start", 0}}}, {"tau1", 0.1}, {"tau2", 0.3}})},
          {"squared_distance",
           {{"kind", "squared_distance"}},
           formula("-(norm(x)^2 - 2*dot(x, w) + norm(w)^2) / 2", {{"w", "d"}})}};
}

/// A behind another router.
Workload behind(const std::string& name, const Json& router) {
  Workload workload = fig2();
  workload.name = name;
  workload.model["router"] = router;
  return workload;
}

/// A with two experts per row, which needs comparisons of all scores.
Workload top_two() {
  return {"K", constant_mixture(20480),
          mixture(linear_router(1.0), "constant", {{"kind", "topk"}, {"k", 2}}, 64),
          training("adam", 3.2e-4, 3.2e-3, 256)};
}

Workload fig3(const std::string& name, const Json& gating, bool trainable) {
  return {name, constant_mixture(10240), mixture(linear_router(4.0, trainable), kMlp, gating, 64),
          training(kMomentum, 1e-2, 1e-1, 128)};
}

Workload to_target(const std::string& name, bool trainable) {
  Workload workload = fig3(name, kSkip, trainable);
  workload.to_target = true;
  workload.train["steps"] = kTargetSteps;
  workload.train["record_every"] = kTargetEvery;
  return workload;
}

/// 64 sequences of 8 tokens are 512 rows, each with a target.
Workload tokens() {
  const Json data = {{"generator", "gaussian_mixture"},
                     {"clusters", 32},
                     {"dim", 32},
                     {"target", {{"kind", "linear"}, {"dim", 1}}},
                     {"train_samples", 20480}};
  return {"D", data, mixture(linear_router(1.0), "linear", kEveryPair, 32),
          training("adam", 1e-3, 1e-3, 512)};
}

/// Scores with a standard deviation of about 570 leave one or two experts per row above 1e-8 at every
/// measured E. The router's rate is 0, so it stays specialised but does all of its work.
Workload specialised() {
  return {"S", constant_mixture(10240), mixture(linear_router(256.0), kMlp, kSkip, 64),
          training(kMomentum, 1e-2, 0.0, 128)};
}

/// A stack of scenarios/acmoe2025 with this kind of router in the second layer. Wide experts have the width 4
/// d of a transformer.
Workload stack(const std::string& name, const std::string& router, int dim, int width) {
  Json data = constant_mixture(20480);
  data["dim"] = dim;
  const Json top2 = {{"kind", "topk"}, {"k", 2}};
  Json model = mixture({{"kind", router}}, {{"kind", "mlp"}, {"depth", 2}, {"width", width}}, top2, 16);
  model["layers"] = 2;
  return {name, data, model, training("adam", 1e-3, 1e-3, 256)};
}

/// 16 sequences of 32 tokens behind self-attention, whose tokens route separately or together.
Workload sequences(const std::string& name, const std::string& router, int dim, int width) {
  const Json data = {{"generator", "token_topics"},
                     {"topics", 16},
                     {"dim", dim},
                     {"tokens", 32},
                     {"target", {{"kind", "constant"}, {"dim", 10}}},
                     {"train_samples", 1024}};
  const Json top2 = {{"kind", "topk"}, {"k", 2}};
  Json model = mixture({{"kind", router}}, {{"kind", "mlp"}, {"depth", 2}, {"width", width}}, top2, 16);
  model["attention"] = {{"heads", 8}, {"key_dim", 16}, {"residual", true}};
  return {name, data, model, training("adam", 1e-3, 1e-3, 16)};
}

/// A transformer of four layers, each with 16 experts, on 16 sequences of 128 tokens.
Workload language() {
  const Json data = {{"generator", "synthetic_language"},
                     {"domains", 8},
                     {"vocabulary", 256},
                     {"tokens", 128},
                     {"train_samples", 512}};
  const Json model = {{"kind", "transformer"},
                      {"width", 64},
                      {"layers", 4},
                      {"heads", 4},
                      {"feed_forward", 256},
                      {"experts", 16},
                      {"router", linear_router(1.0)},
                      {"gating", {{"train", {{"kind", "topk"}, {"k", 2}}}}}};
  Workload workload = {"L", data, model, training("adamw", 3e-3, 3e-3, 16)};
  workload.task = "cross_entropy";
  return workload;
}

struct Entry {
  std::string name;
  std::function<Workload()> make;
};

std::vector<Entry> make_entries() {
  std::vector<Entry> table = {
      {"A", fig2},
      {"B", [] { return fig3("B", kEveryPair, true); }},
      {"C", [] { return to_target("C", true); }},
      {"C_frozen", [] { return to_target("C_frozen", false); }},
      {"D", tokens},
      {"K", top_two},
      {"S", specialised},
      {"L", language},
  };
  struct Size {
    std::string ending;
    int dim, width;
  };
  for (const Size& size : {Size{"", 24, 32}, Size{"_wide", 128, 512}}) {
    const auto add = [&](auto make, const std::string& begin, const std::string& router) {
      const std::string name = begin + size.ending;
      table.push_back({name, [=] { return make(name, router, size.dim, size.width); }});
    };
    add(stack, "H_plain", "linear");
    add(stack, "H_adaptive", "adaptive_clustering");
    add(sequences, "I_plain", "linear");
    add(sequences, "I_similarity", "similarity_aware");
    add(sequences, "I_attention", "attention_aware");
  }
  for (const FormulaTwin& twin : formula_twins()) {
    const std::string name = "J_" + twin.name;
    table.push_back({name, [name, twin] { return behind(name, twin.router); }});
    table.push_back({name + "_formula", [name, twin] { return behind(name + "_formula", twin.formula); }});
  }
  return table;
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> table = make_entries();
  return table;
}

Workload named(const std::string& name) {
  for (const Entry& entry : entries()) {
    if (entry.name == name) return entry.make();
  }
  throw UserError("workload", unknown_name("workload", name, workload_names()));
}

int output_dim(const Workload& workload) {
  return workload.data.at("target").at("dim");
}

/// d, the hidden widths and o of one expert. A constant has no input.
std::vector<double> expert_widths(const Workload& workload) {
  const Json& expert = workload.model.at("expert");
  const double output = output_dim(workload);
  if (expert.at("kind") == "constant") return {1.0, output};
  std::vector<double> widths(static_cast<std::size_t>(expert_depth(workload.options.model.expert)) + 1,
                             expert.value("width", 1.0));
  widths.front() = workload.data.at("dim");
  widths.back() = output;
  return widths;
}

double parameters_of(const Workload& workload) {
  const int dim = workload.data.at("dim");
  const Network<float> network(workload.options.model,
                               {.input_dim = dim, .output_dim = output_dim(workload)});
  return static_cast<double>(network.parameter_count());
}

/// Values per parameter in the optimizer.
double optimizer_values(const Workload& workload) {
  return workload.options.train.optimizer.entry().rescales_gradients ? 2 : 1;
}

}  // namespace

int guarded(const char* name, int (*run)(int, char**), int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << '\n';
    return dynamic_cast<const InvalidOption*>(&error) ? 2 : 3;
  }
}

std::vector<std::string> workload_names() {
  return names_of(entries());
}

Workload make_workload(const std::string& name, const WorkloadSizes& sizes) {
  Workload workload = named(name);
  if (sizes.experts > 0) workload.model["experts"] = sizes.experts;
  if (sizes.dim > 0) workload.data["dim"] = sizes.dim;
  if (sizes.batch > 0) workload.train["batch_size"] = sizes.batch;
  if (sizes.samples > 0) workload.data["train_samples"] = sizes.samples;
  workload.data = resolve(shape_of<DataOptions>(), workload.data, "data");
  workload.model = resolve(shape_of<ModelOptions>(), workload.model, "model");
  workload.train = resolve(shape_of<TrainOptions>(), workload.train, "train");
  workload.options.data = read_options<DataOptions>(workload.data);
  workload.options.model = read_options<ModelOptions>(workload.model);
  workload.options.train = read_options<TrainOptions>(workload.train);
  return workload;
}

double step_operations(const Workload& workload) {
  const double rows = workload.train.at("batch_size");
  const double experts = workload.model.at("experts");
  const double dim = workload.data.at("dim");
  const bool trainable = workload.model.at("router").at("trainable");
  double per_row = (trainable ? 2 : 1) * dim * experts;
  if (workload.model.at("expert").at("kind") == "constant") {
    // Outputs, and gradients of the constants and of the gates.
    const double output = output_dim(workload);
    per_row += (trainable ? 3 : 2) * experts * output;
  } else {
    const std::vector<double> widths = expert_widths(workload);
    for (std::size_t layer = 0; layer + 1 < widths.size(); ++layer) {
      per_row += (layer == 0 ? 2 : 3) * experts * widths[layer] * widths[layer + 1];
    }
  }
  return 2 * rows * per_row;
}

double step_exponentials(const Workload& workload) {
  return workload.train.at("batch_size").get<double>() * workload.model.at("experts").get<double>();
}

double step_bytes(const Workload& workload) {
  const double entries = workload.data.at("dim").get<double>() + output_dim(workload);
  const double rows = workload.train.at("batch_size");
  return sizeof(float) *
         (3 * rows * entries + (5 + 2 * optimizer_values(workload)) * parameters_of(workload));
}

double needed_bytes(const Workload& workload, double pairs) {
  const double rows = workload.train.at("batch_size");
  const double samples = workload.data.at("train_samples");
  const double experts = workload.model.at("experts");
  const int dim = workload.data.at("dim");
  const int output = output_dim(workload);
  const double parameters = parameters_of(workload);
  const double state = optimizer_values(workload);
  double activations = rows * (4 * experts + 2 * output);
  if (workload.model.at("expert").at("kind") != "constant") {
    const std::vector<double> widths = expert_widths(workload);
    for (std::size_t layer = 1; layer < widths.size(); ++layer) activations += pairs * widths[layer];
  }
  return sizeof(float) * ((2 + state) * parameters + samples * (dim + output) + activations);
}

}  // namespace moelab
