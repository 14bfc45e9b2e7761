#include "sim/data/image_clusters.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <optional>

#include "sim/base/error.h"
#include "sim/data/cifar.h"
#include "sim/data/synthetic_images.h"

namespace moelab {
namespace {

struct CifarFile {
  const char* name;     ///< in the folder data.path
  const char* samples;  ///< the field of data that says how many are needed
};
constexpr CifarFile kTrainFile = {"train.bin", "train_samples"}, kTestFile = {"test.bin", "test_samples"};

std::filesystem::path cifar_path(const ImageClustersOptions& options, const CifarFile& file) {
  return std::filesystem::path(options.path.value()) / file.name;
}

/// The images of one CIFAR-100 file in an order of the problem's own.
class CifarSet {
 public:
  CifarSet(const ImageClustersOptions& options, const CifarFile& file,
           const std::shared_ptr<FileContents>& contents, Engine engine)
      : images_(read_cifar(cifar_path(options, file), options.classes,
                           content_of(contents, cifar_path(options, file)))),
        order_(draw_permutation(engine, images_.count())) {}

  const CifarImages& images() const { return images_; }

  /// The class of the set's `sample`-th image; its pixels become (byte − mean) / deviation.
  int read(int sample, const ChannelMoments& moments, double* pixels) const {
    if (sample >= images_.count()) {
      throw InvalidOption("data.path", fmt::format("sample {} asked of {} images", sample, images_.count()));
    }
    const std::size_t image = static_cast<std::size_t>(order_[static_cast<std::size_t>(sample)]);
    const std::uint8_t* bytes = images_.pixels.data() + image * static_cast<std::size_t>(kCifarImage.size());
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
  /// Streams of the problem: one per ingredient.
  enum ProblemStream : std::uint64_t { kTargets = 0, kTemplates = 1, kTrainOrder = 2, kTestOrder = 3 };

 public:
  ImageClusters(const ImageClustersOptions& options, const std::shared_ptr<FileContents>& contents,
                const Seeds& seeds)
      : classes_(options.classes),
        vector_dim_(options.vector_dim),
        output_dim_(outputs_of(options.target)),
        slopes_(classes_ * output_dim_, vector_dim_) {
    Engine engine = seeds.stream(Purpose::problem, kTargets);
    fill_normal(engine, 1.0 / std::sqrt(static_cast<double>(vector_dim_)), slopes_.data(),
                static_cast<std::size_t>(slopes_.size()));
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
    data.cluster.resize(static_cast<std::size_t>(range.count));
    boost::random::normal_distribution<double> normal;
    for (int i = 0; i < range.count; ++i) {
      const int c = draw_image(engine, range.purpose, range.first + i, &data.x(i, 0));
      data.cluster[static_cast<std::size_t>(i)] = c;
      for (int j = 0; j < vector_dim_; ++j) data.x(i, pixels + j) = normal(engine);
      // Row by row: a product of the whole array may sum in an order that depends on the number of rows.
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

/// With a path: both files have to be whole and have an image for each sample.
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
  kind.clusters = [](const AnyOptions& options) { return options.get<ImageClustersOptions>().classes; };
  kind.has_image = true;
  kind.files = image_files;
  return kind;
}

}  // namespace moelab
