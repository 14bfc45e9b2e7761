#include "app/run/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr std::string_view kTemporarySuffix = ".tmp";

[[noreturn]] void fail(const std::filesystem::path& file, std::string_view action) {
  throw EnvironmentError(fmt::format("{}: cannot {}: {}", file.string(), action, std::strerror(errno)));
}

void write_all(int descriptor, std::string_view content, const std::filesystem::path& file) {
  while (!content.empty()) {
    const ssize_t written = disk_calls().write(descriptor, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail(file, "write");
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

void flush(int descriptor, const std::filesystem::path& file) {
  if (disk_calls().flush(descriptor) != 0) fail(file, "flush to disk");
}

void flush_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail(folder, "open");
  const int status = disk_calls().flush(descriptor);
  // Some network file systems cannot flush a folder; the rename is then as durable as they make it.
  const bool refused = status != 0 && errno != EINVAL;
  const int error = errno;
  ::close(descriptor);
  errno = error;
  if (refused) fail(folder, "flush to disk");
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

/// What stands at `file` and is not for a file's content to replace, such as "a device"; empty where nothing
/// does. A file that cannot be looked at is left to the call that opens it, which says why.
std::string obstacle_at(const std::filesystem::path& file) {
  namespace fs = std::filesystem;
  if (!file.has_filename()) return "a folder";
  std::error_code unseen;
  const fs::file_type own = fs::symlink_status(file, unseen).type();
  if (own == fs::file_type::not_found || own == fs::file_type::none) return {};
  const std::string link = own == fs::file_type::symlink ? "a link to " : "";
  switch (fs::status(file, unseen).type()) {
    case fs::file_type::regular:
      return {};
    case fs::file_type::directory:
      return link + "a folder";
    case fs::file_type::character:
    case fs::file_type::block:
      return link + "a device";
    case fs::file_type::fifo:
      return link + "a pipe";
    case fs::file_type::socket:
      return link + "a socket";
    case fs::file_type::not_found:
      return "a link to nothing";
    default:
      return link + "no regular file";
  }
}

constexpr const char* kReplaceable = "needs a regular file, a link to one, or a name that is free";

/// Where the content of `file` goes: to where a link leads. Throws EnvironmentError where something stands in
/// the way.
std::filesystem::path target_of(const std::filesystem::path& file) {
  if (const std::string obstacle = obstacle_at(file); !obstacle.empty())
    throw EnvironmentError(
        fmt::format("{}: cannot write: it is {}, {}", file.string(), obstacle, kReplaceable));
  std::error_code error;
  if (!std::filesystem::is_symlink(file, error)) return file;
  std::filesystem::path target = std::filesystem::canonical(file, error);
  if (error) throw EnvironmentError(fmt::format("{}: cannot follow: {}", file.string(), error.message()));
  return target;
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw EnvironmentError(fmt::format("{}: cannot make the folder: {}", folder.string(), error.message()));
}

}  // namespace

DiskCalls& disk_calls() {
  static DiskCalls calls = {::write, ::fsync, ::rename};
  return calls;
}

void check_output_file(const std::filesystem::path& file, const std::string& option) {
  if (const std::string obstacle = obstacle_at(file); !obstacle.empty())
    throw UserError(option, fmt::format("'{}' is {}, {}", file.string(), obstacle, kReplaceable));
}

void check_output_folder(const std::filesystem::path& folder, const std::string& option) {
  std::error_code unseen;
  const std::filesystem::file_type type = std::filesystem::symlink_status(folder, unseen).type();
  const bool is_free =
      type == std::filesystem::file_type::not_found || type == std::filesystem::file_type::none;
  if (!is_free && !std::filesystem::is_directory(folder, unseen))
    throw UserError(option, fmt::format("'{}' is not a folder", folder.string()));
}

void replace_file(const std::filesystem::path& name, std::string_view content) {
  const std::filesystem::path file = target_of(name), folder = folder_of(file);
  make_folder(folder);
  const std::filesystem::path temporary =
      folder / fmt::format(".{}.{}-{}{}", file.filename().string(), ::getpid(),
                           std::chrono::steady_clock::now().time_since_epoch().count(), kTemporarySuffix);
  // Exclusive: on a shared disk another machine's process may have the same number.
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) fail(temporary, "make the file");
  try {
    try {
      write_all(descriptor, content, file);
      flush(descriptor, file);
    } catch (...) {
      ::close(descriptor);
      throw;
    }
    if (::close(descriptor) != 0) fail(file, "close");
    if (disk_calls().rename(temporary.c_str(), file.c_str()) != 0) fail(file, "rename the finished file");
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  flush_folder(folder);
}

std::string read_bytes(const std::filesystem::path& file) {
  // Before it is opened: a pipe, which has no size, would wait for somebody to write.
  std::error_code no_size;
  const std::uintmax_t size = std::filesystem::file_size(file, no_size);
  if (no_size)
    throw EnvironmentError(fmt::format("{}: cannot be read: {}", file.string(), no_size.message()));
  std::ifstream stream(file, std::ios::binary);
  std::string bytes(static_cast<std::size_t>(size), '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  // Another process may be appending: what came since is for the next reader.
  bytes.resize(static_cast<std::size_t>(stream.gcount()));
  if (!stream.is_open() || stream.bad()) throw EnvironmentError(file.string() + ": cannot be read");
  return bytes;
}

bool is_temporary_name(std::string_view name) {
  return name.starts_with(".") && name.ends_with(kTemporarySuffix);
}

AppendedFile::AppendedFile(const std::filesystem::path& file) : file_(file), descriptor_(-1) {
  make_folder(folder_of(file));
  descriptor_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(file, "make the file");
  try {
    flush_folder(folder_of(file));
  } catch (...) {
    ::close(descriptor_);  // no destructor follows a constructor that throws
    throw;
  }
}

AppendedFile::~AppendedFile() {
  ::close(descriptor_);
}

void AppendedFile::append(std::string_view line) {
  write_all(descriptor_, std::string(line) + '\n', file_);
  flush(descriptor_, file_);
}

}  // namespace moelab
