/// Experts that are ridge functions: linear, polynomial and one-neuron experts.

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/kernels.h"
#include "sim/model/expert/expert.h"
#include "sim/model/layers.h"

namespace moelab {
namespace {

/// The function φ, entry by entry: z, z^power or (z)_+ (slope 0 at 0).
struct Activation {
  enum class Kind { identity, power, relu };
  Kind kind = Kind::identity;
  int power = 1;
};

template <class Real>
Real power(Real base, int exponent) {
  Real result = 1;
  for (int i = 0; i < exponent; ++i) result *= base;
  return result;
}

/// The arrays of a batch's passes, all (n, o · padded(E)).
template <class Real>
struct RidgeScratch final : Scratch {
  AlignedVector<Real> values;  ///< φ(X W + b)
  AlignedVector<Real> slopes;  ///< φ′(X W + b); unused if φ is the identity
  AlignedVector<Real> delta;   ///< ∂L/∂φ, then ∂L/∂(X W + b)
};

/// A bank of ridge functions, computed as one product for all experts.
///
/// Columns [j · padded(E), j · padded(E) + E) of W (d, o · padded(E)) hold output j of every expert. Output j
/// of the mixture is then the dot product of a row of gates and a row of φ(X W + b). Inactive pairs have gate
/// zero.
template <class Real>
class RidgeBank final : public ExpertBank<Real> {
 public:
  RidgeBank(const Activation& activation, double init_scale, const ExpertSetting& setting)
      : activation_(activation),
        init_scale_(init_scale),
        input_dim_(setting.input_dim),
        output_dim_(setting.output_dim),
        experts_(setting.experts),
        stride_(kernels::padded(setting.output_dim)),
        slab_(kernels::padded(setting.experts)),
        columns_(slab_ * setting.output_dim),
        layer_(setting.input_dim, columns_, false) {}

  std::size_t parameters_per_expert() const override { return size(input_dim_ + 1) * size(output_dim_); }
  std::size_t block_size() const override { return layer_.block_size(); }

  void initialize(const Seeds& seeds, Real* parameters) const override {
    std::fill(parameters, parameters + block_size(), Real(0));
    const double deviation = init_scale_ / std::sqrt(static_cast<double>(input_dim_));
    for (int e = 0; e < experts_; ++e) {
      Engine engine = seeds.stream(Purpose::expert_init, static_cast<std::uint64_t>(e));
      for (int i = 0; i < input_dim_; ++i) {
        for (int j = 0; j < output_dim_; ++j) {
          parameters[place(i, j, e)] = static_cast<Real>(deviation * draw_normal(engine));
        }
      }
    }
  }

  std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<RidgeScratch<Real>>(); }

  void forward(const View<const Real>& x, const Routing<Real>& routing, const Real* parameters,
               Scratch& scratch, Real* outputs, bool /*keep*/) const override {
    MOELAB_EXPECT(x.rows == routing.rows && x.columns == input_dim_ && routing.stride == slab_);
    RidgeScratch<Real>& mine = static_cast<RidgeScratch<Real>&>(scratch);
    reserve_entries(mine.values, entries(x.rows, columns_));
    layer_.forward(x, parameters, mine.values.data());
    activate(x.rows, mine);
    std::fill_n(outputs, entries(x.rows, stride_), Real(0));
    for (int j = 0; j < output_dim_; ++j) {
      kernels::dot_rows({routing.gates, slab_}, {value(mine, 0, j), columns_}, x.rows, slab_,
                        {outputs + j, stride_});
    }
  }

  void backward(const View<const Real>& x, const Routing<Real>& routing, const Real* parameters,
                Scratch& scratch, const ExpertGradients<Real>& gradients) const override {
    RidgeScratch<Real>& mine = static_cast<RidgeScratch<Real>&>(scratch);
    reserve_entries(mine.delta, entries(x.rows, columns_));
    for (int j = 0; j < output_dim_; ++j) {
      kernels::scale_rows({gradients.outputs + j, stride_}, {routing.gates, slab_}, x.rows, slab_,
                          {mine.delta.data() + size(j) * size(slab_), columns_});
    }
    if (gradients.gates) backward_gates(gradients.outputs, x.rows, mine, gradients.gates);
    if (gradients.pair_outputs) {
      for_each_pair(routing, [&](std::ptrdiff_t row, std::ptrdiff_t e) {
        for (int j = 0; j < output_dim_; ++j) {
          mine.delta[size(row * columns_ + j * slab_ + e)] +=
              gradients.pair_outputs[(row * experts_ + e) * stride_ + j];
        }
      });
    }
    scale_by_slopes(x.rows, mine);
    layer_.parameter_gradient(x, mine.delta.data(), gradients.parameters);
    if (gradients.inputs) layer_.input_gradient(mine.delta.data(), x.rows, parameters, gradients.inputs);
  }

  void pair_outputs(const Routing<Real>& routing, const Real* /*parameters*/, const Scratch& scratch,
                    Real* outputs) const override {
    const RidgeScratch<Real>& mine = static_cast<const RidgeScratch<Real>&>(scratch);
    for_each_pair(routing, [&](std::ptrdiff_t row, std::ptrdiff_t e) {
      Real* const place = outputs + (row * experts_ + e) * stride_;
      std::fill_n(place, stride_, Real(0));
      for (int j = 0; j < output_dim_; ++j) place[j] = mine.values[size(row * columns_ + j * slab_ + e)];
    });
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    NamedArray<Real> weight{"expert_weight_1", {experts_, output_dim_, input_dim_}, {}};
    NamedArray<Real> bias{"expert_bias_1", {experts_, output_dim_}, {}};
    for (int e = 0; e < experts_; ++e) {
      for (int j = 0; j < output_dim_; ++j) {
        for (int i = 0; i < input_dim_; ++i) weight.values.push_back(parameters[place(i, j, e)]);
        bias.values.push_back(parameters[place(input_dim_, j, e)]);
      }
    }
    return {std::move(weight), std::move(bias)};
  }

 private:
  /// The place of an entry of W: row i of A_e^T, output j, expert e. i = d is the bias.
  std::size_t place(int i, int j, int e) const {
    return size(i) * size(columns_) + size(j) * size(slab_) + size(e);
  }
  const Real* value(const RidgeScratch<Real>& mine, int row, int j) const {
    return mine.values.data() + entries(row, columns_) + entries(j, slab_);
  }

  /// Computes ∂L/∂gates, one output column j after another.
  void backward_gates(const Real* output_gradient, int rows, const RidgeScratch<Real>& mine,
                      Real* gates) const {
    kernels::scale_rows({output_gradient, stride_}, {value(mine, 0, 0), columns_}, rows, slab_,
                        {gates, slab_});
    for (int row = 0; row < rows; ++row) {
      for (int j = 1; j < output_dim_; ++j) {
        kernels::add_scaled(output_gradient[entries(row, stride_) + size(j)], value(mine, row, j),
                            gates + entries(row, slab_), slab_);
      }
    }
  }

  /// values ← φ(values), and slopes ← φ′(former values).
  void activate(int rows, RidgeScratch<Real>& mine) const {
    if (activation_.kind == Activation::Kind::identity) return;
    const std::size_t count = entries(rows, columns_);
    reserve_entries(mine.slopes, count);
    for (std::size_t i = 0; i < count; ++i) {
      const Real z = mine.values[i];
      if (activation_.kind == Activation::Kind::relu) {
        mine.slopes[i] = z > 0 ? Real(1) : Real(0);
        mine.values[i] = z > 0 ? z : Real(0);
      } else {
        const Real below = power(z, activation_.power - 1);
        mine.slopes[i] = static_cast<Real>(activation_.power) * below;
        mine.values[i] = below * z;
      }
    }
  }

  /// delta ← ∂L/∂(X W + b).
  void scale_by_slopes(int rows, RidgeScratch<Real>& mine) const {
    if (activation_.kind == Activation::Kind::identity) return;
    for (std::size_t i = 0; i < entries(rows, columns_); ++i) mine.delta[i] *= mine.slopes[i];
  }

  Activation activation_;
  double init_scale_;
  int input_dim_;
  int output_dim_;
  int experts_;
  int stride_;              // padded(o)
  int slab_;                // padded(E)
  int columns_;             // o · padded(E)
  DenseLayer<Real> layer_;  // the layer of all experts
};

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_ridge_bank(const Activation& activation, double init_scale,
                                                  const ExpertSetting& setting) {
  return std::make_unique<RidgeBank<Real>>(activation, init_scale, setting);
}

/// Largest number of outputs for which a linear expert is a ridge function. Above it the expert is an MLP of
/// depth 1, whose cost is proportional to the active pairs.
constexpr int kRidgeOutputs = 4;

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_linear_bank(const AnyOptions& options, const ExpertSetting& setting) {
  const double init_scale = options.get<LinearExpertOptions>().init_scale;
  if (setting.output_dim > kRidgeOutputs) {
    return make_mlp_bank<Real>({.depth = 1, .init_scale = init_scale}, setting);
  }
  return make_ridge_bank<Real>({}, init_scale, setting);
}

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_polynomial_bank(const AnyOptions& options,
                                                       const ExpertSetting& setting) {
  const PolynomialExpertOptions& own = options.get<PolynomialExpertOptions>();
  return make_ridge_bank<Real>({Activation::Kind::power, own.power}, own.init_scale, setting);
}

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_relu_bank(const AnyOptions& options, const ExpertSetting& setting) {
  return make_ridge_bank<Real>({Activation::Kind::relu}, options.get<ReluExpertOptions>().init_scale,
                               setting);
}

}  // namespace

void LinearExpertOptions::bind(Fields& fields) {
  fields.add("init_scale", init_scale, at_least(0), "entries of A_e start N(0, init_scale² / d)");
}

ExpertKind linear_expert() {
  return {{"linear", "expert_e(x) = A_e x + b_e", LinearExpertOptions{}, LinearExpertOptions{}},
          {make_linear_bank<float>, make_linear_bank<double>}};
}

void PolynomialExpertOptions::bind(Fields& fields) {
  fields.add("init_scale", init_scale, at_least(0), "entries of A_e start N(0, init_scale² / d), b_e zero");
  fields.add("power", power, between(1, 16), "p");
}

ExpertKind polynomial_expert() {
  return {{"polynomial", "expert_e(x) = (A_e x + b_e)^power, output by output (Nguyen et al.)",
           PolynomialExpertOptions{}, PolynomialExpertOptions{}},
          {make_polynomial_bank<float>, make_polynomial_bank<double>}};
}

void ReluExpertOptions::bind(Fields& fields) {
  fields.add("init_scale", init_scale, at_least(0), "entries of A_e start N(0, init_scale² / d), b_e zero");
}

ExpertKind relu_expert() {
  return {{"relu", "expert_e(x) = (A_e x + b_e)_+, one neuron for each output", ReluExpertOptions{},
           ReluExpertOptions{}},
          {make_relu_bank<float>, make_relu_bank<double>}};
}

}  // namespace moelab
