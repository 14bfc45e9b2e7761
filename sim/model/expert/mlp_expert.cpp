#include "sim/model/expert/mlp_expert.h"

#include <algorithm>

#include "sim/base/kernels/kernels.h"
#include "sim/model/mlp.h"

namespace moelab {
namespace {

std::vector<int> layer_widths(const Json& spec, int input_dim, int output_dim) {
  std::vector<int> widths(size(expert_depth(spec)) + 1, spec.value("width", 1));
  widths.front() = input_dim;
  widths.back() = output_dim;
  return widths;
}

/// Experts one after another, each on its own active rows: rows are gathered, pass the network as one block,
/// and are added to the outputs with their gates. The cost follows the number of active pairs.
template <class Real>
class MlpBank final : public ExpertBank<Real> {
 public:
  MlpBank(const Json& spec, int input_dim, int output_dim, int experts)
      : mlp_(layer_widths(spec, input_dim, output_dim)),
        init_scale_(spec.at("init_scale").get<double>()),
        input_dim_(input_dim),
        experts_(experts),
        stride_(mlp_.output_stride()),
        gradient_is_zero_(size(experts), false) {}

  std::size_t parameters_per_expert() const override { return mlp_.parameter_count(); }
  std::size_t block_size() const override { return mlp_.block_size() * size(experts_); }

  std::size_t expert_block_size() const override { return mlp_.block_size(); }

  void initialize(const Seeds& seeds, Real* parameters) const override {
    for (int e = 0; e < experts_; ++e) {
      Engine engine = seeds.stream(Purpose::expert_init, static_cast<std::uint64_t>(e));
      mlp_.initialize(engine, init_scale_, parameters + size(e) * mlp_.block_size());
    }
  }

  void forward(const Real* x, const Routing<Real>& routing, const Real* parameters, Real* outputs,
               bool keep) override {
    std::fill(outputs, outputs + size(routing.rows) * size(stride_), Real(0));
    const std::size_t pairs = first_pair(routing, experts_);
    reserve_entries(activations_,
                    keep ? mlp_.activation_size(1) * pairs : mlp_.activation_size(routing.rows));
    if (!routing.every_pair)
      reserve_entries(gathered_, size(input_dim_) * (keep ? pairs : size(routing.rows)));
    for (int e = 0; e < experts_; ++e) {
      const int rows = routing.pairs_of(e);
      if (rows == 0) continue;
      const std::size_t start = keep ? first_pair(routing, e) : 0;
      const Real* input = x;
      if (!routing.every_pair) {
        Real* block = gathered_.data() + start * size(input_dim_);
        for (int i = 0; i < rows; ++i) {
          std::copy_n(x + size(row_of(routing, e, i)) * size(input_dim_), input_dim_,
                      block + size(i * input_dim_));
        }
        input = block;
      }
      const Real* output = mlp_.forward(input, input_dim_, rows, parameters + size(e) * mlp_.block_size(),
                                        activations_.data() + start * mlp_.activation_size(1));
      for (int i = 0; i < rows; ++i) {
        const int row = row_of(routing, e, i);
        kernels::add_scaled(gate_of(routing, row, e), output + size(i) * size(stride_),
                            outputs + size(row) * size(stride_), stride_);
      }
    }
  }

  void backward(const Real* x, const Routing<Real>& routing, const Real* parameters,
                const Real* output_gradient, Real* gradient, Real* gate_gradient, Real* input_gradient,
                const Real* pair_gradient) override {
    const std::size_t input_stride = size(kernels::padded(input_dim_));
    if (input_gradient) {
      std::fill_n(input_gradient, size(routing.rows) * input_stride, Real(0));
      reserve_entries(input_delta_, size(routing.rows) * input_stride);
    }
    reserve_entries(scratch_, mlp_.scratch_size(routing.rows));
    reserve_entries(delta_, size(routing.rows) * size(stride_));
    for (int e = 0; e < experts_; ++e) {
      const int rows = routing.pairs_of(e);
      Real* expert_gradient = gradient + size(e) * mlp_.block_size();
      if (rows == 0) {
        if (!gradient_is_zero_[size(e)]) std::fill_n(expert_gradient, mlp_.block_size(), Real(0));
        gradient_is_zero_[size(e)] = true;
        continue;
      }
      gradient_is_zero_[size(e)] = false;
      const std::size_t start = first_pair(routing, e);
      const Real* activations = activations_.data() + start * mlp_.activation_size(1);
      const Real* output = outputs_of(start, rows);
      for (int i = 0; i < rows; ++i) {
        const int row = row_of(routing, e, i);
        const Real* upstream = output_gradient + size(row) * size(stride_);
        gate_gradient[size(row) * size(routing.stride) + size(e)] =
            kernels::dot(output + size(i) * size(stride_), upstream, stride_);
        Real* const delta = delta_.data() + size(i) * size(stride_);
        kernels::scale_into(gate_of(routing, row, e), upstream, delta, stride_);
        if (pair_gradient) {
          kernels::add_scaled(Real(1), pair_gradient + size(row * experts_ + e) * size(stride_), delta,
                              stride_);
        }
      }
      const Real* input = routing.every_pair ? x : gathered_.data() + start * size(input_dim_);
      mlp_.backward(input, input_dim_, rows, parameters + size(e) * mlp_.block_size(), activations,
                    delta_.data(), expert_gradient, scratch_.data(),
                    input_gradient ? input_delta_.data() : nullptr);
      for (int i = 0; i < rows && input_gradient; ++i) {
        kernels::add_scaled(Real(1), input_delta_.data() + size(i) * input_stride,
                            input_gradient + size(row_of(routing, e, i)) * input_stride,
                            static_cast<int>(input_stride));
      }
    }
  }

  void pair_outputs(const Routing<Real>& routing, const Real* /*parameters*/, Real* outputs) const override {
    for (int e = 0; e < experts_; ++e) {
      const int rows = routing.pairs_of(e);
      const Real* const output = outputs_of(first_pair(routing, e), rows);
      for (int i = 0; i < rows; ++i) {
        std::copy_n(output + size(i) * size(stride_), stride_,
                    outputs + size(row_of(routing, e, i) * experts_ + e) * size(stride_));
      }
    }
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    return layer_arrays(mlp_, parameters, "expert_", experts_);
  }

 private:
  /// The outputs (rows, stride) of an expert whose pairs begin at `start`: its last activations.
  const Real* outputs_of(std::size_t start, int rows) const {
    return activations_.data() + (start + size(rows)) * mlp_.activation_size(1) - size(rows) * size(stride_);
  }
  static std::size_t first_pair(const Routing<Real>& routing, int expert) {
    return routing.every_pair ? size(expert) * size(routing.rows) : size(routing.offsets[size(expert)]);
  }
  static int row_of(const Routing<Real>& routing, int expert, int i) {
    return routing.every_pair ? i : routing.pair_rows[size(routing.offsets[size(expert)] + i)];
  }
  static Real gate_of(const Routing<Real>& routing, int row, int expert) {
    return routing.gates[size(row) * size(routing.stride) + size(expert)];
  }

  Mlp<Real> mlp_;
  double init_scale_;
  int input_dim_;
  int experts_;
  int stride_;
  std::vector<bool>
      gradient_is_zero_;             // spares inactive experts the refill of a gradient that is zero already
  AlignedVector<Real> activations_;  // of all pairs, by expert
  AlignedVector<Real> gathered_;     // inputs of all pairs, by expert
  AlignedVector<Real> delta_;
  AlignedVector<Real> scratch_;
  AlignedVector<Real> input_delta_;  // ∂L/∂x of one expert's rows
};

}  // namespace

Kind mlp_expert_kind() {
  return {"mlp",
          "expert_e(x) = MLP_e(x), ReLU, biases (Dikkala et al. 2023, 3.1)",
          {{"depth", Shape::count(1, 64), "weight matrices", 3},
           {"width", Shape::count(1, 1e6), "hidden units per layer", 96},
           {"init_scale", Shape::real_at_least(0),
            "weights start N(0, init_scale² · 2 / in), the last N(0, … 1 / in)", 1.0}}};
}

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_mlp_bank(const Json& spec, int input_dim, int output_dim,
                                                int experts) {
  return std::make_unique<MlpBank<Real>>(spec, input_dim, output_dim, experts);
}

template std::unique_ptr<ExpertBank<float>> make_mlp_bank(const Json&, int, int, int);
template std::unique_ptr<ExpertBank<double>> make_mlp_bank(const Json&, int, int, int);

}  // namespace moelab
