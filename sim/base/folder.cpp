#include "sim/base/folder.h"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <system_error>

#include "sim/base/error.h"

namespace moelab {
namespace {

struct CloseListing {
  void operator()(DIR* listing) const { ::closedir(listing); }
};

[[noreturn]] void refuse(const std::filesystem::path& folder, int error) {
  throw EnvironmentError(
      fmt::format("{}: cannot be listed: {}", folder.string(), std::generic_category().message(error)));
}

}  // namespace

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> entries;
  const std::unique_ptr<DIR, CloseListing> listing(::opendir(folder.c_str()));
  if (!listing) {
    const int error = errno;
    // ENOTDIR: the path is a file, or a part of it is. Then it does not exist.
    const bool is_absent = error == ENOENT || (error == ENOTDIR && ::access(folder.c_str(), F_OK) != 0);
    if (is_absent) return entries;
    refuse(folder, error);
  }
  for (errno = 0; const dirent* const entry = ::readdir(listing.get()); errno = 0) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") entries.push_back(folder / name);
  }
  if (errno != 0) refuse(folder, errno);
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace moelab
