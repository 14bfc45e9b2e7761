#include "app/run/saved_file.h"

#include "app/run/store.h"
#include "sim/base/error.h"

namespace moelab {

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

}  // namespace moelab
