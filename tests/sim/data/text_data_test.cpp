/// Text as data: windows of files, their split, and files that will not do.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <set>

#include "sim/base/error.h"
#include "sim/data/file_data.h"
#include "sim/data/problem.h"
#include "tests/temporary_folder.h"

namespace moelab::text_data_test {
namespace {

namespace fs = std::filesystem;

std::string write(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
  return file.string();
}

/// The bytes of a window.
std::string text_of(const Matrix& ids, Eigen::Index row) {
  std::string text;
  for (Eigen::Index t = 0; t < ids.cols(); ++t) text.push_back(static_cast<char>(ids(row, t)));
  return text;
}

Dataset drawn(const DataOptions& data, Purpose purpose, int samples) {
  return draw_set(*draw_problem(data, {1, 0}), {1, 0}, purpose, samples);
}

void check_refused(const TextOptions& options, const std::string& message,
                   const std::string& path = "data.paths") {
  try {
    check(DataOptions(options));
    FAIL_CHECK("accepted");
  } catch (const InvalidOption& error) {
    CHECK(error.path() == path);
    CHECK_MESSAGE(error.message().find(message) != std::string::npos, error.message());
  }
}

}  // namespace

TEST_CASE("windows lie in one file, those for testing at its end; the label is the file") {
  const TemporaryFolder folder;
  const std::string digits = "0123456789", letters = "abcdefghijklmnopqrst";
  write(folder.path() / "b.txt", letters);
  write(folder.path() / "a.txt", digits);
  const TextOptions options{.paths = {folder.path().string()}, .tokens = 3, .test_share = 0.4};
  check(DataOptions(options));
  for (const auto& [purpose, of_digits, of_letters] :
       {std::tuple{Purpose::train_data, digits.substr(0, 6), letters.substr(0, 12)},
        std::tuple{Purpose::test_data, digits.substr(6), letters.substr(12)}}) {
    const Dataset data = drawn(options, purpose, 400);
    std::set<std::string> windows;
    for (Eigen::Index i = 0; i < data.x.rows(); ++i) {
      const std::string x = text_of(data.x, i), y = text_of(data.y, i);
      CHECK(x.substr(1) == y.substr(0, 2));
      const int label = data.cluster[static_cast<std::size_t>(3 * i)];
      const std::string whole = x + y.back();
      CHECK((label == 0 ? of_digits : of_letters).find(whole) != std::string::npos);
      windows.insert(whole);
    }
    // Every window of both, 400 draws of at most 12: none is missed but with probability 1e-14.
    CHECK(windows.size() == of_digits.size() + of_letters.size() - 6);
  }
  const std::unique_ptr<Problem> problem = draw_problem(options, {1, 0});
  CHECK(problem->clusters() == 2);
  CHECK(problem->bytes_of(Matrix::Zero(4, 3)) == 12);
}

TEST_CASE("byte pairs are learned on what is for training, and stand for their bytes") {
  const TemporaryFolder folder;
  std::string train, test;
  for (int i = 0; i < 400; ++i) train += i % 3 == 0 ? "one two " : "two three ";
  for (int i = 0; i < 100; ++i) test += i % 2 == 0 ? "zwei three " : "three two one ";
  const TextOptions options{
      .paths = {write(folder.path() / "text", train + test)},
      .tokenizer = BytePairTokenizer{.vocabulary = 270},
      .tokens = 5,
      .test_share = static_cast<double>(test.size()) / static_cast<double>(train.size() + test.size())};
  check(DataOptions(options));
  const std::unique_ptr<Problem> problem = draw_problem(options, {1, 0});
  CHECK(problem->layout().vocabulary == 270);
  const std::string_view parts[] = {train};
  const std::vector<BytePair> merges = learn_byte_pairs(parts, 270);
  std::vector<std::string> meaning;
  for (int byte = 0; byte < kByteTokens; ++byte) meaning.emplace_back(1, static_cast<char>(byte));
  for (const BytePair& pair : merges) meaning.push_back(meaning[pair.first] + meaning[pair.second]);
  for (const auto& [purpose, of] : {std::pair{Purpose::train_data, train}, {Purpose::test_data, test}}) {
    const Dataset data = draw_set(*problem, {1, 0}, purpose, 60);
    std::size_t bytes = 0;
    for (Eigen::Index i = 0; i < data.x.rows(); ++i) {
      std::string window = meaning[static_cast<std::size_t>(data.x(i, 0))];
      for (int t = 0; t < 5; ++t) {
        const std::string& target = meaning[static_cast<std::size_t>(data.y(i, t))];
        window += target;
        bytes += target.size();
      }
      CHECK(of.find(window) != std::string::npos);
    }
    CHECK(problem->bytes_of(data.y) == static_cast<double>(bytes));
    CHECK(bytes > static_cast<std::size_t>(data.y.size()));
  }
  TextOptions large = options;
  large.tokenizer = BytePairTokenizer{.vocabulary = 5000};
  check_refused(large, "got 5000, needs at most ", "data.tokenizer.vocabulary");
  TextOptions long_one = options;
  long_one.tokens = 600;
  check_refused(long_one, " tokens) of them for training; a sequence of data.tokens = 600");
}

TEST_CASE("files in the order in which they are named, folders among them") {
  const TemporaryFolder folder;
  const std::string z = write(folder.path() / "z", std::string(100, 'z'));
  fs::create_directory(folder.path() / "some");
  write(folder.path() / "some" / "y", std::string(100, 'y'));
  const Dataset data = drawn(TextOptions{.paths = {z, (folder.path() / "some").string()}, .tokens = 2},
                             Purpose::train_data, 50);
  for (Eigen::Index i = 0; i < data.x.rows(); ++i)
    CHECK(data.x(i, 0) == (data.cluster[static_cast<std::size_t>(2 * i)] == 0 ? 'z' : 'y'));
}

TEST_CASE("files that will not do") {
  const TemporaryFolder folder;
  const std::string good =
      write(folder.path() / "good", "a text of some length, ä, longer than any sequence");
  const auto with = [&](const std::string& file) {
    return TextOptions{.paths = {good, file}, .tokens = 3, .test_share = 0.5};
  };
  check(DataOptions(with(good)));
  check_refused(with(write(folder.path() / "latin1", "one line\nGr\xfc\xdf dich, another line")),
                "is no UTF-8: byte 11 (\\xfc, in line 2) begins no character");
  check_refused(with(write(folder.path() / "cut", std::string(40, ' ') + "\xc3")), "is no UTF-8: byte 40");
  check_refused(with(write(folder.path() / "empty", "")), "is empty");
  check_refused(TextOptions{.tokens = 3}, "got [], needs a file or a folder");
  check_refused(
      with(write(folder.path() / "short", "1234567")),
      "has 7 bytes, 3 of them for training; a sequence of data.tokens = 3 and the token after it need 4");
  check_refused(with((folder.path() / "missing").string()), "is no file or folder");
  REQUIRE(::mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  check_refused(with((folder.path() / "pipe").string()), "is no file or folder");
  check_refused(with("/dev/zero"), "'/dev/zero' is no file or folder");
  fs::create_directory(folder.path() / "nothing");
  check_refused(with((folder.path() / "nothing").string()), "is a folder without files");
}

}  // namespace moelab::text_data_test
