#include "app/report/ledger_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <type_traits>
#include <utility>

#include "app/json/json.h"
#include "app/report/markdown.h"
#include "app/run/durable_file.h"
#include "app/run/record.h"
#include "app/run/seal.h"
#include "sim/base/error.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 1;

template <class Given, class Part>
concept Is = std::same_as<std::remove_const_t<Given>, Part>;

// Each member is bound once, for writing and for reading. Options (sim/base/options.h) are bound in the same
// manner, but hold no lists of structs.

void bind(auto& visit, Is<ReportedPoint> auto& point) {
  visit("at", point.at);
  visit("left", point.left);
  visit("right", point.right);
  visit("estimate", point.estimate);
  visit("verdict", point.verdict);
  visit("note", point.note);
}

void bind(auto& visit, Is<LedgerCells> auto& group) {
  visit("arm", group.arm);
  visit("at", group.at);
  visit("metric", group.metric);
  visit("cells", group.cells);
}

void bind(auto& visit, Is<LedgerClaim> auto& claim) {
  visit("id", claim.id);
  visit("verdict", claim.verdict);
  visit("origin", claim.origin);
  visit("source", claim.source);
  visit("reported", claim.reported);
  visit("text", claim.text);
  visit("statement", claim.statement);
  visit("p", claim.p_value);
  visit("seeds_to_decide", claim.seeds_to_decide);
  visit("points", claim.points);
  visit("cells", claim.cells);
}

void bind(auto& visit, Is<LedgerBuild> auto& build) {
  visit("name", build.name);
  visit("cells", build.cells);
}

void bind(auto& visit, Is<LedgerRun> auto& run) {
  visit("name", run.name);
  visit("title", run.title);
  visit("source", run.source);
  visit("state", run.state);
  visit("command", run.command);
  visit("seconds", run.seconds);
  visit("training_share", run.training_share);
  visit("measuring_share", run.measuring_share);
  visit("builds", run.builds);
  visit("figure", run.figure);
  visit("claims", run.claims);
}

void bind(auto& visit, Is<ReportedCheck> auto& check) {
  visit("id", check.id);
  visit("source", check.source);
  visit("statement", check.statement);
  visit("predicted", check.predicted);
  visit("measured", check.measured);
  visit("error_bound", check.error_bound);
  visit("verdict", check.verdict);
  visit("expected", check.expected);
}

class LedgerWriter {
 public:
  template <class Value>
  void operator()(const char* name, const Value& value) {
    object_[name] = json_of(value);
  }

  template <class Value>
  static Json json_of(const Value& value) {
    if constexpr (std::is_arithmetic_v<Value> || std::same_as<Value, std::string>) {
      return value;
    } else {
      LedgerWriter part;
      bind(part, value);
      return part.object_;
    }
  }
  template <class Value>
  static Json json_of(const std::optional<Value>& value) {
    return value ? json_of(*value) : Json();
  }
  template <class Value>
  static Json json_of(const std::vector<Value>& values) {
    Json list = Json::array();
    for (const Value& value : values) list.push_back(json_of(value));
    return list;
  }

 private:
  Json object_ = Json::object();
};

/// Throws UserError where a member is missing, of another type, or unknown; an optional one may be missing,
/// as in files of earlier builds.
class LedgerReader {
 public:
  template <class Value>
  void operator()(const char* name, Value& value) {
    const auto found = object_.find(name);
    const std::string here = join_path(path_, name);
    if (found == object_.end()) {
      if constexpr (requires { value.reset(); }) return;
      throw UserError(here, "missing");
    }
    read(*found, here, value);
    known_.insert(name);
  }

  template <class Value>
  static void read(const Json& given, const std::string& here, Value& value) {
    if constexpr (std::same_as<Value, std::string>) {
      if (!given.is_string()) refuse(given, here, "a text");
      value = given.get<std::string>();
    } else if constexpr (std::same_as<Value, bool>) {
      if (!given.is_boolean()) refuse(given, here, "true or false");
      value = given.get<bool>();
    } else if constexpr (std::is_integral_v<Value>) {
      if (!given.is_number_integer() || !std::in_range<Value>(given.get<std::int64_t>()))
        refuse(given, here, "a whole number");
      value = given.get<Value>();
    } else if constexpr (std::is_floating_point_v<Value>) {
      if (!given.is_number()) refuse(given, here, "a number");
      value = given.get<Value>();
    } else {
      if (!given.is_object()) refuse(given, here, "an object");
      LedgerReader part(given, here);
      bind(part, value);
      for (const auto& [name, unused] : given.items())
        if (!part.known_.contains(name)) throw UserError(join_path(here, name), "unknown");
    }
  }
  template <class Value>
  static void read(const Json& given, const std::string& here, std::optional<Value>& value) {
    value.reset();
    if (!given.is_null()) read(given, here, value.emplace());
  }
  template <class Value>
  static void read(const Json& given, const std::string& here, std::vector<Value>& values) {
    if (!given.is_array()) refuse(given, here, "a list");
    values.resize(given.size());
    for (std::size_t i = 0; i < given.size(); ++i) read(given[i], join_path(here, i), values[i]);
  }

 private:
  LedgerReader(const Json& object, std::string path) : object_(object), path_(std::move(path)) {}
  [[noreturn]] static void refuse(const Json& given, const std::string& here, const char* needed) {
    throw UserError(here, fmt::format("got {}, needs {}", abbreviated(given), needed));
  }

  const Json& object_;
  std::string path_;
  std::set<std::string> known_;
};

/// What stands in a file beside its version, under this name.
template <class Value>
std::string ledger_file_text(const char* name, const Value& value) {
  return sealed_text({{"version", kVersion}, {name, LedgerWriter::json_of(value)}});
}

template <class Value>
Value read_ledger_file(const fs::path& file, const char* name, const std::string& way_out) {
  const Json document = read_sealed(file, way_out);
  Value value;
  try {
    if (!document.contains("version") || !document.contains(name))
      throw UserError("", fmt::format("is no file with the {} of a ledger", name));
    if (document.at("version") != kVersion) {
      throw UserError("version", fmt::format("got {}, but this program reads version {}",
                                             abbreviated(document.at("version")), kVersion));
    }
    LedgerReader::read(document.at(name), name, value);
  } catch (const UserError& error) {
    throw UserError(file.string(), fmt::format("{}{}{}; {}", error.path(), error.path().empty() ? "" : ": ",
                                               error.message(), way_out));
  }
  return value;
}

LedgerRun read_run_file(const fs::path& file) {
  const std::string way_out = "delete it, or give the directory of its run";
  LedgerRun run = read_ledger_file<LedgerRun>(file, "run", way_out);
  const std::string stem = ledger_run_stem(run.name);
  if (file.stem() != stem) {
    throw UserError(file.string(), fmt::format("is the file of run '{}', needs the name {}.json; {}",
                                               run.name, stem, "delete or rename it"));
  }
  return run;
}

}  // namespace

fs::path ledger_runs_folder(const fs::path& ledger) {
  return ledger.parent_path() / (ledger.stem().string() + ".runs");
}

fs::path ledger_checks_file(const fs::path& ledger) {
  return ledger.parent_path() / (ledger.stem().string() + ".checks.json");
}

std::string ledger_run_stem(const std::string& run_name) {
  constexpr std::size_t kLongest = 120;
  const std::string stem = anchor(run_name).substr(0, kLongest);
  if (stem == run_name && !stem.empty()) return stem;
  return fmt::format("{}{}{}", stem, stem.empty() ? "" : "-", checksum(run_name));
}

std::string ledger_run_text(const LedgerRun& run) {
  return ledger_file_text("run", run);
}

std::string ledger_checks_text(const std::vector<ReportedCheck>& checks) {
  return ledger_file_text("checks", checks);
}

LedgerRun as_read(const LedgerRun& run) {
  LedgerRun read;
  LedgerReader::read(Json::parse(json_text(LedgerWriter::json_of(run))), "run", read);
  return read;
}

std::vector<LedgerRun> read_ledger_runs(const fs::path& ledger, const std::set<std::string>& but) {
  std::vector<fs::path> files;
  const fs::path folder = ledger_runs_folder(ledger);
  if (fs::exists(folder)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const fs::path& file = entry.path();
      const bool is_kept = !but.contains(file.stem().string());
      if (is_kept && file.extension() == ".json" && !is_temporary_name(file.filename().string()))
        files.push_back(file);
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<LedgerRun> runs;
  for (const fs::path& file : files) runs.push_back(read_run_file(file));
  return runs;
}

std::vector<ReportedCheck> read_ledger_checks(const fs::path& ledger) {
  const fs::path file = ledger_checks_file(ledger);
  if (!fs::exists(file)) return {};
  return read_ledger_file<std::vector<ReportedCheck>>(file, "checks", "delete it, or give --checks FILE");
}

}  // namespace moelab
