#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/kernels.h"
#include "sim/data/problem.h"
#include "sim/model/layers.h"
#include "sim/model/router/routers.h"

namespace moelab {
namespace {

constexpr Window kConvolution{3, 3, 2, 1};

/// The layers: convolutions, then the dense layer and the output layer. The last two are windows as large as
/// their inputs.
template <class Real>
std::vector<Convolution<Real>> make_layers(const CnnRouterOptions& options, const RouterSetting& setting) {
  if (setting.image.size() == 0) throw no_image_error();
  std::vector<Convolution<Real>> layers;
  ImageShape shape = setting.image;
  const auto add = [&](const Window& window, int channels, bool relu) {
    shape = layers.emplace_back(shape, window, channels, relu).output();
  };
  for (const int channels : options.channels) add(kConvolution, channels, true);
  add({shape.height, shape.width, 1, 0}, options.width, true);
  add({}, setting.experts, false);
  return layers;
}

template <class Real>
struct CnnScratch final : Scratch {
  std::vector<AlignedVector<Real>> patches;
  std::vector<AlignedVector<Real>> outputs;  // outputs of all layers except the last
  AlignedVector<Real> delta;                 // ∂L/∂ outputs of the current layer
  AlignedVector<Real> patch_gradients;
};

template <class Real>
class CnnRouter final : public Router<Real> {
 public:
  CnnRouter(const CnnRouterOptions& options, const RouterSetting& setting)
      : layers_(make_layers<Real>(options, setting)), init_scale_(options.init_scale) {
    MOELAB_EXPECT(setting.input_dim == setting.image.size());
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
  std::unique_ptr<Scratch> make_scratch() const override {
    auto scratch = std::make_unique<CnnScratch<Real>>();
    scratch->patches.resize(layers_.size());
    scratch->outputs.resize(layers_.size() - 1);
    return scratch;
  }

  void initialize(const Start& start, Real* parameters) const override {
    // The hidden layers use the stream that no expert uses.
    Engine hidden = start.seeds.stream(Purpose::router_init, ~std::uint64_t{0});
    for (std::size_t l = 0; l < layers_.size(); ++l) layers_[l].initialize(hidden, parameters + offsets_[l]);
    const Convolution<Real>& last = layers_.back();
    draw_columns(start, init_scale_ / std::sqrt(static_cast<double>(feature_dim())),
                 View<Real>(parameters + offsets_.back(), feature_dim(), last.output().channels,
                            last.output_strides().pixel));
  }

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                             Real* scores) const override {
    auto& own = static_cast<CnnScratch<Real>&>(scratch);
    MOELAB_EXPECT(context.x.columns == layers_.front().input().size());
    const int rows = context.x.rows;
    const Real* x = context.x.data;
    ImageStrides strides = image_strides(context.x.row_stride);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      reserve_entries(own.patches[l], layers_[l].patches_size(rows));
      Real* output = scores;
      if (l < own.outputs.size()) {
        reserve_entries(own.outputs[l], layers_[l].outputs_size(rows));
        output = own.outputs[l].data();
      }
      layers_[l].forward(x, strides, rows, parameters + offsets_[l], own.patches[l].data(), output);
      x = output;
      strides = layers_[l].output_strides();
    }
    // The output layer has one patch per row, without padding.
    return {.features = own.patches.back().data()};
  }

  void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                const RouterGradients<Real>& gradients) const override {
    auto& own = static_cast<CnnScratch<Real>&>(scratch);
    const int rows = context.x.rows;
    reserve_entries(own.delta, layers_.back().outputs_size(rows));
    std::copy_n(gradients.scores, layers_.back().outputs_size(rows), own.delta.data());
    for (std::size_t l = layers_.size(); l-- > 0;) {
      const Convolution<Real>& layer = layers_[l];
      const bool goes_on = l > 0 || gradients.inputs;
      if (goes_on) reserve_entries(own.patch_gradients, layer.patch_gradients_size(rows));
      layer.backward(rows, parameters + offsets_[l], own.patches[l].data(),
                     l < own.outputs.size() ? own.outputs[l].data() : nullptr, own.delta.data(),
                     gradients.parameters + offsets_[l], goes_on ? own.patch_gradients.data() : nullptr);
      if (l == 0) break;
      if (l == layers_.size() - 1) add_feature_gradient(gradients.features, rows, own.patch_gradients);
      const std::size_t count = layers_[l - 1].outputs_size(rows);
      reserve_entries(own.delta, count);
      std::fill_n(own.delta.data(), count, Real(0));
      layer.add_patch_gradients(own.patch_gradients.data(), rows, layers_[l - 1].output_strides(),
                                own.delta.data());
    }
    if (!gradients.inputs) return;
    const std::ptrdiff_t stride = kernels::padded(context.x.columns);
    std::fill_n(gradients.inputs, rows * stride, Real(0));
    layers_.front().add_patch_gradients(own.patch_gradients.data(), rows, image_strides(stride),
                                        gradients.inputs);
  }

  int feature_dim() const override { return layers_.back().input().channels; }

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
  /// A row begins with the image, one channel after another.
  ImageStrides image_strides(std::ptrdiff_t row) const {
    const ImageShape& image = layers_.front().input();
    return {row, static_cast<std::ptrdiff_t>(image.height) * image.width, 1};
  }

  /// Adds ∂L/∂features to the gradient from the scores.
  void add_feature_gradient(const Real* features, int rows, AlignedVector<Real>& patch_gradients) const {
    if (!features) return;
    const int stride = kernels::padded(feature_dim());
    for (int row = 0; row < rows; ++row) {
      for (int j = 0; j < feature_dim(); ++j) {
        patch_gradients[size(row * stride + j)] += features[row * feature_dim() + j];
      }
    }
  }

  std::vector<Convolution<Real>> layers_;
  double init_scale_;
  std::vector<std::size_t> offsets_;
  std::size_t block_size_ = 0;
};

}  // namespace

void CnnRouterOptions::bind(Fields& fields) {
  fields.add("trainable", trainable, "false freezes the router at its start");
  fields.add("init_scale", init_scale, at_least(0), "output rows start N(0, init_scale² / width)");
  fields.add("channels", channels, between(1, 4096), 1,
             "output channels of the 3 × 3 convolutions, each of stride 2, ReLU");
  fields.add("width", width, between(1, 1e6), "units of the penultimate, dense layer");
}

InvalidOption no_image_error(const std::string& router) {
  std::vector<std::string> generators;
  for (const GeneratorKind& generator : GeneratorAxis::table()) {
    if (generator.has_image) generators.push_back(generator.name);
  }
  return {"model.router.kind", fmt::format("a '{}' router needs images; generators that have them: {}",
                                           router, fmt::join(generators, ", "))};
}

RouterKind cnn_router() {
  RouterKind kind =
      router_kind<CnnRouterOptions, CnnRouter>("cnn",
                                               "γ = W h + b. h is the penultimate layer of a CNN on the "
                                               "image. The experts read it, too (Dikkala et al. 2023, 3.4)",
                                               {.channels = {3, 5}, .width = 6});
  kind.needs_image = true;
  kind.needed = "data whose rows lead with an image, and a single layer";
  kind.starts_at_rows = true;
  return kind;
}

}  // namespace moelab
