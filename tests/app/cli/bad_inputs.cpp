#include "tests/app/cli/bad_inputs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>

#include "app/store/record.h"
#include "app/store/run_folder.h"
#include "sim/data/npy.h"
#include "tests/app/run/test_scenario.h"
#include "tests/app/scenario/example.h"

namespace moelab::bad_input_page_test {
namespace {

void write_bytes(const std::string& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

std::string code(const std::string& text) {
  return "`" + text + "`";
}

/// A scenario file of any bytes.
BadInput scenario_text(const std::string& given, const std::string& bytes) {
  return {given, {"validate", "scenario.json"}, [bytes] { write_bytes("scenario.json", bytes); }};
}

/// The example scenario with the value at a JSON pointer replaced.
BadInput field(const std::string& pointer, const std::string& value) {
  std::string path;
  for (std::size_t start = 1; start <= pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', start), pointer.size());
    const std::string key = pointer.substr(start, end - start);
    const bool is_index = key.find_first_not_of("0123456789") == std::string::npos;
    path += is_index ? "[" + key + "]" : (path.empty() ? "" : ".") + key;
    start = end + 1;
  }
  return scenario_text(code(path + ": " + value), example_with(pointer.c_str(), value.c_str()).dump());
}

/// A command line; `prepare` makes what it needs.
BadInput words(
    std::vector<std::string> given, std::function<void()> prepare = [] {}) {
  std::string line = "moelab";
  for (const std::string& word : given) line += " " + word;
  return {code(line), std::move(given), std::move(prepare)};
}

/// The same for the example scenario, in scenario.json.
BadInput scenario_words(std::vector<std::string> given) {
  return words(std::move(given), [] { write_bytes("scenario.json", example_scenario().dump()); });
}

/// `moelab analyze` of two rows of probabilities over two experts, and further options.
BadInput arrays(const std::string& given, const std::string& probs, std::vector<std::string> more = {},
                const std::string& other = "") {
  std::vector<std::string> line = {"analyze", "--probs", "P.npy"};
  line.insert(line.end(), more.begin(), more.end());
  return {given, line, [probs, other] {
            write_bytes("P.npy", probs);
            write_bytes("X.npy", other);
          }};
}

std::string doubles(const std::vector<std::int64_t>& shape, const std::vector<double>& values) {
  return npy_bytes(shape, std::span<const double>(values));
}

std::string integers(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& values) {
  return npy_bytes(shape, std::span<const std::int64_t>(values));
}

std::string with_type(std::string bytes, const std::string& type) {
  return bytes.replace(bytes.find("<f8"), 3, type);
}

}  // namespace

BadInputs bad_inputs() {
  const std::string right = doubles({2, 2}, {0.5, 0.5, 0.25, 0.75});
  return {
      {"Scenario files",
       {words({"validate", "no-such-file.json"}),
        words({"validate", "folder"}, [] { std::filesystem::create_directory("folder"); }),
        scenario_text("an empty file", ""),
        scenario_text(code("[]"), "[]"),
        scenario_text(code("{\"name\": \"a\",}"), "{\"name\": \"a\",}"),
        scenario_text(code("{\"name\": \"a\"") + ", cut off", "{\"name\": \"a\""),
        scenario_text(code("{\"name\": \"a\", \"name\": \"b\"}"), "{\"name\": \"a\", \"name\": \"b\"}"),
        scenario_text("a number of " + code("1e999"), "{\"name\": \"a\",\n \"data\": {\"dim\": 1e999}}"),
        scenario_text("a number of " + code("1e-400"), "{\"name\": \"a\",\n \"data\": {\"dim\": 1e-400}}"),
        scenario_text("a text that is not UTF-8", "{\"name\": \"\xff\"}"),
        scenario_text("100 brackets in each other", std::string(100, '[') + std::string(100, ']')),
        {"a file of 17 MB",
         {"validate", "large.json"},
         [] {
           write_bytes("large.json", "{}");
           std::filesystem::resize_file("large.json", 17 << 20);
         }}}},
      {"Fields",
       {field("/trian", "{}"),
        field("/version", "99"),
        field("/extends", "\"no-such-file.json\""),
        field("/train", "null"),
        field("/name", "\"a/b\""),
        field("/model", "3"),
        field("/data/generator", "\"gausian_mixture\""),
        field("/data/trian_samples", "640"),
        field("/data/clusters", "2.5"),
        field("/data/clusters", "0"),
        field("/data/clusters", "1e30"),
        field("/data/test_samples", "100000000"),
        field("/data/noise_std", "\"NaN\""),
        field("/data/weights", "[1, 2]"),
        field("/data/separation", "50"),
        field("/model/router", "\"linaer\""),
        field("/model/router/trainable", "\"no\""),
        field("/model/gating/train", "{\"kind\": \"topk\", \"k\": 65}"),
        field("/model/kind", "\"dense\""),
        field("/train/epochs", "3"),
        field("/train/lr/router", "-0.1"),
        field("/metrics/1", "\"sparcity\""),
        field("/save", "[\"weight\"]"),
        field("/seeds/count", "10000000"),
        field("/seeds/root", "9007199254740993")}},
      {"Arms, sweeps, claims and figures",
       {field("/arms/frozen", "{\"model.router.trainabel\": true}"),
        field("/arms/frozen",
              "{\"model.router.trainable\": false, \"model.router\": {\"kind\": \"linear\"}}"),
        field("/arms/frozen", "{\"data.train_samples\": 1}"), field("/sweep", "{\"data.train_sample\": [1]}"),
        field("/sweep", "{\"data.train_samples\": [640, 640.0]}"),
        field("/sweep", "{\"data.train_samples\": {\"log2range\": [64, 100]}}"),
        field("/sweep", "{\"zip\": {\"data.dim\": {\"log2range\": [1, 2]}}}"),
        field("/sweep", "{\"zip\": {\"data.dim\": [1, 2], \"data.clusters\": [1]}}"),
        field("/claims/0/op", "\"<=\""), field("/claims/0/left/arm", "\"lerned\""),
        field("/claims/0/left/metric", "\"test_nmse_top\""),
        field("/claims/0/left/where", "{\"data.train_samples\": 641}"),
        field("/figures/0/x", "\"data.train_sample\"")}},
      {"Overrides",
       {scenario_words({"validate", "scenario.json", "--profile", "quikc"}),
        scenario_words({"validate", "scenario.json", "--set", "train.steps"}),
        scenario_words({"validate", "scenario.json", "--set", "train.stesp=3"}),
        scenario_words({"validate", "scenario.json", "--set", "train.steps=many"}),
        scenario_words({"validate", "scenario.json", "--set", "train.steps=5", "--set", "train.steps=6"}),
        scenario_words({"validate", "scenario.json", "--set", "data.clusters.x=1"}),
        scenario_words({"validate", "scenario.json", "--set", "seeds.count=1000000"}),
        scenario_words({"validate", "scenario.json", "--set", "figures.1.y=test_nmse_soft"}),
        scenario_words({"validate", "scenario.json", "--set", "data.train_samples=640"}),
        scenario_words({"validate", "scenario.json", "--set", "model.router.trainable=false"})}},
      {"Arrays",
       {words({"analyze", "--probs", "no-such-file.npy"}), arrays("a text file", "0.5,0.5\n0.25,0.75\n"),
        arrays("a file that is cut off", right.substr(0, right.size() - 5)),
        arrays("complex numbers", with_type(right, "<c8")), arrays("Python objects", with_type(right, "|O ")),
        arrays("an array of shape (4,)", doubles({4}, {0.5, 0.5, 0.25, 0.75})),
        arrays("a row that sums to 1.25", doubles({2, 2}, {0.5, 0.5, 0.5, 0.75})),
        arrays("NaN", doubles({2, 2}, {0.5, 0.5, std::nan(""), 0.75})),
        arrays(code("--labels") + " with three rows", right, {"--labels", "X.npy"}, integers({3}, {0, 1, 0})),
        arrays(code("--labels") + " in float64", right, {"--labels", "X.npy"}, doubles({2}, {0, 1})),
        arrays(code("--inputs") + " with three rows", right, {"--inputs", "X.npy"},
               doubles({3, 1}, {1, 2, 3})),
        arrays(code("--top-k 3") + " of two experts", right, {"--top-k", "3"}),
        arrays(code("--neighbours 2") + " of two rows", right, {"--neighbours", "2"})}},
      {"Verbs and options",
       {words({"exprot", "runs/a"}),
        words({"run"}),
        words({"run", "a.json", "--thread", "2"}),
        words({"run", "a.json", "--threads", "0"}),
        words({"run", "a.json", "--threads", "two"}),
        words({"run", "a.json", "b.json"}),
        scenario_words({"run", "scenario.json", "--share", "2/2"}),
        {code("moelab run scenario.json --out folder") + ", which holds other files",
         {"run", "scenario.json", "--out", "folder"},
         [] {
           write_bytes("scenario.json", example_scenario().dump());
           std::filesystem::create_directory("folder");
           write_bytes("folder/thesis.tex", "");
         }},
        scenario_words({"sample", "scenario.json", "--at", "data.train_samples=641"}),
        scenario_words({"sample", "scenario.json", "--seed", "5"}),
        scenario_words({"sample", "scenario.json", "--cell", "first", "--arm", "frozen"}),
        scenario_words({"slurm", "scenario.json", "--minutes-per-cell", "soon"}),
        scenario_words({"slurm", "scenario.json", "--arms", "learned"}),
        scenario_words({"slurm", "scenario.json", "--tune", "--hours", "2"}),
        scenario_words({"run", "scenario.json", "--until-decided", "--max-seeds", "1"}),
        words({"export", "runs/a", "--out", "folder"}, [] { std::filesystem::create_directory("folder"); }),
        words({"compare", "runs/a"}),
        words({"agreement", "no-such-folder"}),
        words({"list", "routter"}),
        words({"check", "lema"}),
        words({"check", "--list", "--figures", "figures"}),
        {code("moelab completion tcsh"), {"completion", "tcsh"}, [] {}, false}}},
      {"Run folders",
       {words({"status", "no-such-folder"}),
        words({"claims", "run", "--plan", "6a"}, [] { keep_plan("run", small_scenario()); }),
        {code("moelab status run") + ", whose plan.json is of the first version",
         {"status", "run"},
         [] { write_bytes("run/plan.json", "{\"version\": 1, \"cells\": []}"); }},
        {code("moelab status run") + ", whose plan.json has a changed letter and no copy",
         {"status", "run"},
         [] {
           std::filesystem::remove_all("run");
           keep_plan("run", small_scenario());
           std::string text = file_text("run/plan.json");
           text.replace(text.find("\"small\""), 7, "\"smell\"");
           write_bytes("run/plan.json", text);
           std::filesystem::remove_all("run/plans");
         }},
        {code("moelab status run") + ", with a session that was cut off",
         {"status", "run"},
         [] {
           std::filesystem::remove_all("run");
           keep_plan("run", small_scenario());
           for (const char* folder : {"run/journal", "run/sessions"})
             std::filesystem::create_directory(folder);
           write_bytes("run/journal/a.jsonl", "");
           write_bytes("run/sessions/a.json", "{");
         }},
        {code("moelab export run") + ", where two journals hold a cell with other numbers",
         {"export", "run"},
         [] {
           std::filesystem::remove_all("run");
           keep_plan("run", small_scenario());
           std::filesystem::create_directory("run/journal");
           for (const double loss : {0.5, 0.25}) {
             Record record = {"learned10s0", "done", "", {{"test_loss_soft", loss}}, {}, 1, ""};
             write_bytes(loss == 0.5 ? "run/journal/a.jsonl" : "run/journal/b.jsonl",
                         record_line(record) + "\n");
           }
         }},
        words({"verify", "run", "--keep", "c.jsonl"})}},
  };
}

}  // namespace moelab::bad_input_page_test
