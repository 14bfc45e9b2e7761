#include "app/cli/documents.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "analysis/metrics/metric_groups.h"
#include "analysis/metrics/routed_tokens.h"
#include "app/cli/verbs.h"
#include "app/scenario/json.h"
#include "app/scenario/scenario.h"
#include "tests/app/cli/answer.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::documents_test {
namespace {

const std::filesystem::path kDocuments = std::filesystem::path(MOELAB_TEST_DATA) / ".." / "docs";

}  // namespace

TEST_CASE("documents: the stored reference and schema are the program's; `moelab docs` writes them anew") {
  // Compared as booleans: a message with both texts would be no help.
  CHECK((file_text(kDocuments / "scenario.md") == scenario_reference()));
  CHECK((file_text(kDocuments / "scenario.schema.json") == scenario_schema()));
  if (std::getenv("MOELAB_WRITE_PAGES") != nullptr)
    std::ofstream(kDocuments / "commands.md") << command_reference();
  CHECK((file_text(kDocuments / "commands.md") == command_reference()));
}

TEST_CASE("documents: every verb and option is in the reference of commands") {
  const std::string text = command_reference();
  for (const Verb& verb : verbs()) {
    CAPTURE(verb.name);
    CHECK(text.find("\n## " + verb.name + "\n") != std::string::npos);
    const VerbCall call = verb.call();
    for (const Option& option : call.options.list)
      CHECK(text.find("| `" + option.name + "` |") != std::string::npos);
  }
}

TEST_CASE("documents: every field and kind is in the reference, and every link leads to a heading") {
  const std::string text = scenario_reference();
  for (const Field& field : scenario_shape().fields) {
    CAPTURE(field.name);
    CHECK(text.find("| `" + field.name + "` |") != std::string::npos);
    for (const Kind& kind : field.shape.kinds) CHECK(text.find("**" + kind.name + "**") != std::string::npos);
  }
  std::vector<std::string> anchors;
  for (std::size_t at = text.find("\n## "); at != std::string::npos; at = text.find("\n## ", at + 1)) {
    std::string heading = text.substr(at + 4, text.find('\n', at + 4) - at - 4);
    for (const std::string entity : {".", "&lt;", ">", "~"}) {  // of which an anchor keeps nothing
      for (std::size_t place; (place = heading.find(entity)) != std::string::npos;)
        heading.erase(place, entity.size());
    }
    std::replace(heading.begin(), heading.end(), ' ', '-');
    CHECK(std::find(anchors.begin(), anchors.end(), heading) == anchors.end());
    anchors.push_back(heading);
  }
  int links = 0;
  for (std::size_t at = text.find("](#"); at != std::string::npos; at = text.find("](#", at + 1)) {
    const std::string target = text.substr(at + 3, text.find(')', at) - at - 3);
    CAPTURE(target);
    CHECK(std::find(anchors.begin(), anchors.end(), target) != anchors.end());
    ++links;
  }
  CHECK(links > 20);
}

TEST_CASE("documents: each help stands alone, since `moelab list NAME` prints it alone") {
  std::vector<std::string> helps;
  std::function<void(const Shape&)> add_shape;
  const auto add_fields = [&](const std::vector<Field>& fields) {
    for (const Field& field : fields) {
      helps.push_back(field.help);
      add_shape(field.shape);
    }
  };
  add_shape = [&](const Shape& shape) {
    add_fields(shape.fields);
    for (const Kind& kind : shape.kinds) {
      helps.push_back(kind.help);
      add_fields(kind.fields);
    }
    if (shape.element) add_shape(*shape.element);
    for (const Shape& alternative : shape.alternatives) add_shape(alternative);
  };
  add_shape(scenario_shape());
  for (const MetricGroup& group : metric_groups()) {
    helps.push_back(group.help);
    for (const MetricGroup::Metric& metric : metrics_of_group(group.name)) helps.push_back(metric.help);
  }
  for (const RoutedMetric& metric : routed_metrics()) helps.emplace_back(metric.definition);
  for (const Verb& verb : verbs()) {
    const VerbCall call = verb.call();
    for (const Option& option : call.options.list) helps.push_back(option.help);
  }
  CHECK(helps.size() > 1000);
  for (const std::string& help : helps) {
    CAPTURE(help);
    for (const char* start : {"the same", "its ", "their ", "or ", "and "})
      CHECK_FALSE(help.starts_with(start));
  }
}

TEST_CASE("documents: fields that all kinds have stand in the reference once") {
  std::istringstream lines(scenario_reference());
  std::map<std::string, int> rows;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("| `records` |") || line.starts_with("| `test_samples` |")) ++rows[line];
  REQUIRE(rows.size() == 3);  // `records` of a search are another field
  for (const auto& row : rows) CHECK_MESSAGE(row.second == 1, row.first);
  CHECK(scenario_reference().find("\n## claims.left of comparisons\n") != std::string::npos);
}

TEST_CASE("documents: a new scenario is valid as written, names its schema, and overwrites nothing") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "idea.json";
  const Answer written = ask({"new", "idea", "--out", file.string(), "--json"});
  REQUIRE_MESSAGE(written.status == 0, written.out);
  CHECK(Json::parse(written.out).at("file") == file.string());
  CHECK(Json::parse(ask({"plan", file.string(), "--json"}).out).at("cells") == 30);
  CHECK(ask({"validate", file.string(), "--profile", "quick"}).out == "valid: 18 cells\n");
  const Json scenario = read_json_file(file);
  CHECK(scenario.at("name") == "idea");
  CHECK((file_text(folder.path() / scenario.at("$schema").get<std::string>()) == scenario_schema()));

  std::ofstream(file) << "mine";
  std::ofstream(folder.path() / "scenario.schema.json") << "mine, too";
  CHECK(ask({"new", "idea", "--out", file.string()}).status == 2);
  CHECK(file_text(file) == "mine");
  CHECK(ask({"new", "other", "--out", (folder.path() / "other.json").string()}).status == 0);
  CHECK(file_text(folder.path() / "scenario.schema.json") == "mine, too");
  CHECK(ask({"new", "no/name"}).status == 2);
}

TEST_CASE("documents: every starting point is valid, and its comments stay in the file") {
  for (const char* from : {"idea", "sweep", "balance", "language", "router"}) {
    CAPTURE(from);
    const TemporaryFolder folder;
    const std::string file = (folder.path() / "my.json").string();
    REQUIRE(ask({"new", "my", "--from", from, "--out", file}).status == 0);
    const Answer valid = ask({"validate", file});
    CHECK_MESSAGE(valid.status == 0, valid.err);
    CHECK(file_text(file).find("\"//\": ") != std::string::npos);
    const Json document = read_json_file(file);
    CHECK_FALSE(document.contains("//"));
    CHECK_FALSE(document.contains("notes"));
  }
  CHECK(ask({"new", "my", "--from", "ballance"}).err.find("did you mean 'balance'?") != std::string::npos);
}

TEST_CASE("documents: every shipped scenario names the schema for editors") {
  const std::filesystem::path scenarios = std::filesystem::path(MOELAB_TEST_DATA) / ".." / "scenarios";
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scenarios)) {
    if (entry.path().extension() != ".json") continue;
    CAPTURE(entry.path().string());
    const std::filesystem::path schema =
        entry.path().parent_path() / read_json_file(entry.path()).value("$schema", "");
    CHECK(std::filesystem::equivalent(schema, kDocuments / "scenario.schema.json"));
    ++count;
  }
  CHECK(count > 0);
}

TEST_CASE("documents: the catalogue names hypotheses and what is expected") {
  const Check check = {"a.lemma", "A et al. 2020, Lemma 1", "|x| < y", CheckVerdict::fails, nullptr};
  CheckFinding finding;
  finding.hypotheses = {{"x > 0", 1, true}, {"y > 0", -1, false}};
  const std::string text = theorem_catalogue({&check}, {finding});
  CHECK(text.find("\n## A et al. 2020\n\n### a.lemma\n\nA et al. 2020, Lemma 1.\n\n> \\|x\\| &lt; "
                  "y\n\nExpected: fails.\n\n"
                  "Hypotheses:\n\n- x > 0\n- y > 0 (not met)\n") != std::string::npos);
}

}  // namespace moelab::documents_test
