#pragma once

/// Where figures are drawn, out of sight, before they take their places.

#include <filesystem>
#include <vector>

namespace moelab {

/// A folder with a temporary name in a run directory, removed with what is in it at the end.
class DrawingFolder {
 public:
  /// Throws EnvironmentError.
  explicit DrawingFolder(const std::filesystem::path& directory);
  ~DrawingFolder();
  DrawingFolder(const DrawingFolder&) = delete;
  DrawingFolder& operator=(const DrawingFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

  /// Replaces files of `folder` by those of the same names here, whole ones each; their new places. Throws
  /// EnvironmentError.
  std::vector<std::filesystem::path> publish(const std::vector<std::filesystem::path>& files,
                                             const std::filesystem::path& folder) const;
  /// The files here with these endings.
  std::vector<std::filesystem::path> files_ending(const std::vector<std::filesystem::path>& endings) const;

 private:
  std::filesystem::path path_;
};

}  // namespace moelab
