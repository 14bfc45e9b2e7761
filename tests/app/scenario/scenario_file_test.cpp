#include <doctest/doctest.h>

#include <fstream>

#include "app/scenario/scenario.h"
#include "tests/app/scenario/example.h"
#include "tests/temporary_folder.h"

namespace moelab::scenario_file_test {
namespace {

namespace fs = std::filesystem;

/// A folder with the example in base.json.
struct Folder {
  TemporaryFolder folder;
  Folder() { write("base.json", example_scenario()); }
  fs::path file(const std::string& name) const { return folder.path() / name; }
  void write(const std::string& name, const Json& document) const {
    fs::create_directories(file(name).parent_path());
    std::ofstream(file(name)) << document.dump();
  }
  void write(const std::string& name, const char* text) const { write(name, Json::parse(text)); }
  Json document(const std::string& name) const { return read_scenario_file(file(name)).document; }
  UserError error_of(const std::string& name, const std::vector<std::string>& settings = {}) const {
    try {
      load_scenario(file(name), "", settings);
    } catch (const UserError& error) {
      return error;
    }
    FAIL("was not refused");
    return {"", ""};
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("scenario file: without extends, the document itself") {
  const Folder folder;
  CHECK(folder.document("base.json").dump() == example_scenario().dump());
  CHECK(load_scenario(folder.file("base.json"), "", {}).files ==
        std::vector<std::string>{folder.file("base.json").string()});
}

TEST_CASE("scenario file: what stands in the extending file is set field by field") {
  const Folder folder;
  folder.write("wide.json", R"({"extends": "base.json", "name": "wide", "title": "Wide experts",
    "model": {"expert": {"width": 128}}, "train": {"epochs": 3, "optimizer": {"momentum": 0.5}}})");
  Json expected = example_scenario();
  expected["name"] = "wide";
  expected["title"] = "Wide experts";
  expected["model"]["expert"]["width"] = 128;
  expected["train"]["optimizer"]["momentum"] = 0.5;
  expected["train"].erase("steps");  // steps and epochs replace each other
  expected["train"]["epochs"] = 3;
  CHECK(canonical_text(folder.document("wide.json")) == canonical_text(expected));
  const Scenario wide = load_scenario(folder.file("wide.json"), "", {});
  CHECK(wide.files ==
        std::vector<std::string>{folder.file("wide.json").string(), folder.file("base.json").string()});
  CHECK_FALSE(wide.document.contains("extends"));
  CHECK(wide.cells.size() == 80);
}

TEST_CASE("scenario file: another kind, a list and an entry of a map are taken whole; null removes") {
  const Folder folder;
  folder.write("other.json", R"({"extends": "base.json", "name": "other",
    "train": {"optimizer": {"kind": "adam"}, "lr": 0.01},
    "model": {"router": {"kind": "mlp", "width": 8, "depth": 2}, "gating": null},
    "metrics": ["task"], "claims": [], "figures": [],
    "arms": {"frozen": {"model.router.init_scale": null}, "dense_small": null, "new": {"model.experts": 8}},
    "sweep": {"data.train_samples": null, "data.dim": [4, 8]}})");
  const Json document = folder.document("other.json");
  CHECK(document.at("train").at("optimizer") == Json::parse(R"({"kind": "adam"})"));
  CHECK(document.at("train").at("lr") == 0.01);
  CHECK(document.at("model").at("router") == Json::parse(R"({"kind": "mlp", "width": 8, "depth": 2})"));
  CHECK(document.at("model").at("experts") == 64);
  CHECK(document.at("model").at("gating").is_null());
  CHECK(document.at("metrics") == Json::array({"task"}));
  CHECK(document.at("arms") == Json::parse(R"({"learned": {}, "frozen": {"model.router.init_scale": null},
                        "dense_large": {"model.kind": "dense", "model.match": "moe"},
                        "new": {"model.experts": 8}})"));
  CHECK(document.at("sweep") == Json::parse(R"({"data.dim": [4, 8]})"));
}

TEST_CASE("scenario file: chains, paths relative to each file") {
  const Folder folder;
  folder.write("deeper/middle.json", R"({"extends": "../base.json", "name": "middle", "data": {"dim": 5}})");
  folder.write("deeper/last.json",
               R"({"extends": "./middle.json", "name": "last", "data": {"clusters": 7}})");
  const Json document = folder.document("deeper/last.json");
  CHECK(document.at("name") == "last");
  CHECK(document.at("data").at("dim") == 5);
  CHECK(document.at("data").at("clusters") == 7);
  CHECK(load_scenario(folder.file("deeper/last.json"), "quick", {}).files.size() == 3);
}

TEST_CASE("scenario file: what cannot be extended is refused with file and path") {
  const Folder folder;
  folder.write("missing.json", R"({"extends": "bass.json", "name": "x"})");
  UserError error = folder.error_of("missing.json");
  CHECK(error.path() == "extends");
  CHECK(contains(error.message(), "got \"bass.json\", but there is no file"));
  CHECK(contains(error.message(), "did you mean 'base.json'?"));

  folder.write("a.json", R"({"extends": "b.json", "name": "a"})");
  folder.write("b.json", R"({"extends": "./a.json", "name": "b"})");
  error = folder.error_of("a.json");
  CHECK(error.path() == folder.file("b.json").string() + ": extends");
  CHECK(contains(error.message(), "goes in a circle: "));
  folder.write("self.json", R"({"extends": "self.json", "name": "self"})");
  CHECK(contains(folder.error_of("self.json").message(), "goes in a circle"));

  folder.write("number.json", R"({"extends": 3, "name": "x"})");
  CHECK(contains(folder.error_of("number.json").message(), "got 3, needs the path of a scenario file"));
  folder.write("nameless.json", R"({"extends": "base.json"})");
  CHECK(folder.error_of("nameless.json").path() == "name");
  folder.write("removes.json", R"({"extends": "base.json", "name": "x", "arms": {"frozn": null}})");
  error = folder.error_of("removes.json");
  CHECK(error.path() == "arms.frozn");
  CHECK(contains(error.message(), "unknown entry 'frozn'; did you mean 'frozen'?"));
  folder.write("leads.json", R"({"extends": "base.json", "name": "x", "data": {"dim": {"x": 1}}})");
  CHECK(folder.error_of("leads.json").path() == "data.dim.x");
  CHECK(folder.error_of("base.json", {"extends=a.json"}).path() == "--set extends");
}

TEST_CASE("scenario file: an error says in which file the value stands") {
  const Folder folder;
  Json wrong = example_scenario();
  wrong["arms"]["frozen"]["model.router.trainable"] = 3;
  folder.write("wrong.json", wrong);
  folder.write("child.json", R"({"extends": "wrong.json", "name": "child"})");
  UserError error = folder.error_of("child.json");
  CHECK(error.path() == "arms.frozen.model.router.trainable");
  CHECK(contains(error.message(), "(written in " + folder.file("wrong.json").string() + ":1:"));
  folder.write("own.json", R"({"extends": "base.json", "name": "own", "data": {"dim": 0}})");
  error = folder.error_of("own.json");
  CHECK(error.path() == "data.dim");
  CHECK_FALSE(contains(error.message(), "written in"));
}

TEST_CASE("scenario file: an error in a file that is extended has its place once, in the message") {
  ScenarioError error(UserError("data.dim", "got 0 (written in wrong.json:3:4)"));
  error.line = 3;
  error.column = 4;
  CHECK(error.place_text().empty());
  error.file = "own.json";
  CHECK(error.place_text() == " (own.json:3:4)");
}

TEST_CASE("scenario file: names of data files are relative to the file in which they stand") {
  const Folder folder;
  folder.write("sub/base.json", R"({"name": "base",
    "data": {"generator": "text", "paths": ["a.txt", "/b.txt"], "tokenizer": {"kind": "bpe", "paths": "c"}},
    "arms": {"a": {"data.paths": "d"}, "b": {"data": {"paths": ["e"]}}}, "sweep": {"data.paths": ["f", ["g"]]},
    "phases": [{"name": "p", "data": {"paths": ["h"]}}], "evaluations": {"v": {"data.paths": ["../i"]}}})");
  folder.write("child.json", R"({"extends": "sub/base.json", "name": "child",
    "data": {"tokenizer": {"paths": "j"}}, "profiles": {"quick": {"data.paths": ["k"]}}})");
  const auto in = [&](const char* name) { return folder.file(name).string(); };
  const Json read = folder.document("child.json");
  CHECK(read.at("data").at("paths") == Json({in("sub/a.txt"), "/b.txt"}));
  CHECK(read.at("data").at("tokenizer").at("paths") == in("j"));
  CHECK(read.at("arms").at("a").at("data.paths") == in("sub/d"));
  CHECK(read.at("arms").at("b").at("data").at("paths") == Json::array({in("sub/e")}));
  CHECK(read.at("sweep").at("data.paths") == Json::array({in("sub/f"), Json::array({in("sub/g")})}));
  CHECK(read.at("phases")[0].at("data").at("paths") == Json::array({in("sub/h")}));
  CHECK(read.at("evaluations").at("v").at("data.paths") == Json::array({in("i")}));
  CHECK(read.at("profiles").at("quick").at("data.paths") == Json::array({in("k")}));
  folder.write("sub/images.json", R"({"name": "x", "data": {"generator": "image_clusters", "path": "c"}})");
  CHECK(folder.document("sub/images.json").at("data").at("path") == in("sub/c"));
  // "inputs" of another generator is a law.
  folder.write("law.json", R"({"name": "x", "data": {"generator": "moe_regression", "inputs": "normal"}})");
  CHECK(folder.document("law.json").at("data").at("inputs") == "normal");
}

TEST_CASE("scenario file: a file that does not exist is answered with the nearest one of its folder") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "temperatures.json") << "{}";
  const std::string nearest = "no such file; did you mean '" + (folder.path() / "temperatures.json").string();
  for (const char* name : {"temperatures", "temprature.json"})
    CHECK_THROWS_WITH_AS(read_scenario_file(folder.path() / name), doctest::Contains(nearest.c_str()),
                         UserError);
  try {
    read_scenario_file(folder.path() / "other.json");
    FAIL("accepted");
  } catch (const UserError& error) {
    CHECK(error.message() == "no such file");
  }
}

TEST_CASE("scenario file: versions") {
  const Folder folder;
  Json document = example_scenario();
  document["version"] = 1;
  folder.write("one.json", document);
  CHECK(load_scenario(folder.file("one.json"), "", {}).cells[0].id ==
        load_scenario(folder.file("base.json"), "", {}).cells[0].id);
  for (const char* other : {"2", "0", "\"1\"", "1.5", "null"}) {
    CAPTURE(other);
    document["version"] = Json::parse(other);
    document["no_such_field"] = 1;  // the version is what is wrong: another format has other fields
    folder.write("other.json", document);
    const UserError error = folder.error_of("other.json");
    CHECK(error.path() == "version");
    CHECK(contains(error.message(), "but this program reads version 1 of the scenario format"));
    CHECK(contains(error.message(), "a newer one may") == (other == std::string("2")));
  }
  folder.write("child.json", R"({"extends": "other.json", "name": "child"})");
  CHECK(folder.error_of("child.json").path() == folder.file("other.json").string() + ": version");
}

}  // namespace moelab::scenario_file_test
