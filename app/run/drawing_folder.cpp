#include "app/run/drawing_folder.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/run/durable_file.h"
#include "sim/base/error.h"

namespace moelab {

namespace fs = std::filesystem;

DrawingFolder::DrawingFolder(const fs::path& directory) : path_(temporary_beside(directory / "figures")) {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error)
    throw EnvironmentError(fmt::format("{}: cannot make the folder: {}", path_.string(), error.message()));
}

DrawingFolder::~DrawingFolder() {
  std::error_code unseen;
  fs::remove_all(path_, unseen);
}

std::vector<fs::path> DrawingFolder::publish(const std::vector<fs::path>& files,
                                             const fs::path& folder) const {
  std::vector<fs::path> places;
  for (const fs::path& file : files) {
    places.push_back(folder / file.filename());
    replace_file(places.back(), read_bytes(file));
  }
  return places;
}

std::vector<fs::path> DrawingFolder::files_ending(const std::vector<fs::path>& endings) const {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    if (std::find(endings.begin(), endings.end(), entry.path().extension()) != endings.end())
      files.push_back(entry.path());
  }
  return files;
}

}  // namespace moelab
