/// Shared and null experts, slots, temperatures and balanced assignments against NumPy (mixtures_reference.py
/// wrote mixtures_reference.json).

#include <doctest/doctest.h>

#include "tests/sim/model/model_reference.h"

namespace moelab::mixtures_reference_test {
namespace {

TEST_CASE("mixtures have NumPy's probabilities, loss and gradients") {
  static const Json reference = read_json_file(MOELAB_TEST_DATA "/sim/model/mixtures_reference.json");
  CHECK(reference.at("cases").size() == 12);
  for (const Json& item : reference.at("cases")) {
    CAPTURE(item.at("name").get<std::string>());
    const Layout layout{.input_dim = static_cast<int>(item.at("x")[0].size()),
                        .output_dim = static_cast<int>(item.at("y")[0].size())};
    check_reference_case(layout, item);
  }
}

}  // namespace
}  // namespace moelab::mixtures_reference_test
