#include "app/commands/analyze.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/metrics/entropy.h"
#include "analysis/metrics/load.h"
#include "analysis/metrics/overlap.h"
#include "analysis/metrics/sparsity.h"
#include "app/commands/array_analysis.h"
#include "app/metrics/metric_groups.h"
#include "app/run/cell.h"
#include "app/scenario/scenario.h"
#include "sim/base/random.h"
#include "sim/data/npy/npy.h"
#include "tests/app/commands/answer.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::analyze_test {
namespace {

/// Sums over some hundred numbers of order 1 in double, cut differently.
constexpr double kRounding = 1e-12;

constexpr int kRows = 200, kExperts = 5, kInputs = 4, kOutputs = 2;

Answer analyze(std::vector<std::string> words) {
  words.insert(words.begin(), "analyze");
  return ask(words);
}

/// A folder of arrays that fit: P = softmax(X Wᵀ), labels, expert outputs, an earlier P.
struct Arrays {
  TemporaryFolder folder;
  Matrix probs{kRows, kExperts}, inputs{kRows, kInputs}, router{kExperts, kInputs};
  std::vector<std::int64_t> labels;

  Arrays() {
    Engine engine = Seeds{5, 0}.stream(Purpose::problem);
    fill_normal(engine, 1, inputs.data(), kRows * kInputs);
    fill_normal(engine, 2, router.data(), kExperts * kInputs);
    probs = route(router);
    for (int i = 0; i < kRows; ++i) labels.push_back(inputs(i, 0) > 0 ? 3 : 8);
    Matrix outputs(kRows, kExperts * kOutputs);
    fill_normal(engine, 1, outputs.data(), static_cast<std::size_t>(outputs.size()));
    write("P", {kRows, kExperts}, probs);
    write("X", {kRows, kInputs}, inputs);
    write("W", {kExperts, kInputs}, router);
    write("O", {kRows, kExperts, kOutputs}, outputs);
    write("P0", {kRows, kExperts}, route(router + Matrix::Ones(kExperts, 1) * inputs.row(0)));
    write_integers("C", {kRows}, labels);
  }

  Matrix route(const Matrix& weight) const {
    Matrix routing = (inputs * weight.transpose()).array().exp().matrix();
    for (Eigen::Index i = 0; i < routing.rows(); ++i) routing.row(i) /= routing.row(i).sum();
    return routing;
  }

  std::string name(const std::string& array) const { return (folder.path() / (array + ".npy")).string(); }

  void write(const std::string& array, const std::vector<std::int64_t>& shape, const Matrix& values) const {
    write_bytes(array, npy_bytes(shape, {values.data(), static_cast<std::size_t>(values.size())}));
  }
  void write_integers(const std::string& array, const std::vector<std::int64_t>& shape,
                      const std::vector<std::int64_t>& values) const {
    write_bytes(array, npy_bytes(shape, std::span<const std::int64_t>(values)));
  }
  void write_bytes(const std::string& array, const std::string& bytes) const {
    std::ofstream(name(array), std::ios::binary) << bytes;
  }

  Json answer(std::vector<std::string> words) const {
    words.push_back("--json");
    const Answer answer = analyze(words);
    REQUIRE_MESSAGE(answer.status == 0, answer.out);
    return Json::parse(answer.out);
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("analyze: probabilities alone, and what is left out for lack of which input") {
  const Arrays arrays;
  const Json answer = arrays.answer({"--probs", arrays.name("P")});
  const Json& metrics = answer.at("metrics");
  CHECK(std::abs(metrics.at("routing_entropy").get<double>() - routing_entropy(arrays.probs)) < kRounding);
  for (const char* name :
       {"expert_load_max_violation", "expert_load_max_deviation", "expert_load_std_percent",
        "routing_variance_eq42", "score_variance", "score_row_variance"}) {
    CHECK(metrics.contains(name));
  }
  CHECK(metrics.size() == 9);
  CHECK(std::abs(metrics.at("router_margin").get<double>() - router_margin(arrays.probs).value()) <
        kRounding);
  CHECK(metrics.at("dead_experts") == dead_experts(top1_assignment(arrays.probs), kExperts).value());
  const Json& skipped = answer.at("skipped");
  CHECK(skipped.at("cluster_entropy") == "needs --labels");
  CHECK(skipped.at("effective_experts_shuffled") == "needs --labels, --inputs, --router");
  CHECK(skipped.at("silhouette") == "needs --embeddings or --inputs");
  CHECK(skipped.at("expert_output_similarity") == "needs --expert-outputs");
  CHECK(skipped.at("routing_fluctuation") ==
        "needs --previous-probs, --previous-logits or --previous-assignments");
  CHECK(skipped.at("router_norm_ratio") == "needs --router");
  CHECK(skipped.at("co_activation") == "needs --top-k above 1");
  CHECK(skipped.at("routing_divergence") == "needs --previous-probs or --previous-logits");
  CHECK(skipped.at("dispatch_entropy") == "needs --labels");
}

TEST_CASE("analyze: every metric where all arrays are given") {
  const Arrays arrays;
  const std::vector<std::string> words = {"--probs",          arrays.name("P"),
                                          "--labels",         arrays.name("C"),
                                          "--inputs",         arrays.name("X"),
                                          "--router",         arrays.name("W"),
                                          "--expert-outputs", arrays.name("O"),
                                          "--previous-probs", arrays.name("P0"),
                                          "--top-k",          "2"};
  const Json answer = arrays.answer(words);
  CHECK(answer.at("skipped").empty());
  CHECK(answer.at("intervals").empty());
  const Json& metrics = answer.at("metrics");
  const std::vector<int> labels(arrays.labels.begin(), arrays.labels.end());
  const ClusterRouting routing(arrays.probs, labels);
  CHECK(std::abs(metrics.at("cluster_entropy").get<double>() - routing.cluster_entropy()) < kRounding);
  CHECK(metrics.at("effective_experts_shuffled") > 1);
  CHECK(metrics.at("effective_experts_shuffled") < kExperts);
  const std::vector<int> top1 = top1_assignment(arrays.probs);
  CHECK(std::abs(metrics.at("expert_overlap").get<double>() - expert_overlap(arrays.inputs, top1).value()) <
        kRounding);
  CHECK(answer.at("settings").at("space") == "--inputs");
  CHECK(answer.at("settings").at("shuffles") == 20);
  CHECK(answer.at("settings").at("clusters") == 2);
  CHECK(answer.at("settings").at("router_difference").get<double>() < kRounding);
  // The scores of P0 are shifted by the same number in every column: nothing changes.
  for (const char* name : {"routing_fluctuation", "routing_fluctuation_topk", "assignment_change_share"})
    CHECK(metrics.at(name) == 0);
  for (const char* name : {"routing_saturation", "routing_ari"}) CHECK(metrics.at(name) == 1);
  CHECK(std::abs(metrics.at("routing_nmi").get<double>() - 1) < kRounding);
  CHECK(metrics.at("routing_divergence").get<double>() < kRounding);
  CHECK(std::abs(metrics.at("dispatch_entropy").get<double>() -
                 dispatch_entropy(routing.top1_table()).value()) < kRounding);
  // A metric of arrays is one whose needs all have an argument, and all of them are here.
  for (const std::string& name : metric_names()) {
    const std::vector<const Need*> all = needs_of(name);
    const bool of_arrays =
        std::all_of(all.begin(), all.end(), [](const Need* need) { return need->argument; });
    CHECK_MESSAGE(metrics.contains(name) == of_arrays, name);
  }
  const Answer text = analyze(words);
  CHECK(text.status == 0);
  CHECK(text.out.starts_with("200 rows, 5 experts, 2 to a row, 2 clusters\n"));
  CHECK_FALSE(contains(text.out, "left out"));
  for (const auto& [name, value] : metrics.items()) CHECK(contains(text.out, "\n" + name + " "));
}

TEST_CASE("analyze: logits stand for their softmax, whatever is added to a row") {
  const Arrays arrays;
  Matrix logits = arrays.inputs * arrays.router.transpose();
  for (Eigen::Index i = 0; i < logits.rows(); ++i) logits.row(i).array() += 1000.0 * static_cast<double>(i);
  arrays.write("L", {kRows, kExperts}, logits);
  const Json probs = arrays.answer(
      {"--probs", arrays.name("P"), "--labels", arrays.name("C"), "--previous-probs", arrays.name("P0")});
  const Json scores = arrays.answer(
      {"--logits", arrays.name("L"), "--labels", arrays.name("C"), "--previous-logits", arrays.name("L")});
  // A score of 2e5 is known to 3e-11, and so is every probability.
  constexpr double kScoreRounding = 1e-9;
  for (const auto& [key, value] : probs.at("metrics").items()) {
    const auto& name = key;
    CAPTURE(name);
    CHECK(std::abs(value.get<double>() - scores.at("metrics").at(name).get<double>()) < kScoreRounding);
  }
  CHECK(probs.at("metrics").contains("top1_cluster_ari"));
  CHECK(probs.at("metrics").contains("top1_cluster_nmi"));

  const Answer none = analyze({"--labels", arrays.name("C")});
  CHECK(none.status == 2);
  CHECK(contains(none.err, "--probs: missing; needs routing probabilities, or --logits"));
  const Answer both = analyze({"--probs", arrays.name("P"), "--logits", arrays.name("L")});
  CHECK(both.status == 2);
  CHECK(contains(both.err, "--logits: given, but so is --probs"));
  // Scores are no probabilities, and are not taken for them.
  CHECK(analyze({"--probs", arrays.name("L")}).status == 2);
}

TEST_CASE("analyze: embeddings go before inputs; earlier assignments; the same numbers in Fortran order") {
  const Arrays arrays;
  Matrix embeddings = Matrix::Zero(kRows, 1);
  std::vector<std::int64_t> earlier;
  const std::vector<int> top1 = top1_assignment(arrays.probs);
  for (int i = 0; i < kRows; ++i) {
    const int expert = top1[static_cast<std::size_t>(i)];
    embeddings(i, 0) = 100 * expert + 1e-3 * i;
    earlier.push_back(i < 50 ? (expert + 1) % kExperts : expert);
  }
  arrays.write("Z", {kRows, 1}, embeddings);
  arrays.write_integers("A", {kRows}, earlier);
  const Json answer =
      arrays.answer({"--probs", arrays.name("P"), "--inputs", arrays.name("X"), "--embeddings",
                     arrays.name("Z"), "--previous-assignments", arrays.name("A")});
  CHECK(answer.at("metrics").at("routing_fluctuation") == 0.25);
  CHECK(answer.at("metrics").at("silhouette") > 0.99);
  CHECK(answer.at("settings").at("space") == "--embeddings");

  Matrix transposed(kExperts, kRows);
  transposed = arrays.probs.transpose();
  std::string bytes = npy_header("<f8", {kRows, kExperts});
  bytes.replace(bytes.find("False"), 5, "True ");
  bytes.append(reinterpret_cast<const char*>(transposed.data()), sizeof(double) * kRows * kExperts);
  arrays.write_bytes("F", bytes);
  CHECK(arrays.answer({"--probs", arrays.name("F")}).at("metrics") ==
        arrays.answer({"--probs", arrays.name("P")}).at("metrics"));
}

TEST_CASE("analyze: tokens are rows, and a row may have several labels") {
  const Arrays arrays;
  arrays.write("P3", {kRows / 4, 4, kExperts}, arrays.probs);
  arrays.write("X3", {kRows / 4, 4, kInputs}, arrays.inputs);
  arrays.write_integers("C3", {kRows / 4, 4}, arrays.labels);
  const Json flat = arrays.answer({"--probs", arrays.name("P"), "--inputs", arrays.name("X"), "--labels",
                                   arrays.name("C"), "--router", arrays.name("W")});
  const Json tokens = arrays.answer({"--probs", arrays.name("P3"), "--inputs", arrays.name("X3"), "--labels",
                                     arrays.name("C3"), "--router", arrays.name("W")});
  CHECK(tokens.at("metrics") == flat.at("metrics"));
  CHECK(tokens.at("settings") == flat.at("settings"));

  std::vector<std::int64_t> pairs;
  for (int i = 0; i < kRows; ++i) {
    pairs.push_back(i % 3);
    pairs.push_back(3 + i % 2);
  }
  arrays.write_integers("C2", {kRows, 2}, pairs);
  const Json parts = arrays.answer({"--probs", arrays.name("P"), "--labels", arrays.name("C2")});
  CHECK(parts.at("settings").at("clusters") == 6);
  CHECK(parts.at("metrics").contains("cluster_entropy_per_atom"));
  CHECK(parts.at("metrics").contains("effective_experts_overall"));
}

TEST_CASE("analyze: the saved arrays of a run give the metrics of the run") {
  const Json document = Json::parse(R"({
    "name": "saved",
    "data": {"generator": "gaussian_mixture", "clusters": 3, "dim": 4, "mean_std": 2, "noise_std": 1,
             "target": {"kind": "constant", "dim": 2}, "train_samples": 60, "test_samples": 300},
    "model": {"experts": 4, "router": {"kind": "linear"}, "expert": {"kind": "constant"}},
    "train": {"lr": 0.05, "batch_size": 10, "steps": 50, "precision": "double"},
    "metrics": ["sparsity", "load", "router_norms", "routing", {"kind": "overlap", "rows": 300}],
    "seeds": {"root": 1, "count": 1}, "save": ["weights", "routing"]})");
  const Scenario scenario = expand_scenario(document, "", {});
  const CellResult result = run_cell(scenario.cells.front(), [](double) { return false; });
  REQUIRE_MESSAGE(result.state == CellResult::State::done, result.message);
  const TemporaryFolder folder;
  const auto name = [&](const std::string& array) { return folder.path() / (array + ".npy"); };
  for (const SavedArray& array : result.arrays) {
    std::ofstream(name(array.name), std::ios::binary)
        << (array.labels.empty() ? npy_bytes(array.shape, std::span<const double>(array.values))
                                 : npy_bytes(array.shape, std::span<const std::int64_t>(array.labels)));
  }
  AnalyzedArrays files;
  files.probs = name("test_probs");
  files.labels = name("test_labels");
  files.inputs = name("test_inputs");
  files.router = name("router_weight");
  const Json metrics = analyze_arrays(files).metrics;
  // Root seed 1, seed 0: the permutations of the shuffled baseline are those of the run.
  int compared = 0;
  for (const auto& [key, value] : result.metrics) {
    const auto& metric = key;
    if (metric == "router_signal_fraction") continue;  // needs the signal's subspace
    CAPTURE(metric);
    REQUIRE(metrics.contains(metric));
    CHECK(std::abs(metrics.at(metric).get<double>() - value) < kRounding);
    ++compared;
  }
  CHECK(compared == 21);
}

TEST_CASE("analyze: many rows are sampled, with an interval that holds the whole's value") {
  const Arrays arrays;
  constexpr int kMany = 6000;
  Engine engine = Seeds{6, 0}.stream(Purpose::problem);
  Matrix probs(kMany, 2), points(kMany, 2);
  fill_normal(engine, 1, points.data(), kMany * 2);
  for (int i = 0; i < kMany; ++i) {
    const bool first = points(i, 0) + 0.5 * draw_normal(engine) > 0;
    probs.row(i) << (first ? 0.9 : 0.1), (first ? 0.1 : 0.9);
  }
  arrays.write("many", {kMany, 2}, probs);
  arrays.write("points", {kMany, 2}, points);
  const Json answer = arrays.answer({"--probs", arrays.name("many"), "--inputs", arrays.name("points")});
  CHECK(answer.at("settings").at("sampled_rows") == kQueryRows);
  const double whole = expert_overlap(points, top1_assignment(probs)).value();
  const Json& interval = answer.at("intervals").at("expert_overlap");
  // Twice the width of the 95 % interval: four standard errors, and the seeds are fixed.
  const double half = (interval[1].get<double>() - interval[0].get<double>()) / 2;
  CHECK(std::abs(answer.at("metrics").at("expert_overlap").get<double>() - whole) < 2 * half);
  CHECK(half < 0.03);
  CHECK(half > 0.003);
  CHECK(contains(analyze({"--probs", arrays.name("many"), "--inputs", arrays.name("points")}).out, " ± "));
}

TEST_CASE("analyze: all other rows may be neighbours, and are where there are fewer than the default") {
  const Arrays arrays;
  const Json all =
      arrays.answer({"--probs", arrays.name("P"), "--inputs", arrays.name("X"), "--neighbours", "199"});
  CHECK(all.at("settings").at("neighbours") == 199);
  arrays.write("P4", {4, kExperts}, arrays.probs.topRows(4));
  arrays.write("X4", {4, kInputs}, arrays.inputs.topRows(4));
  const Json few = arrays.answer({"--probs", arrays.name("P4"), "--inputs", arrays.name("X4")});
  CHECK(few.at("settings").at("neighbours") == 3);
  const Json three =
      arrays.answer({"--probs", arrays.name("P4"), "--inputs", arrays.name("X4"), "--neighbours", "3"});
  CHECK(few.at("metrics") == three.at("metrics"));
}

TEST_CASE("analyze: bad input is one clear error with status 2") {
  const Arrays arrays;
  const auto with = [&](int row, int column, double value) {
    Matrix changed = arrays.probs;
    changed(row, column) = value;
    arrays.write("bad", {kRows, kExperts}, changed);
  };
  const auto check = [&](const std::vector<std::string>& words, const std::string& message) {
    const Answer answer = analyze(words);
    CHECK(answer.status == 2);
    CHECK(answer.out.empty());
    CHECK(answer.err.starts_with("moelab: error: --"));
    CHECK(std::count(answer.err.begin(), answer.err.end(), '\n') == 1);
    CHECK_MESSAGE(contains(answer.err, message), answer.err);
  };
  const auto check_bad = [&](const std::string& message) { check({"--probs", arrays.name("bad")}, message); };
  with(7, 2, arrays.probs(7, 2) + 0.25);
  check_bad("has row 7 with the sum 1.25; rows of probabilities sum to 1 (within 0.001)");
  with(9, 1, -0.5);
  check_bad("holds -0.5 in row 9, column 1; probabilities are not negative");
  with(9, 1, std::nan(""));
  check_bad("holds nan in row 9, column 1");
  with(9, 1, INFINITY);
  check_bad("holds inf in row 9, column 1");
  arrays.write("bad", {kRows * kExperts}, arrays.probs);
  check_bad("has shape (1000,), needs (n, E), or (n, s, E) for sequences");

  const auto check_beside = [&](const std::string& option, const std::string& array,
                                const std::string& message) {
    check({"--probs", arrays.name("P"), option, arrays.name(array)}, message);
  };
  arrays.write("short", {kRows - 1, 4}, arrays.inputs.topRows(kRows - 1));
  arrays.write_integers("few", {kRows - 1}, std::vector<std::int64_t>(kRows - 1, 0));
  arrays.write_integers("high", {kRows}, std::vector<std::int64_t>(kRows, kExperts));
  arrays.write_integers("negative", {kRows}, std::vector<std::int64_t>(kRows, -2));
  arrays.write("floats", {kRows}, arrays.probs.col(0));
  arrays.write("across", {kInputs, kExperts}, arrays.router);
  check_beside("--inputs", "short", "has shape (199, 4), needs (200, d) beside --probs of shape (200, 5)");
  check_beside("--embeddings", "few", "has shape (199,), needs (200, d) beside --probs of shape (200, 5)");
  check_beside("--labels", "few", "has shape (199,), needs (200,) beside --probs of shape (200, 5)");
  check_beside("--labels", "negative", "holds -2 in row 0; labels are 0 to");
  check_beside("--labels", "floats", "holds float64 values, needs integers");
  check_beside("--router", "across", "has shape (4, 5), needs (5, d) beside --probs of shape (200, 5)");
  check_beside("--expert-outputs", "X", "has shape (200, 4), needs (200, 5, d)");
  check_beside("--previous-probs", "X", "has shape (200, 4), needs (200, 5)");
  check_beside("--previous-assignments", "high", "holds 5 in row 0; labels are 0 to 4");
  check_beside("--labels", "nonesuch", "no file");
  check({"--probs", arrays.name("P"), "--top-k", "6"}, "--top-k: got 6, needs at most 5");
  check({"--probs", arrays.name("P"), "--inputs", arrays.name("X"), "--neighbours", "200"},
        "--neighbours: got 200, needs at most 199, the other rows of --probs");
  check({"--probs", arrays.name("P"), "--previous-probs", arrays.name("P"), "--previous-assignments",
         arrays.name("C")},
        "given, but so is --previous-probs");
  const Answer json = analyze({"--probs", arrays.name("nonesuch"), "--json"});
  CHECK(json.status == 2);
  CHECK(Json::parse(json.out).at("error").at("path") == "--probs");
  CHECK(analyze({}).status == 2);
}

}  // namespace moelab::analyze_test
