#pragma once

/// Files of data whose every byte is held against what they held when they were first read, so that numbers
/// belong to the content that a cell's id names.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace moelab {

/// Length and checksums of what a file held when it was read from its first byte to its last.
class FileContent {
 public:
  /// Bytes with a checksum of their own: what is read later is checked without reading all of the file.
  static constexpr std::size_t kBlock = 1u << 16;

  /// Reads the file. Throws EnvironmentError.
  explicit FileContent(const std::filesystem::path& file);
  std::uint64_t size() const { return size_; }
  /// "123 bytes, 0123456789abcdef": the length and the CRC-64 of all bytes.
  const std::string& name() const { return name_; }
  /// Whether block `number` (the last one may be shorter) held these bytes, by their CRC-32.
  bool holds(std::uint64_t number, std::string_view bytes) const;

 private:
  std::uint64_t size_ = 0;
  std::string name_;
  std::vector<std::uint32_t> blocks_;
};

/// A regular file that is open for reading. Reading does not change the object, so that several threads may
/// read at once.
class InputFile {
 public:
  /// Opens `file`. With `content`, what it has to hold still. Throws EnvironmentError where it cannot be
  /// read, is no regular file (a pipe is not waited for), or is longer or shorter than its content was.
  explicit InputFile(std::filesystem::path file, std::shared_ptr<const FileContent> content = nullptr);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  const std::filesystem::path& path() const { return file_; }
  std::uint64_t size() const { return size_; }  ///< when it was opened
  /// Bytes offset … offset + count − 1. Throws EnvironmentError where reading fails, the file ends before, or
  /// holds other bytes than its content.
  void read(std::uint64_t offset, char* bytes, std::size_t count) const;

 private:
  [[noreturn]] void refuse_change() const;
  void read_unchecked(std::uint64_t offset, char* bytes, std::size_t count) const;

  std::filesystem::path file_;
  std::shared_ptr<const FileContent> content_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// What files held when each was first asked for. Several threads may ask.
class FileContents {
 public:
  /// Throws EnvironmentError where the file is to be read and cannot be.
  std::shared_ptr<const FileContent> of(const std::filesystem::path& file);
  /// What stands for a file, or for a folder by the files in it, wherever it lies.
  std::string name_of(const std::filesystem::path& path);

 private:
  std::string name_of_folder(const std::filesystem::path& folder);

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const FileContent>> known_;  ///< by path
  std::map<std::string, std::string> folders_;                       ///< names, by path
};

/// What `file` has to hold; null, for whatever it holds, where no contents are given.
inline std::shared_ptr<const FileContent> content_of(const std::shared_ptr<FileContents>& contents,
                                                     const std::filesystem::path& file) {
  return contents ? contents->of(file) : nullptr;
}

}  // namespace moelab
