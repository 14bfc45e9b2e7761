#include "sim/data/image_clusters.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <optional>

#include "sim/base/error.h"
#include "sim/data/cifar.h"
#include "sim/data/synthetic_images.h"

namespace moelab {
namespace {

/// Streams of the problem: one per ingredient.
enum ProblemStream : std::uint64_t { kTargets = 0, kTemplates = 1, kTrainOrder = 2, kTestOrder = 3 };

struct CifarFile {
  const char* name;     ///< in the folder data.path
  const char* samples;  ///< the field of data that says how many are needed
};
constexpr std::array<CifarFile, 2> kCifarFiles = {
    {{"train.bin", "train_samples"}, {"test.bin", "test_samples"}}};

std::filesystem::path cifar_path(const Json& data, const CifarFile& file) {
  return std::filesystem::path(data.at("path").get<std::string>()) / file.name;
}

/// The images of one CIFAR-100 file in an order of the problem's own.
class CifarSet {
 public:
  CifarSet(const Json& data, const CifarFile& file, Engine engine)
      : images_(read_cifar(cifar_path(data, file), data.at("classes"))),
        order_(draw_permutation(engine, images_.count())) {}

  const CifarImages& images() const { return images_; }

  /// The class of the set's `sample`-th image; its pixels become (byte − mean) / deviation.
  int read(int sample, const ChannelMoments& moments, double* pixels) const {
    if (sample >= images_.count()) {
      throw UserError("data.path", fmt::format("sample {} asked of {} images", sample, images_.count()));
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
 public:
  ImageClusters(const Json& data, const Seeds& seeds)
      : classes_(data.at("classes")),
        vector_dim_(data.at("vector_dim")),
        output_dim_(data.at("target").at("dim")),
        slopes_(classes_ * output_dim_, vector_dim_) {
    Engine engine = seeds.stream(Purpose::problem, kTargets);
    fill_normal(engine, 1.0 / std::sqrt(static_cast<double>(vector_dim_)), slopes_.data(),
                static_cast<std::size_t>(slopes_.size()));
    if (data.contains("path")) {
      train_.emplace(data, kCifarFiles[0], seeds.stream(Purpose::problem, kTrainOrder));
      test_.emplace(data, kCifarFiles[1], seeds.stream(Purpose::problem, kTestOrder));
      moments_ = channel_moments(train_->images());
    } else {
      Engine templates = seeds.stream(Purpose::problem, kTemplates);
      synthetic_.emplace(data, templates);
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
  int draw_image(Engine& engine, Purpose purpose, int sample, double* pixels) const {
    if (!synthetic_) return (purpose == Purpose::train_data ? train_ : test_)->read(sample, moments_, pixels);
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

}  // namespace

const Kind& image_clusters_kind() {
  static const Kind kind = {
      "image_clusters",
      "x = [image ; v], v ~ N(0, I), y = W_class v; images synthetic or CIFAR-100's (Dikkala et al. 2023, "
      "3.4)",
      {
          {"classes", Shape::count(1, 1e4), "classes k; of CIFAR-100 the first k fine labels", 100},
          {"vector_dim", Shape::count(1, 1e4), "entries of v", 32},
          {"target",
           Shape::variant({{"linear",
                            "y = W_c v, rows of W_c ~ N(0, I / vector_dim)",
                            {{"dim", Shape::count(1, 1e4), "outputs o", 1}}}}),
           "what the class says of y", "linear"},
          {"path", Shape::text(),
           "folder with CIFAR-100's train.bin and test.bin; the fields of synthetic images then have no "
           "effect",
           kOptional},
          {"size", Shape::count(4, 256), "synthetic images: height and width in pixels", 16},
          {"channels", Shape::count(1, 16), "synthetic images: channels", 3},
          {"frequencies", Shape::count(1, 16),
           "synthetic images: highest frequency of a template, in periods", 2},
          {"max_shift", Shape::count(0, 256),
           "synthetic images: largest shift of the template in each direction, in pixels, around the edges",
           2},
          {"contrast", Shape::fraction(),
           "synthetic images: the template's scale is U[1 − contrast, 1 + contrast]", 0.5},
          {"noise_std", Shape::real_at_least(0),
           "synthetic images: deviation of the pixels' noise, the template's mean square being 1", 1.0},
      }};
  return kind;
}

void check_image_files(const Json& data) {
  if (!data.contains("path")) return;
  const int classes = data.at("classes");
  if (classes > kCifarClasses) {
    throw UserError("data.classes", fmt::format("got {}, needs at most {}, the classes of CIFAR-100", classes,
                                                kCifarClasses));
  }
  for (const CifarFile& file : kCifarFiles) {
    const std::filesystem::path path = cifar_path(data, file);
    const std::int64_t images =
        classes == kCifarClasses ? count_cifar_records(path) : read_cifar(path, classes).count();
    if (images >= data.at(file.samples)) continue;
    throw UserError("data.path",
                    fmt::format("{} has {} images of {} classes, needs data.{} = {}", path.string(), images,
                                classes, file.samples, data.at(file.samples).dump()));
  }
}

std::unique_ptr<Problem> draw_image_clusters(const Json& data, const Seeds& seeds) {
  return std::make_unique<ImageClusters>(data, seeds);
}

}  // namespace moelab
