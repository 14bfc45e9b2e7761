#include "app/store/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "app/store/record.h"
#include "sim/base/error.h"
#include "sim/base/folder.h"

namespace moelab {
namespace {

constexpr std::string_view kTemporarySuffix = ".tmp";

[[noreturn]] void fail(const std::filesystem::path& file, std::string_view action) {
  throw EnvironmentError(fmt::format("{}: cannot {}: {}", file.string(), action, std::strerror(errno)));
}

struct OpenFile {
  int descriptor;
  ~OpenFile() { ::close(descriptor); }
};

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

/// Flushes `folder` to disk. Error messages name `entry`, which was created in the folder.
void flush_folder(const std::filesystem::path& folder, const std::filesystem::path& entry) {
  const OpenFile opened = {::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (opened.descriptor < 0) fail(entry, "open the folder of");
  // Some network file systems cannot flush a folder. There the rename is as durable as the system makes it.
  if (disk_calls().flush(opened.descriptor) != 0 && errno != EINVAL) fail(entry, "flush to disk");
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

/// A temporary name in the folder of `file`. A complete file is renamed from it to `file`.
std::filesystem::path temporary_beside(const std::filesystem::path& file) {
  return folder_of(file) / fmt::format(".{}.{}-{}{}", file.filename().string(), ::getpid(),
                                       std::chrono::steady_clock::now().time_since_epoch().count(),
                                       kTemporarySuffix);
}

/// Returns what makes `file` impossible to replace, such as "a device", or an empty string. A file that
/// cannot be inspected counts as replaceable, because the call that opens it reports the reason.
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

/// Throws UserError at `option`, which named `path`, if the nearest existing parent is not a folder.
void check_folders_above(const std::filesystem::path& path, const std::string& option) {
  namespace fs = std::filesystem;
  std::error_code unseen;
  for (fs::path above = path.parent_path(); !above.empty(); above = above.parent_path()) {
    const fs::file_type type = fs::status(above, unseen).type();
    if (type == fs::file_type::directory || type == fs::file_type::none) return;
    if (type != fs::file_type::not_found)
      throw UserError(
          option, fmt::format("'{}' lies below '{}', which is not a folder", path.string(), above.string()));
    if (above == above.parent_path()) return;
  }
}

constexpr const char* kReplaceable = "needs a regular file, a link to one, or a name that is free";

/// Returns the file that receives the content of `file`: the target of a link, or `file`. Throws
/// EnvironmentError if the file cannot be replaced.
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

/// The status of a path. Throws EnvironmentError if it cannot be inspected. An absent path is no error.
std::filesystem::file_status status_of(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  // The library maps ENOENT and ENOTDIR alone to not_found.
  if (error && status.type() != std::filesystem::file_type::not_found)
    throw EnvironmentError(fmt::format("{}: cannot be inspected: {}", path.string(), error.message()));
  return status;
}

}  // namespace

DiskCalls& disk_calls() {
  static DiskCalls calls = {::write, ::fsync, ::rename};
  return calls;
}

void make_folder(const std::filesystem::path& folder) {
  if (std::filesystem::is_directory(status_of(folder))) return;
  std::error_code error;
  const std::filesystem::path above = folder_of(folder);
  if (above != folder) make_folder(above);
  std::filesystem::create_directory(folder, error);
  if (error)
    throw EnvironmentError(fmt::format("{}: cannot make the folder: {}", folder.string(), error.message()));
  flush_folder(above, folder);
}

bool is_read_only(const std::filesystem::path& folder) {
  return ::access(folder.c_str(), W_OK) != 0 && (errno == EROFS || errno == EACCES || errno == EPERM);
}

bool holds(const std::filesystem::path& file, std::string_view content) {
  std::error_code unseen;
  return std::filesystem::is_regular_file(file, unseen) &&
         std::filesystem::file_size(file, unseen) == content.size() && read_bytes(file) == content;
}

void update_file(const std::filesystem::path& file, std::string_view content) {
  if (!holds(file, content)) replace_file(file, content);
}

void check_output_file(const std::filesystem::path& file, const std::string& option) {
  check_folders_above(file, option);
  if (const std::string obstacle = obstacle_at(file); !obstacle.empty())
    throw UserError(option, fmt::format("'{}' is {}, {}", file.string(), obstacle, kReplaceable));
}

void check_output_folder(const std::filesystem::path& folder, const std::string& option) {
  check_folders_above(folder, option);
  std::error_code unseen;
  const std::filesystem::file_type type = std::filesystem::symlink_status(folder, unseen).type();
  const bool is_free =
      type == std::filesystem::file_type::not_found || type == std::filesystem::file_type::none;
  if (is_free) return;
  const std::filesystem::file_type target = std::filesystem::status(folder, unseen).type();
  // The type is unknown if the folder cannot be inspected, so the message gives the system's reason.
  if (target == std::filesystem::file_type::none)
    throw EnvironmentError(fmt::format("{}: {}", folder.string(), unseen.message()));
  if (target != std::filesystem::file_type::directory)
    throw UserError(option, fmt::format("'{}' is not a folder", folder.string()));
}

void replace_file(const std::filesystem::path& name, std::string_view content) {
  const std::filesystem::path file = target_of(name), folder = folder_of(file);
  make_folder(folder);
  const std::filesystem::path temporary = temporary_beside(file);
  // O_EXCL, because a process of another machine on a shared disk may have the same process number.
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
  flush_folder(folder, file);
}

std::string read_bytes(const std::filesystem::path& file) {
  // Checks the type before the open, because opening a pipe would wait for a writer.
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error))
    throw EnvironmentError(
        fmt::format("{}: cannot be read: {}", file.string(), error ? error.message() : "not a regular file"));
  const OpenFile opened = {::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  // Takes the size of the opened file, because another process may have replaced the file since the check.
  struct stat status = {};
  if (opened.descriptor < 0 || ::fstat(opened.descriptor, &status) != 0) fail(file, "open");
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t size = 0;
  // Bytes that are appended during the read are left to the next reader.
  while (size < bytes.size()) {
    const ssize_t got = ::read(opened.descriptor, bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno != EINTR) fail(file, "read");
    if (got == 0) break;
    if (got > 0) size += static_cast<std::size_t>(got);
  }
  bytes.resize(size);
  return bytes;
}

std::ifstream opened_lines(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw EnvironmentError(file.string() + ": cannot be read");
  stream.exceptions(std::ios::badbit);
  return stream;
}

bool is_present(const std::filesystem::path& path) {
  return std::filesystem::exists(status_of(path));
}

bool is_temporary_name(std::string_view name) {
  return name.starts_with(".") && name.ends_with(kTemporarySuffix);
}

FolderLock::FolderLock(const std::filesystem::path& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0) fail(folder, "open");
  while (::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

FolderLock::~FolderLock() {
  ::close(descriptor_);
}

AppendedFile::AppendedFile(const std::filesystem::path& file) : file_(file), descriptor_(-1) {
  make_folder(folder_of(file));
  descriptor_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(file, "make the file");
  ::flock(descriptor_, LOCK_EX | LOCK_NB);  // cannot fail on a new file: no other process has it yet
  try {
    flush_folder(folder_of(file), file);
  } catch (...) {
    ::close(descriptor_);  // a constructor that throws has no destructor call
    throw;
  }
}

AppendedFile::~AppendedFile() {
  ::close(descriptor_);
}

void AppendedFile::append(std::string_view line) {
  // The content of a file that was removed or renamed would be lost.
  struct stat named {};
  struct stat open {};
  if (::fstat(descriptor_, &open) != 0) fail(file_, "look at");
  if (::stat(file_.c_str(), &named) != 0 || named.st_dev != open.st_dev || named.st_ino != open.st_ino)
    throw EnvironmentError(file_.string() + ": was removed or replaced while it was written");
  write_all(descriptor_, std::string(line) + '\n', file_);
  flush(descriptor_, file_);
}

namespace fs = std::filesystem;

DrawingFolder::DrawingFolder(const fs::path& directory) : path_(temporary_beside(directory / "figures")) {
  make_folder(path_);
}

DrawingFolder::~DrawingFolder() {
  try {
    fs::remove_all(path_);
  } catch (const std::exception&) {
    return;  // A temporary folder that stays does no harm.
  }
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
  for (const fs::path& file : entries_of(path_)) {
    if (std::find(endings.begin(), endings.end(), file.extension()) != endings.end()) files.push_back(file);
  }
  return files;
}

namespace {

constexpr std::string_view kBeforeSeal = "{\n \"checksum\": \"";
constexpr std::string_view kAfterSeal = "\",\n";
constexpr std::size_t kSealDigits = 8;
constexpr std::size_t kSealedFrom = kBeforeSeal.size() + kSealDigits + kAfterSeal.size();

}  // namespace

std::string sealed_text(const Json& object) {
  const std::string text = json_text(object, 1) + "\n";
  const std::string_view sealed = std::string_view(text).substr(2);  // after "{\n"
  return fmt::format("{}{}{}{}", kBeforeSeal, checksum(sealed), kAfterSeal, sealed);
}

std::string seal_problem(std::string_view text) {
  if (text.size() < kSealedFrom || !text.starts_with(kBeforeSeal) ||
      text.substr(kSealedFrom - kAfterSeal.size(), kAfterSeal.size()) != kAfterSeal) {
    return "it does not begin with its checksum";
  }
  const std::string_view stated = text.substr(kBeforeSeal.size(), kSealDigits);
  const std::string computed = checksum(text.substr(kSealedFrom));
  return stated == computed ? ""
                            : fmt::format("it states the checksum {}, but its text has {}", stated, computed);
}

Json parse_sealed(std::string_view text, const Json::parser_callback_t& take) {
  Json object = Json::parse(text, take, false);
  if (!object.is_object()) return {};
  object.erase("checksum");
  return object;
}

Json read_sealed(const std::filesystem::path& file, const std::string& way_out) {
  const std::string text = read_bytes(file);
  std::string problem = seal_problem(text);
  Json object;
  if (problem.empty()) {
    object = parse_sealed(text);
    if (object.is_null()) problem = "it is not a JSON object";
  }
  if (!problem.empty()) throw UserError(file.string(), fmt::format("damaged: {}; {}", problem, way_out));
  return object;
}

}  // namespace moelab
