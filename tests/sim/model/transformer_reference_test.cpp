/// Transformers against PyTorch (transformer_reference.py wrote transformer_reference.json).

#include <doctest/doctest.h>

#include "tests/sim/model/model_reference.h"

namespace moelab::transformer_reference_test {
namespace {

TEST_CASE("transformers have PyTorch's probabilities, loss and gradients") {
  const Json reference = read_json_file(MOELAB_TEST_DATA "/sim/model/transformer_reference.json");
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
    check_reference_case(layout, item, "cross_entropy");
  }
}

}  // namespace
}  // namespace moelab::transformer_reference_test
