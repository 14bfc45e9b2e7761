#include "sim/data/cifar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/error.h"

namespace moelab {
namespace {

constexpr int kLabelBytes = 2;  // coarse, fine
constexpr int kPlane = kCifarImage.height * kCifarImage.width;
constexpr int kRecordBytes = kLabelBytes + kCifarImage.channels * kPlane;
constexpr std::int64_t kReadRecords = 1000;  // at a time

}  // namespace

std::int64_t count_cifar_records(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    throw UserError("data.path",
                    fmt::format("no file {}; needs the folder of CIFAR-100's binary version, with "
                                "train.bin and test.bin",
                                file.string()));
  }
  const std::uintmax_t bytes = std::filesystem::file_size(file, error);
  if (error) throw EnvironmentError(fmt::format("cannot read {}: {}", file.string(), error.message()));
  if (bytes == 0 || bytes % kRecordBytes != 0) {
    throw UserError("data.path", fmt::format("{} has {} bytes, needs a multiple of {} (1 coarse, 1 fine, {} "
                                             "pixels a record); is the download complete?",
                                             file.string(), bytes, kRecordBytes, kCifarImage.size()));
  }
  return static_cast<std::int64_t>(bytes / kRecordBytes);
}

CifarImages read_cifar(const std::filesystem::path& file, int classes,
                       std::shared_ptr<const FileContent> content) {
  if (!content) count_cifar_records(file);  // else it was found to be whole
  const InputFile input(file, std::move(content));
  const auto records = static_cast<std::int64_t>(input.size() / kRecordBytes);
  CifarImages images;
  std::string block;
  std::array<char, kRecordBytes> record;
  for (std::int64_t i = 0; i < records; ++i) {
    if (i % kReadRecords == 0) {
      const std::int64_t count = std::min(kReadRecords, records - i);
      block.resize(static_cast<std::size_t>(count * kRecordBytes));
      input.read(static_cast<std::uint64_t>(i * kRecordBytes), block.data(), block.size());
    }
    std::copy_n(block.data() + i % kReadRecords * kRecordBytes, kRecordBytes, record.begin());
    const int label = static_cast<std::uint8_t>(record[1]);
    if (label >= kCifarClasses) {
      throw UserError("data.path", fmt::format("{}, record {}: fine label {}, needs at most {}; is this "
                                               "CIFAR-100 in its binary version?",
                                               file.string(), i, label, kCifarClasses - 1));
    }
    if (label >= classes) continue;
    images.labels.push_back(label);
    images.pixels.insert(images.pixels.end(), record.begin() + kLabelBytes, record.end());
  }
  return images;
}

ChannelMoments channel_moments(const CifarImages& images) {
  ChannelMoments moments;
  const double count = static_cast<double>(images.count()) * kPlane;
  for (int channel = 0; channel < kCifarImage.channels; ++channel) {
    // Sums of bytes and their squares are exact in 64 bits.
    std::uint64_t sum = 0, squares = 0;
    for (int i = 0; i < images.count(); ++i) {
      const std::uint8_t* const plane =
          images.pixels.data() + (static_cast<std::ptrdiff_t>(i) * kCifarImage.channels + channel) * kPlane;
      for (int p = 0; p < kPlane; ++p) {
        sum += plane[p];
        squares += static_cast<std::uint64_t>(plane[p]) * plane[p];
      }
    }
    const double mean = count > 0 ? static_cast<double>(sum) / count : 0;
    const double variance = count > 0 ? static_cast<double>(squares) / count - mean * mean : 0;
    moments.mean.push_back(mean);
    moments.deviation.push_back(variance > 0 ? std::sqrt(variance) : 1);
  }
  return moments;
}

}  // namespace moelab
