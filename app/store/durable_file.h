#pragma once

/// Files that survive a crash. After a crash, a file has either its old or its new content, never a part.

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "app/scenario/json.h"

namespace moelab {

/// The system calls that a disk can refuse: write, fsync and rename. Tests replace them with failing ones.
struct DiskCalls {
  ssize_t (*write)(int descriptor, const void* bytes, std::size_t size);
  int (*flush)(int descriptor);
  int (*rename)(const char* from, const char* to);
};
DiskCalls& disk_calls();

/// Replaces the content of `file` durably. The function writes a temporary file in the same folder, flushes
/// it to disk, renames it to `file` and flushes the folder. It creates missing folders.
///
/// If `file` is a link to a regular file, the function replaces the target in the target's own folder. The
/// link stays. The function never replaces or writes to a device, a pipe, a socket, a folder, a link to one
/// of these, or a broken link.
///
/// Throws EnvironmentError for all of these and when the disk refuses. In these cases no temporary file
/// remains.
void replace_file(const std::filesystem::path& file, std::string_view content);

/// Whether `file` is a regular file with this content.
bool holds(const std::filesystem::path& file, std::string_view content);

/// Calls replace_file, unless the file already has this content.
void update_file(const std::filesystem::path& file, std::string_view content);

/// Creates a folder and its missing parents, and flushes each one into its parent. Without these flushes, a
/// power cut could remove the folder and everything flushed below it. Throws EnvironmentError.
void make_folder(const std::filesystem::path& folder);

/// Whether `folder` exists and this process may not write into it.
bool is_read_only(const std::filesystem::path& folder);

/// Throws UserError at `option`, which named `file`, if replace_file could not replace the file. Call it
/// before the work that produces the content.
void check_output_file(const std::filesystem::path& file, const std::string& option);

/// Throws UserError at `option`, unless `folder` is an existing folder or a free name. Throws
/// EnvironmentError if the folder cannot be inspected.
void check_output_folder(const std::filesystem::path& folder, const std::string& option);

/// Returns the bytes of a regular file. Throws EnvironmentError. A pipe or a device is refused without
/// opening it.
std::string read_bytes(const std::filesystem::path& file);

/// Opens a regular file for reading lines. Throws EnvironmentError if it cannot be opened. Reading throws
/// where memory is refused, which would otherwise look like the end of the file.
std::ifstream opened_lines(const std::filesystem::path& file);

/// Whether the system finds anything at `path`. Only a path that does not exist is absent. Throws
/// EnvironmentError if the system cannot say, for example without permission.
bool is_present(const std::filesystem::path& path);

/// Whether `name` is a temporary name, which a killed process leaves behind.
bool is_temporary_name(std::string_view name);

/// Waits for an exclusive lock on a folder and keeps it for the object's lifetime. It excludes other
/// processes that use FolderLock. On a disk without locks it has no effect.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

/// An append-only file of lines. It is locked while it is open.
class AppendedFile {
 public:
  /// Creates the file and its folder. The file must not exist yet.
  explicit AppendedFile(const std::filesystem::path& file);
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;
  /// Appends `line` and a newline, and flushes both to disk before it returns. Throws EnvironmentError, also
  /// if the file was removed or replaced. After a failure the file may end with a part of the line, so append
  /// nothing more.
  void append(std::string_view line);

 private:
  std::filesystem::path file_;
  int descriptor_;
};

// Drawing folder

/// A temporary folder in a run directory, where figures are drawn before they are published. The destructor
/// removes the folder and its content.
class DrawingFolder {
 public:
  /// Throws EnvironmentError.
  explicit DrawingFolder(const std::filesystem::path& directory);
  ~DrawingFolder();
  DrawingFolder(const DrawingFolder&) = delete;
  DrawingFolder& operator=(const DrawingFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

  /// Copies `files` to `folder`, where each one replaces the file of the same name as a whole. Returns the
  /// new paths. Throws EnvironmentError.
  std::vector<std::filesystem::path> publish(const std::vector<std::filesystem::path>& files,
                                             const std::filesystem::path& folder) const;
  /// The files in this folder that have one of these endings.
  std::vector<std::filesystem::path> files_ending(const std::vector<std::filesystem::path>& endings) const;

 private:
  std::filesystem::path path_;
};

// Sealed documents: JSON files of a run directory that contain a checksum of their own text

/// Returns the text of `object` with a first field "checksum" on its own line. The checksum is the CRC-32 of
/// all bytes after that line.
std::string sealed_text(const Json& object);

/// Checks a text that sealed_text should have written. Returns the problem, or an empty string for a valid
/// text.
std::string seal_problem(std::string_view text);

/// Parses a complete sealed text and removes the checksum. The callback `take` may remove other values during
/// parsing. Returns null if the text is not an object.
Json parse_sealed(std::string_view text, const Json::parser_callback_t& take = nullptr);

/// Reads a sealed file. Throws UserError at the file if it is damaged; the message ends with `way_out`, the
/// advice.
Json read_sealed(const std::filesystem::path& file, const std::string& way_out);

}  // namespace moelab
