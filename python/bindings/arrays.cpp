#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <future>
#include <initializer_list>
#include <memory>
#include <optional>

#include "analysis/metrics/task.h"
#include "app/cli/analysis_files.h"
#include "app/cli/analyze.h"
#include "app/cli/verbs.h"
#include "app/report/claim_results.h"
#include "app/run/cell.h"
#include "app/scenario/overrides.h"
#include "bindings/bindings.h"
#include "sim/base/error.h"
#include "sim/model/loss/task_loss.h"

namespace moelab::python {
namespace {

constexpr std::chrono::milliseconds kSignalPoll{50};

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
      if (type.bits == 64) return is_signed ? NpyType::int64 : NpyType::uint64;
      return std::nullopt;
    case Code::Bool:
      return NpyType::boolean;
    default:
      return std::nullopt;
  }
}

/// The arrays of one argument of `analyze`, as batches of entries (name, layer, array, array of experts). All
/// but the name may be None. An array is (its bits, the name of a type that NumPy lacks or None).
class GivenBatches {
 public:
  std::vector<std::vector<MemoryEntry>> read(const nb::handle& batches, const std::string& path) {
    std::vector<std::vector<MemoryEntry>> all;
    for (const nb::handle& batch : batches) {
      std::vector<MemoryEntry>& own = all.emplace_back();
      for (const nb::handle& entry : batch) {
        MemoryEntry& made = own.emplace_back();
        made.name = nb::cast<std::string>(entry[0]);
        if (!entry[1].is_none()) made.layer = nb::cast<int>(entry[1]);
        made.array = array(entry[2], path);
        made.index = array(entry[3], path);
      }
    }
    return all;
  }

 private:
  std::optional<MemoryArray> array(const nb::handle& given, const std::string& path) {
    if (given.is_none()) return std::nullopt;
    kept_.push_back(nb::cast<GivenArray>(given[0]));
    MemoryArray memory = memory_array(kept_.back(), path);
    if (!given[1].is_none()) memory.format.type = type_of_name(nb::cast<std::string>(given[1])).value();
    return memory;
  }

  std::vector<GivenArray> kept_;  // keeps the shared arrays alive
};

/// `settings`: the JSON of the other arguments. An argument that names files has them there.
std::string analyze(const nb::dict& arrays, const std::string& settings) {
  AnalyzedArrays analyzed;
  const std::vector<std::pair<const char*, ArraySource*>> places = {
      {"probs", &analyzed.probs},
      {"logits", &analyzed.logits},
      {"scores", &analyzed.scores},
      {"gates", &analyzed.gates},
      {"experts", &analyzed.experts},
      {"counts", &analyzed.counts},
      {"mask", &analyzed.mask},
      {"tokens", &analyzed.tokens},
      {"labels", &analyzed.labels},
      {"documents", &analyzed.documents},
      {"lengths", &analyzed.lengths},
      {"selection_bias", &analyzed.selection_bias},
      {"inputs", &analyzed.inputs},
      {"router", &analyzed.router},
      {"embeddings", &analyzed.embeddings},
      {"expert_outputs", &analyzed.expert_outputs},
      {"previous_probs", &analyzed.previous_probs},
      {"previous_logits", &analyzed.previous_logits},
      {"previous_assignments", &analyzed.previous_assignments}};
  GivenBatches given;
  const Json values = Json::parse(settings);
  for (const auto& [name, source] : places) {
    if (arrays.contains(name)) source->batches = given.read(arrays[name], name);
    if (values.at("files").contains(name)) {
      for (const Json& file : values.at("files").at(name))
        source->files.emplace_back(file.get<std::string>());
    }
  }
  for (const auto& [name, text] :
       std::initializer_list<std::pair<const char*, std::string*>>{{"axes", &analyzed.axes},
                                                                   {"layers", &analyzed.layers},
                                                                   {"score", &analyzed.score},
                                                                   {"groups", &analyzed.groups},
                                                                   {"dtype", &analyzed.dtype},
                                                                   {"ranks", &analyzed.ranks}})
    *text = values.at(name).get<std::string>();
  analyzed.model = values.at("model");
  analyzed.label_names = values.at("label_names").get<std::vector<std::string>>();
  analyzed.expert_count = values.at("expert_count").get<int>();
  analyzed.top_k = values.at("top_k").get<int>();
  analyzed.neighbours = values.at("neighbours").get<int>();
  analyzed.by_score = values.at("by_score").get<bool>();
  std::atomic<bool> stop = false;
  analyzed.stop = &stop;
  std::unique_ptr<nb::python_error> error;
  const std::string answer = released([&] {
    std::future<std::string> measured = std::async(std::launch::async, [&] {
      try {
        return json_text(to_json(analyze_arrays(analyzed)));
      } catch (const AnalysisStopped&) {
        return std::string();
      }
    });
    while (!error && measured.wait_for(kSignalPoll) != std::future_status::ready) {
      const nb::gil_scoped_acquire locked;
      if (PyErr_CheckSignals() != 0) {
        error = std::make_unique<nb::python_error>();
        stop = true;
      }
    }
    return measured.get();
  });
  if (error) throw nb::python_error(std::move(*error));
  return answer;
}

/// Writes the files of an analysis, which `answer` holds as JSON. Their names as JSON.
std::string save_analysis(const std::string& answer, const std::string& folder, bool figures) {
  return released([&] {
    return json_text(file_names(write_analysis(analysis_of(Json::parse(answer)), folder, figures)));
  });
}

/// Claims on two analyses, which `own` and `other` hold as JSON. The answers of `claims --json`.
std::string judge(const std::string& own, const std::string& other, const std::vector<std::string>& claims) {
  return released([&] {
    Json judged = Json::array();
    for (const ClaimResult& claim :
         judge_analyses(analysis_of(Json::parse(own)), analysis_of(Json::parse(other)), claims, "other"))
      judged.push_back(to_json(claim));
    return json_text(judged);
  });
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

/// Whether the last phase trains with cross-entropy.
bool is_cross_entropy(const ExperimentOptions& experiment) {
  const LossOptions& loss = experiment.phases.empty() ? experiment.loss : experiment.phases.back().loss;
  return task_loss_kind(loss.task).needs_classes;
}

/// {"loss", "nmse", "accuracy"} of outputs (n, o), as the metrics of the group `task` define them. A metric
/// that does not apply is left out.
std::string task_metrics(const GivenArray& outputs, const GivenArray& targets, bool cross_entropy,
                         bool classes) {
  const MemoryArray given = memory_array(outputs, "outputs"), wanted = memory_array(targets, "y");
  return released([&] {
    const NpyReader of_outputs(given, "outputs"), of_targets(wanted, "y");
    const Matrix f = of_outputs.read_finite(0, of_outputs.rows()), y = of_targets.read(0, of_targets.rows());
    Json values = {{"loss", cross_entropy ? mean_cross_entropy(f, y) : mean_squared_error(f, y)}};
    if (!cross_entropy) {
      if (const std::optional<double> nmse = normalised_mean_squared_error(f, y)) values["nmse"] = *nmse;
    }
    if (classes || cross_entropy) values["accuracy"] = accuracy(f, y);
    return json_text(values);
  });
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
                 {"point", point_json(cell.point)},
                 {"cross_entropy", is_cross_entropy(cell.options->experiment)},
                 {"classes", drawn_sets.layout.class_targets},
                 {"eval_gating", cell.options->experiment.model.gating.eval.chosen()}};
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
  module.def("analyze", analyze, "arrays"_a, "settings"_a,
             "The answer of `moelab analyze --json` for contiguous arrays by the names of its options.");
  module.def("save_analysis", save_analysis, "answer"_a, "folder"_a, "figures"_a,
             "Writes the tables, arrays, page and figures of an analysis. The names of the files (JSON).");
  module.def("judge_analyses", judge, "own"_a, "other"_a, "claims"_a,
             "Claims on two analyses of the same documents (JSON).");
  module.def("task_metrics", task_metrics, "outputs"_a, "targets"_a, "cross_entropy"_a, "classes"_a,
             "Loss, nmse and accuracy of outputs (n, o), as the program defines them (JSON).");
  module.def("sample", sample, "file"_a, "document"_a, "profile"_a, "settings"_a, "arm"_a, "seed"_a, "at"_a,
             "The data that a cell draws, and which cell it is: x, y, labels, test_x, … and about (JSON).");
}

}  // namespace moelab::python
