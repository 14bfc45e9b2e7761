/// What `plan` says of memory against what `run` takes, over scenarios in which one part has nearly all of
/// it.

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <fstream>

#include "app/scenario/json.h"
#include "tests/system/process.h"
#include "tests/system/run_directory.h"

namespace moelab::memory_test {
namespace {

namespace fs = std::filesystem;

/// Estimates may be that far off, as a share of what is measured.
constexpr double kTolerance = 0.2;

constexpr const char* kBase = R"({
  "name": "memory",
  "data": {"generator": "gaussian_mixture", "clusters": 8, "dim": 8, "target": {"kind": "constant", "dim": 2},
           "train_samples": 1000, "test_samples": 1000},
  "model": {"experts": 8, "router": "linear", "expert": "constant"},
  "train": {"lr": 0.01, "batch_size": 64, "steps": 4}, "metrics": ["task"], "seeds": {"count": 1}})";

constexpr const char* kTopics =
    "data={\"generator\": \"token_topics\", \"topics\": 8, \"dim\": 32, \"tokens\": 32, \"target\": "
    "\"constant\", "
    "\"train_samples\": 2000, \"test_samples\": 4000}";

struct Extreme {
  const char* name;
  std::vector<std::string> settings;
  const char* threads = "1";
};

const std::vector<Extreme>& extremes() {
  static const std::vector<Extreme> all = {
      {"nothing large", {}},
      {"clusters", {"data.clusters=100000", "data.dim=200", "data.train_samples=64", "data.test_samples=20"}},
      {"hidden width", {"model.expert={\"kind\": \"mlp\", \"depth\": 3, \"width\": 1000}"}},
      {"parameters and moments",
       {"model.experts=256", "model.expert={\"kind\": \"mlp\", \"depth\": 2, \"width\": 512}",
        "train.optimizer=adam"}},
      {"test set", {"data.test_samples=400000", "data.dim=32"}},
      {"training set", {"data.train_samples=1000000", "data.dim=32"}},
      {"probabilities",
       {"data.test_samples=50000", "model.experts=128", "metrics=[\"task\", \"sparsity\", \"routing\"]"}},
      {"batch",
       {"train.batch_size=8192", "data.train_samples=8192", "model.experts=64",
        "model.expert={\"kind\": \"mlp\", \"depth\": 2, \"width\": 64}"}},
      {"tokens",
       {"data={\"generator\": \"tokenized_mixture\", \"clusters\": 16, \"dim\": 32, \"tokens\": 64, "
        "\"target\": \"linear\", \"train_samples\": 4000, \"test_samples\": 4000}"}},
      {"dictionary",
       {"data={\"generator\": \"dictionary\", \"atoms\": 64, \"dim\": 64, \"target\": \"linear\", "
        "\"train_samples\": 50000, \"test_samples\": 50000}"}},
      {"double precision", {"train.precision=double", "data.train_samples=200000", "data.dim=64"}},
      {"saved arrays",
       {"save=[\"weights\", \"routing\"]", "data.test_samples=100000", "data.dim=64", "model.experts=64"}},
      {"limited memory",
       {"train={\"optimizer\": {\"kind\": \"lbfgs\", \"memory\": 200}, \"steps\": 220, \"precision\": "
        "\"double\"}",
        "model.experts=8", "model.expert={\"kind\": \"mlp\", \"depth\": 2, \"width\": 1000}",
        "data.train_samples=200"}},
      {"wide router of a fit",
       {"train={\"optimizer\": \"lbfgs\", \"steps\": 60, \"precision\": \"double\"}",
        "model.router={\"kind\": \"mlp\", \"width\": 300}", "data.train_samples=200"}},
      {"polished fit",
       {"train={\"optimizer\": \"lbfgs\", \"steps\": 1, \"precision\": \"double\", \"start\": {\"kind\": "
        "\"best\", \"starts\": 1, \"rows\": 50, \"evaluations\": 5, \"polished\": 1}}",
        "data.target=linear", "model.expert=linear", "model.router={\"kind\": \"mlp\", \"width\": 22}",
        "data.train_samples=100"}},
      {"outputs of experts",
       {"metrics=[\"task\", \"expert_outputs\"]", "data.test_samples=20000", "model.experts=64",
        "data.target={\"kind\": \"constant\", \"dim\": 10}"}},
      {"attention of routers",
       {kTopics,
        "model={\"experts\": 16, \"router\": \"attention_aware\", \"attention\": {\"heads\": 4}, \"expert\": "
        "{\"kind\": \"mlp\", \"depth\": 2, \"width\": 32}}"}},
      {"images",
       {"data={\"generator\": \"image_clusters\", \"classes\": 20, \"size\": 32, \"train_samples\": 2000, "
        "\"test_samples\": 2000}",
        "model.router=cnn", "model.expert={\"kind\": \"mlp\", \"depth\": 2, \"width\": 32}"}},
      {"20,000 experts", {"model.experts=20000", "data.train_samples=20000"}},
      {"transformer",
       {"data={\"generator\": \"synthetic_language\", \"domains\": 4, \"vocabulary\": 256, \"tokens\": 64, "
        "\"train_samples\": 2000, \"test_samples\": 1000}",
        "model={\"kind\": \"transformer\", \"width\": 64, \"heads\": 4, \"layers\": 2, \"experts\": 8, "
        "\"router\": \"linear\", \"gating\": {\"train\": {\"kind\": \"topk\", \"k\": 2}}, \"feed_forward\": "
        "128}",
        "loss={\"task\": \"cross_entropy\"}", "train.batch_size=16"}},
      {"dense model", {"model={\"kind\": \"dense\", \"width\": 1024, \"depth\": 4}", "train.optimizer=adam"}},
      {"slots",
       {"model.gating={\"train\": {\"kind\": \"soft_slots\", \"slots\": 4}, \"eval\": {\"kind\": "
        "\"soft_slots\", "
        "\"slots\": 4}}",
        "model.expert={\"kind\": \"mlp\", \"depth\": 2, \"width\": 64}", "data.test_samples=20000",
        "train.batch_size=512", "model.experts=32"}},
      {"layers",
       {"model.layers=6", "model.expert={\"kind\": \"mlp\", \"depth\": 2, \"width\": 128}",
        "model.experts=32", "data.dim=64", "train.batch_size=1000"}},
      {"formula",
       {"model.router={\"kind\": \"formula\", \"score\": \"dot(x, w)/norm(x)\", \"parameters\": {\"w\": "
        "\"d\"}}",
        "model.experts=512", "train.batch_size=1000"}},
      {"population",
       {"train={\"gradient\": \"population\", \"points\": 65536, \"lr\": 0.01, \"steps\": 4}",
        "data.train_samples=null", "model.experts=64"}},
      {"evaluations",
       {"evaluations={\"a\": {\"data.contamination\": {\"kind\": \"noise\", \"std\": 0.1}}, \"b\": "
        "{\"data.contamination\": {\"kind\": \"noise\", \"std\": 0.2}}}",
        "data.test_samples=100000", "data.dim=32"}},
      {"noisy gating",
       {"model.gating={\"train\": {\"kind\": \"noisy_topk\", \"k\": 2}}", "model.experts=1024",
        "train.batch_size=1000", "data.dim=128"}},
      {"similarity of tokens",
       {kTopics,
        "model={\"experts\": 32, \"router\": \"similarity_aware\", \"expert\": {\"kind\": \"mlp\", "
        "\"depth\": 2, "
        "\"width\": 64}}"}},
      {"records",
       {"train.steps=20000", "train.record_every=1", "data.test_samples=20", "data.train_samples=64"}},
      {"routing of every step",
       {"save=[\"routing_steps\"]", "train.steps=2000", "train.record_every=1", "model.experts=64",
        "data.test_samples=200"}},
      {"threads", {"seeds.count=4", "data.test_samples=50000", "data.dim=64"}, "4"},
  };
  return all;
}

/// The peak of the resident set, in bytes.
double peak_of(pid_t process) {
  int status = 0;
  rusage usage{};
  REQUIRE(::wait4(process, &status, 0, &usage) == process);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

TEST_CASE("memory: what plan says is within a fifth of what run takes") {
  const fs::path folder = fs::temp_directory_path() / ("moelab_memory_test_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "memory.json") << kBase;
  for (const Extreme& extreme : extremes()) {
    CAPTURE(extreme.name);
    std::vector<std::string> words = {
        "plan",  (folder / "memory.json").string(), "--threads", extreme.threads,
        "--out", (folder / "run").string(),         "--json"};
    for (const std::string& setting : extreme.settings) words.insert(words.end(), {"--set", setting});
    REQUIRE(wait_for(start(words, folder / "plan.out")) == 0);
    const double said = Json::parse(std::ifstream(folder / "plan.out")).at("memory_estimate_bytes");
    words[0] = "run";
    const double measured = peak_of(start(words, folder / "run.out"));
    MESSAGE(extreme.name << ": " << said / 1e6 << " MB said, " << measured / 1e6 << " MB measured");
    CHECK(said > (1 - kTolerance) * measured);
    CHECK(said < (1 + kTolerance) * measured);
    fs::remove_all(folder / "run");
  }
  fs::remove_all(folder);
}

TEST_CASE("memory: run refuses what the machine does not have, before it starts") {
  const fs::path folder = fs::temp_directory_path() / ("moelab_refusal_test_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::ofstream(folder / "memory.json") << kBase;
  const std::vector<std::string> words = {
      "run",   (folder / "memory.json").string(),
      "--out", (folder / "run").string(),
      "--set", "model.experts=60000",
      "--set", "model.expert={\"kind\": \"mlp\", \"depth\": 3, \"width\": 5000}"};
  CHECK(wait_for(start(words, folder / "out")) == 3);
  std::ifstream errors(folder / "out.err");
  const std::string text{std::istreambuf_iterator<char>(errors), {}};
  CHECK(text.find("are available; not even --threads 1 would fit, or --force runs it") != std::string::npos);
  CHECK_FALSE(fs::exists(folder / "run"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace moelab::memory_test
