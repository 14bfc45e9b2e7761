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
  CHECK(reference.at("cases").size() == 6);
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

}  // namespace
}  // namespace moelab::loss_reference_test
