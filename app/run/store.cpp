#include "app/run/store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <unordered_map>
#include <utility>

#include "app/run/provenance.h"
#include "app/scenario/scenario_file.h"
#include "app/scenario/sweep_values.h"
#include "sim/base/error.h"
#include "sim/data/npy/npy.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> journal_files(const fs::path& directory) {
  std::vector<fs::path> files;
  const fs::path folder = directory / "journal";
  if (!fs::is_directory(folder)) return files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Unique among the processes of all machines: host, process and the time in microseconds.
std::string new_journal_name() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return fmt::format("{}-{}-{}.jsonl", host_name(), ::getpid(),
                     std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

/// A failure has no numbers that could be lost: it gives way to any other state, and to a later failure.
bool supersedes(const Record& record, const Record& failure) {
  if (failure.state != "failed") return false;
  return record.state != "failed" || record.finished_at > failure.finished_at;
}

/// Where a record stands: its line is `size` bytes from `start`.
struct Place {
  const fs::path* journal = nullptr;
  std::size_t number = 0, start = 0, size = 0;
};

std::string name_of(const Place& place) {
  return fmt::format("{}:{}", place.journal->string(), place.number);
}

/// Whether `line` says again what stands at `place`, to the last number; damage behind the part that was
/// asked for is a difference. The place is read once more: few cells are recorded twice, and journals are
/// long.
bool repeats(std::string_view line, const Place& place) {
  std::ifstream stream(*place.journal, std::ios::binary);
  std::string earlier(place.size, '\0');
  stream.seekg(static_cast<std::streamoff>(place.start));
  stream.read(earlier.data(), static_cast<std::streamsize>(earlier.size()));
  try {
    return same_numbers(parse_record_line(earlier), parse_record_line(line));
  } catch (const std::exception&) {
    return false;
  }
}

/// Reads every journal; `refuse` takes each error.
template <class Refuse>
Records read_all(const fs::path& directory, RecordPart part, const Refuse& refuse) {
  Records records;
  std::unordered_map<const Record*, Place> places;
  const std::vector<fs::path> journals = journal_files(directory);
  for (const fs::path& journal : journals) {
    const auto build = std::make_shared<const std::string>(build_name(read_journal_provenance(journal)));
    std::ifstream stream(journal, std::ios::binary);
    Place place = {&journal};
    // A line that ends with the file is of a killed process, or of one that is writing.
    for (std::string line; std::getline(stream, line) && !stream.eof(); place.start += line.size() + 1) {
      ++place.number;
      place.size = line.size();
      Record record;
      try {
        record = parse_record_line(line, part);
      } catch (const std::exception& error) {
        refuse(UserError(name_of(place), fmt::format("damaged record at byte {}: {}; remove the line to have "
                                                     "its cell run again",
                                                     place.start, error.what())));
        continue;
      }
      record.build = build;
      const auto known = records.find(record.cell);
      if (known == records.end()) {
        std::string id = record.cell;
        const auto added = records.emplace(std::move(id), std::move(record)).first;
        places.emplace(&added->second, place);
        continue;
      }
      Record& earlier = known->second;
      Place& earlier_place = places.at(&earlier);
      if (record.state == "failed" || earlier.state == "failed") {
        if (!supersedes(record, earlier)) continue;
        earlier_place = place;
        earlier = std::move(record);
      } else if (!repeats(line, earlier_place)) {
        refuse(UserError(name_of(place), fmt::format("cell {} has other numbers here than in {}", record.cell,
                                                     name_of(earlier_place))));
      }
    }
    if (!stream.eof()) throw EnvironmentError(journal.string() + ": cannot be read");
  }
  return records;
}

/// A plan of another version may mean something else by the same names.
void check_plan_version(const Json& plan, const std::string& file) {
  const Json version = plan.value("version", Json(kPlanVersion));
  if (version != kPlanVersion) {
    throw UserError(
        file + ": version",
        fmt::format("got {}, but this program reads version {} of the plan format; read the folder "
                    "with the program that wrote it, or run the scenario in another folder",
                    abbreviated(version), kPlanVersion));
  }
  if (plan.contains("scenario")) check_version(plan.at("scenario"), file + ": scenario.version");
}

}  // namespace

Records read_records(const fs::path& directory, RecordPart part) {
  return read_all(directory, part, [](const UserError& error) { throw error; });
}

Records read_records(const fs::path& directory, std::vector<std::string>& problems) {
  return read_all(directory, RecordPart::all,
                  [&](const UserError& error) { problems.push_back(error.what()); });
}

fs::path array_file(const fs::path& directory, const std::string& cell, const std::string& name) {
  return directory / "cells" / cell / (name + ".npy");
}

std::string array_bytes(const SavedArray& array) {
  if (!array.labels.empty()) return npy_bytes(array.shape, std::span<const std::int64_t>(array.labels));
  return npy_bytes(array.shape, std::span<const double>(array.values));
}

Json plan_json(const Scenario& scenario) {
  Json cells = Json::array();
  for (const Cell& cell : scenario.cells) {
    cells.push_back(
        {{"id", cell.id}, {"arm", cell.arm}, {"seed", cell.seed}, {"point", point_json(cell.point)}});
  }
  Json plan = {{"version", kPlanVersion},      {"name", scenario.name},       {"title", scenario.title},
               {"source", scenario.source},    {"profile", scenario.profile}, {"scenario", scenario.document},
               {"claims", scenario.claims},    {"figures", scenario.figures}, {"arms", scenario.arms},
               {"sweep", scenario.sweep_paths}};
  if (scenario.added_seeds_to > 0) plan["added_seeds_to"] = scenario.added_seeds_to;
  plan["cells"] = std::move(cells);
  return plan;
}

std::string plan_text(const Scenario& scenario) {
  return plan_json(scenario).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json read_plan(const fs::path& directory, const Json::parser_callback_t& take) {
  const fs::path file = directory / "plan.json";
  if (!fs::exists(file)) throw UserError(directory.string(), "no plan.json here: not a run directory");
  // Not read_json_file: the plan of a large sweep may exceed what a scenario file may hold.
  const Json plan = Json::parse(read_bytes(file), take, false);
  if (!plan.is_object()) throw UserError(file.string(), "damaged: not a JSON object");
  check_plan_version(plan, file.string());
  return plan;
}

void check_run_directory(const fs::path& directory, const std::string& scenario_name) {
  std::error_code error;
  const fs::file_status status = fs::status(directory, error);
  if (status.type() == fs::file_type::not_found) return;
  if (!fs::is_directory(status)) {
    throw UserError("--out", fmt::format("'{}' is not a folder", directory.string()));
  }
  if (fs::exists(directory / "plan.json")) {
    const std::string name = read_plan(directory).value("name", Json()).dump();
    if (name != Json(scenario_name).dump()) {
      throw UserError("--out",
                      fmt::format("'{}' belongs to the scenario {}, not to \"{}\"; choose another folder",
                                  directory.string(), name, scenario_name));
    }
    return;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    if (is_temporary_name(entry.path().filename().string())) continue;
    throw UserError("--out",
                    fmt::format("'{}' holds files ('{}') but no plan.json: it is no run directory; choose "
                                "another folder or an empty one",
                                directory.string(), entry.path().filename().string()));
  }
}

StoreWriter::StoreWriter(const fs::path& directory)
    : directory_(directory),
      journal_name_(new_journal_name()),
      journal_(directory / "journal" / journal_name_) {}

void StoreWriter::write(const std::string& cell_id, const CellResult& result, double seconds) {
  Record record = {cell_id,  state_name(result.state), result.message, result.metrics, result.trace, seconds,
                   utc_now()};
  for (const SavedArray& array : result.arrays) {
    const std::string bytes = array_bytes(array);
    replace_file(array_file(directory_, cell_id, array.name), bytes);
    record.arrays[array.name] = checksum(bytes);
  }
  journal_.append(record_line(record));
}

}  // namespace moelab
