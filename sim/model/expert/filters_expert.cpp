#include <cmath>
#include <numbers>

#include "sim/base/error.h"
#include "sim/base/kernels/multiply.h"
#include "sim/model/expert/network_bank.h"

namespace moelab {
namespace {

using FilterActivation = FiltersExpertOptions::Activation;

/// σ(z) and σ'(z).
template <class Real>
struct ActivatedFilter {
  Real value, slope;
};

/// Calls visit(σ) with the function z → σ(z), σ'(z).
template <class Real, class Visit>
void with_activation(FilterActivation activation, const Visit& visit) {
  using Result = ActivatedFilter<Real>;
  switch (activation) {
    case FilterActivation::linear:
      return visit([](Real z) { return Result{z, Real(1)}; });
    case FilterActivation::cubic:
      return visit([](Real z) { return Result{z * z * z, 3 * z * z}; });
    case FilterActivation::relu:
      return visit([](Real z) { return Result{std::max(z, Real(0)), z > 0 ? Real(1) : Real(0)}; });
    case FilterActivation::celu:
      return visit([](Real z) { return z > 0 ? Result{z, Real(1)} : Result{std::expm1(z), std::exp(z)}; });
    case FilterActivation::gelu:
      return visit([](Real z) {
        const Real share = Real(0.5) * std::erfc(-z / std::numbers::sqrt2_v<Real>);
        const Real density =
            std::exp(-z * z / 2) * std::numbers::inv_sqrtpi_v<Real> / std::numbers::sqrt2_v<Real>;
        return Result{z * share, share + z * density};
      });
    case FilterActivation::tanh:
      return visit([](Real z) {
        const Real value = std::tanh(z);
        return Result{value, 1 - value * value};
      });
  }
}

/// The network of an expert of filters. Its block is W^T (d, S) with S = padded(C · J), and with `bias` b
/// (S). Activations: z (n, S), then outputs (n, padded(o)).
template <class Real>
class FilterNetwork {
 public:
  FilterNetwork(const FiltersExpertOptions& options, const ExpertSetting& setting)
      : options_(options),
        opposite_(options.outputs == FiltersExpertOptions::Outputs::opposite),
        functions_(opposite_ ? 1 : setting.output_dim),
        inputs_(setting.input_dim),
        filters_(functions_ * options.filters),
        stride_(kernels::padded(filters_)),
        output_stride_(kernels::padded(setting.output_dim)) {
    if (opposite_ && setting.output_dim != 2) {
      throw InvalidOption("model.expert.outputs", "got \"opposite\", which is for two outputs; there are " +
                                                      std::to_string(setting.output_dim));
    }
    using Signs = FiltersExpertOptions::Signs;
    for (int e = 0; e < setting.experts; ++e) {
      // One stream for all seeds: the weights are a part of the network, and not drawn at its start.
      Engine engine = Seeds{}.stream(Purpose::expert_init, static_cast<std::uint64_t>(e));
      for (int j = 0; j < filters_; ++j) {
        const double drawn = options.signs == Signs::normal ? draw_normal(engine) : 1;
        weights_.push_back(static_cast<Real>(options.signs == Signs::by_expert && e % 2 == 1 ? -1 : drawn));
      }
    }
  }

  int output_stride() const { return output_stride_; }
  std::size_t block_size() const { return entries(block_rows(), stride_); }
  std::size_t parameter_count() const { return entries(block_rows(), filters_); }
  std::size_t activation_size(int rows) const { return entries(rows, stride_ + output_stride_); }
  std::size_t scratch_size(int rows) const { return entries(rows, stride_); }
  std::vector<std::size_t> part_ends() const {
    if (!options_.bias) return {block_size()};
    return {entries(inputs_, stride_), block_size()};
  }

  void initialize(int /*expert*/, Engine& engine, Real* parameters) const {
    std::fill_n(parameters, block_size(), Real(0));
    const bool is_uniform = options_.init == FiltersExpertOptions::Init::uniform;
    const double scale = options_.init_scale / std::sqrt(static_cast<double>(inputs_));
    const int rows = is_uniform ? block_rows() : inputs_;
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < filters_; ++j) {
        const double draw = is_uniform ? 2 * draw_uniform(engine) - 1 : draw_normal(engine);
        parameters[entries(i, stride_) + size(j)] = static_cast<Real>(scale * draw);
      }
    }
  }

  const Real* forward(int expert, const View<const Real>& x, const Real* parameters,
                      Real* activations) const {
    kernels::multiply(x, weight(parameters), kernels::padded_rows(activations, x.rows, filters_),
                      {.bias = options_.bias ? bias(parameters) : nullptr});
    Real* const outputs = activations + entries(x.rows, stride_);
    std::fill_n(outputs, entries(x.rows, output_stride_), Real(0));
    const Real* const weights = weights_of(expert);
    with_activation<Real>(options_.activation, [&](const auto& sigma) {
      for (int row = 0; row < x.rows; ++row) {
        const Real* const z = activations + entries(row, stride_);
        Real* const f = outputs + entries(row, output_stride_);
        for (int c = 0, at = 0; c < functions_; ++c) {
          for (int j = 0; j < options_.filters; ++j, ++at) f[c] += weights[at] * sigma(z[at]).value;
        }
        if (!opposite_) continue;
        f[0] /= 2;
        f[1] = -f[0];
      }
    });
    return outputs;
  }

  void backward(int expert, const View<const Real>& x, const Real* parameters, const Real* activations,
                const Real* output_gradient, Real* gradient, Real* scratch, Real* input_gradient) const {
    std::fill_n(scratch, scratch_size(x.rows), Real(0));
    const Real* const weights = weights_of(expert);
    with_activation<Real>(options_.activation, [&](const auto& sigma) {
      for (int row = 0; row < x.rows; ++row) {
        const Real* const z = activations + entries(row, stride_);
        const Real* const upstream = output_gradient + entries(row, output_stride_);
        Real* const delta = scratch + entries(row, stride_);
        for (int c = 0, at = 0; c < functions_; ++c) {
          const Real of_function = opposite_ ? (upstream[0] - upstream[1]) / 2 : upstream[c];
          for (int j = 0; j < options_.filters; ++j, ++at)
            delta[at] = of_function * weights[at] * sigma(z[at]).slope;
        }
      }
    });
    const View<const Real> delta = kernels::padded_rows<const Real>(scratch, x.rows, filters_);
    kernels::multiply(x.transposed(), delta, weight(gradient));
    if (options_.bias) kernels::sum_rows(scratch, x.rows, filters_, stride_, bias(gradient));
    if (!input_gradient) return;
    kernels::multiply(delta, weight(parameters).transposed(),
                      kernels::padded_rows(input_gradient, x.rows, inputs_));
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters, int experts) const {
    NamedArray<Real> weights{"expert_weight", {experts, filters_, inputs_}, {}};
    NamedArray<Real> biases{"expert_bias", {experts, filters_}, {}};
    for (int e = 0; e < experts; ++e) {
      const Real* const block = parameters + size(e) * block_size();
      for (int j = 0; j < filters_; ++j) {
        for (int i = 0; i < inputs_; ++i) weights.values.push_back(block[entries(i, stride_) + size(j)]);
        if (options_.bias) biases.values.push_back(bias(block)[j]);
      }
    }
    if (!options_.bias) return {std::move(weights)};
    return {std::move(weights), std::move(biases)};
  }

 private:
  int block_rows() const { return inputs_ + (options_.bias ? 1 : 0); }
  template <class Value>
  View<Value> weight(Value* block) const {
    return {block, inputs_, filters_, stride_};
  }
  template <class Value>
  Value* bias(Value* block) const {
    return block + entries(inputs_, stride_);
  }
  /// a_j of all filters of an expert.
  const Real* weights_of(int expert) const { return weights_.data() + entries(expert, filters_); }

  FiltersExpertOptions options_;
  bool opposite_;
  int functions_;  ///< C
  int inputs_;     ///< d
  int filters_;    ///< C · J
  int stride_;
  int output_stride_;
  std::vector<Real> weights_;
};

template <class Real>
using FilterBank = NetworkBank<Real, FilterNetwork<Real>>;

}  // namespace

void FiltersExpertOptions::bind(Fields& fields) {
  fields.add("filters", filters, between(1, 1e6), "filters J of an output");
  fields.add("activation", activation, {"linear", "cubic", "relu", "celu", "gelu", "tanh"}, "σ");
  fields.add("outputs", outputs, {"own", "opposite"},
             "every output has its own filters; or two outputs (f/2, −f/2) of one function, whose "
             "cross-entropy is log(1 + exp(−y f))");
  fields.add("signs", signs, {"one", "by_expert", "normal"},
             "fixed weights a_j: 1; 1 and −1 for experts in turn; or N(0, 1), the same for all seeds");
  fields.add("bias", bias, "adds biases b");
  fields.add("init", init, {"normal", "uniform"},
             "weights start N(0, init_scale² / d), biases at zero; or both U(±init_scale / √d)");
  fields.add("init_scale", init_scale, at_least(0), "scale of the start");
}

ExpertKind filters_expert() {
  return expert_kind<FiltersExpertOptions, FilterBank>(
      "filters",
      "f_c(x) = Σ_j a_j σ(w_cj·x + b_cj), filters that all tokens of a sample share (Chen et al. 2022; "
      "Chowdhury et al. 2023)",
      {.filters = 3, .activation = FilterActivation::relu});
}

}  // namespace moelab
