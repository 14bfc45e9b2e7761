/// The CNN router within a mixture against PyTorch (cnn_reference.py wrote cnn_reference.json).

#include <doctest/doctest.h>

#include "tests/sim/model/model_reference.h"

namespace moelab::cnn_reference_test {
namespace {

TEST_CASE("a mixture with a CNN router has PyTorch's probabilities, loss and gradients") {
  static const Json reference = read_json_file(MOELAB_TEST_DATA "/sim/model/cnn_reference.json");
  for (const Json& item : reference.at("cases")) {
    CAPTURE(item.at("name").get<std::string>());
    const Layout layout{.input_dim = static_cast<int>(item.at("x")[0].size()),
                        .output_dim = static_cast<int>(item.at("y")[0].size()),
                        .image = {item.at("image")[0], item.at("image")[1], item.at("image")[2]}};
    for (const NamedArray<double>& array : check_reference_case(layout, item).arrays()) {
      if (array.name != "router_weight_1") continue;
      const std::int64_t out = item.at("model").at("router").at("channels")[0];
      CHECK(array.shape == std::vector<std::int64_t>{out, layout.image.channels, 3, 3});
    }
  }
}

}  // namespace
}  // namespace moelab::cnn_reference_test
