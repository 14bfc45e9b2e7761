#include "sim/model/router/cnn_router.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "sim/base/aligned.h"
#include "sim/base/kernels/kernels.h"
#include "sim/data/problem.h"
#include "sim/model/convolution.h"

namespace moelab {
namespace {

constexpr Window kConvolution{3, 3, 2, 1};

/// Convolutions, then the dense layer and the output layer as windows as large as their inputs.
template <class Real>
std::vector<Convolution<Real>> make_layers(const Json& spec, const ImageShape& image, int experts) {
  std::vector<Convolution<Real>> layers;
  ImageShape shape = image;
  const auto add = [&](const Window& window, int channels, bool relu) {
    shape = layers.emplace_back(shape, window, channels, relu).output();
  };
  for (const Json& channels : spec.at("channels")) add(kConvolution, channels, true);
  add({shape.height, shape.width, 1, 0}, spec.at("width"), true);
  add({}, experts, false);
  return layers;
}

template <class Real>
class CnnRouter final : public Router<Real> {
 public:
  CnnRouter(const Json& spec, const Layout& layout, int experts)
      : layers_(make_layers<Real>(spec, layout.image, experts)),
        init_scale_(spec.at("init_scale").get<double>()),
        input_dim_(layout.input_dim),
        patches_(layers_.size()),
        outputs_(layers_.size() - 1) {
    for (const Convolution<Real>& layer : layers_) {
      offsets_.push_back(block_size_);
      block_size_ += layer.block_size();
    }
  }

  std::size_t parameter_count() const override {
    std::size_t count = 0;
    for (const Convolution<Real>& layer : layers_) count += layer.parameter_count();
    return count;
  }
  std::size_t block_size() const override { return block_size_; }

  void initialize(const Seeds& seeds, Real* parameters) const override {
    // The hidden layers have the stream that no expert uses.
    Engine hidden = seeds.stream(Purpose::router_init, ~std::uint64_t{0});
    for (std::size_t l = 0; l < layers_.size(); ++l) layers_[l].initialize(hidden, parameters + offsets_[l]);
    const std::ptrdiff_t stride = layers_.back().output_strides().pixel;
    const double deviation = init_scale_ / std::sqrt(static_cast<double>(feature_dim()));
    for (int e = 0; e < layers_.back().output().channels; ++e) {
      Engine engine = seeds.stream(Purpose::router_init, static_cast<std::uint64_t>(e));
      for (int j = 0; j < feature_dim(); ++j) {
        parameters[offsets_.back() + static_cast<std::size_t>(j * stride + e)] =
            static_cast<Real>(deviation * draw_normal(engine));
      }
    }
  }

  void forward(const RouterContext<Real>& context, const Real* parameters, Real* scores) override {
    const Real* x = context.x;
    ImageStrides strides = image_strides(context.stride);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      reserve_entries(patches_[l], layers_[l].patches_size(context.rows));
      Real* output = scores;
      if (l < outputs_.size()) {
        reserve_entries(outputs_[l], layers_[l].outputs_size(context.rows));
        output = outputs_[l].data();
      }
      layers_[l].forward(x, strides, context.rows, parameters + offsets_[l], patches_[l].data(), output);
      x = output;
      strides = layers_[l].output_strides();
    }
  }

  void backward(const RouterContext<Real>& context, const Real* parameters,
                const RouterGradients<Real>& gradients) override {
    const int rows = context.rows;
    reserve_entries(delta_, layers_.back().outputs_size(rows));
    std::copy_n(gradients.scores, layers_.back().outputs_size(rows), delta_.data());
    for (std::size_t l = layers_.size(); l-- > 0;) {
      const Convolution<Real>& layer = layers_[l];
      const bool goes_on = l > 0 || gradients.inputs;
      if (goes_on) reserve_entries(patch_gradients_, layer.patch_gradients_size(rows));
      layer.backward(rows, parameters + offsets_[l], patches_[l].data(),
                     l < outputs_.size() ? outputs_[l].data() : nullptr, delta_.data(),
                     gradients.parameters + offsets_[l], goes_on ? patch_gradients_.data() : nullptr);
      if (l == 0) break;
      if (l == layers_.size() - 1) add_feature_gradient(gradients.features, rows);
      const std::size_t count = layers_[l - 1].outputs_size(rows);
      reserve_entries(delta_, count);
      std::fill_n(delta_.data(), count, Real(0));
      layer.add_patch_gradients(patch_gradients_.data(), rows, layers_[l - 1].output_strides(),
                                delta_.data());
    }
    if (!gradients.inputs) return;
    const std::ptrdiff_t stride = kernels::padded(input_dim_);
    std::fill_n(gradients.inputs, rows * stride, Real(0));
    layers_.front().add_patch_gradients(patch_gradients_.data(), rows, image_strides(stride),
                                        gradients.inputs);
  }

  int feature_dim() const override { return layers_.back().input().channels; }
  /// The output layer's patches: one a row, without padding.
  const Real* features() const override { return patches_.back().data(); }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    std::vector<NamedArray<Real>> arrays;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const Convolution<Real>& layer = layers_[l];
      const Real* const block = parameters + offsets_[l];
      const std::int64_t out = layer.output().channels;
      NamedArray<Real> weight{"router_weight_" + std::to_string(l + 1), {}, layer.weights(block)};
      if (l + 2 < layers_.size()) {
        weight.shape = {out, layer.input().channels, kConvolution.height, kConvolution.width};
      } else {
        weight.shape = {out, layer.patch_size()};
      }
      arrays.push_back(std::move(weight));
      arrays.push_back({"router_bias_" + std::to_string(l + 1), {out}, layer.biases(block)});
    }
    return arrays;
  }

 private:
  /// The image leads a row, one channel after another.
  ImageStrides image_strides(std::ptrdiff_t row) const {
    const ImageShape& image = layers_.front().input();
    return {row, static_cast<std::ptrdiff_t>(image.height) * image.width, 1};
  }

  /// ∂L/∂features joins what comes back from the scores.
  void add_feature_gradient(const Real* features, int rows) {
    if (!features) return;
    const int stride = kernels::padded(feature_dim());
    for (int row = 0; row < rows; ++row) {
      for (int j = 0; j < feature_dim(); ++j) {
        patch_gradients_[static_cast<std::size_t>(row * stride + j)] += features[row * feature_dim() + j];
      }
    }
  }

  std::vector<Convolution<Real>> layers_;
  double init_scale_;
  int input_dim_;
  std::vector<std::size_t> offsets_;
  std::size_t block_size_ = 0;
  std::vector<AlignedVector<Real>> patches_;
  std::vector<AlignedVector<Real>> outputs_;  // of all layers but the last
  AlignedVector<Real> delta_;                 // ∂L/∂ outputs of the current layer
  AlignedVector<Real> patch_gradients_;
};

}  // namespace

Kind cnn_router_kind() {
  return {
      "cnn",
      "γ = W h + b, h the penultimate layer of a CNN on the image, which the experts read too (Dikkala et "
      "al. 2023, 3.4)",
      {{"trainable", Shape::boolean(), "false freezes the router at its start", true},
       {"init_scale", Shape::real_at_least(0), "output rows start N(0, init_scale² / width)", 1.0},
       {"channels", Shape::list(Shape::count(1, 4096), 1),
        "output channels of the 3 × 3 convolutions, each of stride 2, ReLU", Json::array({16, 32})},
       {"width", Shape::count(1, 1e6), "units of the penultimate, dense layer", 64}}};
}

UserError no_image_error() {
  return {"model.router.kind", fmt::format("a 'cnn' router needs images; generators that have them: {}",
                                           fmt::join(image_generators(), ", "))};
}

template <class Real>
std::unique_ptr<Router<Real>> make_cnn_router(const Json& spec, const Layout& layout, int experts) {
  if (layout.image.size() == 0) throw no_image_error();
  return std::make_unique<CnnRouter<Real>>(spec, layout, experts);
}

template std::unique_ptr<Router<float>> make_cnn_router(const Json&, const Layout&, int);
template std::unique_ptr<Router<double>> make_cnn_router(const Json&, const Layout&, int);

}  // namespace moelab
