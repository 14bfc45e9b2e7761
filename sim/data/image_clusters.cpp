#include "sim/data/image_clusters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <optional>

#include "sim/base/error.h"

namespace moelab {
namespace {

/// Selects one of the equal waves (k, l) and (−k, −l).
bool is_first_of_pair(int k, int l) {
  return k > 0 || (k == 0 && l > 0);
}

void add_waves(Engine& engine, int frequencies, int size, double* plane) {
  for (int k = 0; k <= frequencies; ++k) {
    for (int l = -frequencies; l <= frequencies; ++l) {
      if (!is_first_of_pair(k, l)) continue;
      const double cosine = draw_normal(engine), sine = draw_normal(engine);
      for (int i = 0; i < size; ++i) {
        for (int j = 0; j < size; ++j) {
          const double phase = 2 * std::numbers::pi * (k * i + l * j) / size;
          plane[i * size + j] += cosine * std::cos(phase) + sine * std::sin(phase);
        }
      }
    }
  }
}

constexpr int kLabelBytes = 2;  // coarse, fine
constexpr int kPlane = kCifarImage.height * kCifarImage.width;
constexpr int kRecordBytes = kLabelBytes + kCifarImage.channels * kPlane;
constexpr std::int64_t kReadRecords = 1000;  // at a time

struct CifarFile {
  const char* name;     ///< in the folder data.path
  const char* samples;  ///< the field of data with the needed number
};
constexpr CifarFile kTrainFile = {"train.bin", "train_samples"}, kTestFile = {"test.bin", "test_samples"};

std::filesystem::path cifar_path(const ImageClustersOptions& options, const CifarFile& file) {
  return std::filesystem::path(options.path.value()) / file.name;
}

/// The images of one CIFAR-100 file in the problem's random order.
class CifarSet {
 public:
  CifarSet(const ImageClustersOptions& options, const CifarFile& file,
           const std::shared_ptr<FileContents>& contents, Engine engine)
      : images_(read_cifar(cifar_path(options, file), options.classes,
                           content_of(contents, cifar_path(options, file)))),
        order_(draw_permutation(engine, images_.count())) {}

  const CifarImages& images() const { return images_; }

  /// Returns the class of the set's `sample`-th image and writes its pixels as (byte − mean) / deviation.
  int read(int sample, const ChannelMoments& moments, double* pixels) const {
    if (sample >= images_.count()) {
      throw InvalidOption("data.path", fmt::format("sample {} asked of {} images", sample, images_.count()));
    }
    const std::size_t image = size(order_[size(sample)]);
    const std::uint8_t* bytes = images_.pixels.data() + image * size(kCifarImage.size());
    for (std::size_t channel = 0; channel < moments.mean.size(); ++channel) {
      for (int p = 0; p < kCifarImage.height * kCifarImage.width; ++p) {
        *pixels++ = (*bytes++ - moments.mean[channel]) / moments.deviation[channel];
      }
    }
    return images_.labels[image];
  }

 private:
  CifarImages images_;
  std::vector<int> order_;
};

class ImageClusters final : public Problem {
  /// One stream per ingredient.
  enum ProblemStream : std::uint64_t { kTargets = 0, kTemplates = 1, kTrainOrder = 2, kTestOrder = 3 };

 public:
  ImageClusters(const ImageClustersOptions& options, const std::shared_ptr<FileContents>& contents,
                const Seeds& seeds)
      : classes_(options.classes),
        vector_dim_(options.vector_dim),
        output_dim_(outputs_of(options.target)),
        slopes_(classes_ * output_dim_, vector_dim_) {
    Engine engine = seeds.stream(Purpose::problem, kTargets);
    fill_normal(engine, 1.0 / std::sqrt(static_cast<double>(vector_dim_)), slopes_);
    if (options.path) {
      train_.emplace(options, kTrainFile, contents, seeds.stream(Purpose::problem, kTrainOrder));
      test_.emplace(options, kTestFile, contents, seeds.stream(Purpose::problem, kTestOrder));
      moments_ = channel_moments(train_->images());
    } else {
      Engine templates = seeds.stream(Purpose::problem, kTemplates);
      synthetic_.emplace(options.synthetic, classes_, templates);
    }
  }

  Layout layout() const override {
    const ImageShape image = synthetic_ ? synthetic_->shape() : kCifarImage;
    return {.input_dim = image.size() + vector_dim_, .output_dim = output_dim_, .image = image};
  }
  int clusters() const override { return classes_; }

  Dataset draw(Engine& engine, const SampleRange& range) const override {
    const int pixels = layout().image.size();
    Dataset data;
    data.x.resize(range.count, pixels + vector_dim_);
    data.y.resize(range.count, output_dim_);
    data.cluster.resize(size(range.count));
    boost::random::normal_distribution<double> normal;
    for (int i = 0; i < range.count; ++i) {
      const int c = draw_image(engine, range.purpose, range.first + i, &data.x(i, 0));
      data.cluster[size(i)] = c;
      for (int j = 0; j < vector_dim_; ++j) data.x(i, pixels + j) = normal(engine);
      // Row by row, because a product of the whole array may sum in an order that depends on the number of
      // rows.
      data.y.row(i).noalias() =
          data.x.row(i).tail(vector_dim_) * slopes_.middleRows(c * output_dim_, output_dim_).transpose();
    }
    return data;
  }

 private:
  /// Writes the image of a set's `sample`-th row and returns its class.
  int draw_image(Engine& engine, Purpose purpose, std::int64_t sample, double* pixels) const {
    if (!synthetic_)
      return (purpose == Purpose::train_data ? train_ : test_)
          ->read(static_cast<int>(sample), moments_, pixels);
    const int label = draw_index(engine, classes_);
    synthetic_->draw(engine, label, pixels);
    return label;
  }

  int classes_;
  int vector_dim_;
  int output_dim_;
  Matrix slopes_;  // (classes · o, vector_dim)
  std::optional<SyntheticImages> synthetic_;
  std::optional<CifarSet> train_;
  std::optional<CifarSet> test_;
  ChannelMoments moments_;
};

/// With a path, both files must be complete and have an image for each sample.
void check_images(const DataOptions& data) {
  const ImageClustersOptions& options = data.options().get<ImageClustersOptions>();
  if (!options.path) return;
  const int classes = options.classes;
  if (classes > kCifarClasses) {
    throw InvalidOption("data.classes", fmt::format("got {}, needs at most {}, the classes of CIFAR-100",
                                                    classes, kCifarClasses));
  }
  const auto check_file = [&](const CifarFile& file, int samples) {
    const std::filesystem::path path = cifar_path(options, file);
    const std::int64_t images =
        classes == kCifarClasses ? count_cifar_records(path) : read_cifar(path, classes).count();
    if (images >= samples) return;
    throw InvalidOption("data.path", fmt::format("{} has {} images of {} classes, needs data.{} = {}",
                                                 path.string(), images, classes, file.samples, samples));
  };
  check_file(kTrainFile, data.train_samples.value_or(0));
  check_file(kTestFile, data.test_samples);
}

std::vector<std::pair<std::string, std::string>> image_files(const AnyOptions& options) {
  const std::optional<std::string>& path = options.get<ImageClustersOptions>().path;
  if (!path) return {};
  return {{"path", *path}};
}

}  // namespace

void SyntheticImageOptions::bind(Fields& fields) {
  fields.add("size", size, between(4, 256), "synthetic images: height and width in pixels");
  fields.add("channels", channels, between(1, 16), "synthetic images: channels");
  fields.add("frequencies", frequencies, between(1, 16),
             "synthetic images: highest frequency of a template, in periods");
  fields.add(
      "max_shift", max_shift, between(0, 256),
      "synthetic images: largest shift of the template in each direction, in pixels, around the edges");
  fields.add("contrast", contrast, fraction(),
             "synthetic images: the template's scale is U[1 − contrast, 1 + contrast]");
  fields.add("noise_std", noise_std, at_least(0),
             "synthetic images: deviation of the pixels' noise, the template's mean square being 1");
}

SyntheticImages::SyntheticImages(const SyntheticImageOptions& options, int classes, Engine& engine)
    : shape_{options.channels, options.size, options.size},
      max_shift_(options.max_shift),
      contrast_(options.contrast),
      noise_std_(options.noise_std),
      templates_(Matrix::Zero(classes, shape_.size())) {
  const int plane = shape_.height * shape_.width;
  for (Eigen::Index c = 0; c < templates_.rows(); ++c) {
    for (int channel = 0; channel < shape_.channels; ++channel) {
      add_waves(engine, options.frequencies, shape_.height, &templates_(c, channel * plane));
    }
    templates_.row(c) /= std::sqrt(templates_.row(c).squaredNorm() / shape_.size());
  }
}

void SyntheticImages::draw(Engine& engine, int label, double* pixels) const {
  const int size = shape_.height;
  const auto draw_shift = [&] {
    const int shift = (draw_index(engine, 2 * max_shift_ + 1) - max_shift_) % size;
    return shift < 0 ? shift + size : shift;
  };
  const int down = draw_shift(), right = draw_shift();
  const double scale = 1 + contrast_ * (2 * draw_uniform(engine) - 1);
  const double deviation = std::sqrt(1 + contrast_ * contrast_ / 3 + noise_std_ * noise_std_);
  boost::random::normal_distribution<double> normal;
  const double* plane = &templates_(label, 0);
  for (int channel = 0; channel < shape_.channels; ++channel, plane += size * size) {
    for (int i = 0; i < size; ++i) {
      for (int j = 0; j < size; ++j) {
        const double value = plane[(i + down) % size * size + (j + right) % size];
        *pixels++ = (scale * value + noise_std_ * normal(engine)) / deviation;
      }
    }
  }
}

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
  if (!content) count_cifar_records(file);  // otherwise already checked
  const InputFile input(file, std::move(content));
  const auto records = static_cast<std::int64_t>(input.size() / kRecordBytes);
  CifarImages images;
  std::string block;
  std::array<char, kRecordBytes> record;
  for (std::int64_t i = 0; i < records; ++i) {
    if (i % kReadRecords == 0) {
      const std::int64_t count = std::min(kReadRecords, records - i);
      block.resize(size(count * kRecordBytes));
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

const std::vector<TargetKind>& image_clusters::Targets::table() {
  static const std::vector<TargetKind> kinds = {target_kind(
      "linear", "y = W_c v, rows of W_c ~ N(0, I / vector_dim)", &image_clusters::LinearTarget::dim)};
  return kinds;
}

void ImageClustersOptions::bind(Fields& fields) {
  fields.add("classes", classes, between(1, 1e4), "classes k; of CIFAR-100 the first k fine labels");
  fields.add("vector_dim", vector_dim, between(1, 1e4), "entries of v");
  fields.add("target", target, "what the class says of y");
  fields.add("path", path,
             "folder with CIFAR-100's train.bin and test.bin; the fields of synthetic images then have no "
             "effect");
  synthetic.bind(fields);
}

GeneratorKind image_clusters_generator() {
  GeneratorKind kind = {
      {"image_clusters",
       "x = [image ; v], v ~ N(0, I), y = W_class v; images synthetic or CIFAR-100's (Dikkala et al. 2023, "
       "3.4)",
       ImageClustersOptions{},
       ImageClustersOptions{.classes = 4,
                            .vector_dim = 3,
                            .target = image_clusters::LinearTarget{2},
                            .synthetic = {.size = 4, .channels = 2}}},
      [](const DataOptions& data, const Seeds& seeds) -> std::unique_ptr<Problem> {
        return std::make_unique<ImageClusters>(data.options().get<ImageClustersOptions>(), data.contents,
                                               seeds);
      },
      check_images};
  kind.kept_numbers = [](const AnyOptions& any, const Layout& layout) -> double {
    const ImageClustersOptions& options = any.get<ImageClustersOptions>();
    return options.classes *
           (static_cast<double>(layout.output_dim) * options.vector_dim + layout.image.size());
  };
  kind.has_image = true;
  kind.file_fields = {"path"};
  kind.files = image_files;
  return kind;
}

}  // namespace moelab
