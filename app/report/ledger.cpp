#include "app/report/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "analysis/stats/claims.h"
#include "analysis/stats/intervals.h"
#include "app/store/durable_file.h"
#include "plots/report/table.h"
#include "sim/base/error.h"
#include "sim/base/folder.h"

namespace moelab {
namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 4;
constexpr std::uintmax_t kLargestFigure = 250'000;

/// The path and the content of a file to write.
using Document = std::pair<fs::path, std::string>;

/// JSON on one line. Bytes that are not UTF-8 become U+FFFD.
std::string line_of(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The same with numbers of so many significant digits.
Json rounded(Json value, int digits = 6) {
  if (value.is_number_float())
    return std::strtod(fmt::format("{:.{}g}", value.get<double>(), digits).c_str(), nullptr);
  if (value.is_structured())
    for (Json& part : value) part = rounded(std::move(part), digits);
  return value;
}

/// A list with an entry on each line.
std::string lines_of(const Json& list) {
  std::string text = "[";
  for (std::size_t i = 0; i < list.size(); ++i) text += (i == 0 ? "\n" : ",\n") + line_of(list[i]);
  return text + "\n]";
}

/// The objects of a list as a table, which names each field once: {"columns": […], "data": [[…], …]}. pandas
/// reads it (orient="split").
Json table_of(const Json& list, const std::vector<std::string>& columns) {
  Json rows = Json::array();
  for (const Json& object : list) {
    Json row = Json::array();
    for (const std::string& name : columns) row.push_back(object.value(name, Json()));
    rows.push_back(std::move(row));
  }
  return {{"columns", columns}, {"data", std::move(rows)}};
}

/// The same with a column for each field that has a value in some object.
Json table_of(const Json& list) {
  std::vector<std::string> columns;
  for (const Json& object : list) {
    for (const auto& [name, value] : object.items())
      if (!value.is_null() && std::ranges::find(columns, name) == columns.end()) columns.push_back(name);
  }
  return table_of(list, columns);
}

/// The objects of a table, without the fields that are null.
Json objects_of(const Json& table) {
  Json list = Json::array();
  for (const Json& row : table.at("data")) {
    Json object = Json::object();
    for (std::size_t i = 0; i < row.size(); ++i)
      if (!row[i].is_null()) object[table.at("columns").at(i).get<std::string>()] = row[i];
    list.push_back(std::move(object));
  }
  return list;
}

/// The checks of an answer as a table. It leaves out what no page shows: how a check was computed.
Json checks_table(const Json& answer) {
  Json checks = rounded(answer);
  for (Json& check : checks)
    for (const char* name : {"details", "curve"}) check.erase(name);
  return table_of(checks);
}

/// A table with a row on each line.
std::string table_text(const Json& table) {
  return fmt::format("{{\"columns\": {},\n\"data\": {}}}", line_of(table.at("columns")),
                     lines_of(table.at("data")));
}

/// The file of an entry: a field on each line, and builds and claims on their own. The points of all claims
/// are a table; `claim` is the number of their claim. A claim without a source does not name it. Its
/// quotation stands in the scenario.
std::string entry_text(Json entry) {
  Json points = Json::array();
  for (std::size_t i = 0; i < entry.at("claims").size(); ++i) {
    Json& claim = entry["claims"][i];
    for (const Json& point : claim.at("points")) {
      Json row = {{"claim", i}};
      row.update(point);
      points.push_back(std::move(row));
    }
    Json kept = Json::object();
    for (const auto& [name, value] : claim.items()) {
      const bool is_named = name == "source" ? value != "" : name != "points" && name != "quote";
      if (is_named && !value.is_null()) kept[name] = value;
    }
    claim = std::move(kept);
  }
  std::string text = "{";
  for (const auto& [name, value] : entry.items()) {
    const bool is_list = value.is_array() && !value.empty() && value.front().is_object();
    text += fmt::format("{}{}: {}", text.size() == 1 ? "\n" : ",\n", line_of(name),
                        is_list ? lines_of(value) : line_of(value));
  }
  return text + fmt::format(",\n\"points\": {}\n}}\n", table_text(table_of(points)));
}

/// Makes the claims of an entry that was read objects with their points again.
void unpack(Json& entry) {
  Json claims = entry.at("claims");
  // Moelab 0.2.0 wrote them as a table.
  if (claims.is_object()) claims = objects_of(claims);
  for (Json& claim : claims) claim["points"] = Json::array();
  for (const Json& point : objects_of(entry.at("points")))
    claims.at(point.at("claim").get<std::size_t>())["points"].push_back(point);
  entry.erase("points");
  entry["claims"] = std::move(claims);
}

/// Reads the entry of a run. Throws UserError if the file is damaged or no such file.
Json read_entry(const fs::path& file) {
  const char* const way_out = "delete it, or give the directory of its run";
  Json entry = read_json_file(file);
  if (!entry.is_object() || entry.value("version", Json()) != kVersion)
    throw UserError(file.string(), fmt::format("is no run of a ledger of version {}; {}", kVersion, way_out));
  try {
    const std::string stem = ledger_run_stem(entry.at("run").get<std::string>());
    if (file.stem() != stem)
      throw UserError(file.string(), fmt::format("is the file of run '{}', needs the name {}.json; {}",
                                                 entry.at("run").get<std::string>(), stem, way_out));
    entry.at("source").get<std::string>();
    unpack(entry);
    for (const Json& claim : entry.at("claims")) {
      for (const char* text : {"id", "verdict", "origin", "reading", "text"})
        claim.at(text).get<std::string>();
      for (const Json& point : claim.at("points")) point.at("verdict").get<std::string>();
    }
  } catch (const Json::exception& error) {
    throw UserError(file.string(), fmt::format("is no run of a ledger: {}; {}", error.what(), way_out));
  }
  return entry;
}

/// Returns the work that a run's source names, up to its year or "(slides)": "Dikkala et al. 2023" for
/// "Dikkala et al. 2023, Fig. 3" and for "after Dikkala et al. 2023, Theorem 2". Empty without a source.
std::string work_of(const std::string& source) {
  const std::string after = "after ";
  const std::size_t begin = source.starts_with(after) ? after.size() : 0;
  for (std::size_t i = begin + 1; i < source.size(); ++i) {
    const char before = source[i - 1];
    if (source[i] == ',' && ((before >= '0' && before <= '9') || before == ')'))
      return source.substr(begin, i - begin);
  }
  return source.substr(std::min(begin, source.size()));
}

/// Returns the words that identify a claim's family: the first quotation in its text, or else the whole text.
std::string words_of(const std::string& text) {
  const std::size_t end = text.find("”");
  return text.starts_with("“") && end != std::string::npos ? text.substr(0, end) + "”" : text;
}

Verdict verdict_named(const std::string& name) {
  for (const Verdict verdict : {Verdict::reproduced, Verdict::refuted, Verdict::equivalent}) {
    if (to_string(verdict) == name) return verdict;
  }
  return Verdict::inconclusive;
}

/// Returns every claim of the runs, with p values corrected for their number (Holm; Benjamini and Hochberg).
Json claims_list(const std::vector<Json>& entries) {
  Json list = Json::array();
  std::vector<double> p_values;
  for (const Json& entry : entries) {
    for (const Json& claim : entry.at("claims")) {
      Json line = {{"run", entry.at("run")}};
      for (const char* name : {"id", "origin", "reading", "verdict"}) line[name] = claim.at(name);
      line["p"] = claim.value("p", Json());
      if (line["p"].is_number()) p_values.push_back(line["p"].get<double>());
      list.push_back(std::move(line));
    }
  }
  const std::vector<double> by_holm = holm(p_values), by_rate = benjamini_hochberg(p_values);
  std::size_t next = 0;
  for (Json& line : list) {
    if (!line["p"].is_number()) continue;
    line["p_holm"] = by_holm[next];
    line["p_bh"] = by_rate[next++];
  }
  constexpr int kDigits = 4;
  return rounded(std::move(list), kDigits);
}

/// Returns the families of claims: claims of one work and origin with the same words. The main readings
/// decide the verdict. A family of other readings alone is decided by these. Excluded readings belong to
/// none. Sets the `family` of each of the `lines` of all claims: the number of its row.
Json families_list(const std::vector<Json>& entries, Json& lines) {
  struct Family {
    std::vector<std::size_t> claims;
    std::vector<Verdict> main, other;
  };
  std::map<std::vector<std::string>, Family> families;  // by work, origin and words
  std::size_t next = 0;
  for (const Json& entry : entries) {
    const std::string work = work_of(entry.at("source").get<std::string>());
    for (const Json& claim : entry.at("claims")) {
      const std::size_t line = next++;
      if (claim.at("reading") == "excluded") continue;
      Family& family = families[{work, claim.at("origin").get<std::string>(),
                                 words_of(claim.at("text").get<std::string>())}];
      family.claims.push_back(line);
      (claim.at("reading") == "main" ? family.main : family.other)
          .push_back(verdict_named(claim.at("verdict").get<std::string>()));
    }
  }
  Json list = Json::array();
  for (const auto& [key, family] : families) {
    const bool is_main = !family.main.empty();
    for (const std::size_t line : family.claims) lines.at(line)["family"] = list.size();
    list.push_back({{"origin", key[1]},
                    {"reading", is_main ? "main" : "other"},
                    {"verdict", to_string(combined_verdict(is_main ? family.main : family.other))}});
  }
  return list;
}

/// Reads the entries of all runs but those with the stems `but`, in the order of the file names.
std::map<std::string, Json> read_entries(const fs::path& folder, const std::set<std::string>& but) {
  std::map<std::string, Json> entries;
  for (const fs::path& file : entries_of(folder)) {
    const std::string stem = file.stem().string();
    const bool is_entry = file.extension() == ".json" && !is_temporary_name(file.filename().string());
    if (is_entry && !but.contains(stem)) entries.emplace(stem, read_entry(file));
  }
  return entries;
}

/// Returns the first figure that is small enough. Empty if there is none.
fs::path shown_figure(const std::vector<fs::path>& figures) {
  for (const fs::path& figure : figures) {
    std::error_code none;
    if (fs::exists(figure, none) && fs::file_size(figure, none) <= kLargestFigure) return figure;
  }
  return {};
}

}  // namespace

std::string ledger_run_stem(const std::string& run_name) {
  constexpr std::size_t kLongest = 120;
  const std::string stem = anchor(run_name).substr(0, kLongest);
  if (stem == run_name && !stem.empty()) return stem;
  return fmt::format("{}{}{}", stem, stem.empty() ? "" : "-", checksum(run_name));
}

std::vector<fs::path> write_ledger(std::vector<LedgerRun> runs, const fs::path& checks,
                                   const fs::path& folder) {
  const fs::path runs_folder = folder / "runs";
  if (runs.empty() && checks.empty() && !is_present(runs_folder))
    throw UserError("--ledger", fmt::format("got no run folder, and there is no folder {} with the runs of "
                                            "an earlier ledger",
                                            runs_folder.string()));
  std::vector<Document> documents;
  std::map<std::string, Json> entries;
  std::set<std::string> given;
  for (LedgerRun& run : runs) {
    // The entry as it will be read: bytes that are not UTF-8 are replaced.
    Json entry = Json::parse(line_of(rounded(std::move(run.entry))));
    entry["work"] = work_of(entry.at("source").get<std::string>());
    entry["version"] = kVersion;
    const std::string name = entry.at("run").get<std::string>(), stem = ledger_run_stem(name);
    if (!given.insert(stem).second)
      throw UserError("--ledger", fmt::format("got two runs of the name '{}', needs one at most: a ledger "
                                              "holds its runs by name",
                                              name));
    if (const fs::path figure = shown_figure(run.figures); !figure.empty()) {
      entry["figure"] = "figures/" + stem + ".svg";
      documents.emplace_back(folder / "figures" / (stem + ".svg"), read_bytes(figure));
    }
    documents.emplace_back(runs_folder / (stem + ".json"), entry_text(entry));
    entries.emplace(stem, std::move(entry));
  }
  if (!checks.empty())
    documents.emplace_back(folder / "checks.json", table_text(checks_table(read_json_file(checks))) + "\n");
  make_folder(runs_folder);
  const FolderLock lock(runs_folder);
  entries.merge(read_entries(runs_folder, given));
  std::vector<Json> all;
  for (auto& [stem, entry] : entries) all.push_back(std::move(entry));
  Json lines = claims_list(all);
  const Json families = families_list(all, lines);
  documents.emplace_back(folder / "claims.json",
                         table_text(table_of(lines, {"run", "id", "origin", "reading", "verdict", "p",
                                                     "p_holm", "p_bh", "family"})) +
                             "\n");
  documents.emplace_back(folder / "families.json",
                         table_text(table_of(families, {"origin", "reading", "verdict"})) + "\n");
  std::vector<fs::path> written;
  for (const auto& [place, content] : documents) {
    update_file(place, content);
    written.push_back(place);
  }
  return written;
}

}  // namespace moelab
