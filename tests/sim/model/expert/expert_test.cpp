#include "sim/model/expert/expert.h"

#include <doctest/doctest.h>

#include "tests/sim/model/expert/banks.h"

namespace moelab::banks::expert_test {
namespace {

/// Sums of a few terms of order one, rounded in double.
constexpr double kRounding = 1e-13;

TEST_CASE("every bank: f = Σ_e gate_e x̃_e, and ∂L/∂gate_e = ∂L/∂f · x̃_e") {
  for_each_bank([](const std::string& kind, int outputs) {
    for (Gates::Inactive* const pattern : kPatterns) {
      const Gates gates(*pattern);
      BankRun run(kind, outputs);
      run.forward(gates.routing);
      run.backward(gates.routing);
      AlignedVector<double> sums(run.f.size());
      for_each_pair(gates.routing, [&](int row, int e) {
        const double gate = gates.values[entries(row, gates.routing.stride) + size(e)];
        double product = 0;
        for (int j = 0; j < outputs; ++j) {
          const std::size_t at = entries(row, run.stride) + size(j);
          const double value = run.pairs[entries(row * kExperts + e, run.stride) + size(j)];
          sums[at] += gate * value;
          product += run.upstream[at] * value;
        }
        CHECK(std::abs(run.gate_gradient[entries(row, gates.routing.stride) + size(e)] - product) <
              kRounding);
      });
      for (int row = 0; row < kRows; ++row) {
        for (int j = 0; j < outputs; ++j) {
          const std::size_t at = entries(row, run.stride) + size(j);
          CHECK(std::abs(run.f[at] - sums[at]) < kRounding);
        }
      }
    }
  });
}

TEST_CASE("every bank: the same bits however far apart the rows lie, and whatever else is asked for") {
  for_each_bank([](const std::string& kind, int outputs) {
    const Gates gates(some);
    BankRun close(kind, outputs), apart(kind, outputs, 4), parameters_only(kind, outputs);
    for (BankRun* run : {&close, &apart, &parameters_only}) run->forward(gates.routing);
    for (BankRun* run : {&close, &apart}) run->backward(gates.routing);
    CHECK(apart.f == close.f);
    CHECK(apart.gradient == close.gradient);
    CHECK(apart.gate_gradient == close.gate_gradient);
    CHECK(apart.input_gradient == close.input_gradient);
    parameters_only.bank->backward(
        parameters_only.x, gates.routing, parameters_only.parameters.data(), *parameters_only.scratch,
        {.outputs = close.upstream.data(), .parameters = parameters_only.gradient.data()});
    CHECK(parameters_only.gradient == close.gradient);
  });
}

TEST_CASE("every bank: an expert without rows has zero gradient, and earlier batches leave no trace") {
  for_each_bank([](const std::string& kind, int outputs) {
    const Gates without(some), alone(all_but_expert_1), all(none);
    BankRun used(kind, outputs);
    for (const Gates* gates : {&all, &without, &without, &alone, &without}) {
      BankRun fresh(kind, outputs);
      for (BankRun* run : {&used, &fresh}) {
        run->forward(gates->routing);
        run->backward(gates->routing);
      }
      CHECK(used.f == fresh.f);
      CHECK(used.gradient == fresh.gradient);
      CHECK(used.input_gradient == fresh.input_gradient);
      for (const NamedArray<double>& array : used.bank->arrays(used.gradient.data())) {
        const std::ptrdiff_t count = static_cast<std::ptrdiff_t>(array.values.size()) / kExperts;
        const bool is_zero = std::all_of(array.values.begin() + count, array.values.begin() + 2 * count,
                                         [](double value) { return value == 0; });
        CHECK(is_zero == (gates == &without));
      }
    }
    // Another gradient's array holds whatever it held.
    AlignedVector<double> other(used.gradient.size(), 7.0);
    const AlignedVector<double> before = used.gradient;
    used.gradient.swap(other);
    used.backward(without.routing);
    CHECK(used.gradient == before);
  });
}

TEST_CASE("every bank: arrays are the free parameters, and an expert starts the same whatever E") {
  for_each_bank([](const std::string& kind, int outputs) {
    const auto bank_of = [&](int experts) {
      return make_expert_bank<double>(ExpertOptions::example(kind), {kInputs, outputs, experts});
    };
    const auto few = bank_of(2), many = bank_of(20);
    std::vector<std::size_t> places =
        free_places(many->block_size(), [&](const double* buffer) { return many->arrays(buffer); });
    CHECK(places.size() == 20 * many->parameters_per_expert());
    std::sort(places.begin(), places.end());
    CHECK(std::adjacent_find(places.begin(), places.end()) == places.end());
    CHECK(many->block_size() % kernels::kPadding == 0);
    AlignedVector<double> of_few(few->block_size()), of_many(many->block_size());
    few->initialize({1, 2}, of_few.data());
    many->initialize({1, 2}, of_many.data());
    const std::vector<NamedArray<double>> left = few->arrays(of_few.data()),
                                          right = many->arrays(of_many.data());
    REQUIRE(left.size() == right.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      CHECK(std::equal(left[i].values.begin(), left[i].values.end(), right[i].values.begin()));
    }
  });
}

/// x ↦ its own kind of expert, for the test below.
struct OwnExpertOptions {
  int hidden = 3;
  void bind(Fields& fields) { fields.add("hidden", hidden, count(), "units"); }
};
template <class Real>
std::unique_ptr<ExpertBank<Real>> make_own(const AnyOptions& options, const ExpertSetting& setting) {
  return make_mlp_bank<Real>({.depth = 2, .width = options.get<OwnExpertOptions>().hidden}, setting);
}

TEST_CASE("a program can bring a kind of expert; depths are those of the options") {
  CHECK(expert_depth(ExpertOptions::named("constant")) == 1);
  CHECK(expert_depth(ExpertOptions::named("linear")) == 1);
  CHECK(expert_depth(ExpertOptions::named("mlp")) == 3);
  CHECK(expert_depth(MlpExpertOptions{.depth = 5}) == 5);
  const std::size_t before = ExpertAxis::table().size();
  {
    const Extended<ExpertAxis> extended(
        {{{"own_of_expert_test", "two layers", OwnExpertOptions{}, OwnExpertOptions{}},
          {make_own<float>, make_own<double>},
          [](const AnyOptions&) { return 2; }}});
    CHECK(ExpertAxis::table().size() == before + 1);
    const ExpertOptions own = OwnExpertOptions{.hidden = 4};
    CHECK(own.chosen() == "own_of_expert_test");
    CHECK(expert_depth(own) == 2);
    CHECK(make_expert_bank<float>(own, {kInputs, 1, 1})->parameters_per_expert() ==
          (kInputs + 1) * 4 + 4 + 1);
  }
  CHECK(ExpertAxis::table().size() == before);
  CHECK_THROWS_WITH_AS(ExpertOptions::named("liner"),
                       doctest::Contains("unknown expert 'liner'; did you mean 'linear'?"), InvalidOption);
}

}  // namespace
}  // namespace moelab::banks::expert_test
