#include "sim/data/patches.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/error.h"

namespace moelab {
namespace {

using patches::FeatureNoise;
using patches::Interval;
using patches::OwnPatch;

/// Random orthonormal columns (d, count). The first columns do not depend on the count.
Matrix draw_directions(const Seeds& seeds, int dim, int count) {
  Engine engine = seeds.stream(Purpose::problem, 0);
  Matrix directions(dim, count);
  for (int j = 0; j < count; ++j) {
    Vector column(dim);
    fill_normal(engine, 1, column);
    // Twice, since one pass of Gram and Schmidt leaves rounding errors of the size of the loss of length.
    for (int pass = 0; pass < 2; ++pass) {
      const Vector inside = directions.leftCols(j).transpose() * column;
      column -= directions.leftCols(j) * inside;
    }
    directions.col(j) = column.normalized();
  }
  return directions;
}

/// The class targets of y = ±1.
Eigen::RowVector2d class_target(bool is_positive) {
  return {is_positive ? 1.0 : 0.0, is_positive ? 0.0 : 1.0};
}

class Patches : public Problem {
 public:
  explicit Patches(const PatchesOptions& options)
      : dim_(options.dim), patches_(options.patches), scale_(options.scale) {}

  Layout layout() const override {
    return {.input_dim = dim_,
            .output_dim = 2,
            .sequences = true,
            .tokens = patches_,
            .class_targets = true,
            .labels = patches_};
  }

  Dataset draw(Engine& engine, const SampleRange& range) const override {
    Dataset data;
    data.x.resize(range.count, patches_ * dim_);
    data.y.resize(range.count, 2);
    data.cluster.reserve(size(range.count) * size(patches_));
    for (int i = 0; i < range.count; ++i) {
      MatrixOf<double> sample(patches_, dim_);
      std::vector<int> labels(size(patches_));
      const bool is_positive = draw_sample(engine, sample, labels);
      data.y.row(i) = class_target(is_positive);
      data.x.row(i) = scale_ * Eigen::Map<const Eigen::RowVectorXd>(sample.data(), sample.size());
      data.cluster.insert(data.cluster.end(), labels.begin(), labels.end());
    }
    return data;
  }

 protected:
  int dim() const { return dim_; }
  int patch_count() const { return patches_; }
  /// Writes N(0, deviation² I / d) to a patch.
  template <class Patch>
  void draw_noise(Engine& engine, double deviation, Patch&& patch) const {
    for (int j = 0; j < dim_; ++j)
      patch[j] = deviation / std::sqrt(static_cast<double>(dim_)) * draw_normal(engine);
  }

 private:
  /// Draws the patches (P, d) and their labels. Returns whether y = +1.
  virtual bool draw_sample(Engine& engine, MatrixOf<double>& sample, std::vector<int>& labels) const = 0;

  int dim_;
  int patches_;
  double scale_;
};

class FeatureNoisePatches final : public Patches {
 public:
  FeatureNoisePatches(const PatchesOptions& options, const FeatureNoise& law, const Seeds& seeds)
      : Patches(options), law_(law) {
    const Matrix all = draw_directions(seeds, options.dim, 2 * law.clusters);
    directions_ = {all.leftCols(law.clusters), all.rightCols(law.clusters)};
  }

  int clusters() const override { return law_.clusters; }
  Matrix signal_basis() const override { return directions_.signals; }
  const PatchDirections* patch_directions() const override { return &directions_; }

 private:
  static double draw_from(Engine& engine, const Interval& interval) {
    return interval[0] + (interval[1] - interval[0]) * draw_uniform(engine);
  }

  bool draw_sample(Engine& engine, MatrixOf<double>& sample, std::vector<int>& labels) const override {
    const int k = draw_index(engine, law_.clusters);
    const int other = (k + 1 + draw_index(engine, law_.clusters - 1)) % law_.clusters;
    const bool is_positive = draw_index(engine, 2) == 0;
    const double sign = draw_index(engine, 2) == 0 ? 1 : -1;
    const double alpha = draw_from(engine, law_.signal), beta = draw_from(engine, law_.centre),
                 gamma = draw_from(engine, law_.noise);
    const std::vector<int> places = draw_permutation(engine, patch_count());
    sample.row(places[0]) = (is_positive ? alpha : -alpha) * directions_.signals.col(k).transpose();
    sample.row(places[1]) = beta * directions_.centres.col(k).transpose();
    sample.row(places[2]) = sign * gamma * directions_.signals.col(other).transpose();
    for (std::size_t p = 3; p < places.size(); ++p) draw_noise(engine, law_.noise_std, sample.row(places[p]));
    std::fill(labels.begin(), labels.end(), k);
    return is_positive;
  }

  FeatureNoise law_;
  PatchDirections directions_;
};

class OwnPatches final : public Patches {
 public:
  OwnPatches(const PatchesOptions& options, const OwnPatch& law, const Seeds& seeds)
      : Patches(options), law_(law), basis_(draw_directions(seeds, options.dim, 2 + law.patterns)) {
    const double sine = std::sqrt(std::max(0.0, 1 - law.overlap * law.overlap));
    directions_.signals.resize(options.dim, 2);
    directions_.signals.col(0) = basis_.col(0);
    directions_.signals.col(1) = law.overlap * basis_.col(0) + sine * basis_.col(1);
  }

  int clusters() const override { return 2 + law_.patterns; }
  /// One direction if o_1 and o_2 are parallel.
  Matrix signal_basis() const override { return basis_.leftCols(std::abs(law_.overlap) < 1 ? 2 : 1); }
  const PatchDirections* patch_directions() const override { return &directions_; }

 private:
  bool draw_sample(Engine& engine, MatrixOf<double>& sample, std::vector<int>& labels) const override {
    const bool is_positive = draw_index(engine, 2) == 0;
    const int own = draw_index(engine, patch_count());
    for (int p = 0; p < patch_count(); ++p) {
      if (p == own) {
        labels[size(p)] = is_positive ? 0 : 1;
        sample.row(p) = directions_.signals.col(labels[size(p)]).transpose();
        continue;
      }
      const int pattern = draw_index(engine, law_.patterns);
      labels[size(p)] = 2 + pattern;
      draw_noise(engine, law_.noise_std, sample.row(p));
      sample.row(p) += basis_.col(2 + pattern).transpose();
    }
    return is_positive;
  }

  OwnPatch law_;
  Matrix basis_;  // (d, 2 + p)
  PatchDirections directions_;
};

std::unique_ptr<Problem> draw_patches(const DataOptions& data, const Seeds& seeds) {
  const PatchesOptions& options = data.options().get<PatchesOptions>();
  if (const auto* const law = options.law.as<FeatureNoise>())
    return std::make_unique<FeatureNoisePatches>(options, *law, seeds);
  return std::make_unique<OwnPatches>(options, *options.law.as<OwnPatch>(), seeds);
}

void check_interval(const char* field, const Interval& interval) {
  if (interval.size() == 2 && interval[0] <= interval[1]) return;
  throw InvalidOption(std::string("data.law.") + field,
                      fmt::format("got {} numbers{}, needs two, [low, high] with low ≤ high", interval.size(),
                                  interval.size() == 2 ? " in descending order" : ""));
}

void check_patches(const DataOptions& data) {
  const PatchesOptions& options = data.options().get<PatchesOptions>();
  int directions = 0, least = 1;
  if (const auto* const law = options.law.as<FeatureNoise>()) {
    directions = 2 * law->clusters;
    least = 3;
    check_interval("signal", law->signal);
    check_interval("centre", law->centre);
    check_interval("noise", law->noise);
  } else {
    directions = 2 + options.law.as<OwnPatch>()->patterns;
  }
  if (options.dim < directions) {
    throw InvalidOption("data.dim", fmt::format("got {}, needs at least {}, the orthonormal directions of "
                                                "data.law \"{}\"",
                                                options.dim, directions, options.law.chosen()));
  }
  if (options.patches < least) {
    throw InvalidOption("data.patches", fmt::format("got {}, needs at least {} with data.law \"{}\"",
                                                    options.patches, least, options.law.chosen()));
  }
}

}  // namespace

namespace patches {

void FeatureNoise::bind(Fields& fields) {
  fields.add("clusters", clusters, between(2, 1e4), "clusters K");
  fields.add("signal", signal, at_least(0), 2, "[low, high] of the signal's factor α");
  fields.add("centre", centre, at_least(0), 2, "[low, high] of the centre's factor β");
  fields.add("noise", noise, at_least(0), 2, "[low, high] of the feature noise's factor γ");
  fields.add("noise_std", noise_std, at_least(0), "σ_p: the other patches are N(0, σ_p² I / dim)");
}

void OwnPatch::bind(Fields& fields) {
  fields.add("overlap", overlap, between(-1, 1), "o_1·o_2 of the patches that the classes own");
  fields.add("patterns", patterns, between(1, 1e4), "orthonormal patterns p of the other patches");
  fields.add("noise_std", noise_std, at_least(0), "of N(0, noise_std² I / dim) on the other patches");
}

const std::vector<KindEntry>& Laws::table() {
  static const std::vector<KindEntry> laws = {
      plain_kind<FeatureNoise>("feature_noise",
                               "a signal y α v_k, the centre β c_k of the cluster, another cluster's signal "
                               "ε γ v_k' with a random sign, and noise patches (Chen et al. 2022)"),
      plain_kind<OwnPatch>("own_patch",
                           "one patch that its class owns, o_1 or o_2, among patterns without information "
                           "on the class (Chowdhury et al. 2023)")};
  return laws;
}

}  // namespace patches

void PatchesOptions::bind(Fields& fields) {
  fields.required().add("dim", dim, between(1, 1e5), "width of a patch d");
  fields.required().add("patches", patches, between(1, 1e4), "patches of a sample P, in random order");
  fields.required().add("law", law, "what the patches are");
  fields.add("scale", scale, positive(), "factor on all inputs (10 in the code of Chen et al. 2022)");
}

GeneratorKind patches_generator() {
  GeneratorKind kind = {
      {"patches", "samples of P patches in R^dim, as the tokens of a sequence, of two classes y = ±1",
       PatchesOptions{}, PatchesOptions{.dim = 8, .patches = 4, .law = FeatureNoise{.clusters = 3}}},
      draw_patches};
  kind.check = check_patches;
  kind.tokens = [](const AnyOptions& options) { return options.get<PatchesOptions>().patches; };
  kind.class_targets = {"class"};
  kind.target_kind = [](const AnyOptions& /*options*/) { return std::string("class"); };
  kind.kept_numbers = [](const AnyOptions& options, const Layout& layout) -> double {
    const auto* const law = options.get<PatchesOptions>().law.as<FeatureNoise>();
    const int directions =
        law ? 2 * law->clusters : 4 + options.get<PatchesOptions>().law.as<OwnPatch>()->patterns;
    return static_cast<double>(directions) * layout.input_dim;
  };
  return kind;
}

}  // namespace moelab
