#include "app/run/saved_arrays.h"

#include "app/run/store.h"
#include "app/scenario/sweep_values.h"
#include "sim/base/error.h"
#include "sim/data/npy/npy_reader.h"

namespace moelab {

const ResultRow* shown_row(const ResultTable& table, const std::string& arm, const Json& where) {
  const SweepPoint place = read_point(where);
  const ResultRow* shown = nullptr;
  for (const ResultRow& row : table.rows) {
    if (row.arm != arm || row.state != "done" || !row.is_at(place)) continue;
    // Of each later sweep point again the first seed.
    if (!shown || row.point != shown->point) shown = &row;
  }
  return shown;
}

std::filesystem::path saved_file(const RunResults& results, const std::filesystem::path& directory,
                                 const std::string& cell, const std::string& name) {
  const auto recorded = results.arrays.find(cell);
  std::string own = name;
  std::filesystem::path file = array_file(directory, cell, own);
  const bool is_layered =
      recorded == results.arrays.end() ? !std::filesystem::exists(file) : !recorded->second.contains(name);
  if (is_layered) file = array_file(directory, cell, own = name + "_layer0");
  if (recorded == results.arrays.end() || !recorded->second.contains(own)) return file;
  if (const std::string problem = array_problem(file, recorded->second.at(own)); !problem.empty())
    throw UserError(file.string(), problem + "; run the scenario again, which writes it anew");
  return file;
}

Matrix read_rows(const std::filesystem::path& file) {
  const NpyReader array(file, file.string());
  Matrix values = array.read_finite(0, array.rows());
  values.resize(values.size() / array.shape().back(), array.shape().back());
  return values;
}

}  // namespace moelab
