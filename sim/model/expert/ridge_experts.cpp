/// Experts that are ridge functions: linear, polynomial and one-neuron experts.
///
/// With unit length the bank computes with W' = W / ‖W‖, column by column. The gradient in W is then the
/// tangent part of the gradient in W', over ‖W‖.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"
#include "sim/model/expert/expert.h"
#include "sim/model/layers.h"

namespace moelab {
namespace {

/// The function φ, entry by entry: z, z^power, (z)_+ (slope 0 at 0), z Φ(z) or σ(z).
struct Activation {
  enum class Kind { identity, power, relu, gelu, sigmoid };
  Kind kind = Kind::identity;
  int power = 1;
};

template <class Real>
Real power(Real base, int exponent) {
  Real result = 1;
  for (int i = 0; i < exponent; ++i) result *= base;
  return result;
}

/// The arrays of a batch's passes, all (n, o · padded(E)) except for unit experts.
template <class Real>
struct RidgeScratch final : Scratch {
  AlignedVector<Real> directions;             ///< W' of unit experts (d + 1, o · padded(E))
  AlignedVector<Real> reciprocals, tangents;  ///< 1 / ‖W‖ and W' · ∂L/∂W' of each column
  AlignedVector<Real> values;                 ///< φ(X W + b)
  AlignedVector<Real> slopes;                 ///< φ′(X W + b); unused if φ is the identity
  AlignedVector<Real> delta;                  ///< ∂L/∂φ, then ∂L/∂(X W + b)
};

/// A bank of ridge functions, computed as one product for all experts.
///
/// Columns [j · padded(E), j · padded(E) + E) of W (d, o · padded(E)) hold output j of every expert. Output j
/// of the mixture is then the dot product of a row of gates and a row of φ(X W + b). Inactive pairs have gate
/// zero.
template <class Real>
class RidgeBank final : public ExpertBank<Real> {
 public:
  RidgeBank(const Activation& activation, double init_scale, bool is_unit, bool bias,
            const ExpertSetting& setting)
      : activation_(activation),
        init_scale_(init_scale),
        is_unit_(is_unit),
        bias_(bias),
        input_dim_(setting.input_dim),
        output_dim_(setting.output_dim),
        experts_(setting.experts),
        stride_(kernels::padded(setting.output_dim)),
        slab_(kernels::padded(setting.experts)),
        columns_(slab_ * setting.output_dim),
        layer_(setting.input_dim, columns_, false) {
    if (is_unit && output_dim_ != 1) {
      throw InvalidOption(
          "model.expert.normalize",
          fmt::format("got \"unit\" for experts of {} outputs, needs one layer and data of one output",
                      output_dim_));
    }
  }

  std::size_t parameters_per_expert() const override {
    return size(input_dim_ + (bias_ ? 1 : 0)) * size(output_dim_);
  }
  std::size_t block_size() const override { return layer_.block_size(); }

  void initialize(const Seeds& seeds, Real* parameters) const override {
    std::fill(parameters, parameters + block_size(), Real(0));
    const double deviation = init_scale_ / std::sqrt(static_cast<double>(input_dim_));
    for (int e = 0; e < experts_; ++e) {
      Engine engine = seeds.stream(Purpose::expert_init, static_cast<std::uint64_t>(e));
      if (is_unit_) {
        start_on_sphere(engine, e, parameters);
        continue;
      }
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
    layer_.forward(x, is_unit_ ? directions(parameters, mine) : parameters, mine.values.data());
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
    if (!bias_) std::fill_n(gradients.parameters + entries(input_dim_, columns_), columns_, Real(0));
    const Real* const used = is_unit_ ? mine.directions.data() : parameters;
    if (gradients.inputs) layer_.input_gradient(mine.delta.data(), x.rows, used, gradients.inputs);
    if (is_unit_) make_tangent(mine, gradients.parameters);
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
    if (is_unit_) {
      weight.shape = {experts_, input_dim_};
      bias.shape = {experts_};
      weight.unit_with_next = true;
    }
    for (int e = 0; e < experts_; ++e) {
      for (int j = 0; j < output_dim_; ++j) {
        for (int i = 0; i < input_dim_; ++i) weight.values.push_back(parameters[place(i, j, e)]);
        bias.values.push_back(parameters[place(input_dim_, j, e)]);
      }
    }
    if (!bias_) return {std::move(weight)};
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

  /// Starts an expert uniformly on the sphere.
  void start_on_sphere(Engine& engine, int expert, Real* parameters) const {
    std::vector<double> values(size(input_dim_ + 1));
    double square = 0;
    for (double& value : values) {
      value = draw_normal(engine);
      square += value * value;
    }
    for (int i = 0; i <= input_dim_; ++i)
      parameters[place(i, 0, expert)] = static_cast<Real>(values[size(i)] / std::sqrt(square));
  }

  /// W' of unit experts. A column of padding stays zero.
  const Real* directions(const Real* parameters, RidgeScratch<Real>& mine) const {
    reserve_entries(mine.directions, block_size());
    reserve_entries(mine.reciprocals, size(columns_));
    std::fill_n(mine.reciprocals.data(), columns_, Real(0));
    for_each_entry([&](std::size_t at, std::size_t column) {
      mine.reciprocals[column] += parameters[at] * parameters[at];
    });
    for (int c = 0; c < columns_; ++c) {
      Real& square = mine.reciprocals[size(c)];
      square = square > 0 ? 1 / std::sqrt(square) : Real(0);
    }
    for_each_entry([&](std::size_t at, std::size_t column) {
      mine.directions[at] = mine.reciprocals[column] * parameters[at];
    });
    return mine.directions.data();
  }

  /// ∂L/∂W ← (G − W' (W' · G)) / ‖W‖ for G = ∂L/∂W', column by column.
  void make_tangent(RidgeScratch<Real>& mine, Real* gradient) const {
    reserve_entries(mine.tangents, size(columns_));
    std::fill_n(mine.tangents.data(), columns_, Real(0));
    for_each_entry([&](std::size_t at, std::size_t column) {
      mine.tangents[column] += mine.directions[at] * gradient[at];
    });
    for_each_entry([&](std::size_t at, std::size_t column) {
      gradient[at] = (gradient[at] - mine.directions[at] * mine.tangents[column]) * mine.reciprocals[column];
    });
  }

  /// Calls visit(entry, column) for every entry of W.
  template <class Visit>
  void for_each_entry(const Visit& visit) const {
    for (int i = 0; i <= input_dim_; ++i) {
      for (int c = 0; c < columns_; ++c) visit(entries(i, columns_) + size(c), size(c));
    }
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
    // Each kind has its own loop, which the compiler can turn into vector instructions.
    const auto apply = [&](const auto& write) {
      for (std::size_t i = 0; i < count; ++i) write(mine.values[i], mine.slopes[i]);
    };
    switch (activation_.kind) {
      case Activation::Kind::identity:
        return;
      case Activation::Kind::relu:
        return apply([](Real& z, Real& slope) {
          slope = z > 0 ? Real(1) : Real(0);
          z = z > 0 ? z : Real(0);
        });
      case Activation::Kind::power:
        return apply([exponent = activation_.power](Real& z, Real& slope) {
          const Real below = power(z, exponent - 1);
          slope = static_cast<Real>(exponent) * below;
          z *= below;
        });
      case Activation::Kind::gelu:
        return apply([](Real& z, Real& slope) {
          constexpr Real kRootHalf = std::numbers::sqrt2_v<Real> / 2;
          constexpr Real kHeight = std::numbers::inv_sqrtpi_v<Real> * kRootHalf;
          const Real share = Real(0.5) * std::erfc(-z * kRootHalf);
          slope = share + z * kHeight * std::exp(Real(-0.5) * z * z);
          z *= share;
        });
      case Activation::Kind::sigmoid:
        return apply([](Real& z, Real& slope) {
          z = 1 / (1 + std::exp(-z));
          slope = z * (1 - z);
        });
    }
  }

  /// delta ← ∂L/∂(X W + b).
  void scale_by_slopes(int rows, RidgeScratch<Real>& mine) const {
    if (activation_.kind == Activation::Kind::identity) return;
    for (std::size_t i = 0; i < entries(rows, columns_); ++i) mine.delta[i] *= mine.slopes[i];
  }

  Activation activation_;
  double init_scale_;
  bool is_unit_;
  bool bias_;
  int input_dim_;
  int output_dim_;
  int experts_;
  int stride_;              // padded(o)
  int slab_;                // padded(E)
  int columns_;             // o · padded(E)
  DenseLayer<Real> layer_;  // the layer of all experts
};

template <class Real, class Options>
std::unique_ptr<ExpertBank<Real>> make_ridge_bank(const Activation& activation, const Options& options,
                                                  const ExpertSetting& setting, bool bias = true) {
  const bool is_unit = options.normalize == ExpertLength::unit;
  if (is_unit && !bias)
    throw InvalidOption("model.expert.bias",
                        "got false, needs true with normalize \"unit\", which sets ‖(a, b)‖");
  return std::make_unique<RidgeBank<Real>>(activation, options.init_scale, is_unit, bias, setting);
}

/// Largest number of outputs for which a linear expert is a ridge function. Above it the expert is an MLP of
/// depth 1, whose cost is proportional to the active pairs.
constexpr int kRidgeOutputs = 4;

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_linear_bank(const AnyOptions& options, const ExpertSetting& setting) {
  const LinearExpertOptions& own = options.get<LinearExpertOptions>();
  if (own.bias && setting.output_dim > kRidgeOutputs && own.normalize == ExpertLength::none) {
    return make_mlp_bank<Real>({.depth = 1, .init_scale = own.init_scale}, setting);
  }
  return make_ridge_bank<Real>({}, own, setting, own.bias);
}

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_polynomial_bank(const AnyOptions& options,
                                                       const ExpertSetting& setting) {
  const PolynomialExpertOptions& own = options.get<PolynomialExpertOptions>();
  return make_ridge_bank<Real>({Activation::Kind::power, own.power}, own, setting);
}

/// The bank of a kind whose options are the options of every ridge function.
template <class Real, class Options, Activation::Kind kActivation>
std::unique_ptr<ExpertBank<Real>> make_neuron_bank(const AnyOptions& options, const ExpertSetting& setting) {
  return make_ridge_bank<Real>({kActivation}, options.get<Options>(), setting);
}

template <class Options, Activation::Kind kActivation>
ExpertKind neuron_expert(const char* name, const char* help) {
  return {{name, help, Options{}, Options{}},
          {make_neuron_bank<float, Options, kActivation>, make_neuron_bank<double, Options, kActivation>}};
}

void bind_length(Fields& fields, ExpertLength& normalize) {
  fields.add("normalize", normalize, {"none", "unit"},
             "\"unit\": ‖(A_e, b_e)‖ = 1 (needs one output; init_scale has no effect)");
}

/// The fields of an expert whose biases start at zero.
template <class Options>
void bind_neuron(Fields& fields, Options& options) {
  fields.add("init_scale", options.init_scale, at_least(0),
             "entries of A_e start N(0, init_scale² / d), b_e zero");
  bind_length(fields, options.normalize);
}

}  // namespace

void LinearExpertOptions::bind(Fields& fields) {
  fields.add("init_scale", init_scale, at_least(0), "entries of A_e start N(0, init_scale² / d)");
  bind_length(fields, normalize);
  fields.add("bias", bias, "b_e, which starts at zero; false: none");
}

ExpertKind linear_expert() {
  return {{"linear", "expert_e(x) = A_e x + b_e", LinearExpertOptions{}, LinearExpertOptions{}},
          {make_linear_bank<float>, make_linear_bank<double>}};
}

void PolynomialExpertOptions::bind(Fields& fields) {
  fields.add("init_scale", init_scale, at_least(0), "entries of A_e start N(0, init_scale² / d), b_e zero");
  fields.add("power", power, between(1, 16), "p");
  bind_length(fields, normalize);
}

ExpertKind polynomial_expert() {
  return {{"polynomial", "expert_e(x) = (A_e x + b_e)^power, output by output (Nguyen et al.)",
           PolynomialExpertOptions{}, PolynomialExpertOptions{}},
          {make_polynomial_bank<float>, make_polynomial_bank<double>}};
}

void ReluExpertOptions::bind(Fields& fields) {
  bind_neuron(fields, *this);
}

ExpertKind relu_expert() {
  return neuron_expert<ReluExpertOptions, Activation::Kind::relu>(
      "relu", "expert_e(x) = (A_e x + b_e)_+, one neuron for each output");
}

void GeluExpertOptions::bind(Fields& fields) {
  bind_neuron(fields, *this);
}

ExpertKind gelu_expert() {
  return neuron_expert<GeluExpertOptions, Activation::Kind::gelu>(
      "gelu", "expert_e(x) = z Φ(z), z = A_e x + b_e, one neuron for each output");
}

void SigmoidExpertOptions::bind(Fields& fields) {
  bind_neuron(fields, *this);
}

ExpertKind sigmoid_expert() {
  return neuron_expert<SigmoidExpertOptions, Activation::Kind::sigmoid>(
      "sigmoid", "expert_e(x) = σ(A_e x + b_e), one neuron for each output");
}

}  // namespace moelab
