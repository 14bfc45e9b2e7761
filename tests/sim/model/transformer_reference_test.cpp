/// Transformers against PyTorch (transformer_reference.py wrote transformer_reference.json).

#include <doctest/doctest.h>

#include "tests/sim/model/model_reference.h"

namespace moelab::transformer_reference_test {
namespace {

TEST_CASE("transformers have PyTorch's probabilities, loss and gradients") {
  check_token_reference("transformer_reference.json", "cross_entropy");
}

}  // namespace
}  // namespace moelab::transformer_reference_test
