#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "app/commands/verbs.h"
#include "app/run/results.h"
#include "app/run/store.h"
#include "sim/base/error.h"
#include "sim/data/npy/npy_reader.h"

namespace moelab {
namespace {

/// Problems of the arrays: those that do not read, or are missing or others than their records say. Folders
/// without a record are of cells that were interrupted; so are temporary files.
void check_arrays(const std::filesystem::path& directory, const Records& records,
                  std::vector<std::string>& problems, int& arrays) {
  for (const auto& [id, record] : records) {
    for (const auto& [name, sum] : record.arrays) {
      const std::filesystem::path file = array_file(directory, id, name);
      if (!std::filesystem::exists(file)) {
        problems.push_back(file.string() + ": missing");
      } else if (checksum(read_bytes(file)) != sum) {
        problems.push_back(file.string() + ": other bytes than were recorded");
      }
    }
    const std::filesystem::path folder = directory / "cells" / id;
    if (!std::filesystem::is_directory(folder)) continue;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      if (is_temporary_name(file.path().filename().string())) continue;
      ++arrays;
      try {
        const NpyReader reader(file.path(), file.path().string());
      } catch (const std::exception& error) {
        problems.push_back(error.what());
      }
    }
  }
}

/// Reads every record and every array of a run directory; 1 when one is damaged.
int verify(const Arguments& arguments) {
  std::vector<std::string> problems;
  const Json plan = read_plan(arguments.directory);
  const Records records = read_records(arguments.directory, problems);
  std::set<std::string> planned;
  for (const Json& cell : plan.at("cells")) planned.insert(cell.at("id").get<std::string>());
  int recorded = 0, others = 0, arrays = 0;
  std::vector<std::string> array_problems;
  for (const auto& record : records) ++(planned.contains(record.first) ? recorded : others);
  check_arrays(arguments.directory, records, array_problems, arrays);
  std::sort(array_problems.begin(), array_problems.end());
  problems.insert(problems.end(), array_problems.begin(), array_problems.end());
  if (arguments.json) {
    const Json answer = {{"planned", planned.size()},
                         {"recorded", recorded},
                         {"not_planned_any_more", others},
                         {"arrays", arrays},
                         {"problems", problems}};
    std::cout << answer.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else {
    std::cout << fmt::format(
        "{} cells planned, {} recorded ({} more that are not planned any more), {} arrays\n", planned.size(),
        recorded, others, arrays);
    for (const std::string& problem : problems) std::cout << "problem: " << problem << '\n';
    if (problems.empty()) std::cout << "every record and every array is whole\n";
  }
  return problems.empty() ? 0 : 1;
}

}  // namespace

Verb verify_verb() {
  return {"verify", "Read every record and array; status 1 when one is damaged", "verify runs/fig2a-quick",
          [](Arguments& arguments) -> VerbCall {
            return {{directory_option(arguments), json_option(arguments)}, [&] { return verify(arguments); }};
          }};
}

}  // namespace moelab
