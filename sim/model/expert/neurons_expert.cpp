/// Experts of neurons whose weights lie on a sphere: the gradient in a weight is tangential.

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/kernels.h"
#include "sim/model/expert/expert.h"

namespace moelab {
namespace {

template <class Real>
struct NeuronsScratch final : Scratch {
  AlignedVector<Real> inverse_norms;  ///< 1 / ‖w‖ (E, J)
  AlignedVector<Real> slopes;         ///< w·x / ‖w‖ at active pairs (n, E, J)
  AlignedVector<Real> outputs;        ///< of experts before their gates (n, E, padded(o))
};

/// Parameters: w (E, J, padded(d)), then b (E, J), then a (E, o, J), padded at the end.
template <class Real>
class NeuronsBank final : public ExpertBank<Real> {
 public:
  NeuronsBank(const NeuronsExpertOptions& options, const ExpertSetting& setting)
      : options_(options),
        setting_(setting),
        width_(options.width),
        stride_(kernels::padded(setting.input_dim)),
        out_(kernels::padded(setting.output_dim)) {}

  std::size_t parameters_per_expert() const override {
    return entries(width_, setting_.input_dim + 1 + setting_.output_dim);
  }
  std::size_t block_size() const override {
    return size(kernels::padded(static_cast<int>(second() + neurons() * size(setting_.output_dim))));
  }

  void initialize(const Seeds& seeds, Real* parameters) const override {
    std::fill_n(parameters, block_size(), Real(0));
    for (int e = 0; e < setting_.experts; ++e) {
      Engine engine = seeds.stream(Purpose::expert_init, static_cast<std::uint64_t>(e));
      for (int j = 0; j < width_; ++j) {
        const Matrix draw = draw_normals(engine, 1, setting_.input_dim).normalized();
        Real* const w = parameters + neuron(e, j) * size(stride_);
        for (int q = 0; q < setting_.input_dim; ++q) w[q] = static_cast<Real>(draw(0, q));
        parameters[biases() + neuron(e, j)] = static_cast<Real>(options_.bias_std * draw_normal(engine));
        for (int c = 0; c < setting_.output_dim; ++c) {
          const double sign = draw_uniform(engine) < 0.5 ? -1 : 1;
          parameters[weight(e, c, j)] = static_cast<Real>(sign * options_.init_scale / width_);
        }
      }
    }
  }

  std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<NeuronsScratch<Real>>(); }

  void forward(const View<const Real>& x, const Routing<Real>& routing, const Real* parameters,
               Scratch& scratch, Real* outputs, bool /*keep*/) const override {
    auto& mine = static_cast<NeuronsScratch<Real>&>(scratch);
    reserve_entries(mine.inverse_norms, neurons());
    reserve_entries(mine.slopes, size(x.rows) * neurons());
    reserve_entries(mine.outputs, entries(x.rows * setting_.experts, out_));
    for (std::size_t at = 0; at < neurons(); ++at) {
      const Real* const w = parameters + at * size(stride_);
      mine.inverse_norms[at] = 1 / std::sqrt(kernels::dot(w, w, stride_));
    }
    std::fill_n(outputs, entries(x.rows, out_), Real(0));
    for_each_pair(routing, [&](std::ptrdiff_t row, std::ptrdiff_t expert) {
      const int e = static_cast<int>(expert);
      Real* const own = pair_output(mine, row, expert);
      std::fill_n(own, out_, Real(0));
      const Real* const input = x.row(static_cast<int>(row));
      for (int j = 0; j < width_; ++j) {
        const Real* const w = parameters + neuron(e, j) * size(stride_);
        Real product = 0;
        for (int q = 0; q < setting_.input_dim; ++q) product += w[q] * input[q];
        const Real slope = product * mine.inverse_norms[neuron(e, j)];
        slope_at(mine, row, e, j) = slope;
        const Real value = activation(slope + parameters[biases() + neuron(e, j)]);
        for (int c = 0; c < setting_.output_dim; ++c) own[c] += parameters[weight(e, c, j)] * value;
      }
      kernels::add_scaled(routing.gate_of(static_cast<int>(row), e), own, outputs + size(row) * size(out_),
                          out_);
    });
  }

  void backward(const View<const Real>& x, const Routing<Real>& routing, const Real* parameters,
                Scratch& scratch, const ExpertGradients<Real>& gradients) const override {
    auto& mine = static_cast<NeuronsScratch<Real>&>(scratch);
    Real* const own = gradients.parameters;
    std::fill_n(own, block_size(), Real(0));
    if (gradients.inputs) std::fill_n(gradients.inputs, entries(x.rows, stride_), Real(0));
    for_each_pair(routing, [&](std::ptrdiff_t row, std::ptrdiff_t expert) {
      const int e = static_cast<int>(expert);
      const Real* const upstream = gradients.outputs + size(row) * size(out_);
      const Real* const extra =
          gradients.pair_outputs ? gradients.pair_outputs + size(row * setting_.experts + expert) * size(out_)
                                 : nullptr;
      if (gradients.gates) {
        gradients.gates[size(row) * size(routing.stride) + size(e)] =
            kernels::dot(upstream, pair_output(mine, row, expert), out_);
      }
      const Real gate = routing.gate_of(static_cast<int>(row), e);
      const Real* const input = x.row(static_cast<int>(row));
      for (int j = 0; j < width_; ++j) {
        const std::size_t at = neuron(e, j);
        const Real* const w = parameters + at * size(stride_);
        const Real slope = slope_at(mine, row, e, j), z = slope + parameters[biases() + at];
        const Real value = activation(z);
        Real of_value = 0;
        for (int c = 0; c < setting_.output_dim; ++c) {
          const Real of_output = gate * upstream[c] + (extra ? extra[c] : Real(0));
          own[weight(e, c, j)] += of_output * value;
          of_value += of_output * parameters[weight(e, c, j)];
        }
        const Real delta = of_value * activation_slope(z);
        own[biases() + at] += delta;
        const Real along = delta * mine.inverse_norms[at], radial = along * slope * mine.inverse_norms[at];
        Real* const of_w = own + at * size(stride_);
        for (int q = 0; q < setting_.input_dim; ++q) of_w[q] += along * input[q] - radial * w[q];
        if (gradients.inputs)
          kernels::add_scaled(along, w, gradients.inputs + size(row) * size(stride_), stride_);
      }
    });
  }

  void pair_outputs(const Routing<Real>& routing, const Real* /*parameters*/, const Scratch& scratch,
                    Real* outputs) const override {
    const auto& mine = static_cast<const NeuronsScratch<Real>&>(scratch);
    for_each_pair(routing, [&](std::ptrdiff_t row, std::ptrdiff_t expert) {
      const std::size_t at = size(row * setting_.experts + expert) * size(out_);
      std::copy_n(mine.outputs.data() + at, out_, outputs + at);
    });
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    const View<const Real> w{parameters, static_cast<int>(neurons()), setting_.input_dim, stride_};
    const Real* const a = parameters + second();
    return {{"expert_weight_1", {setting_.experts, width_, setting_.input_dim}, values_of(w)},
            {"expert_bias_1", {setting_.experts, width_}, {parameters + biases(), a}},
            {"expert_weight_2",
             {setting_.experts, setting_.output_dim, width_},
             {a, a + neurons() * size(setting_.output_dim)}}};
  }

 private:
  std::size_t neurons() const { return entries(setting_.experts, width_); }
  std::size_t biases() const { return neurons() * size(stride_); }
  std::size_t second() const { return biases() + neurons(); }
  std::size_t neuron(int e, int j) const { return entries(e, width_) + size(j); }
  /// The place of a_cj of expert e.
  std::size_t weight(int e, int c, int j) const {
    return second() + size(e * setting_.output_dim + c) * size(width_) + size(j);
  }
  Real& slope_at(NeuronsScratch<Real>& mine, std::ptrdiff_t row, int e, int j) const {
    return mine.slopes[size(row) * neurons() + neuron(e, j)];
  }
  Real* pair_output(NeuronsScratch<Real>& mine, std::ptrdiff_t row, std::ptrdiff_t expert) const {
    return mine.outputs.data() + size(row * setting_.experts + expert) * size(out_);
  }

  Real activation(Real z) const {
    return options_.activation == NeuronsExpertOptions::Activation::relu ? std::max(z, Real(0))
                                                                         : std::tanh(z);
  }
  Real activation_slope(Real z) const {
    if (options_.activation == NeuronsExpertOptions::Activation::relu) return z > 0 ? Real(1) : Real(0);
    const Real value = std::tanh(z);
    return 1 - value * value;
  }

  NeuronsExpertOptions options_;
  ExpertSetting setting_;
  int width_;
  int stride_;  // padded(d)
  int out_;     // padded(o)
};

}  // namespace

void NeuronsExpertOptions::bind(Fields& fields) {
  fields.add("width", width, between(1, 1e5), "neurons J");
  fields.add("activation", activation, {"relu", "tanh"}, "σ");
  fields.add("bias_std", bias_std, at_least(0), "b_j starts N(0, bias_std²)");
  fields.add("init_scale", init_scale, positive(), "a_j starts ±init_scale / J");
}

ExpertKind neurons_expert() {
  ExpertKind kind =
      expert_kind<NeuronsExpertOptions, NeuronsBank>("neurons",
                                                     "expert_e(x) = Σ_j a_j σ(w_j·x / ‖w_j‖ + b_j), w_j "
                                                     "started uniform on the unit sphere: a gradient step in "
                                                     "w_j is tangential (Kawata et al. 2025)",
                                                     {.width = 3});
  kind.depth = [](const AnyOptions&) { return 2; };
  return kind;
}

}  // namespace moelab
