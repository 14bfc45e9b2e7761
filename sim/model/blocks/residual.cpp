#include "sim/model/blocks/residual.h"

#include <algorithm>
#include <functional>

#include "sim/base/kernels/kernels.h"
#include "sim/base/kernels/multiply.h"
#include "sim/model/gating/selection.h"

namespace moelab {

template <class Real>
Residual<Real>::Residual(std::unique_ptr<Block<Real>> block, Dropout dropout)
    : inner_(std::move(block)), dropout_(std::move(dropout)) {
  for (const StateArray& array : inner_->state_arrays()) dropout_state_ += size(array.size());
}

template <class Real>
std::vector<StateArray> Residual<Real>::state_arrays() const {
  std::vector<StateArray> all = inner_->state_arrays();
  if (dropout_.probability > 0) all.push_back(step_stream::array(dropout_.name.c_str()));
  return all;
}

template <class Real>
void Residual<Real>::start_state(const Start& start, double* state) const {
  inner_->start_state(start, state);
  if (dropout_.probability > 0) step_stream::start(start, state + dropout_state_, dropout_.stream);
}

template <class Real>
void Residual<Real>::begin_step(double progress, const Real* parameters, double* state) const {
  inner_->begin_step(progress, parameters, state);
  if (dropout_.probability > 0) step_stream::advance(state + dropout_state_);
}

template <class Real>
void Residual<Real>::end_step(const Scratch& scratch, double* state) const {
  inner_->end_step(*static_cast<const ResidualScratch<Real>&>(scratch).inner, state);
}

template <class Real>
std::unique_ptr<Scratch> Residual<Real>::make_scratch() const {
  auto scratch = std::make_unique<ResidualScratch<Real>>();
  scratch->inner = inner_->make_scratch();
  return scratch;
}

template <class Real>
View<Real> Residual<Real>::branch(ResidualScratch<Real>& scratch, int rows) const {
  reserve_entries(scratch.branch, entries(rows, kernels::padded(output_dim())));
  return kernels::padded_rows(scratch.branch.data(), rows, output_dim());
}

template <class Real>
void Residual<Real>::draw_kept(const BlockValues<Real>& values, int rows,
                               ResidualScratch<Real>& scratch) const {
  const int columns = output_dim(), stride = kernels::padded(columns);
  reserve_entries(scratch.kept, entries(rows, stride));
  Engine engine = step_stream::engine(values.state + dropout_state_, kStepDropout);
  const Real scale = static_cast<Real>(1 / (1 - dropout_.probability));
  for (int row = 0; row < rows; ++row) {
    Real* const kept = scratch.kept.data() + entries(row, stride);
    for (int j = 0; j < columns; ++j) kept[j] = draw_uniform(engine) < dropout_.probability ? Real(0) : scale;
    std::fill(kept + columns, kept + stride, Real(0));
  }
}

template <class Real>
void Residual<Real>::forward(const Pass<Real>& pass, const View<const Real>& inputs,
                             const BlockValues<Real>& values, LayerSignals<Real>& signals, Scratch& scratch,
                             const View<Real>& outputs) const {
  MOELAB_EXPECT(inputs.columns == output_dim() && inputs.rows == outputs.rows);
  ResidualScratch<Real>& mine = static_cast<ResidualScratch<Real>&>(scratch);
  const View<Real> branch_rows = branch(mine, inputs.rows);
  inner_->forward(pass, inputs, values, signals, *mine.inner, branch_rows);
  if (drops(pass)) {
    draw_kept(values, inputs.rows, mine);
    for (int row = 0; row < inputs.rows; ++row) {
      const Real* const x = inputs.row(row);
      const Real* const f = branch_rows.row(row);
      const Real* const kept = mine.kept.data() + entries(row, kernels::padded(inputs.columns));
      for (int j = 0; j < inputs.columns; ++j) outputs.row(row)[j] = x[j] + kept[j] * f[j];
    }
    return;
  }
  for (int row = 0; row < inputs.rows; ++row) {
    const Real* const x = inputs.row(row);
    const Real* const f = branch_rows.row(row);
    Real* const sum = outputs.row(row);
    for (int j = 0; j < inputs.columns; ++j) sum[j] = x[j] + f[j];
  }
}

template <class Real>
void Residual<Real>::backward(const Pass<Real>& pass, const View<const Real>& inputs,
                              const BlockValues<Real>& values, const LayerSignals<Real>& signals,
                              Scratch& scratch, const View<const Real>& outputs, const Real* output_gradient,
                              Real* gradient, Real* input_gradient) const {
  MOELAB_EXPECT(input_gradient != output_gradient);
  ResidualScratch<Real>& mine = static_cast<ResidualScratch<Real>&>(scratch);
  const std::size_t count = entries(inputs.rows, kernels::padded(inputs.columns));
  const Real* of_branch = output_gradient;
  if (drops(pass)) {
    reserve_entries(mine.branch_gradient, count);
    std::transform(output_gradient, output_gradient + count, mine.kept.data(), mine.branch_gradient.data(),
                   std::multiplies<Real>());
    of_branch = mine.branch_gradient.data();
  }
  inner_->backward(pass, inputs, values, signals, *mine.inner, branch(mine, outputs.rows), of_branch,
                   gradient, input_gradient);
  if (!input_gradient) return;
  kernels::add_scaled(Real(1), output_gradient, input_gradient, static_cast<int>(count));
}

template <class Real>
double Residual<Real>::added_loss(const Pass<Real>& pass, const BlockValues<Real>& values,
                                  Scratch& scratch) const {
  return inner_->added_loss(pass, values, *static_cast<ResidualScratch<Real>&>(scratch).inner);
}

template <class Real>
std::unique_ptr<Block<Real>> make_residual(std::unique_ptr<Block<Real>> block, const Dropout& dropout) {
  return std::make_unique<Residual<Real>>(std::move(block), dropout);
}

template class Residual<float>;
template class Residual<double>;
template std::unique_ptr<Block<float>> make_residual(std::unique_ptr<Block<float>>, const Dropout&);
template std::unique_ptr<Block<double>> make_residual(std::unique_ptr<Block<double>>, const Dropout&);

namespace {

constexpr double kVarianceFloor = 1e-5;

template <class Real>
struct NormalizationScratch final : Scratch {
  AlignedVector<Real> normal;   ///< x̂ (n, padded(d)), padding zero
  AlignedVector<Real> inverse;  ///< 1 / √(…), (n)
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
    return std::make_unique<NormalizationScratch<Real>>();
  }

  void forward(const Pass<Real>& /*pass*/, const View<const Real>& inputs, const BlockValues<Real>& values,
               LayerSignals<Real>& /*signals*/, Scratch& scratch, const View<Real>& outputs) const override {
    MOELAB_EXPECT(inputs.columns == dim_ && outputs.row_stride == stride_);
    auto& mine = static_cast<NormalizationScratch<Real>&>(scratch);
    reserve_entries(mine.normal, entries(inputs.rows, stride_));
    reserve_entries(mine.inverse, size(inputs.rows));
    for (int row = 0; row < inputs.rows; ++row) {
      Real* const normal = mine.normal.data() + entries(row, stride_);
      std::fill(std::copy_n(inputs.row(row), dim_, normal), normal + stride_, Real(0));
    }
    kernels::normalize_rows(norm_of(inputs.rows, values, mine), outputs.data);
  }

  void backward(const Pass<Real>& /*pass*/, const View<const Real>& inputs, const BlockValues<Real>& values,
                const LayerSignals<Real>& /*signals*/, Scratch& scratch, const View<const Real>& /*outputs*/,
                const Real* output_gradient, Real* gradient, Real* input_gradient) const override {
    auto& mine = static_cast<NormalizationScratch<Real>&>(scratch);
    kernels::normalize_rows_backward(
        norm_of(inputs.rows, values, mine),
        kernels::RowNormGradient<Real>{output_gradient, gradient, gradient + stride_, input_gradient});
  }

 private:
  kernels::RowNorm<Real> norm_of(int rows, const BlockValues<Real>& values,
                                 NormalizationScratch<Real>& mine) const {
    return {.rows = rows,
            .dim = dim_,
            .floor = static_cast<Real>(kVarianceFloor),
            .gain = values.parameters,
            .bias = is_centred_ ? values.parameters + stride_ : nullptr,
            .normal = mine.normal.data(),
            .inverse = mine.inverse.data()};
  }

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
