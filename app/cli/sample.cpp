#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>

#include "app/cli/completion.h"
#include "app/cli/verbs.h"
#include "app/run/cell.h"
#include "app/scenario/cells.h"
#include "app/scenario/overrides.h"
#include "app/scenario/scenario.h"
#include "app/store/durable_file.h"
#include "sim/base/error.h"
#include "sim/base/folder.h"
#include "sim/data/npy.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

const Cell& cell_of_id(const Scenario& scenario, const std::string& id) {
  if (id == "first") return scenario.cells.front();
  std::vector<std::string> ids = {"first"};
  for (const Cell& cell : scenario.cells) {
    if (cell.id == id) return cell;
    ids.push_back(cell.id);
  }
  const std::string nearest = nearest_name(id, ids);
  throw UserError("--cell", fmt::format("no cell '{}'{}; `moelab export` lists the cells of a run", id,
                                        nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
}

/// The cells among `cells` at this value of a swept path. Throws UserError where there is none; `where` then
/// repeats the earlier choices.
std::vector<const Cell*> cells_at(const Override& given, const std::vector<const Cell*>& cells,
                                  const std::string& where) {
  const std::string wanted = canonical_text(read_written_value(given.value));
  std::vector<const Cell*> found;
  std::vector<std::string> values;
  for (const Cell* cell : cells) {
    const SweepValue* const value = coordinate_of(cell->point, given.path);
    // An arm that does not sweep the path stands at every value.
    if (!value || value->canonical() == wanted) found.push_back(cell);
    if (!value) continue;
    const std::string text = abbreviated(to_json(*value));
    if (std::find(values.begin(), values.end(), text) == values.end()) values.push_back(text);
  }
  if (!found.empty()) return found;
  throw UserError(given.place, fmt::format("got {}, needs a value of the sweep{}: {}",
                                           abbreviated(given.value), where, fmt::join(values, ", ")));
}

/// Throws UserError at the option unless `reason` is empty.
void refuse(const std::string& option, const std::string& reason) {
  if (!reason.empty()) throw UserError(option, reason);
}

/// Throws UserError for a folder with other files, or with a sample of another scenario.
void check_sample_directory(const fs::path& directory, const std::string& scenario_name) {
  check_output_folder(directory, "--out");
  if (!fs::exists(directory)) return;
  const fs::path note = directory / "sample.json";
  check_output_file(note, "--out");
  if (!fs::exists(note)) {
    const auto is_finished = [](const fs::path& file) {
      return !is_temporary_name(file.filename().string());
    };
    if (std::ranges::none_of(entries_of(directory), is_finished)) return;
    throw UserError("--out",
                    "'" + directory.string() + "' holds other files; choose another folder or an empty one");
  }
  const Json json = read_json_file(note);
  if (!json.is_object() || json.value("name", Json()) != Json(scenario_name)) {
    throw UserError("--out", "'" + directory.string() + "' holds a sample of another scenario");
  }
}

/// Writes an array and adds its shape to `arrays`.
template <class Value>
void write_array(const fs::path& directory, const std::string& name, const std::vector<std::int64_t>& shape,
                 const Value* values, std::size_t count, Json& arrays) {
  replace_file(directory / (name + ".npy"), npy_bytes(shape, std::span<const Value>(values, count)));
  arrays[name] = shape;
}

void write_dataset(const fs::path& directory, const std::string& prefix, const Layout& layout,
                   const Dataset& data, Json& arrays) {
  const auto write_matrix = [&](const std::string& name, const std::vector<std::int64_t>& shape,
                                const Matrix& matrix) {
    write_array(directory, name, shape, matrix.data(), static_cast<std::size_t>(matrix.size()), arrays);
  };
  const auto write_ids = [&](const std::string& name, const Matrix& matrix) {
    const std::vector<std::int64_t> ids(matrix.data(), matrix.data() + matrix.size());
    write_array(directory, name, layout.input_shape(matrix.rows()), ids.data(), ids.size(), arrays);
  };
  if (layout.vocabulary > 0) {
    write_ids(prefix + "_inputs", data.x);
    write_ids(prefix + "_targets", data.y);
  } else {
    write_matrix(prefix + "_inputs", layout.input_shape(data.x.rows()), data.x);
    write_matrix(prefix + "_targets", layout.target_shape(data.x.rows()), data.y);
  }
  const std::vector<std::int64_t> labels(data.cluster.begin(), data.cluster.end());
  write_array(directory, prefix + "_labels", layout.label_shape(data.x.rows()), labels.data(), labels.size(),
              arrays);
}

/// Whether a sample writes a file of that name: "train_inputs.npy", "first.test_labels.npy".
bool is_sampled_file(const std::string& file) {
  for (const char* set : {"train", "test"})
    for (const char* part : {"inputs", "targets", "labels"}) {
      const std::string name = fmt::format("{}_{}.npy", set, part);
      if (file == name || file.ends_with("." + name)) return true;
    }
  return false;
}

/// Marks the sample in the folder as unfinished, then removes the arrays of an earlier one. If the program is
/// killed, the folder never describes arrays of another draw, and the same command starts again.
void begin_sample(const fs::path& directory, const std::string& scenario_name) {
  replace_file(directory / "sample.json",
               json_text({{"name", scenario_name}, {"unfinished", true}}, 1) + "\n");
  for (const fs::path& file : entries_of(directory))
    if (fs::is_regular_file(file) && is_sampled_file(file.filename().string())) fs::remove(file);
}

struct SampleOptions {
  ScenarioChoice scenario;
  CellChoice cell;
  std::filesystem::path out;  ///< empty for runs/<name>-sample
  bool json = false;

  void bind(VerbOptions& options) {
    scenario.bind(options);
    options.add("--out", &out, "folder for the arrays (default: runs/<name>-sample)",
                {.candidates = offer_files(Candidates::Files::folders)});
    options.add("--arm", &cell.arm, "arm of the cell (default: the first)",
                {.candidates = [this](const std::string&) { return offer_arms(scenario); }});
    options.add("--seed", &cell.seed, "seed of the cell, counted from 0 (default: 0)",
                {.candidates = [this](const std::string&) { return offer_seeds(scenario); }});
    options.add(
        "--at", &cell.at, "path=value: sweep point of the cell (repeatable; default: the first)",
        {.candidates = [this](const std::string& word) { return offer_swept_values(scenario, word); }});
    options.add("--cell", &cell.cell, "id of the cell, or first, in place of --arm, --seed and --at",
                {.candidates = [this](const std::string&) { return offer_cells(scenario); }});
    bind_json(options, json);
  }
};

/// Writes the data that a cell draws.
int write_sample(const SampleOptions& options) {
  const Scenario scenario = options.scenario.load();
  const Cell& cell = chosen_cell(scenario, options.cell);
  const fs::path directory =
      options.out.empty() ? fs::path("runs") / (scenario.name + "-sample") : options.out;
  check_sample_directory(directory, scenario.name);

  const std::vector<SampledSets> all = sampled_sets(cell);
  begin_sample(directory, scenario.name);
  Json arrays = Json::object();
  for (const SampledSets& sets : all) {
    if (sets.train) write_dataset(directory, sets.prefix + "train", sets.layout, *sets.train, arrays);
    write_dataset(directory, sets.prefix + "test", sets.layout, sets.test, arrays);
    if (!sets.attack.empty()) {
      std::cerr << fmt::format(
          "moelab: note: {}test_inputs are as drawn: the contamination '{}' changes them by the trained "
          "model\n",
          sets.prefix, sets.attack);
    }
  }

  const Json answer = {
      {"name", scenario.name}, {"directory", directory.string()}, {"cell", cell.id}, {"arm", cell.arm},
      {"seed", cell.seed},     {"point", point_json(cell.point)}, {"arrays", arrays}};
  replace_file(directory / "sample.json", json_text(answer, 1) + "\n");
  if (options.json) {
    print_json(answer);
    return 0;
  }
  for (const auto& [name, shape] : arrays.items()) {
    std::cout << fmt::format("{} {}\n", (directory / (name + ".npy")).string(), shape.dump());
  }
  return 0;
}

}  // namespace

const Cell& chosen_cell(const Scenario& scenario, const CellChoice& choice) {
  const bool is_described = !choice.arm.empty() || !choice.seed.empty() || !choice.at.empty();
  if (!choice.cell.empty() && is_described) {
    throw UserError("--cell", "names the cell already; leave it out, or --arm, --seed and --at");
  }
  if (!choice.cell.empty()) return cell_of_id(scenario, choice.cell);

  const std::string arm = choice.arm.empty() ? scenario.arms.front() : choice.arm;
  refuse("--arm", one_of("arm", scenario.arms)(arm));
  const std::string seed = choice.seed.empty() ? "0" : choice.seed;
  refuse("--seed", whole_number(0, scenario.cells.back().seed)(seed));

  std::vector<const Cell*> cells;
  for (const Cell& cell : scenario.cells) {
    if (cell.arm == arm && cell.seed == std::stoi(seed)) cells.push_back(&cell);
  }
  std::string where;
  for (const Override& given : read_settings(choice.at, "--at")) {
    refuse(given.place, one_of("swept path", scenario.sweep_paths)(given.path));
    cells = cells_at(given, cells, where);
    where += fmt::format("{} {} = {}", where.empty() ? " where" : ",", given.path, abbreviated(given.value));
  }
  return *cells.front();
}

Verb sample_verb() {
  return make_verb(
      "sample", "Write the training and test data that a cell draws, as .npy files",
      "sample scenarios/dikkala2023/fig3.json --arm frozen --seed 2 --at data.train_samples=5120",
      write_sample);
}

}  // namespace moelab
