/// Transformers on masked tokens against NumPy (masked_reference.py wrote masked_reference.json).

#include <doctest/doctest.h>

#include "tests/sim/model/model_reference.h"

namespace moelab::masked_reference_test {

TEST_CASE("transformers that see the whole sequence have NumPy's probabilities, loss and gradients") {
  check_token_reference("masked_reference.json", "masked_tokens");
}

}  // namespace moelab::masked_reference_test
