#include "sim/model/blocks/normalization.h"

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

constexpr double kVarianceFloor = 1e-5;

template <class Real>
struct NormalizationScratch final : Scratch {
  AlignedVector<Real> normal;   ///< x̂ (n, padded(d)), padding zero
  AlignedVector<Real> inverse;  ///< 1 / √(…), (n)
  AlignedVector<Real> ones;     ///< (padded(d)), padding zero
  AlignedVector<Real> scaled;   ///< g ∘ ∂L/∂y of a row
};

template <class Real>
class NormalizationBlock final : public Block<Real> {
 public:
  NormalizationBlock(Normalization kind, int dim, std::string prefix)
      : is_centred_(kind == Normalization::layer),
        dim_(dim),
        stride_(kernels::padded(dim)),
        prefix_(std::move(prefix)) {}

  int output_dim() const override { return dim_; }
  std::size_t parameter_count() const override { return entries(is_centred_ ? 2 : 1, dim_); }
  std::size_t block_size() const override { return entries(is_centred_ ? 2 : 1, stride_); }
  std::vector<ParameterGroup> groups() const override { return {{.end = block_size()}}; }
  void initialize(const Start& /*start*/, Real* parameters) const override {
    std::fill_n(parameters, block_size(), Real(0));
    std::fill_n(parameters, dim_, Real(1));
  }
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    std::vector<NamedArray<Real>> all = {{prefix_ + "norm_gain", {dim_}, {parameters, parameters + dim_}}};
    if (is_centred_)
      all.push_back({prefix_ + "norm_bias", {dim_}, {parameters + stride_, parameters + stride_ + dim_}});
    return all;
  }
  std::unique_ptr<Scratch> make_scratch() const override {
    auto scratch = std::make_unique<NormalizationScratch<Real>>();
    scratch->ones.assign(size(stride_), Real(0));
    std::fill_n(scratch->ones.begin(), dim_, Real(1));
    scratch->scaled.assign(size(stride_), Real(0));
    return scratch;
  }

  void forward(const Pass<Real>& /*pass*/, const View<const Real>& inputs, const BlockValues<Real>& values,
               LayerSignals<Real>& /*signals*/, Scratch& scratch, const View<Real>& outputs) const override {
    MOELAB_EXPECT(inputs.columns == dim_ && outputs.row_stride == stride_);
    auto& mine = static_cast<NormalizationScratch<Real>&>(scratch);
    reserve_entries(mine.normal, entries(inputs.rows, stride_));
    reserve_entries(mine.inverse, size(inputs.rows));
    const Real* const gain = values.parameters;
    for (int row = 0; row < inputs.rows; ++row) {
      Real* const normal = mine.normal.data() + entries(row, stride_);
      std::fill(std::copy_n(inputs.row(row), dim_, normal), normal + stride_, Real(0));
      if (is_centred_) {
        const Real mean = kernels::dot(normal, mine.ones.data(), stride_) / static_cast<Real>(dim_);
        kernels::add_scaled(-mean, mine.ones.data(), normal, stride_);
      }
      const Real square = kernels::dot(normal, normal, stride_) / static_cast<Real>(dim_);
      const Real inverse = Real(1) / std::sqrt(square + static_cast<Real>(kVarianceFloor));
      mine.inverse[size(row)] = inverse;
      kernels::scale_into(inverse, normal, normal, stride_);
      Real* const output = outputs.row(row);
      for (int j = 0; j < stride_; ++j) output[j] = gain[j] * normal[j];
      if (is_centred_) kernels::add_scaled(Real(1), gain + stride_, output, stride_);
    }
  }

  /// With ŷ = g ∘ ∂L/∂y: ∂L/∂x = (ŷ − mean ŷ − x̂ mean(ŷ ∘ x̂)) / √(…), without mean ŷ for `rms`.
  void backward(const Pass<Real>& /*pass*/, const View<const Real>& inputs, const BlockValues<Real>& values,
                const LayerSignals<Real>& /*signals*/, Scratch& scratch, const View<const Real>& /*outputs*/,
                const Real* output_gradient, Real* gradient, Real* input_gradient) const override {
    auto& mine = static_cast<NormalizationScratch<Real>&>(scratch);
    std::fill_n(gradient, block_size(), Real(0));
    const Real* const gain = values.parameters;
    Real* const scaled = mine.scaled.data();
    for (int row = 0; row < inputs.rows; ++row) {
      const Real* const normal = mine.normal.data() + entries(row, stride_);
      const Real* const upstream = output_gradient + entries(row, stride_);
      for (int j = 0; j < stride_; ++j) {
        gradient[j] += upstream[j] * normal[j];
        scaled[j] = gain[j] * upstream[j];
      }
      if (is_centred_) kernels::add_scaled(Real(1), upstream, gradient + stride_, stride_);
      if (!input_gradient) continue;
      const Real along = kernels::dot(scaled, normal, stride_) / static_cast<Real>(dim_);
      Real* const place = input_gradient + entries(row, stride_);
      if (is_centred_) {
        const Real mean = kernels::dot(scaled, mine.ones.data(), stride_) / static_cast<Real>(dim_);
        kernels::add_scaled(-mean, mine.ones.data(), scaled, stride_);
      }
      kernels::add_scaled(-along, normal, scaled, stride_);
      kernels::scale_into(mine.inverse[size(row)], scaled, place, stride_);
    }
  }

 private:
  bool is_centred_;
  int dim_;
  int stride_;
  std::string prefix_;
};

template <class Real>
struct NormalizedScratch final : Scratch {
  std::unique_ptr<Scratch> norm, inner;
  AlignedVector<Real> rows;           ///< norm(x) (n, padded(d))
  AlignedVector<Real> rows_gradient;  ///< ∂L/∂norm(x)

  Scratch& innermost() override { return inner->innermost(); }
};

template <class Real>
class Normalized final : public Block<Real> {
 public:
  Normalized(Normalization kind, int dim, std::string prefix, std::unique_ptr<Block<Real>> block)
      : norm_(kind, dim, prefix), inner_(std::move(block)), prefix_(std::move(prefix)) {}

  int output_dim() const override { return inner_->output_dim(); }
  int output_rows(int rows, int tokens) const override { return inner_->output_rows(rows, tokens); }
  std::size_t parameter_count() const override { return inner_->parameter_count() + norm_.parameter_count(); }
  std::size_t block_size() const override { return norm_begin() + norm_.block_size(); }
  std::vector<ParameterGroup> groups() const override {
    std::vector<ParameterGroup> all = inner_->groups();
    all.push_back({.begin = norm_begin(), .end = block_size()});
    return all;
  }
  void initialize(const Start& start, Real* parameters) const override {
    inner_->initialize(start, parameters);
    norm_.initialize(start, parameters + norm_begin());
  }
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    std::vector<NamedArray<Real>> all = inner_->arrays(parameters);
    for (NamedArray<Real>& array : all) array.name = prefix_ + array.name;
    for (NamedArray<Real>& array : norm_.arrays(parameters + norm_begin())) all.push_back(std::move(array));
    return all;
  }

  std::vector<StateArray> state_arrays() const override { return inner_->state_arrays(); }
  void start_state(const Start& start, double* state) const override { inner_->start_state(start, state); }
  void begin_step(double progress, const Real* parameters, double* state) const override {
    inner_->begin_step(progress, parameters, state);
  }
  void end_step(const Scratch& scratch, double* state) const override {
    inner_->end_step(*static_cast<const NormalizedScratch<Real>&>(scratch).inner, state);
  }

  std::unique_ptr<Scratch> make_scratch() const override {
    auto scratch = std::make_unique<NormalizedScratch<Real>>();
    scratch->norm = norm_.make_scratch();
    scratch->inner = inner_->make_scratch();
    return scratch;
  }
  void forward(const Pass<Real>& pass, const View<const Real>& inputs, const BlockValues<Real>& values,
               LayerSignals<Real>& signals, Scratch& scratch, const View<Real>& outputs) const override {
    auto& mine = static_cast<NormalizedScratch<Real>&>(scratch);
    const View<const Real> rows = mixture_inputs(pass, inputs, values, scratch);
    inner_->forward(pass, rows, values, signals, *mine.inner, outputs);
  }
  void backward(const Pass<Real>& pass, const View<const Real>& inputs, const BlockValues<Real>& values,
                const LayerSignals<Real>& signals, Scratch& scratch, const View<const Real>& outputs,
                const Real* output_gradient, Real* gradient, Real* input_gradient) const override {
    auto& mine = static_cast<NormalizedScratch<Real>&>(scratch);
    const View<const Real> rows = normal_rows(mine, inputs.rows);
    reserve_entries(mine.rows_gradient, mine.rows.size());
    inner_->backward(pass, rows, values, signals, *mine.inner, outputs, output_gradient, gradient,
                     mine.rows_gradient.data());
    norm_.backward(pass, inputs, of_norm(values), signals, *mine.norm, rows, mine.rows_gradient.data(),
                   gradient + norm_begin(), input_gradient);
  }
  View<const Real> mixture_inputs(const Pass<Real>& pass, const View<const Real>& inputs,
                                  const BlockValues<Real>& values, Scratch& scratch) const override {
    auto& mine = static_cast<NormalizedScratch<Real>&>(scratch);
    reserve_entries(mine.rows, entries(inputs.rows, kernels::padded(norm_.output_dim())));
    const View<Real> rows = normal_rows(mine, inputs.rows);
    LayerSignals<Real> none;
    norm_.forward(pass, inputs, of_norm(values), none, *mine.norm, rows);
    return rows;
  }
  double added_loss(const Pass<Real>& pass, const BlockValues<Real>& values,
                    Scratch& scratch) const override {
    return inner_->added_loss(pass, values, *static_cast<NormalizedScratch<Real>&>(scratch).inner);
  }

 private:
  std::size_t norm_begin() const { return inner_->block_size(); }
  BlockValues<Real> of_norm(const BlockValues<Real>& values) const {
    return {values.parameters + norm_begin(), nullptr};
  }
  View<Real> normal_rows(NormalizedScratch<Real>& mine, int rows) const {
    const int dim = norm_.output_dim();
    return {mine.rows.data(), rows, dim, kernels::padded(dim)};
  }

  NormalizationBlock<Real> norm_;
  std::unique_ptr<Block<Real>> inner_;
  std::string prefix_;
};

}  // namespace

template <class Real>
std::unique_ptr<Block<Real>> make_normalization(Normalization kind, int dim, const std::string& prefix) {
  return std::make_unique<NormalizationBlock<Real>>(kind, dim, prefix);
}

template <class Real>
std::unique_ptr<Block<Real>> make_normalized(Normalization kind, int dim, const std::string& prefix,
                                             std::unique_ptr<Block<Real>> block) {
  return std::make_unique<Normalized<Real>>(kind, dim, prefix, std::move(block));
}

template std::unique_ptr<Block<float>> make_normalization(Normalization, int, const std::string&);
template std::unique_ptr<Block<double>> make_normalization(Normalization, int, const std::string&);
template std::unique_ptr<Block<float>> make_normalized(Normalization, int, const std::string&,
                                                       std::unique_ptr<Block<float>>);
template std::unique_ptr<Block<double>> make_normalized(Normalization, int, const std::string&,
                                                        std::unique_ptr<Block<double>>);

}  // namespace moelab
