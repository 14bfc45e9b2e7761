/// Attention and tokens that mix their routing against PyTorch (graph_of_tokens_reference.py wrote
/// graph_of_tokens_reference.json).

#include <doctest/doctest.h>

#include "tests/sim/model/model_reference.h"

namespace moelab::graph_of_tokens_reference_test {
namespace {

TEST_CASE("mixtures behind attention have PyTorch's probabilities, loss and gradients") {
  static const Json reference = read_json_file(MOELAB_TEST_DATA "/sim/model/graph_of_tokens_reference.json");
  for (const Json& item : reference.at("cases")) {
    CAPTURE(item.at("name").get<std::string>());
    const Json &x = item.at("x"), &y = item.at("y");
    const Layout layout{.input_dim = static_cast<int>(x[0][0].size()),
                        .output_dim = static_cast<int>(y[0][0].size()),
                        .sequences = true,
                        .tokens = static_cast<int>(x[0].size()),
                        .target_per_token = true};
    check_reference_case(layout, item);
  }
}

}  // namespace
}  // namespace moelab::graph_of_tokens_reference_test
