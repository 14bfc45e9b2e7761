#include "sim/base/error.h"

#include <doctest/doctest.h>

namespace moelab::error_test {

TEST_CASE("the nearest name is the allowed one with the fewest edits") {
  const std::vector<std::string> routers = {"linear", "mlp", "cosine"};
  CHECK(nearest_name("linaer", routers) == "linear");  // a swap of neighbours is one edit
  CHECK(nearest_name("cosin", routers) == "cosine");
  CHECK(nearest_name("mpl", routers) == "mlp");
  CHECK(nearest_name("linear", routers) == "linear");
}

TEST_CASE("capitals are no edits") {
  CHECK(nearest_name("SGD", {"adam", "sgd"}) == "sgd");
  CHECK(nearest_name("run", {"RUN", "rin"}) == "RUN");
  CHECK(unknown_name("loss", "MSE", {"mse", "huber"}) ==
        "unknown loss 'MSE'; did you mean 'mse'? Allowed: mse, huber");
}

TEST_CASE("no name is near when more than half of the given one would have to change") {
  CHECK(nearest_name("xyz", {"linear", "mlp"}).empty());
  CHECK(nearest_name("", {"mlp"}).empty());
  CHECK(nearest_name("k", {"p"}).empty());
  CHECK(nearest_name(std::string(1 << 20, 'a'), {"aa"}).empty());
  CHECK(nearest_name("abcd", {"abxy"}) == "abxy");  // two edits of four: still within half
  CHECK(nearest_name("abc", {"axy"}).empty());      // two edits of three: beyond
}

TEST_CASE("an unknown name is answered with the nearest and all allowed ones") {
  CHECK(unknown_name("router", "linaer", {"linear", "mlp"}) ==
        "unknown router 'linaer'; did you mean 'linear'? Allowed: linear, mlp");
  CHECK(unknown_name("router", "zzz", {"linear", "mlp"}) == "unknown router 'zzz'; allowed: linear, mlp");
  CHECK(unknown_name("profile", "quick", {}) == "unknown profile 'quick'; allowed: none");
  std::vector<std::string> many(40, "name");
  for (int i = 0; i < 40; ++i) many[static_cast<std::size_t>(i)] += std::to_string(i);
  CHECK(unknown_name("metric", "nmae7", many).ends_with(", name38, name39"));
  many.push_back("loss");
  CHECK(unknown_name("metric", "nmae7", many) ==
        "unknown metric 'nmae7'; did you mean 'name7'? Allowed: name7, name0, name1, name2, name3, name4, "
        "name5, "
        "name6, name8, name9, … (41 in all)");
}

TEST_CASE("a user error says where and what") {
  const UserError error("data.clusters", "got 0, needs a whole number of at least 1");
  CHECK(std::string(error.what()) == "data.clusters: got 0, needs a whole number of at least 1");
  CHECK(std::string(UserError("", "empty").what()) == "empty");
}

}  // namespace moelab::error_test
