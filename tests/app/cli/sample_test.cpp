/// moelab sample: which cell is drawn.

#include <doctest/doctest.h>

#include "app/scenario/scenario.h"
#include "sim/data/npy.h"
#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::sample_test {
namespace {

std::vector<std::string> words_for(const Bench& bench, const std::vector<std::string>& options) {
  std::vector<std::string> words = {"sample", bench.file, "--out", bench.run, "--json"};
  words.insert(words.end(), options.begin(), options.end());
  return words;
}

Json sampled(const Bench& bench, const std::vector<std::string>& options) {
  const Answer answer = ask(words_for(bench, options));
  REQUIRE_MESSAGE(answer.status == 0, answer.out);
  return Json::parse(answer.out);
}

void check_refused(const Bench& bench, const std::vector<std::string>& options, const std::string& path,
                   const std::string& message) {
  CAPTURE(options.back());
  const Answer answer = ask(words_for(bench, options));
  CHECK(answer.status == 2);
  const Json error = Json::parse(answer.out).at("error");
  CHECK(error.at("path") == path);
  const std::string said = error.at("message");
  CHECK_MESSAGE(said.find(message) != std::string::npos, said);
  CHECK_FALSE(std::filesystem::exists(bench.run));
}

/// Experts, k and noise vary together; the number of experts repeats.
Json zipped() {
  Json scenario = tiny();
  scenario["sweep"] = Json::parse(R"({"data.train_samples": [20, 40],
    "zip": {"model.experts": [3, 3, 4], "data.noise_std": [0.5, 1, 1], "model.gating.eval": ["top1", "soft", "top1"]}})");
  return scenario;
}

}  // namespace

TEST_CASE("sample: arm, seed and sweep point name a cell; what is left out is the first") {
  const Bench bench;
  const Scenario scenario = load_scenario(bench.file, "", {});
  for (const Cell& cell : scenario.cells) {
    const std::string samples = cell.point[0].second.text();
    const Json answer = sampled(bench, {"--arm", cell.arm, "--seed", std::to_string(cell.seed), "--at",
                                        "data.train_samples=" + samples});
    CHECK(answer.at("cell") == cell.id);
    CHECK(answer.at("arm") == cell.arm);
    CHECK(answer.at("seed") == cell.seed);
    CHECK(answer.at("point").at("data.train_samples") == to_json(cell.point[0].second));
    CHECK(answer.at("arrays").at("train_inputs")[0] == to_json(cell.point[0].second));
  }
  CHECK(sampled(bench, {}).at("cell") == scenario.cells[0].id);
  CHECK(sampled(bench, {"--seed", "1"}).at("cell") == scenario.cells[1].id);
  CHECK(sampled(bench, {"--at", "data.train_samples=4e1"}).at("cell") == scenario.cells[2].id);
  CHECK(sampled(bench, {"--arm", "frozen"}).at("cell") == scenario.cells[4].id);
  CHECK(sampled(bench, {"--cell", scenario.cells[5].id}).at("cell") == scenario.cells[5].id);
  CHECK(sampled(bench, {"--cell", "first"}).at("cell") == scenario.cells[0].id);
}

TEST_CASE("sample: tokens are written as whole numbers, a sequence a row") {
  Json language = tiny();
  language["data"] =
      Json::parse(R"({"generator": "synthetic_language", "domains": 2, "vocabulary": 5, "tokens": 7,
                                     "train_samples": 20, "test_samples": 30})");
  language["model"] = Json::parse(R"({"kind": "transformer", "width": 4, "heads": 2, "experts": 3,
                                      "router": {"kind": "linear"}})");
  language["loss"] = {{"task", "cross_entropy"}};
  const Bench bench(language);
  const Json answer = sampled(bench, {});
  for (const char* name : {"train_inputs", "train_targets", "train_labels"})
    CHECK(answer.at("arrays").at(name) == Json({20, 7}));
  const NpyReader inputs(std::filesystem::path(bench.run) / "test_inputs.npy", "inputs");
  CHECK(inputs.shape() == std::vector<std::int64_t>{30, 7});
  CHECK(inputs.type() == NpyType::int64);
}

TEST_CASE("sample: any of the paths that vary together names the point") {
  const Bench bench(zipped());
  const auto point = [&](const std::vector<std::string>& options) {
    return sampled(bench, options).at("point");
  };
  CHECK(point({"--at", "model.experts=4"}).at("data.noise_std") == 1);
  CHECK(point({"--at", "data.noise_std=1"}).at("model.experts") == 3);
  CHECK(point({"--at", "model.gating.eval=soft"}).at("data.noise_std") == 1);
  const Json both =
      point({"--at", "data.noise_std=1.0", "--at", "model.experts=4", "--at", "data.train_samples=40"});
  CHECK(both == Json::parse(R"({"data.train_samples": 40, "model.experts": 4, "data.noise_std": 1,
                                "model.gating.eval": "top1"})"));
}

TEST_CASE("sample: a cell that there is not is refused with those that there are") {
  const Bench bench;
  check_refused(bench, {"--arm", "frosen"}, "--arm", "unknown arm 'frosen'; did you mean 'frozen'?");
  for (const char* seed : {"2", "-1", "one", "1.0", "99999999999"})
    check_refused(bench, {"--seed=" + std::string(seed)}, "--seed", "needs a whole number of 0 to 1");
  check_refused(bench, {"--at", "data.train_samples=21"}, "--at data.train_samples",
                "got 21, needs a value of the sweep: 20, 40");
  check_refused(bench, {"--at", "data.train_samples=\"20\""}, "--at data.train_samples", "got \"20\", needs");
  check_refused(bench, {"--at", "data.train_sample=20"}, "--at data.train_sample",
                "unknown swept path 'data.train_sample'; did you mean 'data.train_samples'?");
  check_refused(bench, {"--at", "data.train_samples"}, "--at", "needs path=value");
  check_refused(Bench(zipped()), {"--at", "model.experts=4", "--at", "data.noise_std=0.5"},
                "--at data.noise_std", "got 0.5, needs a value of the sweep where model.experts = 4: 1");
  for (const std::vector<std::string>& others :
       {std::vector<std::string>{"--arm", "learned"}, {"--seed", "0"}, {"--at", "data.train_samples=20"}}) {
    std::vector<std::string> options = {"--cell", "first"};
    options.insert(options.end(), others.begin(), others.end());
    check_refused(bench, options, "--cell", "names the cell already");
  }
  Json single = tiny();
  single.erase("sweep");
  check_refused(Bench(single), {"--at", "data.train_samples=20"}, "--at data.train_samples", "allowed: none");
}

TEST_CASE("sample: phases have data of their own, the last without a name before it") {
  Json scenario = tiny();
  scenario.erase("sweep");
  scenario["phases"] = Json::parse(R"([{"name": "first", "data": {"mean_std": 3}}, {"name": "second",
    "data": {"noise_std": 2, "train_samples": 25}}])");
  const Bench bench(scenario);
  const Json arrays = sampled(bench, {}).at("arrays");
  CHECK(arrays.at("first.train_inputs") == Json({20, 4}));
  CHECK(arrays.at("train_inputs") == Json({25, 4}));
  CHECK(arrays.size() == 4 * 3);
  Json last = tiny();
  last.erase("sweep");
  last["data"].update(scenario["phases"][1]["data"]);
  const Bench single(last);
  CHECK(sampled(single, {}).at("arrays").size() == 2 * 3);
  for (const char* name : {"train_inputs.npy", "test_targets.npy"})
    CHECK(file_text(std::filesystem::path(bench.run) / name) ==
          file_text(std::filesystem::path(single.run) / name));
}

TEST_CASE("sample: test inputs are contaminated as they are measured, unless by an attack") {
  const auto inputs = [](const char* contamination, std::string* note = nullptr) {
    Json scenario = tiny();
    scenario["data"]["contamination"] = Json::parse(contamination);
    const Bench bench(scenario);
    const Answer answer = ask({"sample", bench.file, "--out", bench.run});
    REQUIRE_MESSAGE(answer.status == 0, answer.err);
    if (note) *note = answer.err;
    return file_text(std::filesystem::path(bench.run) / "test_inputs.npy");
  };
  std::string note;
  const std::string plain = inputs(R"({"kind": "none"})", &note);
  CHECK(note.empty());
  CHECK(inputs(R"({"kind": "noise", "std": 0.5})") != plain);
  CHECK(inputs(R"({"kind": "fgsm", "budget": 0.1})", &note) == plain);
  CHECK(note.find("test_inputs are as drawn: the contamination 'fgsm'") != std::string::npos);
}

TEST_CASE("sample: a folder holds the arrays of its note alone, also after one that did not end") {
  namespace fs = std::filesystem;
  const Bench bench;
  const fs::path folder = bench.run;
  fs::create_directory(folder);
  std::ofstream(folder / ".sample.json.1-2.tmp") << "{";  // of a process that was killed
  sampled(bench, {});
  std::ofstream(folder / "first.train_inputs.npy") << "of an earlier draw";
  std::ofstream(folder / "mine.npy") << "not of a sample";
  std::ofstream(folder / "sample.json") << R"({"name": "tiny", "unfinished": true})";
  sampled(bench, {"--seed", "1"});
  CHECK_FALSE(fs::exists(folder / "first.train_inputs.npy"));
  CHECK(fs::exists(folder / "mine.npy"));
  CHECK(read_json_file(folder / "sample.json").at("seed") == 1);
  // Where an array cannot be written, no note says that it is there.
  fs::remove(folder / "test_labels.npy");
  fs::create_directory(folder / "test_labels.npy");
  CHECK(ask({"sample", bench.file, "--out", bench.run}).status == 3);
  CHECK_FALSE(read_json_file(folder / "sample.json").contains("arrays"));
}

}  // namespace moelab::sample_test
