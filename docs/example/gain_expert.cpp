#include <algorithm>
#include <cmath>

#include "sim/base/kernels/multiply.h"
#include "sim/model/expert/expert.h"

namespace moelab {
namespace {

struct GainExpertOptions {
  void bind(Fields& /*fields*/) {}
};

/// expert_e(x) = a_e s(x), s(x) = Σ_j x_j / √d: one gain for each output.
template <class Real>
class GainBank final : public ExpertBank<Real> {
 public:
  GainBank(const GainExpertOptions&, const ExpertSetting& setting) : setting_(setting) {}

  std::size_t parameters_per_expert() const override { return size(setting_.output_dim); }
  std::size_t block_size() const override { return entries(setting_.experts, stride()); }
  std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<Sums>(); }

  void initialize(const Seeds& seeds, Real* parameters) const override {
    std::fill_n(parameters, block_size(), Real(0));
    for (int e = 0; e < setting_.experts; ++e) {
      Engine engine = seeds.stream(Purpose::expert_init, static_cast<std::uint64_t>(e));
      for (int j = 0; j < setting_.output_dim; ++j) {
        parameters[entries(e, stride()) + size(j)] = static_cast<Real>(draw_normal(engine));
      }
    }
  }

  void forward(const View<const Real>& x, const Routing<Real>& routing, const Real* parameters,
               Scratch& scratch, Real* outputs, bool /*keep*/) const override {
    AlignedVector<Real>& sums = static_cast<Sums&>(scratch).of_rows;
    reserve_entries(sums, size(x.rows));
    for (int i = 0; i < x.rows; ++i) {
      sums[size(i)] = 0;
      for (int j = 0; j < x.columns; ++j) sums[size(i)] += x(i, j) * scale();
    }
    std::fill_n(outputs, entries(x.rows, stride()), Real(0));
    for_each_pair(routing, [&](int row, int e) {
      const Real gate = routing.gates[entries(row, routing.stride) + size(e)];
      kernels::add_scaled(gate * sums[size(row)], parameters + entries(e, stride()),
                          outputs + entries(row, stride()), stride());
    });
  }

  void backward(const View<const Real>& x, const Routing<Real>& routing, const Real* parameters,
                Scratch& scratch, const ExpertGradients<Real>& gradients) const override {
    const AlignedVector<Real>& sums = static_cast<Sums&>(scratch).of_rows;
    const int input_stride = kernels::padded(x.columns);
    std::fill_n(gradients.parameters, block_size(), Real(0));
    if (gradients.inputs) std::fill_n(gradients.inputs, entries(x.rows, input_stride), Real(0));
    for_each_pair(routing, [&](int row, int e) {
      const std::size_t pair = entries(row, routing.stride) + size(e);
      const Real gate = routing.gates[pair];
      const Real* const gain = parameters + entries(e, stride());
      const Real* const delta = gradients.outputs + entries(row, stride());
      Real* const of_gain = gradients.parameters + entries(e, stride());
      const Real along = kernels::dot(gain, delta, stride());
      if (gradients.gates) gradients.gates[pair] = along * sums[size(row)];
      kernels::add_scaled(gate * sums[size(row)], delta, of_gain, stride());
      Real slope = gate * along;  // ∂L/∂s
      if (gradients.pair_outputs) {
        const Real* const own = gradients.pair_outputs + entries(row * setting_.experts + e, stride());
        kernels::add_scaled(sums[size(row)], own, of_gain, stride());
        slope += kernels::dot(gain, own, stride());
      }
      for (int j = 0; gradients.inputs && j < x.columns; ++j) {
        gradients.inputs[entries(row, input_stride) + size(j)] += slope * scale();
      }
    });
  }

  void pair_outputs(const Routing<Real>& routing, const Real* parameters, const Scratch& scratch,
                    Real* outputs) const override {
    const AlignedVector<Real>& sums = static_cast<const Sums&>(scratch).of_rows;
    for_each_pair(routing, [&](int row, int e) {
      kernels::scale_into(sums[size(row)], parameters + entries(e, stride()),
                          outputs + entries(row * setting_.experts + e, stride()), stride());
    });
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    NamedArray<Real> gains{"expert_gain", {setting_.experts, setting_.output_dim}, {}};
    for (int e = 0; e < setting_.experts; ++e) {
      const Real* const own = parameters + entries(e, stride());
      gains.values.insert(gains.values.end(), own, own + setting_.output_dim);
    }
    return {std::move(gains)};
  }

 private:
  struct Sums final : Scratch {
    AlignedVector<Real> of_rows;  // s(x), (n)
  };
  int stride() const { return kernels::padded(setting_.output_dim); }
  Real scale() const { return 1 / std::sqrt(static_cast<Real>(setting_.input_dim)); }

  ExpertSetting setting_;
};

}  // namespace

ExpertKind gain_expert() {
  return expert_kind<GainExpertOptions, GainBank>("gain", "expert_e(x) = a_e Σ_j x_j / √d");
}

}  // namespace moelab
