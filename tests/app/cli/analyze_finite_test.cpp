/// `moelab analyze` of arrays that are not finite, or too large.

#include <doctest/doctest.h>

#include <fstream>
#include <limits>

#include "app/scenario/json.h"
#include "sim/data/npy.h"
#include "tests/app/cli/answer.h"
#include "tests/temporary_folder.h"

namespace moelab::analyze_finite_test {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();
const std::vector<double> kHalves = {0.5, 0.5, 0.5, 0.5, 1, 0, 0, 1};  // (4, 2)

struct Folder {
  TemporaryFolder folder;

  std::string write(const std::string& name, const std::vector<std::int64_t>& shape,
                    const std::vector<double>& values) const {
    const std::string file = (folder.path() / (name + ".npy")).string();
    std::ofstream(file, std::ios::binary) << npy_bytes(shape, std::span<const double>(values));
    return file;
  }
};

Json answer_of(std::vector<std::string> words) {
  words.insert(words.begin(), "analyze");
  words.push_back("--json");
  const Answer answer = ask(words);
  REQUIRE_MESSAGE(answer.status == 0, answer.out);
  return Json::parse(answer.out);
}

void check_refused(const std::vector<std::string>& arguments, const std::string& message) {
  std::vector<std::string> words = {"analyze"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const Answer answer = ask(words);
  CHECK(answer.status == 2);
  CHECK(answer.out.empty());
  CHECK_MESSAGE(answer.err.find(message) != std::string::npos, answer.err);
}

}  // namespace

TEST_CASE("analyze: logits of −inf are probabilities of 0") {
  const Folder folder;
  const Json masked = answer_of({"--logits", folder.write("L", {4, 2}, {7, 7, -2, -2, 3, kNone, kNone, 0})});
  const Json same = answer_of({"--probs", folder.write("P", {4, 2}, kHalves)});
  CHECK(masked.at("metrics") == same.at("metrics"));
  CHECK(masked.at("metrics").at("routing_entropy") > 0.3);
}

TEST_CASE("analyze: other logits that are not finite, or a row of −inf alone, are refused") {
  const Folder folder;
  const auto check = [&](const std::vector<double>& logits, const std::string& message) {
    check_refused({"--logits", folder.write("L", {2, 2}, logits)}, message);
  };
  check({1, 2, std::numeric_limits<double>::quiet_NaN(), 0}, "holds nan in row 1, column 0");
  check({1, -kNone, 2, 0}, "holds inf in row 0, column 1; needs finite numbers or -inf");
  check({1, 2, kNone, kNone}, "holds nothing but -inf from row 1, column 0 to row 1, column 1");
}

TEST_CASE("analyze: a metric that is not finite is left out, and says so") {
  const Folder folder;
  const std::string probs = folder.write("P", {4, 2}, kHalves);
  const std::string points = folder.write("Z", {4, 1}, {1e200, -1e200, 2e200, -2e200});
  const std::string router = folder.write("W", {2, 1}, {1e200, -1e200});
  const Json answer = answer_of({"--probs", probs, "--router", router, "--embeddings", points});
  for (const char* name : {"silhouette", "expert_overlap", "router_norm_ratio"}) {
    CAPTURE(name);
    CHECK_FALSE(answer.at("metrics").contains(name));
    CHECK(answer.at("skipped").at(name).get<std::string>().starts_with("not finite"));
  }
  for (const auto& [key, value] : answer.at("metrics").items()) {
    const auto& name = key;
    CHECK_MESSAGE(value.is_number(), name);
  }
}

}  // namespace moelab::analyze_finite_test
