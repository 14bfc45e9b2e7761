#include <fmt/format.h>

#include <limits>

#include "analysis/metrics/metric_groups.h"
#include "app/cli/run.h"
#include "app/report/claim_results.h"
#include "app/run/cell.h"
#include "app/run/cost.h"
#include "app/run/figures.h"
#include "app/run/memory.h"
#include "app/run/search.h"
#include "app/run/session.h"
#include "app/scenario/schema.h"
#include "app/store/export.h"
#include "app/store/imported_arms.h"
#include "bindings/bindings.h"
#include "sim/base/error.h"

namespace moelab::python {
namespace {

/// A column of the table. A metric column has doubles, with NaN for an empty field. Other columns are JSON
/// text of a list.
nb::object column_of(const ExportTable& table, std::size_t place, bool is_metric) {
  if (!is_metric) {
    Json values = Json::array();
    for (const std::vector<Json>& row : table.rows) values.push_back(row[place]);
    return nb::cast(json_text(values, -1));
  }
  std::vector<double> values;
  values.reserve(table.rows.size());
  for (const std::vector<Json>& row : table.rows)
    values.push_back(row[place].is_null() ? std::numeric_limits<double>::quiet_NaN()
                                          : row[place].get<double>());
  const auto rows = static_cast<std::int64_t>(values.size());
  return nb::cast(owning_array<double>(std::move(values), {rows}));
}

/// The plans of a run folder, by id: [{"plan", "name", "profile", "cells", "last"}].
std::string plans(const std::string& directory) {
  return released([&] {
    const std::filesystem::path folder = RunAddress(directory).directory();
    const std::string shown = shown_plan(folder);
    Json list = Json::array();
    for (const std::string& id : plan_ids(folder)) {
      const Plan plan = find_plan({folder, id}).plan;
      list.push_back({{"plan", id},
                      {"name", plan.head.name},
                      {"profile", plan.head.profile},
                      {"cells", plan.cells.size()},
                      {"last", id == shown}});
    }
    return json_text(list);
  });
}

/// The exported table as a list of (name, column).
nb::list table(const std::string& directory, const std::string& plan, bool trace) {
  std::size_t keys = 0;
  const ExportTable exported = released([&] {
    const RunResults results = load_results({directory, plan}, trace ? RecordPart::all : RecordPart::metrics);
    ExportTable own = export_table(results, trace, metric_names());
    // Key columns: cell, arm, seed, swept paths, state. A trace also has step, and layer if there are
    // several.
    keys = 4 + results.table.sweep_paths.size() + (trace ? 1 : 0);
    if (trace && keys < own.columns.size() && own.columns[keys] == "layer") ++keys;
    return own;
  });
  nb::list columns;
  for (std::size_t place = 0; place < exported.columns.size(); ++place)
    columns.append(nb::make_tuple(exported.columns[place], column_of(exported, place, place >= keys)));
  return columns;
}

std::string about(const std::string& directory, const std::string& plan) {
  return released([&] {
    const RunAddress address{directory, plan};
    const FoundPlan found = find_plan(address);
    const PlanHead& head = found.plan.head;
    Json figures = Json::array();
    for (const FigureOptions& figure : head.figures) figures.push_back(common_of(figure).id);
    return json_text(Json{{"directory", address.directory().string()},
                          {"plan", found.plan.id},
                          {"name", head.name},
                          {"title", head.title},
                          {"source", head.source},
                          {"profile", head.profile},
                          {"arms", head.arms},
                          {"sweep", head.sweep_paths},
                          {"cells", found.plan.cells.size()},
                          {"figures", std::move(figures)},
                          {"scenario", head.document},
                          {"notes", found.notes}},
                     -1);
  });
}

std::string claims(const std::string& directory, const std::string& plan) {
  return released([&] {
    Json list = Json::array();
    for (const ClaimResult& claim : claim_results(load_results({directory, plan})))
      list.push_back(to_json(claim));
    return json_text(list, -1);
  });
}

/// The data and layout of a figure in the plan, in the format of data_json() in plots/. Cluster maps and load
/// maps are heat maps. `style` is JSON: the name of a preset, or fields. Throws UserError at "figure" for an
/// unknown id, and below "style".
std::string figure(const std::string& directory, const std::string& plan, const std::string& id,
                   const std::string& style_text) {
  return released([&] {
    const Json given = style_text.empty() ? Json::object() : parse_json(style_text, "style");
    const FigureStyle style = given.is_string() ? style_preset(given.get<std::string>(), "style")
                                                : resolve_options<FigureStyle>(given, "style");
    style.check("style");
    const RunAddress address{directory, plan};
    const RunResults results = load_results(address);
    std::vector<std::string> ids;
    for (const FigureOptions& options : results.head.figures) {
      ids.push_back(common_of(options).id);
      if (ids.back() != id) continue;
      const AnyFigure shown = build_figure(options, figure_source(results, address.directory()), style);
      return std::visit([](const auto& own) { return json_text(Json(data_json(own)), -1); }, shown);
    }
    throw UserError("figure", ids.empty() ? "the run has no figures" : unknown_name("figure", id, ids));
  });
}

/// The files of a cell's arrays, by name. Checks that their bytes equal the recorded ones.
std::string array_files(const std::string& directory, const std::string& plan, const std::string& cell) {
  return released([&] {
    const RunAddress address{directory, plan};
    const RunResults results = load_results(address, RecordPart::state);
    std::vector<std::string> ids;
    std::string id;
    for (const ResultRow& row : results.table.rows) {
      if (row.cell == cell || (cell.size() >= 2 && row.cell.starts_with(cell))) {
        if (!id.empty() && id != row.cell)
          throw UserError("cell", fmt::format("'{}' begins several cells: {}, {}", cell, id, row.cell));
        id = row.cell;
      }
      if (ids.empty() || ids.back() != row.cell) ids.push_back(row.cell);
    }
    if (id.empty()) throw UserError("cell", unknown_name("cell", cell, ids));
    Json files = Json::object();
    const auto recorded = results.arrays.find(id);
    if (recorded == results.arrays.end())
      throw UserError("cell",
                      fmt::format("'{}' has no arrays; a cell saves those of \"save\" in the scenario, "
                                  "once it has run",
                                  id));
    for (const auto& [name, sum] : recorded->second) {
      const std::filesystem::path file = array_file(address.directory(), id, name);
      if (const std::string problem = array_problem(file, sum); !problem.empty())
        throw UserError(file.string(), problem + "; run the scenario again, which writes it anew");
      files[name] = file.string();
    }
    return json_text(files);
  });
}

void import_frame(const std::string& directory, const std::string& plan, const std::string& arm,
                  const std::string& csv) {
  released([&] { return import_arm({directory, plan}, arm, csv, "frame"); });
}

void remove_arm(const std::string& directory, const std::string& plan, const std::string& arm) {
  released([&] { remove_imported_arm({directory, plan}, arm); });
}

/// Runs Python's signal handlers and `progress` during a session, and stores the first exception.
class Watch {
 public:
  explicit Watch(nb::object progress) : progress_(std::move(progress)) {}

  bool operator()(const SessionProgress& session) {
    const nb::gil_scoped_acquire locked;
    if (error_) return true;
    pass_on_notes();
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!progress_.is_none()) {
        const BatchProgress& cells = session.cells;
        progress_(session.already + cells.finished, session.already + cells.total, cells.partial,
                  cells.failed, cells.diverged,
                  session.seconds_left ? nb::cast(*session.seconds_left) : nb::none());
      }
    } catch (nb::python_error& error) {
      error_ = std::make_unique<nb::python_error>(std::move(error));
    }
    return error_ != nullptr;
  }

  /// Throws the stored exception. The caller must hold the interpreter's lock.
  void rethrow() {
    if (error_) throw nb::python_error(std::move(*error_));
  }

 private:
  nb::object progress_;
  std::unique_ptr<nb::python_error> error_;
};

/// The equivalent command line, for the provenance.
std::vector<std::string> equal_command(const std::string& file, const std::string& profile,
                                       const std::vector<std::string>& settings) {
  std::vector<std::string> words = {"moelab", "run", file.empty() ? "(a dict of Python)" : file};
  if (!profile.empty()) words.insert(words.end(), {"--profile", profile});
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  return words;
}

/// Options of a run, as JSON: {"seeds", "max_seeds", "hours", "until_decided", "retry", "leases", "force"}.
struct RunSettings {
  explicit RunSettings(const Json& given)
      : added_seeds(given.at("seeds").get<std::string>()),
        retry(given.at("retry").get<bool>()),
        leases(given.at("leases").get<bool>()),
        force(given.at("force").get<bool>()) {
    deciding.until_decided = given.at("until_decided").get<bool>();
    deciding.max_seeds = given.at("max_seeds").get<int>();
    deciding.hours = given.at("hours").get<double>();
  }

  std::string added_seeds;
  DecidingChoice deciding = {};
  bool retry, leases, force;
};

std::string run(const std::string& file, const std::string& document, const std::string& profile,
                const std::vector<std::string>& settings, const std::string& out, int threads,
                const std::string& further, nb::object progress) {
  Watch watch(std::move(progress));
  const RunSettings asked(parse_json(further, "run"));
  PlanChoice choice;
  choice.scenario.settings = settings;
  choice.out = out;
  choice.added_seeds = asked.added_seeds;
  const std::string answer = released([&] {
    const auto load = [given = GivenScenario{file, document, profile}](const std::vector<std::string>& sets) {
      return given.load(sets);
    };
    PlannedRun planned = planned_run(choice, asked.deciding.until_decided, load);
    check_deciding(asked.deciding, planned.scenario);
    SessionOptions options;
    options.directory = planned.directory;
    options.threads = thread_count(threads);
    options.arguments = equal_command(file, profile, settings);
    options.retry_failed = asked.retry;
    options.leases = asked.leases;
    options.admit = [&](const Records& records) {
      if (asked.force) return;
      const RunCost cost = run_cost(planned.scenario, records, options.threads);
      check_memory(cost.process_bytes, cost.cell_bytes, cost.threads, available_bytes(), "");
    };
    options.watch = [&](const SessionProgress& session) { return watch(session); };
    const SessionOutcome outcome =
        asked.deciding.until_decided
            ? run_until_decided(settings, load, asked.deciding, options, planned, run_cell)
            : run_and_search(planned.scenario, options, run_cell);
    Json ended = {{"directory", planned.directory.string()}, {"plan", outcome.plan},
                  {"interrupted", outcome.interrupted},      {"failed", outcome.failed},
                  {"not_restored", outcome.not_restored},    {"hint", ""}};
    if (!outcome.interrupted) {
      const RunResults results = load_results(planned.directory, planned.scenario, outcome.plan);
      judge_claims(results, planned.directory);
      if (outcome.all_diverged) ended["hint"] = divergence_hint(planned.scenario, results.table);
    }
    return json_text(ended);
  });
  watch.rethrow();
  return answer;
}

}  // namespace

void bind_runs(nb::module_& module) {
  using namespace nb::literals;
  module.def("about", about, "directory"_a, "plan"_a, "The plan of a run folder: id, name, arms, figures, …");
  module.def("table", table, "directory"_a, "plan"_a, "trace"_a,
             "The columns of `moelab export`: metrics as arrays, the others as JSON.");
  module.def("claims", claims, "directory"_a, "plan"_a, "The answer of `moelab claims --json`.");
  module.def("figure", figure, "directory"_a, "plan"_a, "id"_a, "style"_a, "What a figure shows, as data.");
  module.def("array_files", array_files, "directory"_a, "plan"_a, "cell"_a,
             "The .npy files of a cell's saved arrays, by name.");
  module.def("import_arm", import_frame, "directory"_a, "plan"_a, "arm"_a, "csv"_a,
             "Adds results of another training as an arm.");
  module.def("remove_arm", remove_arm, "directory"_a, "plan"_a, "arm"_a, "Removes an imported arm.");
  module.def("plans", plans, "directory"_a, "The plans of a run folder (JSON).");
  module.def(
      "run", run, "file"_a, "document"_a, "profile"_a, "settings"_a, "out"_a, "threads"_a, "further"_a,
      "progress"_a.none(),
      "Runs a scenario's missing cells and judges its claims. progress(finished, total, partial, failed, "
      "diverged, seconds_left) is called some times a second.");
}

}  // namespace moelab::python
