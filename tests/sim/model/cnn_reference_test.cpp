/// The CNN router within a mixture against PyTorch (cnn_reference.py wrote cnn_reference.json).

#include <doctest/doctest.h>

#include "sim/model/router/routers.h"
#include "tests/sim/model/example.h"
#include "tests/sim/model/gradient_check.h"
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

TEST_CASE("experts read the router's features, as many as pixels or not") {
  const Layout layout{.input_dim = 3 + 2 * 2, .output_dim = 2, .image = {1, 2, 2}};
  for (const int width : {3, 4}) {
    CAPTURE(width);
    ModelOptions options = model_of_kinds("linear", "linear", SoftGatingOptions{}, 3);
    options.router = CnnRouterOptions{.channels = {2}, .width = width};
    check_gradients(options, layout, 4);
  }
}

}  // namespace
}  // namespace moelab::cnn_reference_test
