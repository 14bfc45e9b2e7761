#include <doctest/doctest.h>

#include "analysis/theory/patch_routing2023.h"

namespace moelab::patch_routing2023_test {

const CheckEffort kEffort;

TEST_CASE("routers of separate training have the closed form, and no other factor") {
  CHECK(verdict_of(check_router_form(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_router_form(kEffort, 1.0001)) == CheckVerdict::fails);
  CHECK(verdict_of(check_router_form(kEffort, -1)) == CheckVerdict::fails);
}

TEST_CASE("their mean is half the difference of the own patches") {
  CHECK(verdict_of(check_mean_router(kEffort)) == CheckVerdict::holds);
  CHECK(verdict_of(check_mean_router(kEffort, 0.25)) == CheckVerdict::fails);
}

}  // namespace moelab::patch_routing2023_test
