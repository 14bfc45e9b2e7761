/// Gatings against NumPy (reference.py wrote reference.json).

#include <doctest/doctest.h>

#include "app/scenario/schema.h"
#include "sim/model/gating/gating.h"
#include "tests/sim/reference_numbers.h"

namespace moelab::gating_reference_test {
namespace {

/// (n, E) with padded rows.
AlignedVector<double> padded_rows(const Json& rows) {
  const std::size_t experts = rows[0].size(), stride = size(kernels::padded(static_cast<int>(experts)));
  AlignedVector<double> values(rows.size() * stride);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t e = 0; e < experts; ++e) values[i * stride + e] = rows[i][e];
  }
  return values;
}

/// The entries without the padding.
std::vector<double> unpadded(const double* rows, const Routing<double>& routing) {
  std::vector<double> values;
  for (int i = 0; i < routing.rows; ++i) {
    const double* const row = rows + entries(i, routing.stride);
    values.insert(values.end(), row, row + routing.experts);
  }
  return values;
}

TEST_CASE("gatings have NumPy's gates, probabilities and gradients") {
  static const Json reference = read_json_file(MOELAB_TEST_DATA "/sim/model/gating/reference.json");
  CHECK(reference.at("cases").size() == 17);
  for (const Json& item : reference.at("cases")) {
    CAPTURE(item.at("gating").dump());
    const GatingRule rule = resolve_options<GatingRule>(item.at("gating"), "gating");
    const Json& rows = item.at("scores");
    const int experts = static_cast<int>(rows[0].size());
    const std::unique_ptr<Gating<double>> gating =
        make_gating<double>(rule, {.input_dim = 2, .experts = experts});
    const AlignedVector<double> scores = padded_rows(rows);
    std::vector<double> bias;
    if (!item.at("bias").is_null()) bias = numbers_of(item.at("bias"));
    GatingContext<double> context{scores.data(), static_cast<int>(rows.size()), experts,
                                  bias.empty() ? nullptr : bias.data()};
    GatingScratch<double> scratch;
    gating->gate(context, scratch);
    CHECK(misses(unpadded(scratch.routing.gates, scratch.routing), numbers_of(item.at("gates"))) == 0);
    CHECK(misses(unpadded(scratch.probabilities.data(), scratch.routing),
                 numbers_of(item.at("probabilities"))) == 0);

    AlignedVector<double> gradient = padded_rows(item.at("gate_weights")), parameters(gating->block_size());
    gating->backward(context, scratch, gradient.data(), gradient.data(),
                     parameters.empty() ? nullptr : parameters.data());
    CHECK(misses(unpadded(gradient.data(), scratch.routing), numbers_of(item.at("of_gates"))) == 0);
    gradient = padded_rows(item.at("probability_weights"));
    gating->backward_probabilities(scratch, gradient.data());
    CHECK(misses(unpadded(gradient.data(), scratch.routing), numbers_of(item.at("of_probabilities"))) == 0);
    gradient[0] += 1e-9;
    CHECK(misses(unpadded(gradient.data(), scratch.routing), numbers_of(item.at("of_probabilities"))) == 1);
  }
}

}  // namespace
}  // namespace moelab::gating_reference_test
