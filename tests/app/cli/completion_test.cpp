/// What completion offers at a place of the command line.

#include "app/cli/completion.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include "app/cli/verbs.h"
#include "app/scenario/scenario.h"
#include "sim/base/error.h"
#include "tests/app/cli/answer.h"
#include "tests/app/cli/tiny_run.h"
#include "tests/app/scenario/example.h"

namespace moelab::completion_test {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

Texts texts(const Texts& words) {
  Texts found;
  for (const Candidates::Word& word : complete(words).words) found.push_back(word.text);
  return found;
}

bool has(const Texts& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

Texts settings_of(const std::string& file, const std::string& word) {
  return texts({"run", file, "--set", word});
}

/// Every path that completion leads to from `word` on, and every value that it names.
void collect(const std::string& file, const std::string& word, Texts& paths, Texts& values) {
  for (const std::string& text : settings_of(file, word)) {
    REQUIRE(text.size() > word.size());
    if (text.ends_with('.')) {
      collect(file, text, paths, values);
    } else if (text.ends_with('=')) {
      paths.push_back(text.substr(0, text.size() - 1));
      for (const std::string& value : settings_of(file, text)) values.push_back(value);
    } else {
      FAIL(text);
    }
  }
}

Json example() {
  Json scenario = example_scenario();
  scenario["sweep"] = Json::parse(R"({"zip": {"data.train_samples": [640, 1280], "train.steps": [100, 200]},
                                      "model.experts": {"log2range": [32, 64]}})");
  scenario["profiles"] = {{"quick", {{"seeds.count", 3}, {"model.router.kind", "cosine"}}}};
  scenario["model"]["router"] = {{"kind", "linear"}};
  scenario["arms"] = Json::parse(R"({"learned": {}, "frozen": {"model.router.trainable": false},
                                     "dense": {"model.kind": "dense", "model.match": "moe"}})");
  return scenario;
}

/// The shape of a path that --set takes; null where it is none.
const Shape* shape_of_setting(const Json& scenario, const std::string& path) {
  Texts prefixes = {"sweep."};
  for (const auto& [name, arm] : scenario.at("arms").items()) prefixes.push_back("arms." + name + ".");
  for (const std::string& prefix : prefixes) {
    if (path.starts_with(prefix)) return find_shape(config_shape(), scenario, path.substr(prefix.size()));
  }
  return find_shape(scenario_shape(), scenario, path);
}

}  // namespace

TEST_CASE("completion: verbs, then what a verb takes") {
  CHECK(texts({""}) == names_of(verbs()));
  CHECK(texts({"re"}) == Texts{"report", "reproduce"});
  CHECK(texts({"--v"}) == Texts{"--version"});
  CHECK(complete({"run", ""}).files == Candidates::Files::scenarios);
  CHECK(complete({"status", ""}).files == Candidates::Files::folders);
  CHECK(complete({"compare", "a", "b", ""}).files == Candidates::Files::folders);
  CHECK(complete({"run", "a.json", "--out", ""}).files == Candidates::Files::folders);
  CHECK(complete({"run", "a.json", "--out="}).files == Candidates::Files::folders);
  CHECK(complete({"analyze", "--probs", ""}).files == Candidates::Files::any);
  CHECK(texts({"run", "a.json", "--retry", ""}) == Texts{"failed"});
  CHECK(texts({"run", "a.json", "--retry=f"}) == Texts{"--retry=failed"});
  CHECK(texts({"list", "r"}) == Texts{"routers"});
  CHECK(texts({"compare", "a", "b", "--metric", "router_n"}) == Texts{"router_norm_ratio"});
  CHECK(has(texts({"check", "dikkala2023.th"}), "dikkala2023.theorem1"));
  for (const std::string& id : texts({"check", ""})) CHECK(ask({"check", "--list", id}).status == 0);
}

TEST_CASE("completion: every option of every verb, those of one value once") {
  for (const Verb& verb : verbs()) {
    Texts offered = texts({verb.name, "--"}), names = option_names(verb);
    std::sort(offered.begin(), offered.end());
    std::sort(names.begin(), names.end());
    CHECK_MESSAGE(offered == names, verb.name);
  }
  const Texts left = texts({"run", "a.json", "--json", "--set", "a=b", "--out=b", "--"});
  CHECK(has(left, "--set"));
  CHECK_FALSE(has(left, "--json"));
  CHECK_FALSE(has(left, "--out"));
  CHECK(texts({"run", "--json", "--", "--"}).empty());
}

TEST_CASE("completion: what does not exist or cannot be read is no error") {
  const Bench bench;
  const std::string broken = (bench.folder.path() / "broken.json").string();
  std::ofstream(broken) << R"({"data": )";
  for (const Texts& words :
       {Texts{"nosuch", ""}, Texts{"run", "--nosuch", "x", "--nosuch="},
        Texts{"run", broken, "--profile", ""}, Texts{"run", bench.folder.path().string(), "--profile", ""},
        Texts{"reproduce", "no", ""}, Texts{"reproduce", bench.folder.path().string(), ""},
        Texts{"run", bench.file, "--set", "nosuch."}, Texts{"run", bench.file, "--set", "data.dim.x."},
        Texts{"run", bench.file, "--set", "data.nosuch="},
        Texts{"run", bench.file, "--set", "=", "--set", "=x"}}) {
    CHECK(texts(words).empty());
    Texts line = {"completion", "bash", "--"};
    line.insert(line.end(), words.begin(), words.end());
    const Answer answer = ask(line);
    CHECK(answer.status == 0);
    CHECK(answer.err.empty());
  }
  CHECK(texts({"sample", broken, "--cell", ""}) == Texts{"first"});
  CHECK(has(settings_of(broken, "model.router."), "model.router.tau1="));  // of all kinds
}

TEST_CASE("completion: profiles, arms, seeds, sweep points and cells are those of the scenario") {
  const Bench bench(example());
  CHECK(texts({"run", bench.file, "--profile", ""}) == Texts{"quick"});
  const std::string other = (bench.folder.path() / "other.json").string();
  std::ofstream(other) << R"({"extends": "tiny.json", "name": "other", "profiles": {"slow": {}}})";
  CHECK(texts({"run", other, "--profile", ""}) == Texts{"quick", "slow"});
  CHECK(texts({"sample", other, "--arm", ""}) == Texts{"learned", "frozen", "dense"});
  CHECK(texts({"sample", bench.file, "--seed", ""}) == Texts{"0", "1", "2", "3", "4"});
  CHECK(texts({"sample", bench.file, "--profile", "quick", "--seed", ""}) == Texts{"0", "1", "2"});
  CHECK(texts({"sample", bench.file, "--at", ""}) ==
        Texts{"data.train_samples=", "train.steps=", "model.experts="});
  CHECK(texts({"sample", bench.file, "--at", "model.experts="}) ==
        Texts{"model.experts=32", "model.experts=64"});

  const Bench small;
  Texts ids = {"first"};
  for (const Cell& cell : load_scenario(small.file, "", {}).cells) ids.push_back(cell.id);
  CHECK(texts({"sample", small.file, "--cell", ""}) == ids);
  REQUIRE(ask({"run", small.file, "--out", small.run}).status == 0);
  ids.erase(ids.begin());
  CHECK(texts({"reproduce", small.run, ""}) == ids);
  CHECK(complete({"reproduce", small.run, ids[0]}).words.at(0).help ==
        "learned, data.train_samples = 20, seed 0");
}

TEST_CASE("completion: dotted paths follow the kinds that the scenario chooses") {
  const Bench bench(example());
  CHECK(settings_of(bench.file, "mod") == Texts{"model."});
  const Texts router = settings_of(bench.file, "model.router.");
  CHECK(has(router, "model.router.init_scale="));
  CHECK_FALSE(has(router, "model.router.projection_dim="));
  for (const Texts& chosen : {Texts{"--profile", "quick"}, Texts{"--set", "model.router.kind=cosine"}}) {
    CHECK(has(texts({"run", bench.file, chosen[0], chosen[1], "--set", "model.router."}),
              "model.router.projection_dim="));
  }
  CHECK(has(settings_of(bench.file, "model.router.kind="), "model.router.kind=perturbed_cosine"));
  CHECK(settings_of(bench.file, "train.lr") == Texts{"train.lr=", "train.lr."});
  CHECK(settings_of(bench.file, "figures.0.x_s") == Texts{"figures.0.x_scale="});
  CHECK(settings_of(bench.file, "figures.0.x_scale=lo") == Texts{"figures.0.x_scale=log"});
  CHECK(settings_of(bench.file, "claims.0.left.arm=f") == Texts{"claims.0.left.arm=frozen"});
  CHECK(settings_of(bench.file, "claims.0.left.metric=router_n") ==
        Texts{"claims.0.left.metric=router_norm_ratio"});
  CHECK(settings_of(bench.file, "figures.0.y=router_n") == Texts{"figures.0.y=router_norm_ratio"});
  CHECK(settings_of(bench.file, "figures.0.x=model.e") == Texts{"figures.0.x=model.experts"});
  CHECK(settings_of(bench.file, "figures.0.series=a") == Texts{"figures.0.series=arm"});
  CHECK(settings_of(bench.file, "arms.d") == Texts{"arms.dense."});
  CHECK(settings_of(bench.file, "arms.frozen.model.router.tr") ==
        Texts{"arms.frozen.model.router.trainable="});
  CHECK(settings_of(bench.file, "arms.frozen.model.router.trainable=") ==
        Texts{"arms.frozen.model.router.trainable=true", "arms.frozen.model.router.trainable=false"});
  CHECK(settings_of(bench.file, "sweep.train.ba") == Texts{"sweep.train.batch_size="});
}

TEST_CASE("completion: every path that is offered may be set") {
  const Bench bench(example());
  const Json document = read_scenario_file(bench.file).document;
  Texts paths, values;
  collect(bench.file, "", paths, values);
  CHECK(paths.size() > 100);
  CHECK(values.size() > 50);
  for (const std::string& path : paths) CHECK_MESSAGE(shape_of_setting(document, path) != nullptr, path);
  for (const std::string& text : values) {
    const std::size_t equals = text.find('=');
    const Shape* const shape = shape_of_setting(document, text.substr(0, equals));
    REQUIRE_MESSAGE(shape != nullptr, text);
    const std::string value = text.substr(equals + 1);
    if (shape->type != Shape::Type::choice && shape->type != Shape::Type::boolean) continue;
    CHECK_NOTHROW(
        resolve(*shape, shape->type == Shape::Type::boolean ? Json::parse(value) : Json(value), ""));
  }
  // What the sweep or an arm sets is refused, and not offered.
  for (const char* fixed : {"data.train_samples", "train.steps", "model.experts", "model.router.trainable",
                            "model.kind", "model.match", "sweep", "arms"}) {
    CHECK_MESSAGE(!has(paths, fixed), fixed);
  }
  CHECK(has(paths, "model.router.kind"));
}

TEST_CASE("completion: every line is one candidate that a shell takes for a word") {
  Json scenario = tiny();
  scenario["profiles"] = {
      {"good", {{"notes", "two\nlines"}}}, {"bad\n:folders", Json::object()}, {":files", 1}};
  const Bench bench(scenario);
  CHECK(ask({"completion", "bash", "--", "run", bench.file, "--profile", ""}).out == "good\n");
  CHECK(ask({"completion", "fish", "--", "run", bench.file, "--profile", ""}).out ==
        "good\t{\"notes\":\"two\\nlines\"}\n");
  CHECK(ask({"completion", "zsh", "--", "plot", ""}).out == ":folders\n");
}

TEST_CASE("completion: the answer is there before a key is let go") {
  const Bench bench(example());
  std::chrono::duration<double> fastest{1e9};
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    CHECK_FALSE(settings_of(bench.file, "model.").empty());
    fastest = std::min<std::chrono::duration<double>>(fastest, std::chrono::steady_clock::now() - start);
  }
  CHECK(fastest.count() < 0.05);
}

TEST_CASE("completion: a script for each shell") {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Answer answer = ask({"completion", shell});
    CHECK(answer.status == 0);
    CHECK(answer.out == completion_script(shell));
    CHECK(answer.out.find(std::string("completion ") + shell + " -- ") != std::string::npos);
  }
  CHECK(ask({"completion"}).out == completion_script("bash"));
  CHECK(ask({"completion", "tcsh"}).status == 2);
}

TEST_CASE("completion: metrics of tune, and the plans of a run folder behind its name") {
  const Bench bench;
  CHECK(has(texts({"tune", bench.file, "--metric", "test_n"}), "test_nmse_top1"));
  CHECK(texts({"slurm", bench.file, "--tune", "--metric", "router_n"}) == Texts{"router_norm_ratio"});
  REQUIRE(ask({"run", bench.file, "--out", bench.run, "--threads", "1"}).status == 0);
  REQUIRE(ask({"run", bench.file, "--out", bench.run, "--threads", "1", "--set", "train.steps=5"}).status ==
          0);
  const Texts plans = texts({"claims", bench.run + "@"});
  REQUIRE(plans.size() == 2);
  for (const std::string& plan : plans) {
    CHECK(ask({"claims", plan}).status == 0);
    CHECK(texts({"compare", bench.run, plan}) == Texts{plan});
  }
  CHECK(complete({"claims", bench.run}).files == Candidates::Files::folders);
  CHECK(complete({"claims", "no@"}).files == Candidates::Files::folders);
  CHECK(texts({"run", bench.file, "--out", bench.run + "@"}).empty());  // which run refuses
  CHECK(texts({"list", "fig"}) == Texts{"figures"});
  CHECK(ask({"list", "figures"}).out.find("heat_map: ") != std::string::npos);
}

}  // namespace moelab::completion_test
