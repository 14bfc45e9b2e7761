/// `moelab analyze` of the routers of language models: layers, axes, masks, ids, counts, and what is refused.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <string_view>

#include "app/cli/analysis_files.h"
#include "tests/app/cli/analyzed_arrays.h"

namespace moelab::analyze_dumps_test {
namespace {

using namespace analyzed_arrays;

constexpr double kRounding = 1e-12;

/// A folder of arrays and texts.
struct Dumps {
  TemporaryFolder folder;

  std::string path(const std::string& name) const { return (folder.path() / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::string reals(const std::string& name, const std::vector<std::int64_t>& shape,
                    const std::vector<double>& values) const {
    return write(name + ".npy", npy_bytes(shape, std::span<const double>(values)));
  }
  std::string whole(const std::string& name, const std::vector<std::int64_t>& shape,
                    const std::vector<std::int64_t>& values) const {
    return write(name + ".npy", npy_bytes(shape, std::span<const std::int64_t>(values)));
  }
};

Json answer_of(std::vector<std::string> words) {
  words.push_back("--json");
  const Answer answer = analyze(words);
  REQUIRE_MESSAGE(answer.status == 0, answer.out);
  return Json::parse(answer.out);
}

void check_refused(const std::vector<std::string>& words, const std::string& message) {
  const Answer answer = analyze(words);
  CHECK(answer.status == 2);
  CHECK_MESSAGE(contains(answer.err, message), answer.err);
}

const Json& layer_of(const Json& answer, int number) {
  for (const Json& layer : answer.at("layers")) {
    if (layer.at("layer") == number) return layer;
  }
  FAIL("no layer ", number);
  return answer;
}

double metric_of(const Json& answer, int number, const std::string& name) {
  const Json& metrics = layer_of(answer, number).at("metrics");
  REQUIRE_MESSAGE(metrics.contains(name), name);
  return metrics.at(name).get<double>();
}

bool tells(const Json& answer, const std::string& part) {
  const Json& checks = answer.at("checks");
  return std::any_of(checks.begin(), checks.end(),
                     [&](const Json& check) { return contains(check.get<std::string>(), part); });
}

/// A .safetensors file of float32 or int64 arrays; `type` "BF16" keeps the upper half of float32 numbers.
struct Tensor {
  std::string name, type;
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};

std::string tensors(const std::vector<Tensor>& arrays) {
  Json header = Json::object();
  std::string body;
  for (const Tensor& array : arrays) {
    const std::size_t begin = body.size();
    for (const double value : array.values) {
      char bytes[8];
      std::size_t width = 4;
      if (array.type == "I64") {
        const auto whole = static_cast<std::int64_t>(value);
        width = 8;
        std::memcpy(bytes, &whole, 8);
      } else {
        const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
        const std::uint32_t kept = array.type == "BF16" ? bits >> 16 : bits;
        width = array.type == "BF16" ? 2 : 4;
        std::memcpy(bytes, &kept, 4);
      }
      body.append(bytes, width);
    }
    header[array.name] = {
        {"dtype", array.type}, {"shape", array.shape}, {"data_offsets", {begin, body.size()}}};
  }
  const std::string text = header.dump();
  std::string bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes += static_cast<char>(text.size() >> (8 * i) & 0xFF);
  return bytes + text + body;
}

/// Logits (rows, experts) of rows that go to these experts, the first one first.
std::vector<double> logits_of(const std::vector<std::vector<int>>& rows, int experts) {
  std::vector<double> values;
  for (const std::vector<int>& row : rows) {
    std::vector<double> own(static_cast<std::size_t>(experts), -3);
    for (std::size_t rank = 0; rank < row.size(); ++rank)
      own[static_cast<std::size_t>(row[rank])] = 2 - 0.5 * static_cast<double>(rank);
    for (std::size_t e = 0; e < own.size(); ++e) own[e] -= 0.01 * static_cast<double>(e);
    values.insert(values.end(), own.begin(), own.end());
  }
  return values;
}

}  // namespace

TEST_CASE("analyze: layers are never pooled, and axes that nothing settles are refused with the readings") {
  const Dumps dumps;
  // Each layer is collapsed to its own expert. Pooled, the load would be even.
  std::vector<double> values;
  for (int layer = 0; layer < 4; ++layer) {
    const std::vector<double> own = logits_of(std::vector<std::vector<int>>(6, {layer}), 4);
    values.insert(values.end(), own.begin(), own.end());
  }
  const std::string stack = dumps.reals("stack", {4, 6, 4}, values);
  check_refused({"--logits", stack}, "LTE (layers, tokens, experts), TLE (tokens, layers, experts), BSE");
  check_refused({"--logits", stack, "--axes", "LTE"}, "--top-k: missing");
  const Json answer = answer_of({"--logits", stack, "--axes", "LTE", "--top-k", "1", "--layers", "2,5-7"});
  CHECK(answer.at("layers").size() == 4);
  for (const int layer : {2, 5, 6, 7}) CHECK(metric_of(answer, layer, "expert_load_max_violation") == 3);
  CHECK_FALSE(answer.at("metrics").contains("expert_load_max_violation"));
  CHECK(answer.at("means").at("expert_load_max_violation") == 3);
  // The same numbers with the layers between tokens and experts.
  std::vector<double> turned;
  for (std::size_t t = 0; t < 6; ++t) {
    for (std::size_t l = 0; l < 4; ++l)
      turned.insert(turned.end(), values.begin() + static_cast<std::ptrdiff_t>((l * 6 + t) * 4),
                    values.begin() + static_cast<std::ptrdiff_t>((l * 6 + t) * 4 + 4));
  }
  const Json other = answer_of({"--logits", dumps.reals("turned", {6, 4, 4}, turned), "--axes", "TLE",
                                "--top-k", "1", "--layers", "2,5-7"});
  for (const int layer : {2, 7})
    CHECK(layer_of(other, layer).at("metrics") == layer_of(answer, layer).at("metrics"));
  check_refused({"--logits", stack, "--axes", "LTE", "--top-k", "1", "--layers", "1,2"},
                "--layers: names 2 layers");
  check_refused({"--logits", stack, "--axes", "LTX"}, "--axes: got 'LTX'");
}

TEST_CASE("analyze: probabilities, gates, integers and scores are not taken for logits") {
  const Dumps dumps;
  std::vector<double> probs, gates;
  for (int row = 0; row < 30; ++row) {
    const double a = 0.1 + 0.01 * row;
    probs.insert(probs.end(), {a, 0.5 - a / 2, 0.3 - a / 4, 0.2 - a / 4});
    gates.insert(gates.end(), {0, row % 2 ? 0.75 : 0.25, row % 2 ? 0.25 : 0.75, 0});
  }
  const std::string file = dumps.write(
      "d.safetensors",
      tensors({{"router_logits.0", "F32", {30, 4}, probs}, {"router_logits.1", "F32", {30, 4}, probs}}));
  check_refused({"--logits", file, "--top-k", "2"}, "d.safetensors:router_logits.0' sums to 1 in every row");
  CHECK(answer_of({"--probs", file, "--top-k", "2"}).at("layers").size() == 2);
  check_refused({"--logits", dumps.whole("bits", {2, 2}, {16256, 0, 3, 4})}, "--dtype bfloat16");
  const Json sets = answer_of({"--gates", dumps.reals("gates", {30, 4}, gates)});
  CHECK(metric_of(sets, 0, "expert_load_max_violation") == 1);
  CHECK(metric_of(sets, 0, "unused_experts") == 2);
  CHECK(metric_of(sets, 0, "dead_experts_top1") == 0.5);
  CHECK_FALSE(layer_of(sets, 0).at("metrics").contains("routing_entropy"));
  // One array of r is measured as it is, with a note; layers are read as sets.
  const Json as_probs = answer_of({"--probs", dumps.path("gates.npy"), "--top-k", "2"});
  CHECK(tells(as_probs, "holds gates"));
  CHECK(as_probs.at("metrics").contains("routing_entropy"));
  const std::string layers =
      dumps.write("g.safetensors", tensors({{"g.0", "F32", {30, 4}, gates}, {"g.1", "F32", {30, 4}, gates}}));
  const Json as_sets = answer_of({"--probs", layers + ":g", "--top-k", "2"});
  CHECK(tells(as_sets, "read as sets"));
  CHECK_FALSE(layer_of(as_sets, 0).at("metrics").contains("routing_entropy"));
  std::vector<double> scores = probs;
  for (double& value : scores) value = std::sqrt(value);
  check_refused({"--probs", dumps.reals("scores", {30, 4}, scores)}, "Use --scores");
  check_refused({"--scores", dumps.reals("scores", {30, 4}, scores), "--top-k", "2"},
                "--selection-bias: missing");
}

TEST_CASE("analyze: rows of bfloat16 probabilities may be off by 0.004, others by 0.001") {
  const Dumps dumps;
  // Four bfloat16 numbers with the sum 0.997.
  const std::vector<double> row = {0.62109375, 0.25, 0.0859375, 0.0400390625};
  REQUIRE(std::abs(row[0] + row[1] + row[2] + row[3] - 1) > 2e-3);
  const Json answer = answer_of({"--probs", dumps.reals("low", {1, 4}, row)});
  double entropy = 0, sum = row[0] + row[1] + row[2] + row[3];
  for (const double r : row) entropy -= r / sum * std::log(r / sum);
  CHECK(std::abs(answer.at("metrics").at("routing_entropy").get<double>() - entropy) < kRounding);
  CHECK(tells(answer, "low precision"));
  std::vector<double> finer = row;
  finer[0] += 1e-5;
  check_refused({"--probs", dumps.reals("fine", {1, 4}, finer)}, "within 0.001");
}

TEST_CASE("analyze: padding is left out, its polarity is checked, and tokens that hold it are asked about") {
  const Dumps dumps;
  const std::vector<std::vector<int>> rows = {{1, 2}, {2, 3}, {0, 0}, {3, 1}, {0, 0}, {0, 0}};
  const std::string file =
      dumps.write("d.safetensors", tensors({{"router_logits.0", "BF16", {6, 4}, logits_of(rows, 4)},
                                            {"router_logits.1", "BF16", {6, 4}, logits_of(rows, 4)},
                                            {"attention_mask", "I64", {2, 3}, {1, 1, 0, 1, 0, 0}},
                                            {"turned", "I64", {2, 3}, {0, 0, 1, 0, 1, 1}},
                                            {"input_ids", "I64", {2, 3}, {5, 6, 9, 7, 9, 9}}}));
  const std::string model =
      dumps.write("config.json", R"({"num_hidden_layers": 3, "num_experts": 4, "num_experts_per_tok": 2,
                                     "mlp_only_layers": [1], "pad_token_id": 9})");
  const Json answer = answer_of({"--logits", file, "--model", model, "--mask", file + ":attention_mask",
                                 "--tokens", file + ":input_ids", "--documents", "rows"});
  CHECK(layer_of(answer, 0).at("experts").at("load") == Json({0.0, 2.0 / 6, 2.0 / 6, 2.0 / 6}));
  CHECK(metric_of(answer, 2, "tokens") == 3);
  CHECK(answer.at("settings").at("without_router") == Json({1}));
  CHECK(metric_of(answer, 0, "repeat_any") == 1);
  CHECK(metric_of(answer, 0, "repeat_first") == 0);
  CHECK(tells(answer, "leaves out 3 of 6 rows"));
  check_refused(
      {"--logits", file, "--model", model, "--mask", file + ":turned", "--tokens", file + ":input_ids"},
      "1 where the tokens are padding");
  check_refused({"--logits", file, "--model", model, "--tokens", file + ":input_ids"}, "--mask: missing");
  const Json all =
      answer_of({"--logits", file, "--model", model, "--mask", "none", "--tokens", file + ":input_ids"});
  CHECK(metric_of(all, 0, "tokens") == 6);
  check_refused({"--logits", file, "--model", model, "--mask", file + ":router_logits.0"}, "--mask");
  check_refused({"--logits", file, "--model", model, "--mask", file + ":no"}, "has no array 'no'");
}

TEST_CASE("analyze: ids of experts: dense layers, absent rows, order, and what is no id") {
  const Dumps dumps;
  // (T, L, K): layer 0 was not routed; row 2 is absent.
  const std::string ids = dumps.whole("ids", {4, 2, 2}, {0, 0, 2, 1, 0, 0, 3, 2, -1, -1, -1, -1, 0, 0, 2, 0});
  check_refused({"--experts", ids, "--axes", "TLK"}, "--expert-count: missing");
  check_refused({"--experts", ids, "--expert-count", "5"}, "TLK (tokens, layers, choices)");
  const Json answer = answer_of({"--experts", ids, "--axes", "TLK", "--expert-count", "5"});
  CHECK(answer.at("settings").at("without_router") == Json::array({0}));
  CHECK(layer_of(answer, 1).at("experts").at("load") == Json({1.0 / 6, 1.0 / 6, 3.0 / 6, 1.0 / 6, 0.0}));
  CHECK(metric_of(answer, 1, "tokens") == 3);
  CHECK(tells(answer, "1 of 4 rows are -1 in every layer"));
  CHECK_FALSE(layer_of(answer, 1).at("metrics").contains("dead_experts_top1"));
  CHECK(contains(layer_of(answer, 1).at("skipped").at("dead_experts_top1").get<std::string>(), "--by-score"));
  const Json ordered = answer_of({"--experts", ids, "--axes", "TLK", "--expert-count", "5", "--by-score"});
  CHECK(layer_of(ordered, 1).at("experts").at("top1_load") == Json({0.0, 0.0, 2.0 / 3, 1.0 / 3, 0.0}));
  check_refused({"--experts", ids, "--axes", "TLK", "--expert-count", "3"}, "holds 3 in row 1, column 0");
  check_refused({"--experts", dumps.whole("twice", {2, 2}, {1, 1, 0, 1}), "--expert-count", "3"},
                "names an expert twice in 1 of 2 rows");
  check_refused({"--experts", dumps.whole("zeros", {2, 2}, {0, 0, 0, 0}), "--expert-count", "3"},
                "not recorded");
  check_refused({"--experts", ids, "--axes", "TLK", "--expert-count", "5", "--top-k", "1"},
                "--top-k: says 1");
  check_refused({"--experts", dumps.reals("half", {2, 1}, {0.5, 1}), "--expert-count", "3"}, "whole numbers");
  // Integral floats are ids; earlier assignments follow the same rules.
  const Json real = answer_of({"--experts", dumps.reals("real", {3, 1}, {0, 2, 2}), "--expert-count", "3"});
  CHECK(real.at("metrics").at("expert_load_max_violation") == 1);
  const std::string probs = dumps.reals("P", {2, 3}, {0.5, 0.3, 0.2, 0.1, 0.2, 0.7});
  check_refused({"--probs", probs, "--top-k", "2", "--previous-assignments", dumps.path("twice.npy")},
                "names an expert twice");
}

TEST_CASE("analyze: arrays of the other byte order and ids of uint64 are read as they are") {
  const Dumps dumps;
  const auto as_type = [&](const std::string& bytes, const std::string& from, const std::string& to) {
    std::string other = bytes;
    other.replace(other.find(from), from.size(), to);
    const std::size_t begin = other.find('\n') + 1;
    for (std::size_t at = begin; to.front() == '>' && at < other.size(); at += 8)
      std::reverse(&other[at], &other[at] + 8);
    return other;
  };
  const std::vector<double> values = logits_of({{0, 1}, {2, 0}, {1, 2}}, 3);
  const std::string logits = npy_bytes({3, 3}, std::span<const double>(values));
  const Json plain = answer_of({"--logits", dumps.write("little.npy", logits), "--top-k", "2"});
  const Json turned =
      answer_of({"--logits", dumps.write("big.npy", as_type(logits, "<f8", ">f8")), "--top-k", "2"});
  CHECK(turned.at("metrics") == plain.at("metrics"));
  // The largest uint64 is −1, no expert.
  const std::vector<std::int64_t> ids = {0, 2, 1, 3, 3, -1};
  const std::string bytes = npy_bytes({3, 2}, std::span<const std::int64_t>(ids));
  const std::vector<std::string> options = {"--expert-count", "4", "--by-score"};
  const auto measured = [&](const std::string& type) {
    std::vector<std::string> words = {"--experts", dumps.write("ids.npy", as_type(bytes, "<i8", type))};
    words.insert(words.end(), options.begin(), options.end());
    return answer_of(words).at("layers");
  };
  CHECK(measured("<i8").at(0).at("experts").at("load") == Json({0.2, 0.2, 0.2, 0.4}));
  for (const char* const type : {"<u8", ">u8", ">i8"}) CHECK(measured(type) == measured("<i8"));
}

TEST_CASE("analyze: a stack is measured alike wherever its layers stand, on one thread and on several") {
  const Dumps dumps;
  std::vector<double> values, other;
  for (int i = 0; i < 3 * 50 * 5; ++i) values.push_back(std::sin(1.7 * i) + 0.3 * std::cos(0.01 * i * i));
  for (int token = 0; token < 50; ++token) {
    for (int layer = 0; layer < 3; ++layer) {
      for (int e = 0; e < 5; ++e)
        other.push_back(values[static_cast<std::size_t>((layer * 50 + token) * 5 + e)]);
    }
  }
  const Json by_layer =
      answer_of({"--logits", dumps.reals("LTE", {3, 50, 5}, values), "--axes", "LTE", "--top-k", "2"});
  const std::string by_token = dumps.reals("TLE", {50, 3, 5}, other);
  for (const char* const threads : {"1", "2", "3"}) {
    const Json answer =
        answer_of({"--logits", by_token, "--axes", "TLE", "--top-k", "2", "--threads", threads});
    for (const char* const part : {"layers", "means", "matrices", "checks"})
      CHECK(answer.at(part) == by_layer.at(part));
  }
  CHECK(by_layer.at("layers").at(0).at("metrics") != by_layer.at("layers").at(1).at("metrics"));
}

TEST_CASE("analyze: with --top-k an expert that is always second is alive") {
  const Dumps dumps;
  std::vector<std::vector<int>> rows;
  for (int row = 0; row < 40; ++row) rows.push_back({row % 2, 2});
  const std::string file = dumps.reals("L", {40, 3}, logits_of(rows, 3));
  const Json two = answer_of({"--logits", file, "--top-k", "2"});
  CHECK(two.at("metrics").at("dead_experts") == 0);
  CHECK(metric_of(two, 0, "dead_experts_top1") == doctest::Approx(1.0 / 3));
  CHECK(answer_of({"--logits", file}).at("metrics").at("dead_experts") == doctest::Approx(1.0 / 3));
}

TEST_CASE("analyze: sigmoid scores with a bias, within groups") {
  const Dumps dumps;
  // Two groups of two. Row 0: the bias lifts expert 2 above 0, but group {0, 1} is the best one.
  const std::vector<double> logits = {1.0, 0.5, 0.9, -4, -1, -2, 0.3, 0.2};
  const auto sigmoid = [](double z) { return 1 / (1 + std::exp(-z)); };
  const std::string file = dumps.reals("L", {2, 4}, logits), bias = dumps.reals("b", {4}, {0, 0, 0.1, 0});
  const std::vector<std::string> words = {"--logits", file, "--score",          "sigmoid",
                                          "--top-k",  "1",  "--selection-bias", bias};
  const Json biased = answer_of(words);
  CHECK(layer_of(biased, 0).at("experts").at("load") == Json({0.0, 0.0, 1.0, 0.0}));
  CHECK(metric_of(biased, 0, "rows_where_scores_alone_select_others") == 0.5);
  CHECK(metric_of(biased, 0, "selected_mass") ==
        doctest::Approx((sigmoid(0.9) / (sigmoid(1) + sigmoid(0.5) + sigmoid(0.9) + sigmoid(-4)) +
                         sigmoid(0.3) / (sigmoid(-1) + sigmoid(-2) + sigmoid(0.3) + sigmoid(0.2))) /
                        2));
  std::vector<std::string> grouped = words;
  grouped.insert(grouped.end(), {"--groups", "2:1"});
  CHECK(layer_of(answer_of(grouped), 0).at("experts").at("load") == Json({0.5, 0.0, 0.5, 0.0}));
  check_refused({"--logits", file, "--score", "sigmoid", "--top-k", "1"}, "--selection-bias: missing");
  CHECK(
      layer_of(
          answer_of({"--logits", file, "--score", "sigmoid", "--top-k", "1", "--selection-bias", "none"}), 0)
          .at("experts")
          .at("load") == Json({0.5, 0.0, 0.5, 0.0}));
  check_refused({"--logits", file, "--groups", "3:1"}, "3 groups do not divide 4 experts");
}

TEST_CASE("analyze: a label of each document belongs to its id, in whatever order the documents come") {
  const Dumps dumps;
  // Documents 2, 0, 1 of two tokens each; document 2 is of domain 1 alone and goes to expert 1.
  const std::string file = dumps.reals("L", {6, 2}, logits_of({{1}, {1}, {0}, {0}, {0}, {0}}, 2)),
                    ids = dumps.whole("doc", {6}, {2, 2, 0, 0, 1, 1}),
                    labels = dumps.whole("dom", {3}, {0, 0, 1});
  const Json answer = answer_of({"--logits", file, "--top-k", "1", "--documents", ids, "--labels", labels});
  CHECK(metric_of(answer, 0, "top1_cluster_nmi") == doctest::Approx(1));
  check_refused({"--logits", file, "--top-k", "1", "--documents", dumps.whole("far", {6}, {7, 7, 0, 0, 1, 1}),
                 "--labels", labels},
                "needs ids from 0 to 2");
  // Two batches that number their documents alike.
  const std::string other = dumps.reals("M", {2, 2}, logits_of({{0}, {1}}, 2)),
                    own = dumps.whole("own", {2}, {2, 3});
  CHECK(tells(answer_of({"--logits", file, other, "--top-k", "1", "--documents", ids, own}),
              "1 of the 4 documents occur in several batches"));
}

TEST_CASE("analyze: biases belong to the layers of the file, or to all layers of the model") {
  const Dumps dumps;
  const Json config = {{"model_type", "deepseek_v3"},
                       {"num_hidden_layers", 3},
                       {"n_routed_experts", 2},
                       {"num_experts_per_tok", 1},
                       {"first_k_dense_replace", 1}};
  const std::string model = dumps.write("config.json", config.dump());
  const std::vector<double> even = {0, 0};
  const std::string file = dumps.write("z.safetensors", tensors({{"router_logits.0", "F32", {1, 2}, even},
                                                                 {"router_logits.1", "F32", {1, 2}, even}}));
  const auto loads = [&](const std::string& bias) {
    const Json answer = answer_of({"--logits", file, "--model", model, "--selection-bias", bias});
    return std::pair(layer_of(answer, 1).at("experts").at("load"),
                     layer_of(answer, 2).at("experts").at("load"));
  };
  const std::pair<Json, Json> apart(Json({0.0, 1.0}), Json({1.0, 0.0}));
  // Layer 1 prefers expert 1, and layer 2 expert 0.
  CHECK(loads(dumps.reals("of_file", {2, 2}, {0, 1, 1, 0})) == apart);
  CHECK(loads(dumps.reals("of_model", {3, 2}, {0, 0, 0, 1, 1, 0})) == apart);
  const Tensor one{"", "F32", {2}, {0, 1}}, two{"", "F32", {2}, {1, 0}};
  const auto named = [&](const std::string& name, const std::string& first, const std::string& second) {
    Tensor a = one, b = two;
    a.name = first;
    b.name = second;
    return dumps.write(name, tensors({a, b}));
  };
  CHECK(loads(named("entries.safetensors", "bias.0", "bias.1") + ":bias") == apart);
  CHECK(loads(named("layers.safetensors", "bias.1", "bias.2") + ":bias") == apart);
  check_refused({"--logits", file, "--model", model, "--selection-bias",
                 dumps.reals("of_none", {4, 2}, std::vector<double>(8, 0))},
                "needs a row for each of 2 layers, or for each of the 3 layers of --model");
  // One layer takes its own row of the model's table, if its number is known.
  const std::string single = dumps.reals("single", {1, 2}, even), table = dumps.path("of_model.npy");
  const Json second =
      answer_of({"--logits", single, "--model", model, "--selection-bias", table, "--layers", "2"});
  CHECK(layer_of(second, 2).at("experts").at("load") == apart.second);
  check_refused({"--logits", single, "--model", model, "--selection-bias", table},
                "--layers to tell which layer of --model it is of");
  check_refused({"--logits", single, "--top-k", "1", "--score", "sigmoid", "--selection-bias", table},
                "needs a row for each of 1 layer");
  // A layer that has no router by --model is asked about.
  CHECK(tells(answer_of({"--logits", single, "--model", model, "--selection-bias", table, "--layers", "0"}),
              "layer 0 has values here, and no router by --model"));
  check_refused({"--logits", file, "--model", model, "--selection-bias", dumps.path("of_file.npy"),
                 "--previous-logits", file},
                "the earlier bias is not known");
}

TEST_CASE("analyze: a file for each layer is no batch, and what is assumed is said") {
  const Dumps dumps;
  const Json config = {{"model_type", "unheard_of"}, {"num_hidden_layers", 2}, {"num_experts", 2}};
  const std::string model = dumps.write("config.json", config.dump()),
                    one = dumps.reals("a", {2, 2}, logits_of({{0}, {1}}, 2)),
                    two = dumps.reals("b", {2, 2}, logits_of({{1}, {1}}, 2));
  check_refused({"--logits", one, two, "--model", model, "--top-k", "1"}, "a file for each layer?");
  const Json batches = answer_of({"--logits", one, two, "--model", model, "--top-k", "1", "--layers", "1"});
  CHECK(metric_of(batches, 1, "tokens") == 4);
  CHECK(tells(batches, "2 files are batches of one layer"));
  CHECK(tells(batches, "the model type 'unheard_of' of --model is not known"));
  CHECK(tells(answer_of({"--logits", one}), "K = 1 is assumed"));
  // Gates that are scaled, as DeepSeek's, are no logits.
  std::vector<double> scaled;
  for (int row = 0; row < 20; ++row) {
    std::vector<double> own(4, 0);
    own[static_cast<std::size_t>(row % 4)] = 1.5;
    own[static_cast<std::size_t>((row + 1) % 4)] = 1.0;
    scaled.insert(scaled.end(), own.begin(), own.end());
  }
  const Json gates = answer_of({"--logits", dumps.reals("g", {20, 4}, scaled), "--top-k", "2"});
  CHECK(tells(gates, "holds gates"));
  CHECK_FALSE(layer_of(gates, 0).at("metrics").contains("routing_entropy"));
  // A buffer of zeros that no router filled.
  const std::string zeros = dumps.reals("z", {2, 2, 2}, {0, 0, 0, 0, 2, -2, 1, -1});
  const Json filled = answer_of({"--logits", zeros, "--axes", "LTE", "--top-k", "1"});
  CHECK(filled.at("settings").at("without_router") == Json::array({0}));
}

TEST_CASE("analyze: configurations without a selection bias, up to the last layer, and names of blocks") {
  const Dumps dumps;
  const std::string logits = dumps.reals("l", {4, 2}, logits_of({{0}, {1}, {1}, {0}}, 2));
  const auto model = [&](const Json& more) {
    Json config = {{"model_type", "llama4_text"}, {"num_hidden_layers", 1}, {"num_local_experts", 2}};
    config.update(more);
    return dumps.write("config.json", config.dump());
  };
  CHECK(tells(answer_of({"--logits", logits, "--model", model(Json::object())}), "scores are the sigmoid"));
  check_refused({"--logits", logits, "--top-k", "1", "--model", model({{"model_type", "deepseek_v3"}})},
                "--selection-bias");
  const Json within = {{"model_type", "llama4"},
                       {"text_config", {{"num_hidden_layers", 1}, {"num_local_experts", 2}}}};
  CHECK(tells(answer_of({"--logits", logits, "--model", dumps.write("w.json", within.dump())}),
              "scores are the sigmoid"));
  const Json to_the_last = {{"model_type", "ernie4_5_moe"}, {"moe_layer_end_index", -1}};
  CHECK(metric_of(answer_of({"--logits", logits, "--model", model(to_the_last), "--top-k", "1",
                             "--selection-bias", "none"}),
                  0, "tokens") == 4);
  // Names of the blocks of Switch: the second number is a place in the block, no part of an entry.
  std::vector<Tensor> hooks;
  for (const char* const block : {"1", "3"})
    hooks.push_back({fmt::format("encoder.block.{}.layer.1.mlp.router", block),
                     "F32",
                     {4, 2},
                     logits_of({{0}, {1}, {1}, {0}}, 2)});
  const Json blocks =
      answer_of({"--logits", dumps.write("h.safetensors", tensors(hooks)) + ":mlp.router", "--top-k", "1"});
  CHECK(metric_of(blocks, 3, "tokens") == 4);
}

TEST_CASE("analyze: of one layer of sets, all that is measured is the answer") {
  const Dumps dumps;
  const std::string ids = dumps.whole("ids", {4, 2}, {0, 1, 1, 2, 2, 0, 0, 2}),
                    labels = dumps.whole("labels", {4}, {0, 1, 1, 0});
  const Json answer =
      answer_of({"--experts", ids, "--expert-count", "3", "--by-score", "--labels", labels, "--top-k", "2"});
  CHECK(answer.at("metrics") == layer_of(answer, 0).at("metrics"));
  for (const char* const name : {"top1_cluster_purity", "topk_cluster_purity", "load_entropy"}) {
    CHECK_MESSAGE(answer.at("metrics").contains(name), name);
    CHECK_MESSAGE(!answer.at("skipped").contains(name), name);
  }
}

TEST_CASE("analyze: tokens that a full expert dropped are no tokens of expert 0") {
  const Dumps dumps;
  // One sequence, two tokens an expert: tokens 2 and 5 are dropped, and so is 7, which wanted expert 0.
  const std::vector<std::vector<int>> rows = {{1}, {1}, {1}, {2}, {2}, {2}, {0}, {0}, {0}};
  std::vector<std::vector<int>> order = rows;
  const std::string file =
      dumps.write("d.safetensors", tensors({{"router_probs.0.0", "I64", {1}, {0}},
                                            {"router_probs.1.0", "F32", {1, 9, 3}, logits_of(order, 3)},
                                            {"router_probs.1.1", "I64", {1, 9}, {1, 1, 0, 2, 2, 0, 0, 0, 0}},
                                            {"attention_mask", "I64", {1, 9}, std::vector<double>(9, 1)}}));
  const Json answer = answer_of({"--logits", file + ":router_probs", "--mask", file + ":attention_mask",
                                 "--top-k", "1", "--axes", "BSE"});
  CHECK(answer.at("settings").at("without_router") == Json::array({0}));
  CHECK(layer_of(answer, 1).at("experts").at("load") == Json({2.0 / 6, 2.0 / 6, 2.0 / 6}));
  CHECK(metric_of(answer, 1, "unserved_share") == doctest::Approx(3.0 / 9));
  CHECK(tells(answer, "serve 2 tokens of a sequence"));
}

TEST_CASE("analyze: counts alone, with empty steps, or as a table") {
  const Dumps dumps;
  const std::string counts = dumps.whole("n", {2, 2, 3}, {4, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  check_refused({"--counts", counts}, "NLE (steps, layers, experts)");
  const Json answer = answer_of({"--counts", counts, "--axes", "NLE", "--top-k", "2"});
  CHECK(answer.at("layers").size() == 1);
  CHECK(metric_of(answer, 0, "expert_load_max_violation") == 1);
  CHECK(layer_of(answer, 0).at("experts").at("activation_rate")[0].get<double>() == doctest::Approx(4.0 / 3));
  CHECK(tells(answer, "1 of 2 steps are empty"));
  CHECK(answer.at("metrics").at("dead_experts") == answer.at("metrics").at("dead_experts_topk"));
  const std::string table = dumps.write("n.csv", "layer_id,expert_id,count\n3,0,4\n3,2,2\n");
  check_refused({"--counts", table}, "--expert-count: missing");
  CHECK(layer_of(answer_of({"--counts", table, "--expert-count", "4"}), 3).at("experts").at("load") ==
        Json({4.0 / 6, 0.0, 2.0 / 6, 0.0}));
  const std::string choices = dumps.write("t.csv", "layer,expert\n1,0\n1,2\n1,0\n");
  const Json loads = answer_of({"--experts", choices, "--expert-count", "3"});
  CHECK(metric_of(loads, 1, "selections") == 3);
  CHECK(tells(loads, "loads alone"));
}

TEST_CASE("analyze: lines of a server: the last token is not routed, names are labels, lines are documents") {
  const Dumps dumps;
  std::string lines;
  for (int document = 0; document < 8; ++document) {
    const Json ids = document % 2 ? Json({{{0, 0}, {1, 2}}, {{0, 0}, {1, 3}}})
                                  : Json({{{0, 0}, {3, 0}}, {{0, 0}, {3, 2}}});
    lines +=
        Json({{"domain", document % 2 ? "law" : "code"}, {"token_ids", {4, 5, 6}}, {"routed_experts", ids}})
            .dump() +
        "\n";
  }
  const std::string file = dumps.write("d.jsonl", lines);
  const Json answer = answer_of({"--experts", file, "--expert-count", "4", "--by-score", "--labels",
                                 file + ":domain", "--tokens", file + ":token_ids"});
  CHECK(answer.at("settings").at("documents") == 8);
  CHECK(metric_of(answer, 1, "top1_cluster_purity") == 1);
  CHECK(metric_of(answer, 1, "repeat_first") == 1);
  CHECK(layer_of(answer, 1).at("matrices").at("domain").at("rows") == Json({"code", "law"}));
  CHECK(layer_of(answer, 1).at("matrices").at("domain").at("values")[1] == Json({0.0, 1.0, 0.5, 0.5}));
  CHECK(layer_of(answer, 1).at("intervals").contains("expert_load_max_violation"));
  CHECK(layer_of(answer, 1).at("chance").at("top1_cluster_purity").get<double>() < 1);
  CHECK(tells(answer, "rows belong to the first T - 1"));
  CHECK(tells(answer, "axes are TLK"));
}

TEST_CASE(
    "analyze: several files are batches; equal ones are refused; two snapshots compare the same tokens") {
  const Dumps dumps;
  const auto batch = [&](const std::string& name, const std::vector<std::vector<int>>& rows,
                         double first_token) {
    return dumps.write(name, tensors({{"router_logits.0", "F32", {2, 3}, logits_of(rows, 3)},
                                      {"router_logits.1", "F32", {2, 3}, logits_of({{0}, {0}}, 3)},
                                      {"input_ids", "I64", {1, 2}, {first_token, 2}}}));
  };
  const std::string one = batch("a.safetensors", {{0, 1}, {1, 2}}, 1),
                    two = batch("b.safetensors", {{2, 1}, {2, 0}}, 1);
  const Json both = answer_of({"--logits", one, two, "--top-k", "1"});
  CHECK(metric_of(both, 0, "tokens") == 4);
  CHECK(layer_of(both, 0).at("experts").at("load") == Json({0.25, 0.25, 0.5}));
  CHECK(tells(both, "entry 0 need not be layer 0"));
  check_refused({"--logits", one, one, "--top-k", "1"}, "needs --ranks first");
  CHECK(metric_of(answer_of({"--logits", one, one, "--top-k", "1", "--ranks", "first"}), 0, "tokens") == 2);
  const std::vector<std::string> words = {
      "--logits", one, "--top-k", "1", "--tokens", one + ":input_ids", "--previous-logits"};
  std::vector<std::string> same = words, other = words;
  same.push_back(two);
  other.push_back(batch("c.safetensors", {{2, 1}, {2, 0}}, 7));
  const Json change = answer_of(same);
  CHECK(metric_of(change, 0, "routing_fluctuation") == 1);
  CHECK(metric_of(change, 1, "routing_fluctuation") == 0);
  CHECK(change.at("metrics").at("any_layer_mismatch") == 1);
  check_refused(other, "holds other tokens than --tokens");
}

TEST_CASE("analyze: ties bound the loads; one expert is said to be one; a pickle is not loaded") {
  const Dumps dumps;
  const Json tied =
      answer_of({"--logits", dumps.reals("T", {3, 3}, {1, 1, 0, 2, 1, 0, 0, 0, 0}), "--top-k", "1"});
  CHECK(metric_of(tied, 0, "tied_rows") == 2);
  CHECK(layer_of(tied, 0).at("experts").at("least_tokens") == Json({1.0, 0.0, 0.0}));
  CHECK(layer_of(tied, 0).at("experts").at("most_tokens") == Json({3.0, 2.0, 1.0}));
  CHECK(tells(tied, "1 of 3 rows are uniform"));
  const Answer one = analyze({"--logits", dumps.reals("one", {3, 1}, {1, 2, 3})});
  CHECK(one.status == 0);
  CHECK(contains(one.out, "one expert"));
  CHECK_FALSE(contains(one.out, "nan"));
  check_refused({"--logits", dumps.write("a.pt", std::string("\x80\x02}q", 4))}, "never loaded");
}

TEST_CASE("analyze: what another kind of number looks like is refused with the way out") {
  const Dumps dumps;
  std::vector<double> logits, soft, ids;
  for (int row = 0; row < 20; ++row) {
    logits.insert(logits.end(), {0.1 * row, -1.0, 2.0, 0.5});
    soft.insert(soft.end(), {0.5, 0.125, 0.25, 0.125});
    ids.insert(ids.end(), {static_cast<double>(row % 5), 5.0});
  }
  const std::string one = dumps.reals("one", {20, 4}, logits), r = dumps.reals("r", {20, 4}, soft);
  check_refused({"--gates", one}, "holds finite numbers below 0: logits?");
  check_refused({"--gates", r}, "has no zero in any row: probabilities?");
  check_refused({"--scores", r, "--selection-bias", "none", "--top-k", "2"}, "sums to 1 in every row");
  check_refused({"--logits", dumps.reals("ids", {20, 2}, ids)}, "ids of experts? Use --experts");
  check_refused({"--logits", one, "--layers", "1-1000000000"}, "at most 4096 layers");
  check_refused({"--logits", one, "--layers", "3,3"}, "names layer 3 twice");
  check_refused({"--logits", one, "--axes", "TK"}, "got 'TK'");
  std::vector<double> padded = soft;
  std::fill_n(padded.begin(), 8, 0.0);
  const std::string zeros = dumps.reals("zeros", {20, 4}, padded);
  for (const char* const option : {"--logits", "--probs", "--scores"})
    check_refused({option, zeros, "--selection-bias", "none", "--top-k", "2"},
                  "2 of 20 rows of zeros, and the others sum to 1: probabilities with padding?");
  // Logits within the best group are over its experts, and labels may be too many.
  std::vector<double> grouped;
  std::vector<std::int64_t> labels;
  for (int row = 0; row < 20; ++row) {
    for (int e = 0; e < 4; ++e) grouped.push_back(e / 2 == row % 2 ? 0.3 * e : -INFINITY);
  }
  const Json within = answer_of({"--logits", dumps.reals("within", {20, 4}, grouped), "--top-k", "1"});
  CHECK(tells(within, "logits of 2 of 4 experts in each row, -inf elsewhere; r is over these"));
  std::vector<double> many;
  for (int row = 0; row < 5000; ++row) {
    labels.push_back(row);
    many.insert(many.end(), {0.1, row % 2 - 0.5});
  }
  const Json labelled = answer_of({"--logits", dumps.reals("many", {5000, 2}, many), "--top-k", "1",
                                   "--labels", dumps.whole("labels", {5000}, labels)});
  CHECK(layer_of(labelled, 0).at("skipped").at("topk_cluster_purity") ==
        "is measured for at most 4096 labels");
  const std::string counts = dumps.whole("counts", {2, 4}, {9, 1, 1, 1, 3, 3, 3, 3});
  CHECK(tells(answer_of({"--counts", counts, "--top-k", "2"}), "A token chooses an expert once"));
  CHECK_FALSE(tells(answer_of({"--counts", counts, "--top-k", "1"}), "A token chooses an expert once"));
  check_refused({"--counts", dumps.whole("turned", {4, 2}, {9, 3, 1, 3, 1, 3, 1, 3})}, "--axes");
  // All layers of one expert have K = 1.
  const std::string single = dumps.reals("single", {2, 3, 1}, {1, 2, 3, 4, 5, 6});
  CHECK(tells(answer_of({"--logits", single, "--axes", "LTE"}), "one expert"));
}

TEST_CASE("analyze: a mask that is turned or inverted is refused") {
  const Dumps dumps;
  std::vector<std::vector<int>> rows;
  for (int row = 0; row < 6; ++row) rows.push_back({row % 3});
  const std::string logits = dumps.reals("L", {6, 3}, logits_of(rows, 3));
  const auto with_mask = [&](const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& mask) {
    return std::vector<std::string>{"--logits", logits, "--mask", dumps.whole("mask", shape, mask)};
  };
  // Two sequences, the first full.
  CHECK(metric_of(answer_of(with_mask({2, 3}, {1, 1, 1, 1, 0, 0})), 0, "tokens") == 4);
  check_refused(with_mask({2, 3}, {0, 0, 0, 0, 1, 1}), "is it the other way round?");
  std::vector<std::string> words = with_mask({2, 3}, {1, 1, 1, 1, 1, 0});
  words.insert(words.end(), {"--tokens", dumps.whole("turned", {3, 2}, {1, 2, 3, 4, 5, 0})});
  check_refused(words, "needs the same order of sequences and positions");
  // Rows that go by position first: the shapes tell the orders.
  words.insert(words.end(), {"--axes", "SBE"});
  CHECK(metric_of(answer_of(words), 0, "tokens") == 5);
}

TEST_CASE("analyze: sums of a dump's probabilities that are off by rounding are divided out") {
  const Dumps dumps;
  const std::string r = dumps.reals("r", {2, 2, 2}, {0.7502, 0.25, 0.2501, 0.75, 0.5, 0.5001, 0.9, 0.1001});
  const Json answer = answer_of({"--probs", r, "--axes", "LTE", "--top-k", "1"});
  const Json& mean = layer_of(answer, 0).at("experts").at("mean_routing");
  CHECK(mean[0].get<double>() + mean[1].get<double>() == doctest::Approx(1).epsilon(kRounding));
}

TEST_CASE("analyze: change between two snapshots has intervals over their documents") {
  const Dumps dumps;
  std::vector<std::vector<int>> now, before;
  std::vector<std::int64_t> documents;
  for (int row = 0; row < 40; ++row) {
    now.push_back({row % 4});
    before.push_back({row % 5 == 0 ? (row + 1) % 4 : row % 4});
    documents.push_back(row / 5);
  }
  const Json answer = answer_of({"--logits", dumps.reals("now", {40, 4}, logits_of(now, 4)), "--top-k", "1",
                                 "--previous-logits", dumps.reals("before", {40, 4}, logits_of(before, 4)),
                                 "--documents", dumps.whole("documents", {40}, documents)});
  CHECK(metric_of(answer, 0, "routing_saturation") == doctest::Approx(0.8));
  const Json& layer = layer_of(answer, 0);
  // One token of five changes in every document, so no draw of documents differs.
  CHECK(layer.at("intervals").at("routing_saturation")[0].get<double>() == doctest::Approx(0.8));
  CHECK(layer.at("intervals").at("routing_saturation")[1].get<double>() == doctest::Approx(0.8));
  CHECK(metric_of(answer, 0, "load_drift") == doctest::Approx(0));
  CHECK(layer.at("intervals").at("load_drift")[1].get<double>() > 0);
  CHECK(metric_of(answer, 0, "max_violation_change") == doctest::Approx(0));
}

TEST_CASE("analyze: claims on two routers are paired over their documents") {
  const Dumps dumps;
  // Every document goes to two experts of four here, and to one there.
  std::vector<std::vector<int>> even, collapsed;
  std::vector<std::int64_t> lengths;
  for (int document = 0; document < 6; ++document) {
    for (int position = 0; position < 6 + document; ++position) {
      even.push_back({(document + position) % 2});
      collapsed.push_back({document % 4});
    }
    lengths.push_back(6 + document);
  }
  const auto rows = static_cast<std::int64_t>(even.size());
  const std::string documents = dumps.whole("lengths", {6}, lengths);
  const auto words = [&](const std::string& name, const std::vector<std::vector<int>>& to) {
    return std::vector<std::string>{
        "--logits", dumps.reals(name, {rows, 4}, logits_of(to, 4)), "--top-k", "1", "--lengths", documents};
  };
  std::vector<std::string> first = words("collapsed", collapsed), second = words("even", even);
  first.insert(first.end(), {"--out", dumps.path("there")});
  answer_of(first);
  second.insert(second.end(), {"--against", dumps.path("there/analysis.json"), "--claim"});
  std::vector<std::string> right = second, unknown = second, op = second;
  right.insert(right.end(), {"expert_load_max_violation <", "expert_load_max_violation >"});
  const Json claims = answer_of(right).at("claims");
  CHECK(claims.at(0).at("verdict") == "reproduced");
  CHECK(claims.at(1).at("verdict") == "refuted");
  CHECK(claims.at(0).at("points").at(0).at("pairs") == 6);
  CHECK(claims.at(0).at("points").at(0).at("right") == 3);
  unknown.emplace_back("routing_entropi <");
  check_refused(unknown, "did you mean 'routing_entropy'?");
  op.emplace_back("routing_entropy =");
  check_refused(op, "needs a metric and < or >");
  std::vector<std::string> words_between = second;
  words_between.emplace_back("routing_entropy blah <");
  check_refused(words_between, "got 'routing_entropy blah <', needs a metric and < or >");
  Json damaged = read_json_file(dumps.path("there/analysis.json"));
  Json& values = damaged.at("layers").at(0).at("documents");
  for (const char* const change : {"fewer values", "no tokens"}) {
    if (std::string_view(change) == "no tokens")
      values.erase("tokens");
    else
      values.at("expert_load_max_violation").erase(5);
    std::vector<std::string> against = words("even", even);
    against.insert(against.end(), {"--against", dumps.write("damaged.json", damaged.dump()), "--claim",
                                   "expert_load_max_violation <"});
    check_refused(against, "is no analysis.json of `analyze --out`");
  }
  std::vector<std::string> without = words("collapsed", collapsed);
  without.insert(without.end(), {"--claim", "routing_entropy <"});
  check_refused(without, "--against and --claim go together");
  lengths = {7, 5, 8, 9, 10, rows - 39};
  std::vector<std::string> other = {
      "--logits", dumps.path("even.npy"), "--top-k", "1", "--lengths", dumps.whole("others", {6}, lengths)};
  other.insert(other.end(), {"--against", dumps.path("there/analysis.json"), "--claim", "routing_entropy <"});
  check_refused(other, "documents of other lengths");
}

TEST_CASE("analyze: JSON lines of whole numbers, then of fractions, and lines in messages") {
  const Dumps dumps;
  const Json first = answer_of(
      {"--probs", dumps.write("p.jsonl", "{\"probs\": [[1, 0]]}\n{\"probs\": [[0.5, 0.5]]}\n") + ":probs"});
  const Json last = answer_of(
      {"--probs", dumps.write("q.jsonl", "{\"probs\": [[0.5, 0.5]]}\n{\"probs\": [[1, 0]]}\n") + ":probs"});
  CHECK(metric_of(first, 0, "routing_entropy") == metric_of(last, 0, "routing_entropy"));
  check_refused(
      {"--probs", dumps.write("blank.jsonl", "{\"probs\": [[1, 0]]}\n\n{\"other\": 1}\n") + ":probs"},
      "line 3: has no 'probs'");
}

TEST_CASE("analyze: tables have quotes, a byte-order mark and distinct names") {
  const Dumps dumps;
  const std::string logits = dumps.reals("L", {4, 2}, {2, 0, 0, 2, 2, 0, 0, 2});
  const Json answer = answer_of(
      {"--logits", logits, "--labels",
       dumps.write(
           "labels.csv",
           "\xef\xbb\xbflabel,note\r\n\"a, \"\"b\"\"\",x\r\nc, x \r\n\r\n\"a, \"\"b\"\"\",x\r\nc,x\r\n") +
           ":label"});
  CHECK(layer_of(answer, 0).at("matrices").at("domain").at("rows") == Json({"a, \"b\"", "c"}));
  check_refused({"--logits", logits, "--labels", dumps.write("twice.csv", "label,label\na,b\n") + ":label"},
                "line 1: has the column 'label' twice");
  check_refused({"--logits", logits, "--labels", dumps.write("short.csv", "label,n\n\n\"a\nb\",1\nc\n")},
                "line 5: has 1 fields, and the header has 2");
  check_refused({"--logits", logits, "--labels", dumps.write("open.csv", "label\n\"a\nb\n")},
                "line 2: has a quote that is not closed");
}

TEST_CASE("analyze: a folder that cannot be written is refused before the work") {
  const Dumps dumps;
  const std::string file = dumps.write("file", "in the way");
  // The arrays do not exist: the folder is looked at first.
  check_refused({"--logits", dumps.path("nowhere.npy"), "--out", file}, "is not a folder");
  const std::string folder = dumps.path("out");
  std::filesystem::create_directory(folder);
  dumps.write("out/figures", "in the way");
  check_refused({"--logits", dumps.path("nowhere.npy"), "--out", folder, "--figures"}, "is not a folder");
}

TEST_CASE("analyze: tables have every metric that some layer has") {
  const auto layer_of_one = [](int number, const std::string& metric) {
    LayerAnalysis layer;
    layer.layer = number;
    layer.metrics[metric] = 0.5;
    layer.experts = {{"load", {0.5, 0.5}}, {"activation_rate", {1.0, 1.0}}};
    layer.documents = {{"document", {0, 1}}, {"tokens", {3, 4}}, {metric, {0.25, 0.75}}};
    return layer;
  };
  ArrayAnalysis analysis;
  analysis.settings = {{"experts", 2}, {"rows", 7}};
  analysis.layers = {layer_of_one(0, "first_metric"), layer_of_one(1, "second_metric"), LayerAnalysis{}};
  analysis.layers[2].layer = 2;
  analysis.layers[2].experts = analysis.layers[0].experts;
  const TemporaryFolder folder;
  write_analysis(analysis, folder.path(), false);
  std::ifstream table(folder.path() / "documents.csv");
  const std::string text((std::istreambuf_iterator<char>(table)), std::istreambuf_iterator<char>());
  CHECK(text ==
        "layer,document,tokens,first_metric,second_metric\n0,0,3,0.25,\n0,1,4,0.75,\n1,0,3,,0.25\n1,1,4,,0."
        "75\n");
}

TEST_CASE("analyze: a header of .safetensors whose length looks like a pickle is read") {
  const Dumps dumps;
  std::string bytes = tensors({{"router_logits.0", "F32", {2, 3}, {1, 2, 0, 0, 1, 2}}});
  // The header is padded with spaces to 0x0480 bytes: \x80\x04 begins a pickle, too.
  constexpr std::size_t kLength = 0x480;
  const std::size_t length = static_cast<unsigned char>(bytes[0]);
  REQUIRE(bytes[1] == 0);
  bytes.insert(8 + length, kLength - length, ' ');
  bytes[0] = '\x80';
  bytes[1] = '\x04';
  CHECK(metric_of(answer_of({"--logits", dumps.write("padded.safetensors", bytes)}), 0, "tokens") == 2);
}

TEST_CASE("analyze: names of .npz files are labels, in either byte order") {
  const Dumps dumps;
  for (const bool is_big : {false, true}) {
    std::string names = npy_header(is_big ? ">U1" : "<U1", {4});
    for (const char name : {'b', 'a', 'b', 'a'})
      names += is_big ? std::string{0, 0, 0, name} : std::string{name, 0, 0, 0};
    const std::string file = dumps.write("labels.npz", npz_bytes({{"domain", names}}));
    const Json answer = answer_of(
        {"--logits", dumps.reals("L", {4, 2}, {2, 0, 0, 2, 2, 0, 0, 2}), "--labels", file + ":domain"});
    CHECK(layer_of(answer, 0).at("matrices").at("domain").at("rows") == Json({"a", "b"}));
    CHECK(metric_of(answer, 0, "top1_cluster_nmi") == doctest::Approx(1));
  }
}

TEST_CASE("analyze: --out writes tables of layers, experts and matrices") {
  const Dumps dumps;
  std::vector<double> values = logits_of({{0, 1}, {1, 2}, {2, 0}, {2, 1}}, 3);
  const std::vector<double> second = logits_of({{0, 2}, {0, 1}, {1, 0}, {2, 1}}, 3);
  values.insert(values.end(), second.begin(), second.end());
  const Json answer =
      answer_of({"--logits", dumps.reals("L", {2, 4, 3}, values), "--axes", "LTE", "--top-k", "2", "--labels",
                 dumps.write("C.npy", npy_bytes({4}, std::vector<std::int64_t>{0, 1, 1, 0})), "--out",
                 dumps.path("out")});
  std::set<std::string> names;
  for (const Json& file : answer.at("files"))
    names.insert(std::filesystem::path(file.get<std::string>()).filename());
  for (const char* const name :
       {"layers.csv", "experts.csv", "domain.csv", "co_activation.csv", "layer_nmi.csv",
        "layer_nmi_chance.csv", "analysis.json", "analysis.npz", "report.html"})
    CHECK_MESSAGE(names.contains(name), name);
  std::ifstream arrays(dumps.path("out/analysis.npz"), std::ios::binary);
  const std::string packed((std::istreambuf_iterator<char>(arrays)), std::istreambuf_iterator<char>());
  for (const char* const part : {"PK\x03\x04", "layers.npy", "experts.load.npy", "domain.rows.npy"})
    CHECK_MESSAGE(contains(packed, part), part);
  std::ifstream page(dumps.path("out/report.html"));
  const std::string html((std::istreambuf_iterator<char>(page)), std::istreambuf_iterator<char>());
  for (const char* const part : {"load_curves", "co_activation", "layer_nmi", "Found and assumed"})
    CHECK_MESSAGE(contains(html, part), part);
  std::ifstream layers(dumps.path("out/layers.csv"));
  std::string head, line, last;
  std::getline(layers, head);
  CHECK(head.starts_with("layer,tokens,tokens_low"));
  int lines = 0;
  while (std::getline(layers, line)) {
    last = line;
    ++lines;
  }
  CHECK(lines == 3);
  CHECK(last.starts_with("mean,4"));
}

}  // namespace moelab::analyze_dumps_test
