#include <fmt/format.h>

#include <optional>

#include "app/cli/analyze.h"
#include "app/cli/verbs.h"
#include "app/run/cell.h"
#include "app/scenario/overrides.h"
#include "bindings/bindings.h"
#include "sim/base/error.h"

namespace moelab::python {
namespace {

/// The type of an array's values; unset for unsupported types.
std::optional<NpyType> type_of(const nb::dlpack::dtype& type) {
  using Code = nb::dlpack::dtype_code;
  if (type.lanes != 1) return std::nullopt;
  const bool is_signed = type.code == static_cast<std::uint8_t>(Code::Int);
  switch (static_cast<Code>(type.code)) {
    case Code::Float:
      if (type.bits == 16) return NpyType::float16;
      if (type.bits == 32) return NpyType::float32;
      if (type.bits == 64) return NpyType::float64;
      return std::nullopt;
    case Code::Int:
    case Code::UInt:
      if (type.bits == 8) return is_signed ? NpyType::int8 : NpyType::uint8;
      if (type.bits == 16) return is_signed ? NpyType::int16 : NpyType::uint16;
      if (type.bits == 32) return is_signed ? NpyType::int32 : NpyType::uint32;
      if (type.bits == 64 && is_signed) return NpyType::int64;
      return std::nullopt;
    case Code::Bool:
      return NpyType::boolean;
    default:
      return std::nullopt;
  }
}

std::string analyze(const nb::dict& arrays, int top_k, int neighbours) {
  AnalyzedArrays analyzed;
  analyzed.top_k = top_k;
  analyzed.neighbours = neighbours;
  const std::vector<std::pair<const char*, ArraySource*>> places = {
      {"probs", &analyzed.probs},
      {"logits", &analyzed.logits},
      {"labels", &analyzed.labels},
      {"inputs", &analyzed.inputs},
      {"router", &analyzed.router},
      {"embeddings", &analyzed.embeddings},
      {"expert_outputs", &analyzed.expert_outputs},
      {"previous_probs", &analyzed.previous_probs},
      {"previous_logits", &analyzed.previous_logits},
      {"previous_assignments", &analyzed.previous_assignments}};
  std::vector<GivenArray> kept;  // keeps the shared arrays alive
  for (const auto& [name, source] : places) {
    if (!arrays.contains(name)) continue;
    kept.push_back(nb::cast<GivenArray>(arrays[name]));
    *source = memory_array(kept.back(), name);
  }
  return released([&] { return json_text(to_json(analyze_arrays(analyzed))); });
}

/// Adds the arrays of one drawn set. Their names are `prefix` and the names of Sample's fields.
void add_set(const std::string& prefix, const Layout& layout, Dataset data, nb::dict& sample) {
  const std::int64_t n = data.x.rows();
  std::vector<std::int64_t> labels(data.cluster.begin(), data.cluster.end());
  if (layout.vocabulary > 0) {  // token ids, as the program writes them
    std::vector<std::int64_t> x(data.x.data(), data.x.data() + data.x.size());
    std::vector<std::int64_t> y(data.y.data(), data.y.data() + data.y.size());
    sample[(prefix + "x").c_str()] = owning_array<std::int64_t>(std::move(x), layout.input_shape(n));
    sample[(prefix + "y").c_str()] = owning_array<std::int64_t>(std::move(y), layout.input_shape(n));
  } else {
    sample[(prefix + "x").c_str()] = owning_array<double>(std::move(data.x), layout.input_shape(n));
    sample[(prefix + "y").c_str()] = owning_array<double>(std::move(data.y), layout.target_shape(n));
  }
  sample[(prefix + "labels").c_str()] = owning_array<std::int64_t>(std::move(labels), layout.label_shape(n));
}

nb::dict sample(const std::string& file, const std::string& document, const std::string& profile,
                const std::vector<std::string>& settings, const std::string& arm, const std::string& seed,
                const std::vector<std::string>& at) {
  struct Drawn {
    Json cell;
    Layout layout;
    std::optional<Dataset> train;
    Dataset test;
  };
  Drawn drawn = released([&] {
    const Scenario scenario = GivenScenario{file, document, profile}.load(settings);
    const Cell& cell = chosen_cell(scenario, {"", arm, seed, at});
    SampledSets drawn_sets = last_sampled_sets(cell);
    Drawn sets;
    sets.cell = {{"name", scenario.name},
                 {"cell", cell.id},
                 {"arm", cell.arm},
                 {"seed", cell.seed},
                 {"point", point_json(cell.point)}};
    sets.layout = drawn_sets.layout;
    sets.train = std::move(drawn_sets.train);
    sets.test = std::move(drawn_sets.test);
    return sets;
  });
  nb::dict fields;
  fields["about"] = json_text(drawn.cell);
  if (drawn.train) add_set("", drawn.layout, std::move(*drawn.train), fields);
  add_set("test_", drawn.layout, std::move(drawn.test), fields);
  return fields;
}

}  // namespace

MemoryArray memory_array(const GivenArray& array, const std::string& path) {
  const std::optional<NpyType> type = type_of(array.dtype());
  if (!type) throw UserError(path, "holds values of a type that is not read");
  MemoryArray memory;
  memory.format.type = *type;
  for (std::size_t axis = 0; axis < array.ndim(); ++axis)
    memory.format.shape.push_back(static_cast<std::int64_t>(array.shape(axis)));
  memory.values = static_cast<const char*>(array.data());
  return memory;
}

void bind_arrays(nb::module_& module) {
  using namespace nb::literals;
  module.def("analyze", analyze, "arrays"_a, "top_k"_a, "neighbours"_a,
             "The answer of `moelab analyze --json` for contiguous arrays by the names of its options.");
  module.def("sample", sample, "file"_a, "document"_a, "profile"_a, "settings"_a, "arm"_a, "seed"_a, "at"_a,
             "The data that a cell draws, and which cell it is: x, y, labels, test_x, … and about (JSON).");
}

}  // namespace moelab::python
