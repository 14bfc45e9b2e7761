/// Files whose bytes are held against what they held first.

#include "sim/data/file_contents.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>

#include "sim/base/error.h"
#include "tests/temporary_folder.h"

namespace moelab::file_contents_test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = FileContent::kBlock;

void write(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

/// Bytes that no two blocks share.
std::string example(std::size_t size) {
  std::string bytes(size, '\0');
  std::uint32_t state = 1;
  for (char& byte : bytes) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

std::string read(const InputFile& file, std::size_t offset, std::size_t count) {
  std::string bytes(count, '\0');
  file.read(offset, bytes.data(), count);
  return bytes;
}

}  // namespace

TEST_CASE("file contents: the name is the length and the CRC-64") {
  const TemporaryFolder folder;
  write(folder.path() / "digits", "123456789");
  // The check value of CRC-64/XZ in catalogues of checksums.
  CHECK(FileContent(folder.path() / "digits").name() == "9 bytes, 995dc9bbdf1939fa");
  write(folder.path() / "none", "");
  CHECK(FileContent(folder.path() / "none").name() == "0 bytes, 0000000000000000");
}

TEST_CASE("file contents: any part of a file reads as it is, checked and unchecked") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "bytes";
  const std::string bytes = example(2 * kBlock + 1000);
  write(file, bytes);
  const InputFile checked(file, std::make_shared<const FileContent>(file)), unchecked(file);
  CHECK(checked.size() == bytes.size());
  for (const auto& [offset, count] : std::vector<std::pair<std::size_t, std::size_t>>{{0, bytes.size()},
                                                                                      {0, 0},
                                                                                      {0, 1},
                                                                                      {kBlock - 1, 2},
                                                                                      {kBlock, kBlock},
                                                                                      {5, 2 * kBlock},
                                                                                      {2 * kBlock, 1000},
                                                                                      {bytes.size() - 1, 1},
                                                                                      {bytes.size(), 0}}) {
    CHECK(read(checked, offset, count) == bytes.substr(offset, count));
    CHECK(read(unchecked, offset, count) == bytes.substr(offset, count));
  }
  CHECK_THROWS_AS(read(checked, bytes.size(), 1), EnvironmentError);
  CHECK_THROWS_AS(read(unchecked, bytes.size(), 1), EnvironmentError);
}

TEST_CASE("file contents: one other byte is found where its block is read") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "bytes";
  const std::string bytes = example(2 * kBlock + 1000);
  write(file, bytes);
  const auto content = std::make_shared<const FileContent>(file);
  for (const std::size_t changed : {std::size_t{0}, kBlock - 1, kBlock, 2 * kBlock + 999}) {
    std::string others = bytes;
    others[changed] = static_cast<char>(others[changed] ^ 1);
    write(file, others);
    const InputFile input(file, content);
    for (std::size_t start = 0; start < bytes.size(); start += kBlock) {
      const std::size_t count = std::min<std::size_t>(kBlock, bytes.size() - start) / 2;
      if (changed / kBlock == start / kBlock) {
        const std::string message = file.string() + ": holds other bytes than when it was first read";
        CHECK_THROWS_WITH_AS(read(input, start, count), doctest::Contains(message.c_str()), EnvironmentError);
      } else {
        CHECK(read(input, start, count) == bytes.substr(start, count));
      }
    }
  }
}

TEST_CASE("file contents: a file that grew, shrank, went or became another is refused") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "bytes";
  write(file, "twelve bytes");
  const auto content = std::make_shared<const FileContent>(file);
  const InputFile open(file, content);
  for (const char* other : {"", "twelve byte", "twelve bytes."}) {
    write(file, other);
    CHECK_THROWS_AS(InputFile(file, content), EnvironmentError);
  }
  write(file, "twelve");  // under the eyes of a reader
  CHECK_THROWS_AS(read(open, 0, 12), EnvironmentError);
  fs::remove(file);
  CHECK_THROWS_AS(InputFile(file, content), EnvironmentError);
  REQUIRE(::mkfifo(file.c_str(), 0666) == 0);  // nobody writes to it
  CHECK_THROWS_AS(InputFile(file, content), EnvironmentError);
  CHECK_THROWS_AS(FileContent{file}, EnvironmentError);
  CHECK_THROWS_AS(FileContent{folder.path()}, EnvironmentError);
  CHECK_THROWS_AS(FileContent{"/dev/zero"}, EnvironmentError);
}

TEST_CASE("file contents: what a file held first stands") {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "a";
  write(file, "first");
  FileContents contents;
  const std::string name = contents.name_of(file), name_of_folder = contents.name_of(folder.path());
  write(file, "other");
  CHECK(contents.of(file)->name() == name);
  CHECK(contents.name_of(folder.path()) == name_of_folder);
  CHECK(FileContents().name_of(file) != name);
  CHECK(FileContents().name_of(folder.path()) != name_of_folder);
}

}  // namespace moelab::file_contents_test
