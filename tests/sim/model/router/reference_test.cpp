/// Routers against NumPy (reference.py wrote reference.json).

#include <doctest/doctest.h>

#include <numeric>

#include "app/scenario/schema.h"
#include "sim/base/kernels/multiply.h"
#include "sim/model/router/router.h"
#include "sim/model/router/routers.h"
#include "tests/sim/reference_numbers.h"

namespace moelab::router_reference_test {
namespace {

const Json& reference() {
  static const Json stored = read_json_file(MOELAB_TEST_DATA "/sim/model/router/reference.json");
  return stored;
}

/// The entries without the padding.
std::vector<double> unpadded(const AlignedVector<double>& rows, int count, int columns) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    const auto row = rows.begin() + static_cast<std::ptrdiff_t>(entries(i, kernels::padded(columns)));
    values.insert(values.end(), row, row + columns);
  }
  return values;
}

RouterContext<double> context_of(const std::vector<double>& x, int columns) {
  RouterContext<double> context;
  context.x = rows_of(x.data(), static_cast<int>(x.size()) / columns, columns);
  return context;
}

TEST_CASE("routers have NumPy's scores and gradients") {
  CHECK(reference().at("cases").size() == 14);
  for (const Json& item : reference().at("cases")) {
    CAPTURE(item.at("router").dump());
    const std::vector<double> x = numbers_of(item.at("x"));
    const int rows = static_cast<int>(item.at("x").size()),
              columns = static_cast<int>(item.at("x")[0].size());
    const int experts = static_cast<int>(item.at("weights")[0].size());
    const auto router = make_router<double>(resolve_options<RouterOptions>(item.at("router"), "router"),
                                            {.input_dim = columns, .experts = experts});
    // Arrays of the places themselves tell where the entries of an array lie.
    std::vector<double> numbered(router->block_size());
    std::iota(numbered.begin(), numbered.end(), 0.0);
    const std::vector<NamedArray<double>> places = router->arrays(numbered.data());
    CHECK(places.size() == item.at("arrays").size());
    AlignedVector<double> parameters(router->block_size()), of_parameters(router->block_size(), NAN);
    std::size_t count = 0;
    for (const NamedArray<double>& array : places) {
      const std::vector<double> given = numbers_of(item.at("arrays").at(array.name));
      REQUIRE(given.size() == array.values.size());
      count += given.size();
      for (std::size_t i = 0; i < given.size(); ++i)
        parameters[size(static_cast<int>(array.values[i]))] = given[i];
    }
    CHECK(router->parameter_count() == count);

    const std::unique_ptr<Scratch> scratch = router->make_scratch();
    const std::size_t numbers = entries(rows, kernels::padded(experts));
    AlignedVector<double> scores(numbers, NAN), weights(numbers),
        of_inputs(entries(rows, kernels::padded(columns)), NAN);
    for (int i = 0; i < rows; ++i) {
      const std::vector<double> row = numbers_of(item.at("weights")[size(i)]);
      std::copy(row.begin(), row.end(), weights.begin() + i * kernels::padded(experts));
    }
    const RouterContext<double> context = context_of(x, columns);
    router->forward(context, parameters.data(), *scratch, scores.data());
    router->backward(context, parameters.data(), *scratch,
                     {weights.data(), nullptr, of_parameters.data(), of_inputs.data()});
    CHECK(misses(unpadded(scores, rows, experts), numbers_of(item.at("scores"))) == 0);
    CHECK(misses(unpadded(of_inputs, rows, columns), numbers_of(item.at("of_inputs"))) == 0);
    for (const NamedArray<double>& array : router->arrays(of_parameters.data())) {
      CAPTURE(array.name);
      std::vector<double> values = array.values;
      const std::vector<double> expected = numbers_of(item.at("of_arrays").at(array.name));
      CHECK(misses(values, expected) == 0);
      values[0] += 1e-9 * std::max(1.0, std::abs(expected[0]));
      CHECK(misses(values, expected) == 1);
    }
  }
}

TEST_CASE("routers that learn nothing have NumPy's scores") {
  CHECK(reference().at("draws").size() == 7);
  for (const Json& item : reference().at("draws")) {
    CAPTURE(item.at("router").dump());
    const std::vector<double> x = numbers_of(item.at("x")), projection = numbers_of(item.at("projection")),
                              state = numbers_of(item.at("state"));
    const std::vector<int> labels = item.at("labels");
    const int columns = static_cast<int>(item.at("x")[0].size());
    const int experts = static_cast<int>(item.at("scores")[0].size());
    const auto router = make_router<double>(
        resolve_options<RouterOptions>(item.at("router"), "router"),
        {.input_dim = columns, .experts = experts, .layer = item.at("layer").get<int>(), .layers = 3});
    std::vector<double> numbered(router->block_size());
    std::iota(numbered.begin(), numbered.end(), 0.0);
    AlignedVector<double> parameters(router->block_size());
    for (const NamedArray<double>& array : router->arrays(numbered.data())) {
      REQUIRE(array.values.size() == projection.size());
      for (std::size_t i = 0; i < projection.size(); ++i)
        parameters[size(static_cast<int>(array.values[i]))] = projection[i];
    }
    RouterContext<double> context = context_of(x, columns);
    context.signals.labels = labels.data();
    context.state = state.data();
    const std::unique_ptr<Scratch> scratch = router->make_scratch();
    AlignedVector<double> scores(entries(context.x.rows, kernels::padded(experts)), NAN);
    router->forward(context, parameters.data(), *scratch, scores.data());
    std::vector<double> values = unpadded(scores, context.x.rows, experts);
    CHECK(misses(values, numbers_of(item.at("scores"))) == 0);
    values[0] += 1e-9;
    CHECK(misses(values, numbers_of(item.at("scores"))) == 1);
  }
}

TEST_CASE("centroids move as NumPy's") {
  for (const Json& item : reference().at("centroids")) {
    CAPTURE(item.at("memory").dump());
    const int experts = static_cast<int>(item.at("start").size());
    const int columns = static_cast<int>(item.at("start")[0].size());
    NearestCentroidRouterOptions options;
    if (!item.at("memory").is_null()) options.memory = item.at("memory").get<int>();
    const auto router = make_router<double>(options, {.input_dim = columns, .experts = experts});
    std::vector<double> state = numbers_of(item.at("start"));
    state.resize(state.size() + size(experts), 0.0);
    const std::unique_ptr<Scratch> scratch = router->make_scratch();
    for (std::size_t step = 0; step < item.at("batches").size(); ++step) {
      CAPTURE(step);
      const std::vector<double> x = numbers_of(item.at("batches")[step]);
      RouterContext<double> context = context_of(x, columns);
      context.state = state.data();
      context.training = true;
      AlignedVector<double> scores(entries(context.x.rows, kernels::padded(experts)));
      router->begin_step(0, nullptr, state.data());
      router->forward(context, nullptr, *scratch, scores.data());
      router->end_step(*scratch, state.data());
      std::vector<double> expected = numbers_of(item.at("history")[step].at("centroids"));
      append_numbers(item.at("history")[step].at("rows"), expected);
      CHECK(misses(state, expected) == 0);
    }
  }
}

}  // namespace
}  // namespace moelab::router_reference_test
