#pragma once

/// Files that survive a crash: either the old content or the new one, never a part.

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "app/scenario/json.h"

namespace moelab {

/// The system's calls that a disk can refuse: write, fsync and rename. Tests put failing ones in their place.
struct DiskCalls {
  ssize_t (*write)(int descriptor, const void* bytes, std::size_t size);
  int (*flush)(int descriptor);
  int (*rename)(const char* from, const char* to);
};
DiskCalls& disk_calls();

/// Writes `content` under a temporary name beside `file`, flushes it to disk, renames it and flushes the
/// folder. Makes missing folders. A link is followed: the regular file that it leads to is replaced, in its
/// own folder, and the link stays. A device, a pipe, a socket, a folder, a link to one of these or to nothing
/// is never replaced nor written to. Throws EnvironmentError (and leaves no temporary file) for these and
/// when the disk refuses.
void replace_file(const std::filesystem::path& file, std::string_view content);

/// Whether `file` is a regular file of that content.
bool holds(const std::filesystem::path& file, std::string_view content);

/// replace_file, unless the file holds the content already.
void update_file(const std::filesystem::path& file, std::string_view content);

/// Makes a folder, and those above it. Each is flushed into the folder that it was made in: else a power cut
/// may take it, and with it all that was flushed below it since. Throws EnvironmentError.
void make_folder(const std::filesystem::path& folder);

/// Whether this process may not write into a folder that is there.
bool is_read_only(const std::filesystem::path& folder);

/// Throws UserError at `option`, which named `file`, where replace_file would not take its place: before the
/// work whose result goes there.
void check_output_file(const std::filesystem::path& file, const std::string& option);

/// The same for a folder that `option` named: one that is there, or a name that is free.
void check_output_folder(const std::filesystem::path& folder, const std::string& option);

/// The bytes of a regular file. Throws EnvironmentError, for a pipe or a device, too, without opening it.
std::string read_bytes(const std::filesystem::path& file);

/// A name beside `file` for what becomes it when it is whole.
std::filesystem::path temporary_beside(const std::filesystem::path& file);

/// Whether `name` is such a name, left by a process that was killed.
bool is_temporary_name(std::string_view name);

/// Holds a folder, which it waits for, against other processes that do the same; on a disk without locks it
/// holds nothing.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

/// A file that only grows, one line at a time. It is locked while it is open.
class AppendedFile {
 public:
  /// Makes the file, which must not exist yet, and its folder.
  explicit AppendedFile(const std::filesystem::path& file);
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;
  /// Appends `line` and a newline, on disk when it returns. Throws EnvironmentError, also where the file has
  /// been removed or replaced; a part of the line may then be in it, so nothing may be appended after a
  /// failure.
  void append(std::string_view line);

 private:
  std::filesystem::path file_;
  int descriptor_;
};

// Where figures are drawn, out of sight, before they take their places.

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

// Documents of a run directory that carry the checksum of their own text.

/// The text of an object with a first field "checksum", on a line of its own: the CRC-32 of every byte behind
/// that line.
std::string sealed_text(const Json& object);

/// What is wrong with a text that sealed_text is to have written; empty where nothing is.
std::string seal_problem(std::string_view text);

/// The object of a text that is whole, without its checksum, but for what `take` takes out of it while it is
/// read; null where the text is no object.
Json parse_sealed(std::string_view text, const Json::parser_callback_t& take = nullptr);

/// Reads a file of such a text. Throws UserError at the file, with what to do about it, where it is damaged.
Json read_sealed(const std::filesystem::path& file, const std::string& way_out);

}  // namespace moelab
