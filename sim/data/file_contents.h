#pragma once

/// Data files whose bytes are compared with their first reading. So the results belong to the content that a
/// cell's id names.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace moelab {

/// Length and checksums of a file's content at its first complete reading.
class FileContent {
 public:
  /// Each block of this many bytes has its own checksum. So a later reading of a part needs no reading of the
  /// whole file.
  static constexpr std::size_t kBlock = 1u << 16;

  /// Reads the file. Throws EnvironmentError.
  explicit FileContent(const std::filesystem::path& file);
  std::uint64_t size() const { return size_; }
  /// "123 bytes, 0123456789abcdef": the length and the CRC-64 of all bytes.
  const std::string& name() const { return name_; }
  /// Whether block `number` held these bytes, by their CRC-32. The last block may be shorter.
  bool holds(std::uint64_t number, std::string_view bytes) const;

 private:
  std::uint64_t size_ = 0;
  std::string name_;
  std::vector<std::uint32_t> blocks_;
};

/// A regular file that is open for reading. Reading does not change the object: several threads may read at
/// once.
class InputFile {
 public:
  /// Opens `file`, which must still hold `content` if given. Throws EnvironmentError if it cannot be read, is
  /// not a regular file (without waiting for a pipe), or is longer or shorter than `content`.
  explicit InputFile(std::filesystem::path file, std::shared_ptr<const FileContent> content = nullptr);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  const std::filesystem::path& path() const { return file_; }
  std::uint64_t size() const { return size_; }  ///< at opening
  /// Reads bytes offset … offset + count − 1. Throws EnvironmentError if reading fails, the file ends before,
  /// or its bytes differ from its content.
  void read(std::uint64_t offset, char* bytes, std::size_t count) const;

 private:
  [[noreturn]] void refuse_change() const;
  void read_unchecked(std::uint64_t offset, char* bytes, std::size_t count) const;

  std::filesystem::path file_;
  std::shared_ptr<const FileContent> content_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// The content of files at their first use. Several threads may call.
class FileContents {
 public:
  /// Throws EnvironmentError if the file must be read and cannot be.
  std::shared_ptr<const FileContent> of(const std::filesystem::path& file);
  /// A name for the content of a file or folder, independent of its path.
  std::string name_of(const std::filesystem::path& path);

 private:
  std::string name_of_folder(const std::filesystem::path& folder);

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const FileContent>> known_;  ///< by path
  std::map<std::string, std::string> folders_;                       ///< names, by path
};

/// The content that `file` must hold, or null for any content if `contents` is null.
inline std::shared_ptr<const FileContent> content_of(const std::shared_ptr<FileContents>& contents,
                                                     const std::filesystem::path& file) {
  return contents ? contents->of(file) : nullptr;
}

}  // namespace moelab
