#include "app/run/cell.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "app/scenario/scenario.h"

namespace moelab::cell_test {
namespace {

constexpr int kTest = 60, kInputs = 6, kOutputs = 2, kExperts = 4;

/// A cell of a small mixture after overrides "path": value by JSON pointers.
Cell small_cell(const std::vector<std::pair<const char*, Json>>& overrides = {}) {
  Json config = Json::parse(R"({
    "data": {"generator": "gaussian_mixture", "clusters": 3, "dim": 4, "spurious_dims": 2,
             "target": {"kind": "constant", "dim": 2}, "train_samples": 40, "test_samples": 60},
    "model": {"experts": 4, "router": "linear", "expert": {"kind": "mlp", "depth": 2, "width": 5}},
    "train": {"lr": 0.05, "batch_size": 16, "steps": 30, "record_every": 20},
    "save": ["weights", "routing"]})");
  for (const auto& [pointer, value] : overrides) config[Json::json_pointer(pointer)] = value;
  Cell cell;
  cell.id = "cell";
  cell.arm = "base";
  cell.options = std::make_shared<const CellOptions>(read_config(resolve(config_shape(), config, "")));
  cell.root_seed = 1;
  return cell;
}

CellResult run(const Cell& cell) {
  return run_cell(cell, [](double) { return false; });
}

bool same_values(const MetricValues& left, const MetricValues& right) {
  return left.size() == right.size() &&
         std::equal(left.begin(), left.end(), right.begin(), [](const auto& a, const auto& b) {
           return a.first == b.first && std::memcmp(&a.second, &b.second, sizeof(double)) == 0;
         });
}

bool same_bits(const CellResult& left, const CellResult& right) {
  bool same = left.state == right.state && left.message == right.message &&
              same_values(left.metrics, right.metrics) && left.trace.size() == right.trace.size() &&
              left.arrays.size() == right.arrays.size();
  for (std::size_t i = 0; same && i < left.trace.size(); ++i) {
    same = left.trace[i].step == right.trace[i].step &&
           same_values(left.trace[i].metrics, right.trace[i].metrics);
  }
  for (std::size_t i = 0; same && i < left.arrays.size(); ++i) {
    const SavedArray &a = left.arrays[i], &b = right.arrays[i];
    same = a.name == b.name && a.shape == b.shape && a.labels == b.labels &&
           a.values.size() == b.values.size() &&
           (a.values.empty() ||
            std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(double)) == 0);
  }
  return same;
}

std::map<std::string, std::vector<std::int64_t>> shapes(const CellResult& result) {
  std::map<std::string, std::vector<std::int64_t>> all;
  for (const SavedArray& array : result.arrays) all[array.name] = array.shape;
  return all;
}

const SavedArray& array_named(const CellResult& result, const std::string& name) {
  for (const SavedArray& array : result.arrays) {
    if (array.name == name) return array;
  }
  FAIL("no array ", name);
  return result.arrays.front();
}

const std::vector<std::pair<const char*, Json>> kDense = {{"/model/kind", "dense"},
                                                          {"/model/match", "expert"}};
const std::vector<std::pair<const char*, Json>> kFrozen = {
    {"/model/router", {{"kind", "linear"}, {"trainable", false}}}};

TEST_CASE("the processor time of a cell is told apart into training and measuring") {
  const auto begin = std::chrono::steady_clock::now();
  const CellResult result = run(small_cell({}));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  CHECK(result.spent.training > 0);
  CHECK(result.spent.measuring > 0);
  CHECK(result.spent.training + result.spent.measuring <= result.spent.total);
  CHECK(result.spent.total <= seconds);
}

TEST_CASE("a cell runs to the same bits twice, among other arms, and on another thread") {
  for (const char* precision : {"float", "double"}) {
    const Cell cell = small_cell({{"/train/precision", precision}});
    const CellResult first = run(cell);
    CHECK(first.state == CellResult::State::done);
    CHECK(same_bits(first, run(cell)));
    run(small_cell(kDense));
    run(small_cell(kFrozen));
    CHECK(same_bits(first, run(cell)));
    CellResult elsewhere;
    std::thread other([&] { elsewhere = run(cell); });
    run(small_cell({{"/train/lr", 0.2}}));
    other.join();
    CHECK(same_bits(first, elsewhere));
    Cell reseeded = cell;
    reseeded.seed = 1;
    CHECK_FALSE(same_bits(first, run(reseeded)));
  }
}

TEST_CASE("records at 0, every interval and the last, whose metrics are the cell's") {
  const CellResult result = run(small_cell());
  std::vector<std::int64_t> steps;
  for (const TraceEntry& entry : result.trace) steps.push_back(entry.step);
  CHECK(steps == std::vector<std::int64_t>{0, 20, 30});
  CHECK(same_values(result.metrics, result.trace.back().metrics));
  CHECK(result.metrics.at("train_loss") < result.trace.front().metrics.at("train_loss"));
}

TEST_CASE("arms are paired: data, initial weights and first measurements are shared") {
  const CellResult learned = run(small_cell()), frozen = run(small_cell(kFrozen)),
                   dense = run(small_cell(kDense));
  CHECK(same_values(learned.trace.front().metrics, frozen.trace.front().metrics));
  CHECK_FALSE(same_values(learned.metrics, frozen.metrics));
  for (const char* name : {"test_inputs", "test_targets"}) {
    CHECK(array_named(learned, name).values == array_named(frozen, name).values);
    CHECK(array_named(learned, name).values == array_named(dense, name).values);
  }
  CHECK(array_named(learned, "router_weight").values != array_named(frozen, "router_weight").values);
}

TEST_CASE("a mixture has every metric; a dense model none of a router") {
  const std::set<std::string> task = {"train_loss",     "test_loss_soft", "test_loss_top1",
                                      "test_loss_eval", "train_nmse",     "test_nmse_soft",
                                      "test_nmse_top1", "bayes_nmse",     "parameter_count"};
  const std::set<std::string> routing = {"cluster_entropy",           "cluster_entropy_shuffled",
                                         "effective_experts",         "effective_experts_shuffled",
                                         "top1_cluster_purity",       "top1_cluster_concentration",
                                         "router_norm_ratio",         "router_signal_fraction",
                                         "expert_load_max_violation", "expert_load_std_percent"};
  const CellResult mixture = run(small_cell()), dense = run(small_cell(kDense));
  for (const auto& [key, value] : mixture.metrics) {
    const auto& name = key;
    CHECK_MESSAGE(std::isfinite(value), name);
  }
  for (const std::string& name : task) {
    CHECK_MESSAGE(mixture.metrics.contains(name), name);
    CHECK_MESSAGE(dense.metrics.contains(name), name);
  }
  for (const std::string& name : routing) {
    CHECK_MESSAGE(mixture.metrics.contains(name), name);
    CHECK_MESSAGE(!dense.metrics.contains(name), name);
  }
  CHECK(dense.metrics.at("test_loss_soft") == dense.metrics.at("test_loss_top1"));
  const CellResult few = run(small_cell({{"/metrics", {"router_norms"}}}));
  CHECK(few.metrics.size() == 2);
}

TEST_CASE("saved arrays have the shapes of the contract and agree with the metrics") {
  const CellResult result = run(small_cell());
  const std::map<std::string, std::vector<std::int64_t>> expected = {
      {"router_weight", {kExperts, kInputs}},   {"expert_weight_1", {kExperts, 5, kInputs}},
      {"expert_bias_1", {kExperts, 5}},         {"expert_weight_2", {kExperts, kOutputs, 5}},
      {"expert_bias_2", {kExperts, kOutputs}},  {"test_inputs", {kTest, kInputs}},
      {"test_targets", {kTest, kOutputs}},      {"test_labels", {kTest}},
      {"test_probs", {kTest, kExperts}},        {"test_outputs_soft", {kTest, kOutputs}},
      {"test_outputs_top1", {kTest, kOutputs}}, {"training_progress", {1}}};
  CHECK(shapes(result) == expected);
  for (const SavedArray& array : result.arrays) {
    std::int64_t entries = 1;
    for (const std::int64_t length : array.shape) entries *= length;
    CHECK(array.labels.size() + array.values.size() == static_cast<std::size_t>(entries));
    CHECK(array.labels.empty() != (array.name == "test_labels"));
  }

  // The stored outputs give the stored loss: the same sums in the same precision but another order.
  constexpr double kRounding = 1e-12;
  const std::vector<double>&outputs = array_named(result, "test_outputs_top1").values,
        &targets = array_named(result, "test_targets").values;
  double loss = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    loss += (outputs[i] - targets[i]) * (outputs[i] - targets[i]) / (kTest * kOutputs);
  CHECK(std::abs(loss - result.metrics.at("test_loss_top1")) < kRounding);

  const std::map<std::string, std::vector<std::int64_t>> dense = shapes(run(small_cell(kDense)));
  CHECK_FALSE(dense.contains("test_probs"));
  CHECK_FALSE(dense.contains("router_weight"));
  CHECK(dense.contains("test_outputs_soft"));
  CHECK(run(small_cell({{"/save", Json::array()}})).arrays.empty());
}

TEST_CASE("recorded steps keep the rows of a linear router, which end with its weights") {
  const std::vector<std::pair<const char*, Json>> saving = {
      {"/save", {"weights", "routing_steps"}}, {"/model/router", {{"kind", "linear"}, {"bias", true}}}};
  const CellResult result = run(small_cell(saving));
  const std::map<std::string, std::vector<std::int64_t>> all = shapes(result);
  CHECK(array_named(result, "recorded_steps").labels == std::vector<std::int64_t>{0, 20, 30});
  CHECK(all.at("router_weight_steps") == std::vector<std::int64_t>{3, kExperts, kInputs});
  CHECK(all.at("router_bias_steps") == std::vector<std::int64_t>{3, kExperts});
  for (const std::string name : {"router_weight", "router_bias"}) {
    CAPTURE(name);
    const std::vector<double>&last = array_named(result, name).values,
          &steps = array_named(result, name + "_steps").values;
    REQUIRE(steps.size() == 3 * last.size());
    CHECK(std::equal(last.begin(), last.end(), steps.end() - static_cast<std::ptrdiff_t>(last.size())));
    CHECK_FALSE(std::equal(last.begin(), last.end(), steps.begin()));
  }
  // Of a router without rows there are none; layers of a stack have their own.
  CHECK_FALSE(shapes(run(small_cell({{"/save", {"routing_steps"}}, {"/model/router", "mlp"}})))
                  .contains("router_weight_steps"));
  const std::map<std::string, std::vector<std::int64_t>> stack =
      shapes(run(small_cell({{"/save", {"routing_steps"}}, {"/model/layers", 2}})));
  CHECK(stack.at("router_weight_steps_layer0").size() == 3);
  CHECK(stack.at("router_weight_steps_layer1").size() == 3);
}

TEST_CASE("diverged, failed and interrupted cells say so") {
  const CellResult diverged = run(small_cell({{"/train/lr", 1e30}}));
  CHECK(diverged.state == CellResult::State::diverged);
  CHECK(diverged.message.find("not finite") != std::string::npos);
  CHECK(diverged.metrics.empty());

  const CellResult failed = run(small_cell({{"/data/separation", 1000}}));
  CHECK(failed.state == CellResult::State::failed);
  CHECK(failed.message.find("data.separation") != std::string::npos);

  const CellResult interrupted = run_cell(small_cell({{"/train/steps", 1e12}, {"/train/record_every", 1e12}}),
                                          [](double) { return true; });
  CHECK(interrupted.state == CellResult::State::interrupted);
  CHECK(interrupted.metrics.empty());
}

}  // namespace
}  // namespace moelab::cell_test
