/// Transformers on masked tokens against NumPy (masked_reference.py wrote masked_reference.json).

#include <doctest/doctest.h>

#include "tests/sim/model/model_reference.h"

namespace moelab::masked_reference_test {

TEST_CASE("transformers that see the whole sequence have NumPy's probabilities, loss and gradients") {
  const Json reference = read_json_file(MOELAB_TEST_DATA "/sim/model/masked_reference.json");
  for (const Json& item : reference.at("cases")) {
    CAPTURE(item.at("name").get<std::string>());
    const int tokens = static_cast<int>(item.at("x")[0].size());
    const Layout layout{.input_dim = 1,
                        .output_dim = 1,
                        .sequences = true,
                        .tokens = tokens,
                        .target_per_token = true,
                        .labels = tokens,
                        .vocabulary = reference.at("vocabulary").get<int>()};
    check_reference_case(layout, item, "masked_tokens");
  }
}

}  // namespace moelab::masked_reference_test
