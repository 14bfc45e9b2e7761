#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/error.h"
#include "sim/data/image_clusters.h"
#include "tests/sim/data/cifar_files.h"

namespace moelab::cifar_test {
namespace {

/// Means of a few thousand bytes in double.
constexpr double kRounding = 1e-10;

const std::vector<int> kLabels = {3, 99, 0, 3, 41};

TEST_CASE("records are read as coarse label, fine label and pixels; further classes are left out") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "train.bin";
  write_records(file, kLabels, 10);
  CHECK(count_cifar_records(file) == 5);
  for (const int classes : {100, 42, 41, 4, 1}) {
    CAPTURE(classes);
    const CifarImages images = read_cifar(file, classes);
    int at = 0;
    for (std::size_t i = 0; i < kLabels.size(); ++i) {
      if (kLabels[i] >= classes) continue;
      REQUIRE(at < images.count());
      CHECK(images.labels[static_cast<std::size_t>(at)] == kLabels[i]);
      int wrong = 0;
      for (int p = 0; p < 3072; ++p) {
        const std::size_t place = static_cast<std::size_t>(at * 3072 + p);
        wrong += images.pixels[place] == marked_pixel(10 + static_cast<int>(i), p) ? 0 : 1;
      }
      CHECK(wrong == 0);
      ++at;
    }
    CHECK(at == images.count());
    CHECK(images.pixels.size() == static_cast<std::size_t>(at) * 3072);
  }
}

TEST_CASE("channel moments") {
  const TemporaryFolder folder;
  write_records(folder.path() / "a.bin", kLabels, 0);
  const ChannelMoments moments = channel_moments(read_cifar(folder.path() / "a.bin", 100));
  REQUIRE(moments.mean.size() == 3);
  for (int channel = 0; channel < 3; ++channel) {
    double sum = 0, squares = 0;
    for (int mark = 0; mark < 5; ++mark) {
      for (int p = 1024 * channel; p < 1024 * (channel + 1); ++p) sum += marked_pixel(mark, p) / 5120.0;
    }
    for (int mark = 0; mark < 5; ++mark) {
      for (int p = 1024 * channel; p < 1024 * (channel + 1); ++p) {
        squares += std::pow(marked_pixel(mark, p) - sum, 2) / 5120.0;
      }
    }
    CHECK(std::abs(moments.mean[static_cast<std::size_t>(channel)] - sum) < kRounding);
    CHECK(std::abs(moments.deviation[static_cast<std::size_t>(channel)] - std::sqrt(squares)) < kRounding);
  }
  // A channel without variation is only centred.
  const CifarImages black{{0}, std::vector<std::uint8_t>(3072, 0)};
  CHECK(channel_moments(black).deviation == std::vector<double>(3, 1.0));
}

TEST_CASE("broken files are errors of the user at data.path") {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& name) -> std::string {
    try {
      read_cifar(folder.path() / name, 100);
    } catch (const UserError& error) {
      CHECK(error.path() == "data.path");
      return error.message();
    }
    return "";
  };
  CHECK(message("absent.bin").find("no file") != std::string::npos);
  std::filesystem::create_directory(folder.path() / "folder.bin");
  CHECK(message("folder.bin").find("no file") != std::string::npos);
  write_records(folder.path() / "empty.bin", {}, 0);
  CHECK(message("empty.bin").find("has 0 bytes") != std::string::npos);
  write_records(folder.path() / "short.bin", kLabels, 0);
  CHECK(message("short.bin").empty());
  std::filesystem::resize_file(folder.path() / "short.bin", 5 * 3074 - 1);
  CHECK(message("short.bin").find("has 15369 bytes, needs a multiple of 3074") != std::string::npos);
  write_records(folder.path() / "label.bin", {7, 100, 7}, 0);
  CHECK(message("label.bin").find("record 1: fine label 100, needs at most 99") != std::string::npos);
}

}  // namespace
}  // namespace moelab::cifar_test
