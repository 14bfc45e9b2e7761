#include "app/store/imported_arms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "analysis/metrics/metric_groups.h"
#include "app/scenario/checks.h"
#include "app/scenario/overrides.h"
#include "app/store/durable_file.h"
#include "app/store/export.h"
#include "app/store/provenance.h"
#include "sim/base/error.h"
#include "sim/base/folder.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

constexpr const char *kSeed = "seed", *kState = "state";

fs::path folder_of_imports(const fs::path& directory, const std::string& plan) {
  return directory / "plans" / plan / "imported";
}

/// A key that identifies a row within an arm.
std::string place_key(int seed, const SweepPoint& point) {
  std::string key = std::to_string(seed);
  for (const auto& [path, value] : point) key += "\n" + value.canonical();
  return key;
}

/// Whether a text means no value, as pandas and trackers write it.
bool is_no_value(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  static const std::set<std::string> words = {"", "nan", "na", "none", "null", "-nan"};
  return words.contains(text);
}

bool is_infinite(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  if (text.starts_with('-') || text.starts_with('+')) text.erase(0, 1);
  return text == "inf" || text == "infinity";
}

double read_metric(const std::string& field, const std::string& place, const std::string& column,
                   bool is_positive) {
  const std::optional<double> value = read_written_number(field);
  if (!value) throw UserError(place, fmt::format("{} is '{}', needs a number, or nothing", column, field));
  if (*value < 0 && is_positive)
    throw UserError(place,
                    fmt::format("{} is '{}', needs a number of at least 0, or nothing", column, field));
  return *value;
}

/// Whether the column occurs in an export, or is the index of pandas, but is not needed for an import.
bool is_passed_over(const std::string& column) {
  return column == "cell" || column == "arm" || column.empty() || column == "Unnamed: 0";
}

/// Reads the rows of an imported table for a plan.
class ImportReader {
 public:
  ImportReader(const CsvTable& table, const RunResults& results, const std::string& source,
               const ImportRules& rules)
      : table_(table), results_(results), source_(source), rules_(rules) {
    for (const ResultRow& row : results.table.rows) {
      if (row.arm == results.table.arms.front()) missing_.insert(place_key(row.seed, row.point));
      for (const auto& metric : row.metrics) known_.insert(metric.first);
    }
    planned_ = missing_;
    for (const std::string& name : metric_names()) known_.insert(name);
    // Before the first cell is recorded, only the plan names metrics of layers and of contaminated data.
    known_.insert(results.metrics.begin(), results.metrics.end());
    known_.insert(rules.positive.begin(), rules.positive.end());
    for (const auto& [column, name] : rules.names) known_.insert(name);
    seed_ = require(kSeed);
    for (const std::string& path : results.table.sweep_paths) paths_.push_back(swept_path(path));
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      if (is_metric_column(table.columns[i])) metrics_.push_back(i);
    }
    if (!ignored_.empty() && !rules.ignores_unknown) refuse_unknown();
    const bool has_state =
        std::find(table.columns.begin(), table.columns.end(), kState) != table.columns.end();
    if (metrics_.empty() && !has_state) throw UserError(source, "has no column of a metric");
  }

  Json rows() {
    Json rows = Json::array();
    for (std::size_t i = 0; i < table_.rows.size(); ++i) {
      // Line numbers match those in an editor if no field contains a line break.
      add_rows(table_.rows[i], fmt::format("{}:{}", source_, i + 2), rows);
    }
    if (rows.empty()) throw UserError(source_, "has no rows");
    return rows;
  }
  int missing() const { return static_cast<int>(missing_.size()); }
  /// The columns that are no metrics, which the rules ignore.
  const std::vector<std::string>& ignored() const { return ignored_; }

 private:
  /// A swept path and its column.
  struct SweptPath {
    std::string path;
    std::size_t column = 0;
    std::vector<SweepValue> values = {};  ///< in the plan
    bool is_partly_swept = false;         ///< an arm of the scenario does not sweep the path
  };

  SweptPath swept_path(const std::string& path) const {
    SweptPath swept{path, require(path)};
    for (const ResultRow& row : results_.table.rows) {
      if (row.arm != results_.table.arms.front()) continue;
      const SweepValue* const value = row.coordinate(path);
      if (value && !contains(swept.values, *value)) swept.values.push_back(*value);
    }
    swept.is_partly_swept = std::any_of(results_.table.unswept.begin(), results_.table.unswept.end(),
                                        [&](const auto& arm) { return contains(arm.second, path); });
    return swept;
  }

  template <class Value>
  static bool contains(const std::vector<Value>& values, const Value& value) {
    return std::find(values.begin(), values.end(), value) != values.end();
  }

  std::size_t require(const std::string& column) const {
    const auto found = std::find(table_.columns.begin(), table_.columns.end(), column);
    if (found == table_.columns.end())
      throw UserError(
          source_, fmt::format("lacks the column '{}'; needs seed, every swept path, and metrics: {}", column,
                               fmt::join(table_.columns, ", ")));
    return static_cast<std::size_t>(found - table_.columns.begin());
  }

  bool is_metric_column(const std::string& name) {
    const std::vector<std::string>& paths = results_.table.sweep_paths;
    if (name == kSeed || name == kState || is_passed_over(name)) return false;
    if (std::find(paths.begin(), paths.end(), name) != paths.end()) return false;
    if (known_.contains(name)) return true;
    ignored_.push_back(name);
    return false;
  }

  /// Refuses the columns that are no metrics.
  void refuse_unknown() const {
    const std::vector<std::string> others(ignored_.begin() + 1, ignored_.end());
    throw UserError(source_,
                    unknown_name("metric", ignored_.front(), {known_.begin(), known_.end()}) +
                        (others.empty() ? "" : fmt::format("; also unknown: {}", fmt::join(others, ", "))) +
                        "; --map OLD=NEW renames a column, --positive NAME declares a metric of your own, "
                        "--ignore-unknown passes over the others");
  }

  /// The values of a path that a field means. An empty field means every value if an arm of the scenario does
  /// not sweep the path, as in an export.
  static std::vector<SweepValue> values_of(const SweptPath& swept, const std::string& field) {
    const SweepValue written = read_sweep_value(read_written_value(field));
    if (contains(swept.values, written)) return {written};
    if (field.empty() && swept.is_partly_swept) return swept.values;
    // pandas and R write booleans with capital letters.
    std::string lower = field;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    if (lower == "true" || lower == "false") {
      const SweepValue boolean = read_sweep_value(Json(lower == "true"));
      if (contains(swept.values, boolean)) return {boolean};
    }
    return {written};
  }

  /// The sweep points of a row.
  std::vector<SweepPoint> points_of(const std::vector<std::string>& fields) const {
    std::vector<SweepPoint> points(1);
    for (const SweptPath& swept : paths_) {
      std::vector<SweepPoint> longer;
      for (const SweepPoint& point : points) {
        for (const SweepValue& value : values_of(swept, fields[swept.column])) {
          longer.push_back(point);
          longer.back().emplace_back(swept.path, value);
        }
      }
      points = std::move(longer);
    }
    return points;
  }

  /// Appends a row of the table, once for each of its sweep points.
  void add_rows(const std::vector<std::string>& fields, const std::string& place, Json& rows) {
    const std::string& number = fields[seed_];
    const double read = read_written_number(number).value_or(-1);  // pandas may write 0.0
    const int seed = read >= 0 && read <= 1e9 ? static_cast<int>(read) : -1;
    if (seed < 0 || seed != read)
      throw UserError(place, fmt::format("seed is '{}', needs a whole number", number));
    const std::vector<SweepPoint> points = points_of(fields);
    const auto is_planned = [&](const SweepPoint& point) {
      return planned_.contains(place_key(seed, point));
    };
    // Values of zipped paths are not planned in every combination.
    const bool is_planned_somewhere = std::any_of(points.begin(), points.end(), is_planned);
    for (const SweepPoint& point : points) {
      if (is_planned_somewhere && !is_planned(point)) continue;
      const std::string key = place_key(seed, point);
      const std::string at = fmt::format("seed {}{}{}", seed, point.empty() ? "" : " at ", point_text(point));
      if (!planned_.contains(key)) throw UserError(place, fmt::format("the plan has no {}", at));
      if (missing_.erase(key) == 0) throw UserError(place, fmt::format("{} stands there twice", at));
      rows.push_back({{"seed", seed},
                      {"point", point_json(point)},
                      {"state", state(fields, place)},
                      {"metrics", metrics(fields, place)}});
    }
  }

  std::string state(const std::vector<std::string>& fields, const std::string& place) const {
    const auto found = std::find(table_.columns.begin(), table_.columns.end(), kState);
    if (found == table_.columns.end()) {
      const bool has_infinite = std::any_of(metrics_.begin(), metrics_.end(),
                                            [&](std::size_t column) { return is_infinite(fields[column]); });
      return has_infinite ? "diverged" : "done";
    }
    const std::string& given = fields[static_cast<std::size_t>(found - table_.columns.begin())];
    const std::vector<std::string> states = {"done", "diverged", "failed"};
    if (std::find(states.begin(), states.end(), given) == states.end())
      throw UserError(place, unknown_name("state", given, states));
    if (given == "done" && metrics_.empty())
      throw UserError(place, "has the state 'done', but the table has no column of a metric");
    return given;
  }

  Json metrics(const std::vector<std::string>& fields, const std::string& place) const {
    Json values = Json::object();
    for (const std::size_t column : metrics_) {
      const std::string& name = table_.columns[column];
      if (is_no_value(fields[column]) || is_infinite(fields[column])) continue;
      const bool is_positive = is_declared_positive(name) || rules_.positive.contains(name);
      values[name] = read_metric(fields[column], place, name, is_positive);
    }
    return values;
  }

  const CsvTable& table_;
  const RunResults& results_;
  const std::string& source_;
  const ImportRules& rules_;
  std::vector<std::string> ignored_;
  std::set<std::string> planned_, missing_;  // keys of the plan's seeds and points, and keys without a row
  std::set<std::string> known_;              // metric names
  std::size_t seed_ = 0;
  std::vector<SweptPath> paths_;
  std::vector<std::size_t> metrics_;  // column indices
};

}  // namespace

std::vector<fs::path> imported_files(const fs::path& directory, const std::string& plan) {
  std::vector<fs::path> files;
  for (const fs::path& file : entries_of(folder_of_imports(directory, plan))) {
    if (file.extension() == ".json" && !is_temporary_name(file.filename().string())) files.push_back(file);
  }
  return files;
}

void add_imported_arms(RunResults& results, const fs::path& directory) {
  const std::string own_arm = results.table.arms.front();
  std::vector<ResultRow> planned;
  for (const fs::path& file : imported_files(directory, results.id)) {
    const Json imported = read_sealed(file, "import the arm again");
    const std::string arm = imported.at("arm").get<std::string>();
    if (planned.empty()) {
      for (const ResultRow& row : results.table.rows) {
        if (row.arm == own_arm) planned.push_back(row);
      }
    }
    std::map<std::string, const Json*> rows;
    for (const Json& row : imported.at("rows"))
      rows[place_key(row.at("seed").get<int>(), read_point(row.at("point")))] = &row;
    results.table.arms.push_back(arm);
    for (const Json& name : imported.value("positive", Json::array()))
      results.table.own_positive.insert(name.get<std::string>());
    for (const ResultRow& place : planned) {
      ResultRow row{fmt::format("{}{}", kImportedCell, arm), arm, place.seed, place.point, "missing", {}, {}};
      const auto found = rows.find(place_key(place.seed, place.point));
      if (found != rows.end()) {
        row.state = found->second->at("state").get<std::string>();
        for (const auto& [name, value] : found->second->at("metrics").items())
          row.metrics[name] = value.get<double>();
        // Censored steps of an import exceed the steps of the plan's own cells.
        if (!place.trace.empty()) row.trace = {{place.trace.back().step, row.metrics}};
      }
      results.table.rows.push_back(std::move(row));
    }
  }
}

ImportedCounts import_arm(const RunAddress& run, const std::string& arm, std::string_view csv,
                          const std::string& source, const ImportRules& rules) {
  check_name(arm, "--arm");
  const RunResults results = load_results(run, RecordPart::metrics);
  const std::vector<std::string> imported = imported_arms(results.table);
  ImportedCounts counts;
  counts.replaced = std::find(imported.begin(), imported.end(), arm) != imported.end();
  const std::vector<std::string>& arms = results.table.arms;
  if (!counts.replaced && std::find(arms.begin(), arms.end(), arm) != arms.end())
    throw UserError("--arm", fmt::format("'{}' is an arm of the scenario; needs a name of its own", arm));
  CsvTable table = parse_csv(csv, source);
  for (const auto& [column, name] : rules.names) {
    const auto found = std::find(table.columns.begin(), table.columns.end(), column);
    if (found == table.columns.end()) throw UserError("--map", unknown_name("column", column, table.columns));
    if (std::find(table.columns.begin(), table.columns.end(), name) != table.columns.end())
      throw UserError("--map", fmt::format("got '{}={}', but the table has '{}', too", column, name, name));
    *found = name;
  }
  ImportReader reader(table, results, source, rules);
  Json rows = reader.rows();
  counts.rows = static_cast<int>(rows.size());
  counts.missing = reader.missing();
  for (const std::string& column : table.columns)
    if (is_passed_over(column)) counts.passed_over.push_back(column.empty() ? "the index" : column);
  counts.ignored = reader.ignored();
  const Json document = {{"arm", arm},
                         {"source", fs::path(source).filename().string()},
                         {"imported_at", utc_now()},
                         {"positive", rules.positive},
                         {"rows", std::move(rows)}};
  replace_file(folder_of_imports(run.directory(), results.id) / (arm + ".json"), sealed_text(document));
  return counts;
}

void remove_imported_arm(const RunAddress& run, const std::string& arm) {
  const std::string plan = find_plan(run).plan.id;
  std::vector<std::string> imported;
  for (const fs::path& file : imported_files(run.directory(), plan)) {
    imported.push_back(file.stem().string());
    if (imported.back() != arm) continue;
    std::error_code error;
    fs::remove(file, error);
    if (error) throw EnvironmentError(fmt::format("{}: {}", file.string(), error.message()));
    return;
  }
  throw UserError("--arm", imported.empty() ? fmt::format("'{}' is no imported arm; the run has none", arm)
                                            : unknown_name("imported arm", arm, imported));
}

}  // namespace moelab
