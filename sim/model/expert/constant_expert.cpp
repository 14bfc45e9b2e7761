#include <algorithm>

#include "sim/base/kernels/multiply.h"
#include "sim/model/expert/expert.h"

namespace moelab {
namespace {

/// A bank of constant experts: f = gates · U, one product for the whole bank, with U (E, padded(o)). Gates of
/// inactive pairs are zero, so the product needs no list of active pairs. A product over all E is cheaper
/// than gathering rows with width o, unless few experts are active.
template <class Real>
class ConstantBank final : public ExpertBank<Real> {
 public:
  ConstantBank(const ConstantExpertOptions& options, const ExpertSetting& setting)
      : init_scale_(options.init_scale),
        input_dim_(setting.input_dim),
        output_dim_(setting.output_dim),
        experts_(setting.experts),
        stride_(kernels::padded(setting.output_dim)) {}

  std::size_t parameters_per_expert() const override { return size(output_dim_); }
  std::size_t block_size() const override { return entries(experts_, stride_); }

  void initialize(const Seeds& seeds, Real* parameters) const override {
    std::fill(parameters, parameters + block_size(), Real(0));
    for (int e = 0; e < experts_; ++e) {
      Engine engine = seeds.stream(Purpose::expert_init, static_cast<std::uint64_t>(e));
      for (int j = 0; j < output_dim_; ++j) {
        parameters[entries(e, stride_) + size(j)] = static_cast<Real>(init_scale_ * draw_normal(engine));
      }
    }
  }

  /// The passes need no arrays.
  std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<Scratch>(); }

  void forward(const View<const Real>& /*x*/, const Routing<Real>& routing, const Real* parameters,
               Scratch& /*scratch*/, Real* outputs, bool /*keep*/) const override {
    if (is_sparse(routing)) {
      std::fill_n(outputs, entries(routing.rows, stride_), Real(0));
      for_each_pair(routing, [&](int row, int e) {
        kernels::add_scaled(routing.gate_of(row, e), parameters + entries(e, stride_),
                            outputs + entries(row, stride_), stride_);
      });
      return;
    }
    kernels::multiply(gates_of(routing), values(parameters), rows_of_outputs(outputs, routing));
  }

  void backward(const View<const Real>& /*x*/, const Routing<Real>& routing, const Real* parameters,
                Scratch& /*scratch*/, const ExpertGradients<Real>& gradients) const override {
    if (is_sparse(routing)) {
      backward_pairs(routing, parameters, gradients);
    } else {
      backward_all(routing, parameters, gradients);
    }
    if (gradients.pair_outputs) {
      for_each_pair(routing, [&](std::ptrdiff_t row, std::ptrdiff_t e) {
        kernels::add_scaled(Real(1), gradients.pair_outputs + (row * experts_ + e) * stride_,
                            gradients.parameters + e * stride_, stride_);
      });
    }
    if (gradients.inputs) {
      std::fill_n(gradients.inputs, entries(routing.rows, kernels::padded(input_dim_)), Real(0));
    }
  }

  void pair_outputs(const Routing<Real>& routing, const Real* parameters, const Scratch& /*scratch*/,
                    Real* outputs) const override {
    for_each_pair(routing, [&](std::ptrdiff_t row, std::ptrdiff_t e) {
      std::copy_n(parameters + e * stride_, stride_, outputs + (row * experts_ + e) * stride_);
    });
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    NamedArray<Real> array{"expert_output", {experts_, output_dim_}, {}};
    for (int e = 0; e < experts_; ++e) {
      const Real* row = parameters + entries(e, stride_);
      array.values.insert(array.values.end(), row, row + output_dim_);
    }
    return {std::move(array)};
  }

 private:
  /// Computes ∂L/∂U and ∂L/∂gates, pair by pair or for all pairs.
  void backward_pairs(const Routing<Real>& routing, const Real* parameters,
                      const ExpertGradients<Real>& gradients) const {
    std::fill_n(gradients.parameters, block_size(), Real(0));
    for_each_pair(routing, [&](int row, int e) {
      const Real* const upstream = gradients.outputs + entries(row, stride_);
      kernels::add_scaled(routing.gate_of(row, e), upstream, gradients.parameters + entries(e, stride_),
                          stride_);
      if (!gradients.gates) return;
      gradients.gates[entries(row, routing.stride) + size(e)] =
          kernels::dot(parameters + entries(e, stride_), upstream, stride_);
    });
  }
  void backward_all(const Routing<Real>& routing, const Real* parameters,
                    const ExpertGradients<Real>& gradients) const {
    const View<const Real> upstream = rows_of_outputs(gradients.outputs, routing);
    kernels::multiply(gates_of(routing).transposed(), upstream,
                      kernels::padded_rows(gradients.parameters, experts_, output_dim_));
    if (!gradients.gates) return;
    kernels::multiply(upstream, values(parameters).transposed(),
                      View<Real>(gradients.gates, routing.rows, experts_, routing.stride));
  }
  /// U (E, o).
  View<const Real> values(const Real* parameters) const {
    return kernels::padded_rows(parameters, experts_, output_dim_);
  }
  View<const Real> gates_of(const Routing<Real>& routing) const {
    return {routing.gates, routing.rows, experts_, routing.stride};
  }
  template <class T>
  View<T> rows_of_outputs(T* rows, const Routing<Real>& routing) const {
    return kernels::padded_rows(rows, routing.rows, output_dim_);
  }

  double init_scale_;
  int input_dim_;
  int output_dim_;
  int experts_;
  int stride_;
};

}  // namespace

void ConstantExpertOptions::bind(Fields& fields) {
  fields.add("init_scale", init_scale, at_least(0), "u_e starts N(0, init_scale² I)");
}

ExpertKind constant_expert() {
  return expert_kind<ConstantExpertOptions, ConstantBank>("constant",
                                                          "expert_e(x) = u_e (Dikkala et al. 2023, 3.1)");
}

}  // namespace moelab
