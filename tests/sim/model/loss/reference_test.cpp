/// Losses on the routing against NumPy (reference.py wrote reference.json).

#include <doctest/doctest.h>

#include "sim/model/loss/auxiliary_loss.h"
#include "tests/sim/reference_numbers.h"

namespace moelab::loss_reference_test {
namespace {

constexpr std::size_t kStride = 16;

AlignedVector<double> padded_rows(const Json& rows) {
  AlignedVector<double> values(rows.size() * kStride);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t e = 0; e < rows[i].size(); ++e) values[i * kStride + e] = rows[i][e];
  }
  return values;
}

TEST_CASE("losses on the routing have NumPy's values and gradients") {
  static const Json reference = read_json_file(MOELAB_TEST_DATA "/sim/model/loss/reference.json");
  const AlignedVector<double> r = padded_rows(reference.at("probabilities"));
  const AlignedVector<double> gates = padded_rows(reference.at("gates"));
  Routing<double> routing;
  routing.rows = static_cast<int>(reference.at("gates").size());
  routing.experts = static_cast<int>(reference.at("gates")[0].size());
  routing.stride = static_cast<int>(kStride);
  routing.gates = gates.data();
  list_pairs(routing);
  RoutedBatch<double> batch{nullptr, r.data(), &routing};
  batch.tokens = reference.at("tokens");
  CHECK(reference.at("cases").size() == 8);
  for (const Json& item : reference.at("cases")) {
    const std::string name = item.at("loss");
    CAPTURE(name);
    const AuxiliaryLossKind& kind = auxiliary_loss_kinds()[auxiliary_loss_place(name)];
    CHECK((kind.path == AuxiliaryPath::gates) == (item.at("path") == "gates"));
    AuxiliaryScratch scratch;
    const double value = kind.value.in_double(batch, scratch);
    CHECK(is_near(value, item.at("value")));
    CHECK_FALSE(is_near(value + 1e-9, item.at("value")));
    AlignedVector<double> gradient(r.size());
    constexpr double kCoefficient = 2;
    AuxiliaryGradients<double> gradients;
    (kind.path == AuxiliaryPath::gates ? gradients.gates : gradients.probabilities) = gradient.data();
    kind.add.in_double(batch, kCoefficient, gradients, scratch);
    std::vector<double> halves;
    for (int i = 0; i < routing.rows; ++i) {
      for (int e = 0; e < routing.experts; ++e) {
        halves.push_back(gradient[static_cast<std::size_t>(i) * kStride + static_cast<std::size_t>(e)] /
                         kCoefficient);
      }
    }
    CHECK(misses(halves, numbers_of(item.at("gradient"))) == 0);
  }
}

TEST_CASE("the load under new noise has NumPy's values and gradients") {
  static const Json reference = read_json_file(MOELAB_TEST_DATA "/sim/model/loss/reference.json");
  const AlignedVector<double> r = padded_rows(reference.at("probabilities")),
                              gates = padded_rows(reference.at("gates")),
                              scores = padded_rows(reference.at("scores")),
                              spreads = padded_rows(reference.at("spreads")),
                              noisy = padded_rows(reference.at("noisy"));
  Routing<double> routing;
  routing.rows = static_cast<int>(reference.at("gates").size());
  routing.experts = static_cast<int>(reference.at("gates")[0].size());
  routing.stride = static_cast<int>(kStride);
  routing.gates = gates.data();
  list_pairs(routing);
  const AuxiliaryLossKind& kind = auxiliary_loss_kinds()[auxiliary_loss_place("load")];
  CHECK(reference.at("loads").size() == 3);
  for (const Json& item : reference.at("loads")) {
    CAPTURE(item.at("k").dump());
    const NoisyScores<double> noise{item.at("k"), noisy.data(), spreads.data()};
    RoutedBatch<double> batch{scores.data(), r.data(), &routing};
    batch.noise = &noise;
    AuxiliaryScratch scratch;
    CHECK(is_near(kind.value.in_double(batch, scratch), item.at("value")));
    AlignedVector<double> of_scores(r.size()), of_spreads(r.size());
    AuxiliaryGradients<double> gradients;
    gradients.scores = of_scores.data();
    gradients.spreads = of_spreads.data();
    constexpr double kCoefficient = 2;
    kind.add.in_double(batch, kCoefficient, gradients, scratch);
    for (const auto& [given_name, gradient] :
         {std::pair("of_scores", &of_scores), std::pair("of_spreads", &of_spreads)}) {
      const auto& name = given_name;
      CAPTURE(name);
      std::vector<double> halves;
      for (int i = 0; i < routing.rows; ++i) {
        for (int e = 0; e < routing.experts; ++e)
          halves.push_back((*gradient)[entries(i, static_cast<int>(kStride)) + size(e)] / kCoefficient);
      }
      CHECK(misses(halves, numbers_of(item.at(name))) == 0);
      halves[0] += 1e-9;
      CHECK(misses(halves, numbers_of(item.at(name))) == 1);
    }
  }
}

}  // namespace
}  // namespace moelab::loss_reference_test
