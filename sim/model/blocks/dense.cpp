#include "sim/model/blocks/dense.h"

#include <algorithm>

#include "sim/base/kernels/kernels.h"
#include "sim/model/layers.h"

namespace moelab {
namespace {

template <class Real>
struct DenseScratch final : Scratch {
  Routing<Real> routing;
  AlignedVector<Real> gates;  ///< (n, padded(1)), ones in the first column
  std::unique_ptr<Scratch> bank;
};

template <class Real>
class Dense final : public Block<Real> {
 public:
  Dense(const ExpertOptions& network, int input_dim, int output_dim)
      : output_dim_(output_dim), bank_(make_expert_bank<Real>(network, {input_dim, output_dim, 1})) {}

  int output_dim() const override { return output_dim_; }
  std::size_t parameter_count() const override { return bank_->parameters_per_expert(); }
  std::size_t block_size() const override { return bank_->block_size(); }
  std::vector<ParameterGroup> groups() const override {
    return {{.end = block_size(), .part = ParameterGroup::Part::experts}};
  }
  void initialize(const Start& start, Real* parameters) const override {
    bank_->initialize(start.seeds, parameters);
  }
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    return bank_->arrays(parameters);
  }

  std::unique_ptr<Scratch> make_scratch() const override {
    auto scratch = std::make_unique<DenseScratch<Real>>();
    scratch->bank = bank_->make_scratch();
    return scratch;
  }

  void forward(const Pass<Real>& pass, const View<const Real>& inputs, const BlockValues<Real>& values,
               LayerSignals<Real>& /*signals*/, Scratch& scratch, const View<Real>& outputs) const override {
    MOELAB_EXPECT(outputs.rows == inputs.rows && outputs.row_stride == kernels::padded(output_dim_));
    DenseScratch<Real>& mine = static_cast<DenseScratch<Real>&>(scratch);
    route_all(inputs.rows, mine);
    bank_->forward(inputs, mine.routing, values.parameters, *mine.bank, outputs.data, pass.keep);
  }

  void backward(const Pass<Real>& /*pass*/, const View<const Real>& inputs, const BlockValues<Real>& values,
                const LayerSignals<Real>& /*signals*/, Scratch& scratch, const View<const Real>& /*outputs*/,
                const Real* output_gradient, Real* gradient, Real* input_gradient) const override {
    DenseScratch<Real>& mine = static_cast<DenseScratch<Real>&>(scratch);
    bank_->backward(inputs, mine.routing, values.parameters, *mine.bank,
                    {.outputs = output_gradient, .parameters = gradient, .inputs = input_gradient});
  }

 private:
  /// Routes every row to the single expert.
  static void route_all(int rows, DenseScratch<Real>& mine) {
    constexpr int kStride = kernels::padded(1);
    std::size_t filled = mine.gates.size();
    reserve_entries(mine.gates, entries(rows, kStride));
    for (; filled < mine.gates.size(); filled += kStride) mine.gates[filled] = 1;
    mine.routing.rows = rows;
    mine.routing.experts = 1;
    mine.routing.stride = kStride;
    mine.routing.gates = mine.gates.data();
    mine.routing.every_pair = true;
  }

  int output_dim_;
  std::unique_ptr<ExpertBank<Real>> bank_;
};

template <class Real>
class LinearBlock final : public Block<Real> {
 public:
  LinearBlock(int input_dim, int output_dim, Purpose start, std::string prefix)
      : layer_(input_dim, output_dim, false), start_(start), prefix_(std::move(prefix)) {}

  int output_dim() const override { return layer_.outputs(); }
  std::size_t parameter_count() const override { return layer_.parameter_count(); }
  std::size_t block_size() const override { return layer_.block_size(); }
  std::vector<ParameterGroup> groups() const override { return {{.end = block_size()}}; }
  void initialize(const Start& start, Real* parameters) const override {
    Engine engine = start.seeds.stream(start_);
    layer_.initialize(engine, 1.0, parameters);
  }
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    return layer_arrays(Mlp<Real>({layer_.inputs(), layer_.outputs()}), parameters, prefix_);
  }

  void forward(const Pass<Real>& /*pass*/, const View<const Real>& inputs, const BlockValues<Real>& values,
               LayerSignals<Real>& /*signals*/, Scratch& /*scratch*/,
               const View<Real>& outputs) const override {
    MOELAB_EXPECT(outputs.rows == inputs.rows && outputs.row_stride == layer_.stride());
    layer_.forward(inputs, values.parameters, outputs.data);
  }

  void backward(const Pass<Real>& /*pass*/, const View<const Real>& inputs, const BlockValues<Real>& values,
                const LayerSignals<Real>& /*signals*/, Scratch& /*scratch*/,
                const View<const Real>& /*outputs*/, const Real* output_gradient, Real* gradient,
                Real* input_gradient) const override {
    layer_.parameter_gradient(inputs, output_gradient, gradient);
    if (input_gradient)
      layer_.input_gradient(output_gradient, inputs.rows, values.parameters, input_gradient);
  }

 private:
  DenseLayer<Real> layer_;
  Purpose start_;
  std::string prefix_;  // prefix of the arrays' names
};

template <class Real>
class SumOverTokens final : public Block<Real> {
 public:
  explicit SumOverTokens(int dim) : dim_(dim), stride_(kernels::padded(dim)) {}

  int output_dim() const override { return dim_; }
  int output_rows(int rows, int tokens) const override { return rows / tokens; }

  void forward(const Pass<Real>& pass, const View<const Real>& inputs, const BlockValues<Real>& /*values*/,
               LayerSignals<Real>& /*signals*/, Scratch& /*scratch*/,
               const View<Real>& outputs) const override {
    MOELAB_EXPECT(inputs.rows == outputs.rows * pass.tokens && inputs.columns == dim_);
    MOELAB_EXPECT(inputs.row_stride >= stride_ && outputs.row_stride == stride_);
    for (int i = 0; i < outputs.rows; ++i) {
      kernels::sum_rows(inputs.row(i * pass.tokens), pass.tokens, dim_, inputs.row_stride, outputs.row(i));
    }
  }

  void backward(const Pass<Real>& pass, const View<const Real>& inputs, const BlockValues<Real>& /*values*/,
                const LayerSignals<Real>& /*signals*/, Scratch& /*scratch*/,
                const View<const Real>& /*outputs*/, const Real* output_gradient, Real* /*gradient*/,
                Real* input_gradient) const override {
    for (int row = 0; row < inputs.rows && input_gradient; ++row) {
      std::copy_n(output_gradient + entries(row / pass.tokens, stride_), stride_,
                  input_gradient + entries(row, stride_));
    }
  }

 private:
  int dim_;
  int stride_;
};

}  // namespace

template <class Real>
std::unique_ptr<Block<Real>> make_dense(const ExpertOptions& network, int input_dim, int output_dim) {
  return std::make_unique<Dense<Real>>(network, input_dim, output_dim);
}

template <class Real>
std::unique_ptr<Block<Real>> make_readout(int input_dim, int output_dim) {
  return std::make_unique<LinearBlock<Real>>(input_dim, output_dim, Purpose::expert_init, "readout_");
}

template <class Real>
std::unique_ptr<Block<Real>> make_projection(int input_dim, int width) {
  return std::make_unique<LinearBlock<Real>>(input_dim, width, Purpose::projection_init, "projection_");
}

template <class Real>
std::size_t readout_parameter_count(int input_dim, int output_dim) {
  return DenseLayer<Real>(input_dim, output_dim, false).parameter_count();
}

template <class Real>
std::unique_ptr<Block<Real>> make_sum_over_tokens(int dim) {
  return std::make_unique<SumOverTokens<Real>>(dim);
}

template std::unique_ptr<Block<float>> make_dense(const ExpertOptions&, int, int);
template std::unique_ptr<Block<double>> make_dense(const ExpertOptions&, int, int);
template std::unique_ptr<Block<float>> make_readout(int, int);
template std::unique_ptr<Block<double>> make_readout(int, int);
template std::unique_ptr<Block<float>> make_projection(int, int);
template std::unique_ptr<Block<double>> make_projection(int, int);
template std::size_t readout_parameter_count<float>(int, int);
template std::size_t readout_parameter_count<double>(int, int);
template std::unique_ptr<Block<float>> make_sum_over_tokens(int);
template std::unique_ptr<Block<double>> make_sum_over_tokens(int);

}  // namespace moelab
