/// Which arrays `moelab analyze` takes, in which shapes and orders, and which it refuses.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "analysis/metrics/routing.h"
#include "tests/app/cli/analyzed_arrays.h"

namespace moelab::analyze_arrays_test {

using namespace analyzed_arrays;

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
  CHECK(contains(none.err, "no input given; needs one of --logits, --probs, --scores"));
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
  check_beside("--inputs", "short", "has shape (199, 4), needs (200, d) to match --probs of shape (200, 5)");
  check_beside("--embeddings", "few", "has shape (199,), needs (200, d) to match --probs of shape (200, 5)");
  check_beside("--labels", "few", "has shape (199,), needs (200,) to match --probs of shape (200, 5)");
  check_beside("--labels", "negative", "holds -2 in row 0; labels are 0 to");
  check_beside("--labels", "floats", "holds float64 values, needs integers");
  check_beside("--router", "across", "has shape (4, 5), needs (5, d) to match --probs of shape (200, 5)");
  check_beside("--expert-outputs", "X", "has shape (200, 4), needs (200, 5, d)");
  check_beside("--previous-probs", "X", "has shape (200, 4), needs (200, 5)");
  check_beside("--previous-assignments", "high", "holds 5 in row 0, column 0; ids are 0 to 4");
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

}  // namespace moelab::analyze_arrays_test
