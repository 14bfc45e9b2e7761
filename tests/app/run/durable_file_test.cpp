#include "app/store/durable_file.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/folder.h"
#include "tests/app/run/test_scenario.h"

namespace moelab::durable_file_test {
namespace {

namespace fs = std::filesystem;

/// A socket that stands at a path until the folder is removed.
void bind_socket(const fs::path& file) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(file.string().size() < sizeof address.sun_path);
  std::strcpy(address.sun_path, file.c_str());
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  ::close(descriptor);
}

/// What stands in a folder: names, types, where links lead.
std::vector<std::string> listing(const fs::path& folder) {
  std::vector<std::string> entries;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    std::string text = entry.path().string();
    text += " " + std::to_string(static_cast<int>(entry.symlink_status().type()));
    if (entry.is_symlink()) text += " " + fs::read_symlink(entry.path()).string();
    entries.push_back(text);
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

struct Obstacle {
  const char* name;
  const char* text;
};

TEST_CASE("a path is absent if it does not exist, and not if the system cannot say") {
  const TemporaryFolder folder;
  const fs::path here = folder.path(), file = here / "file", loop = here / "loop";
  std::ofstream(file) << "text";
  fs::create_symlink(loop, loop);
  CHECK(is_present(file));
  CHECK_FALSE(is_present(here / "missing"));
  CHECK_FALSE(is_present(file / "below"));
  CHECK(entries_of(here) == std::vector{file, loop});
  CHECK(entries_of(here / "missing").empty());
  CHECK(entries_of(file / "below").empty());
  for (const fs::path& unknown : {loop, loop / "below", here / std::string(300, 'x')}) {
    CHECK_THROWS_AS(is_present(unknown), EnvironmentError);
    CHECK_THROWS_AS(entries_of(unknown), EnvironmentError);
  }
  CHECK_THROWS_AS(entries_of(file), EnvironmentError);
}

/// One of each kind that is never replaced, by a name and by a link, and what the refusal calls it.
std::vector<Obstacle> make_obstacles(const fs::path& folder) {
  fs::create_directory(folder / "folder");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0666) == 0);
  bind_socket(folder / "socket");
  for (const char* name : {"folder", "pipe", "socket", "nothing"})
    fs::create_symlink(name, folder / (std::string("to_") + name));
  fs::create_symlink("/dev/null", folder / "to_device");
  fs::create_symlink("to_device", folder / "to_link");
  fs::create_symlink("circle", folder / "circle");
  return {{"folder", "a folder"},
          {"folder/", "a folder"},
          {"pipe", "a pipe"},
          {"socket", "a socket"},
          {"to_folder", "a link to a folder"},
          {"to_pipe", "a link to a pipe"},
          {"to_socket", "a link to a socket"},
          {"to_nothing", "a link to nothing"},
          {"to_device", "a link to a device"},
          {"to_link", "a link to a device"},
          {"circle", "a link to no regular file"}};
}

}  // namespace

TEST_CASE("files: a device, a pipe, a socket, a folder and links to them are never replaced") {
  const TemporaryFolder folder;
  const std::vector<Obstacle> obstacles = make_obstacles(folder.path());
  const std::vector<std::string> before = listing(folder.path());
  for (const Obstacle& obstacle : obstacles) {
    CAPTURE(obstacle.name);
    const fs::path file = folder.path() / obstacle.name;
    const std::string stands = std::string(" is ") + obstacle.text + ", needs a regular file";
    CHECK_THROWS_WITH_AS(replace_file(file, "new"), doctest::Contains(stands.c_str()), EnvironmentError);
    const std::string refused = "--out: '" + file.string() + "'" + stands;
    CHECK_THROWS_WITH_AS(check_output_file(file, "--out"), doctest::Contains(refused.c_str()), UserError);
  }
  CHECK(listing(folder.path()) == before);
  // Only looks: a user who may write there could lose the machine's device to a failing test.
  CHECK_THROWS_WITH_AS(check_output_file("/dev/full", "--out"), doctest::Contains("is a device"), UserError);
}

TEST_CASE("files: a link to a regular file stays, and the file that it leads to is replaced") {
  const TemporaryFolder folder;
  const fs::path target = folder.path() / "far/target.csv", link = folder.path() / "near/link.csv";
  replace_file(target, "old");
  fs::create_directory(link.parent_path());
  fs::create_symlink("../far/target.csv", link);
  fs::create_symlink("link.csv", folder.path() / "near/second.csv");
  CHECK_NOTHROW(check_output_file(link, "--out"));
  for (const fs::path& file : {link, folder.path() / "near/second.csv"}) {
    replace_file(file, file.string());
    CHECK(file_text(target) == file.string());
    CHECK(fs::is_symlink(file));
  }
  CHECK(fs::is_regular_file(fs::symlink_status(target)));
  CHECK(listing(folder.path()).size() == 5);  // two folders, the file and two links: nothing is left over
}

TEST_CASE("files: a free name and a regular file take a content") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "new/table.csv";
  CHECK_NOTHROW(check_output_file(file, "--out"));
  replace_file(file, "first");
  CHECK_NOTHROW(check_output_file(file, "--out"));
  replace_file(file, "second");
  CHECK(file_text(file) == "second");
  CHECK(read_bytes(file) == "second");
}

TEST_CASE("files: a name for a folder is free or a folder's") {
  const TemporaryFolder folder;
  make_obstacles(folder.path());
  replace_file(folder.path() / "file", "");
  for (const char* name : {"", "new", "folder", "to_folder"})
    CHECK_NOTHROW(check_output_folder(folder.path() / name, "--out"));
  for (const char* name : {"file", "pipe", "socket", "to_device", "to_nothing"})
    CHECK_THROWS_WITH_AS(check_output_folder(folder.path() / name, "--out"),
                         doctest::Contains("is not a folder"), UserError);
}

TEST_CASE("files: what is no regular file is not opened for reading, which could wait for ever") {
  const TemporaryFolder folder;
  make_obstacles(folder.path());
  for (const char* name : {"pipe", "socket", "folder", "to_device", "to_nothing", "none"})
    CHECK_THROWS_WITH_AS(read_bytes(folder.path() / name), doctest::Contains("cannot be read"),
                         EnvironmentError);
}

}  // namespace moelab::durable_file_test
