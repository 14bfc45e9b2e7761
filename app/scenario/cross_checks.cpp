#include "app/scenario/cross_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "app/run/metric_groups.h"
#include "sim/base/error.h"
#include "sim/data/file_data.h"
#include "sim/data/problem.h"
#include "sim/model/router/cnn_router.h"
#include "sim/train/least_squares.h"

namespace moelab {
namespace {

void check_gating(const Json& model) {
  const Json& experts = model.at("experts");
  for (const auto& [phase, gating] : model.at("gating").items()) {
    if (!gating.is_object() || !gating.contains("k") || gating.at("k") <= experts) continue;
    throw UserError("model.gating." + phase + ".k", fmt::format("got {}, needs at most model.experts = {}",
                                                                gating.at("k").dump(), experts.dump()));
  }
}

void check_balancing(const Json& model) {
  const Json& train = model.at("gating").at("train");
  if (!model.at("gating").contains("balance_rate") || train.at("kind") == "topk" ||
      train.at("kind") == "top1")
    return;
  throw UserError("model.gating.balance_rate",
                  fmt::format("given, but model.gating.train is {}; biases of a selection need topk or top1",
                              train.at("kind").dump()));
}

void check_dense(const Json& model) {
  const bool is_dense = model.at("kind") == "dense";
  if (!is_dense && model.contains("depth")) {
    throw UserError("model.depth", "given, but model.kind is not 'dense'");
  }
  if (is_dense == model.contains("match")) return;
  throw UserError("model.match", is_dense ? "missing; a dense model needs 'expert' or 'moe' to match"
                                          : "given, but model.kind is not 'dense'");
}

void check_length_of_run(const Json& train) {
  const bool has_steps = train.contains("steps"), has_epochs = train.contains("epochs");
  if (has_steps == has_epochs) {
    throw UserError("train.steps", has_steps ? "train.epochs is given, too; needs exactly one of the two"
                                             : "missing; needs train.steps or train.epochs");
  }
}

/// A warm start of a least-squares fit needs a true measure of the model's form.
void check_warm_start(const Json& config) {
  const Json &data = config.at("data"), &model = config.at("model");
  const std::string path = "train.start";
  if (data.at("generator") != "moe_regression")
    throw UserError(path, "got \"warm\", needs data.generator \"moe_regression\"");
  if (model.at("kind") != "moe" || model.at("layers") != 1 || mixture_form(model) != mixture_form(data))
    throw UserError(
        path, "got \"warm\", needs a mixture of one layer whose router and expert are those of the data");
  if (model.at("router").at("kind") == "linear" && !model.at("router").value("bias", false))
    throw UserError("model.router.bias", "missing; a warm start needs true");
  const Json& measure = data.at("measure");
  const std::size_t components =
      measure.at("kind") == "given" ? measure.at("gate").size() : measure.at("components").get<std::size_t>();
  if (model.at("experts") >= components) return;
  throw UserError("model.experts",
                  fmt::format("got {}, needs the {} components of data.measure for a warm start",
                              model.at("experts").dump(), components));
}

/// Least-squares fits take the whole training set at once, in double; other optimizers have rates and
/// batches.
void check_least_squares(const Json& config) {
  const Json& train = config.at("train");
  if (!is_least_squares(train)) {
    if (train.contains("start")) throw UserError("train.start", "given, but train.optimizer is not 'lbfgs'");
    if (!train.contains("lr")) {
      throw UserError("train.lr", fmt::format("missing; train.optimizer {} needs it",
                                              train.at("optimizer").at("kind").dump()));
    }
    return;
  }
  for (const char* field : {"lr", "batch_size", "epochs", "record_every"}) {
    if (train.contains(field))
      throw UserError(join_path("train", field), "given, but train.optimizer is \"lbfgs\"");
  }
  if (train.at("gradient") != "sample")
    throw UserError("train.gradient", "got \"population\", but \"lbfgs\" fits a sample");
  if (train.at("precision") != "double")
    throw UserError("train.precision", "got \"float\"; train.optimizer \"lbfgs\" needs \"double\"");
  if (train.contains("start") && train.at("start").at("kind") == "warm") check_warm_start(config);
}

/// Sample gradients need a training set and batches of it; population gradients have neither.
void check_gradient(const Json& config) {
  const Json& train = config.at("train");
  const bool population = train.at("gradient") == "population";
  const auto check = [&](const char* section, const char* field, bool wanted, bool required) {
    const bool given = config.at(section).contains(field);
    const std::string path = std::string(section) + "." + field;
    if (given && !wanted) {
      throw UserError(path, fmt::format("given, but train.gradient is {}", train.at("gradient").dump()));
    }
    if (!given && wanted && required) {
      throw UserError(path, fmt::format("missing; train.gradient {} needs it", train.at("gradient").dump()));
    }
  };
  check("data", "train_samples", !population, true);
  if (!is_least_squares(train)) check("train", "batch_size", !population, true);
  for (const char* field : {"points", "rule", "redraw"}) check("train", field, population, false);
  const std::vector<std::string> files = file_fields(config.at("data"));
  if (population && !files.empty()) {
    throw UserError("data." + files.front(),
                    "a file is a sample without a law; needs another generator or train.gradient \"sample\"");
  }
  if (population && train.contains("epochs")) {
    throw UserError("train.epochs", "given, but population gradients have no epochs; needs train.steps");
  }
}

/// A router that starts at training samples needs one for each expert.
void check_start(const Json& config) {
  const Json& model = config.at("model");
  const Json& data = config.at("data");
  if (model.at("router").value("init", "") != "train_samples" || !data.contains("train_samples")) return;
  const std::int64_t samples = data.at("train_samples").get<std::int64_t>() * data.value("tokens", 1);
  if (samples >= model.at("experts")) return;
  throw UserError(
      "model.router.init",
      fmt::format("got \"train_samples\", needs a training sample for each of model.experts = {}, but "
                  "there are {}",
                  model.at("experts").dump(), samples));
}

void check_image(const Json& config) {
  if (config.at("model").at("router").at("kind") != "cnn") return;
  const std::vector<std::string> names = image_generators();
  if (std::find(names.begin(), names.end(), config.at("data").at("generator")) == names.end()) {
    throw no_image_error();
  }
}

/// Cross-entropy needs targets that are classes; those of files are looked at when they are read.
void check_loss(const Json& config) {
  const Json& data = config.at("data");
  if (config.at("loss").at("task") != "cross_entropy") return;
  const std::string got = "got \"cross_entropy\", ";
  if (is_least_squares(config.at("train")))
    throw UserError("loss.task", got + "but train.optimizer is \"lbfgs\", which fits by \"mse\"");
  if (data.at("generator") == "file") return;
  const std::vector<std::string> kinds = class_target_kinds(data);
  const std::string generator = data.at("generator").dump();
  if (kinds.empty())
    throw UserError("loss.task",
                    got + "needs targets that are classes; data.generator " + generator + " has none");
  if (std::find(kinds.begin(), kinds.end(), data.at("target").at("kind")) != kinds.end()) return;
  throw UserError("loss.task",
                  fmt::format("{}needs targets that are classes; data.target.kind is {}; with "
                              "data.generator {} they are: {}",
                              got, data.at("target").at("kind").dump(), generator, fmt::join(kinds, ", ")));
}

/// The target of "convergence" is one of a metric of task.
void check_convergence(const Json& metrics) {
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    if (metrics[i].at("kind") != "convergence") continue;
    std::vector<std::string> names;
    for (const std::string& name : metric_names()) {
      if (group_of_metric(name) == "task") names.push_back(name);
    }
    const std::string metric = metrics[i].at("metric");
    if (std::find(names.begin(), names.end(), metric) != names.end()) continue;
    throw UserError(join_path(join_path("metrics", i), "metric"), unknown_name("metric", metric, names));
  }
}

/// Elements of a list name different things.
void check_distinct_names(const Json& config, const std::string& list) {
  std::set<Json> seen;
  for (std::size_t i = 0; i < config.at(list).size(); ++i) {
    const Json& element = config.at(list)[i];
    const Json name = element.is_object() ? element.at("kind") : element;
    if (!seen.insert(name).second)
      throw UserError(join_path(list, i), "got " + name.dump() + " a second time");
  }
}

}  // namespace

void check_name(const std::string& name, const std::string& path) {
  constexpr std::size_t kLongest = 100;  // a file name may have 255 bytes, and endings are added
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  const bool is_allowed = !name.empty() && name.size() <= kLongest && name.front() != '.' &&
                          name.front() != '-' && name.find_first_not_of(kAllowed) == std::string::npos;
  if (is_allowed) return;
  throw UserError(path,
                  fmt::format("got {}, needs a name of at most {} letters, digits, . _ - that begins with a "
                              "letter, a digit or _",
                              abbreviated(name), kLongest));
}

void check_config(const Json& config) {
  check_gating(config.at("model"));
  check_balancing(config.at("model"));
  check_dense(config.at("model"));
  check_least_squares(config);
  check_gradient(config);
  check_start(config);
  check_length_of_run(config.at("train"));
  check_loss(config);
  check_image(config);
  check_data(config.at("data"));
  check_convergence(config.at("metrics"));
  check_distinct_names(config, "metrics");
  check_distinct_names(config, "save");
}

void check_separation(const Scenario& scenario) {
  std::set<std::string> drawn;
  for (const Cell& cell : scenario.cells) {
    Json data = cell.config.at("data");
    if (!data.contains("separation")) continue;
    // Sample counts do not enter the means: one draw serves the whole sweep over them.
    if (data.contains("train_samples")) data["train_samples"] = 1;
    data["test_samples"] = 1;
    if (!drawn.insert(canonical_text(data) + std::to_string(cell.seed)).second) continue;
    draw_problem(data, {cell.config.at("seed").at("root"), cell.config.at("seed").at("index")});
  }
}

void check_files(const Scenario& scenario) {
  std::set<std::string> read;
  for (const Cell& cell : scenario.cells) {
    const Json& data = cell.config.at("data");
    const std::string loss = cell.config.at("loss").at("task");
    if (data.at("generator") != "file" || !read.insert(canonical_text(data) + loss).second) continue;
    check_file_values(data, loss == "cross_entropy");
  }
}

}  // namespace moelab
