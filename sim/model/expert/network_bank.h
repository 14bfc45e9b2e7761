#pragma once

/// A bank of equal networks, expert by expert in memory.

#include <algorithm>

#include "sim/base/kernels/kernels.h"
#include "sim/model/expert/expert.h"

namespace moelab {

template <class Real>
struct NetworkScratch final : Scratch {
  AlignedVector<Real> activations;  ///< of all pairs, by expert
  AlignedVector<Real> gathered;     ///< inputs of all pairs, by expert
  AlignedVector<Real> delta, layers;
  AlignedVector<Real> input_delta;  ///< ∂L/∂x of one expert's rows
  AlignedVector<Real> taken;        ///< ∂L/∂parameters of one expert
  /// Experts whose part of `gradient` is already zero. Inactive experts then need no refill.
  std::vector<bool> gradient_is_zero;
  const Real* gradient = nullptr;
};

/// A bank of networks. Each expert runs in turn on its own active rows: it gathers the rows, computes them as
/// one block, and adds them to the outputs with their gates. The cost is proportional to the number of active
/// pairs.
///
/// `Network` holds the shapes of one expert. It has the functions of Mlp (sim/model/layers.h), which take the
/// number of the expert first, and part_ends(). Outputs are the last activations.
template <class Real, class Network>
class NetworkBank final : public ExpertBank<Real> {
 public:
  template <class Options>
  NetworkBank(const Options& options, const ExpertSetting& setting)
      : network_(options, setting),
        input_dim_(setting.input_dim),
        experts_(setting.experts),
        stride_(network_.output_stride()) {}

  std::size_t parameters_per_expert() const override { return network_.parameter_count(); }
  std::size_t block_size() const override { return network_.block_size() * size(experts_); }
  std::size_t expert_block_size() const override { return network_.block_size(); }
  std::vector<std::size_t> expert_part_ends() const override { return network_.part_ends(); }

  void initialize(const Seeds& seeds, Real* parameters) const override {
    for (int e = 0; e < experts_; ++e) {
      Engine engine = seeds.stream(Purpose::expert_init, static_cast<std::uint64_t>(e));
      network_.initialize(e, engine, parameters + of_expert(e));
    }
  }

  std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<NetworkScratch<Real>>(); }

  void forward(const View<const Real>& x, const Routing<Real>& routing, const Real* parameters,
               Scratch& scratch, Real* outputs, bool keep) const override {
    MOELAB_EXPECT(x.rows == routing.rows && x.columns == input_dim_);
    NetworkScratch<Real>& mine = static_cast<NetworkScratch<Real>&>(scratch);
    std::fill_n(outputs, entries(x.rows, stride_), Real(0));
    const std::size_t pairs = keep ? first_pair(routing, experts_) : size(x.rows);
    reserve_entries(mine.activations, network_.activation_size(1) * pairs);
    if (!routing.every_pair) reserve_entries(mine.gathered, size(input_dim_) * pairs);
    for (int e = 0; e < experts_; ++e) {
      const int rows = routing.pairs_of(e);
      if (rows == 0) continue;
      const std::size_t start = keep ? first_pair(routing, e) : 0;
      for (int i = 0; i < rows && !routing.every_pair; ++i) {
        std::copy_n(x.row(row_of(routing, e, i)), input_dim_,
                    mine.gathered.data() + (start + size(i)) * size(input_dim_));
      }
      const Real* output =
          network_.forward(e, read_rows(x, routing, mine, start, rows), parameters + of_expert(e),
                           mine.activations.data() + start * network_.activation_size(1));
      for (int i = 0; i < rows; ++i) {
        const int row = row_of(routing, e, i);
        kernels::add_scaled(routing.gate_of(row, e), output + entries(i, stride_),
                            outputs + entries(row, stride_), stride_);
      }
    }
  }

  void backward(const View<const Real>& x, const Routing<Real>& routing, const Real* parameters,
                Scratch& scratch, const ExpertGradients<Real>& gradients) const override {
    NetworkScratch<Real>& mine = static_cast<NetworkScratch<Real>&>(scratch);
    const int input_stride = kernels::padded(input_dim_);
    if (gradients.inputs) {
      std::fill_n(gradients.inputs, entries(x.rows, input_stride), Real(0));
      reserve_entries(mine.input_delta, entries(x.rows, input_stride));
    }
    if (mine.gradient != gradients.parameters || mine.gradient_is_zero.empty()) {
      mine.gradient_is_zero.assign(size(experts_), false);
      mine.gradient = gradients.parameters;
    }
    reserve_entries(mine.layers, network_.scratch_size(x.rows));
    reserve_entries(mine.delta, entries(x.rows, stride_));
    if (gradients.take) reserve_entries(mine.taken, network_.block_size());
    for (int e = 0; e < experts_; ++e) {
      const int rows = routing.pairs_of(e);
      if (rows == 0) {
        if (!gradients.take) clear_gradient(e, gradients.parameters, mine);
        continue;
      }
      Real* const expert_gradient = gradients.take ? mine.taken.data() : gradients.parameters + of_expert(e);
      if (!gradients.take) mine.gradient_is_zero[size(e)] = false;
      const std::size_t start = first_pair(routing, e);
      backward_gates(routing, e, gradients, mine);
      network_.backward(e, read_rows(x, routing, mine, start, rows), parameters + of_expert(e),
                        mine.activations.data() + start * network_.activation_size(1), mine.delta.data(),
                        expert_gradient, mine.layers.data(),
                        gradients.inputs ? mine.input_delta.data() : nullptr);
      for (int i = 0; i < rows && gradients.inputs; ++i) {
        kernels::add_scaled(Real(1), mine.input_delta.data() + entries(i, input_stride),
                            gradients.inputs + entries(row_of(routing, e, i), input_stride), input_stride);
      }
      if (gradients.take) (*gradients.take)(e, expert_gradient);
    }
  }

  void pair_outputs(const Routing<Real>& routing, const Real* /*parameters*/, const Scratch& scratch,
                    Real* outputs) const override {
    const NetworkScratch<Real>& mine = static_cast<const NetworkScratch<Real>&>(scratch);
    for (int e = 0; e < experts_; ++e) {
      const int rows = routing.pairs_of(e);
      const Real* const output = outputs_of(mine, first_pair(routing, e), rows);
      for (std::ptrdiff_t i = 0; i < rows; ++i) {
        const std::ptrdiff_t row = row_of(routing, e, static_cast<int>(i));
        std::copy_n(output + i * stride_, stride_, outputs + (row * experts_ + e) * stride_);
      }
    }
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    return network_.arrays(parameters, experts_);
  }

 private:
  void clear_gradient(int expert, Real* gradient, NetworkScratch<Real>& mine) const {
    if (!mine.gradient_is_zero[size(expert)])
      std::fill_n(gradient + of_expert(expert), network_.block_size(), Real(0));
    mine.gradient_is_zero[size(expert)] = true;
  }
  std::size_t of_expert(int expert) const { return size(expert) * network_.block_size(); }
  /// The input rows of an expert whose pairs begin at `start`.
  View<const Real> read_rows(const View<const Real>& x, const Routing<Real>& routing,
                             const NetworkScratch<Real>& mine, std::size_t start, int rows) const {
    if (routing.every_pair) return x;
    return rows_of<const Real>(mine.gathered.data() + start * size(input_dim_), rows, input_dim_);
  }
  /// The expert's outputs (rows, stride): its last activations.
  const Real* outputs_of(const NetworkScratch<Real>& mine, std::size_t start, int rows) const {
    return mine.activations.data() + (start + size(rows)) * network_.activation_size(1) -
           entries(rows, stride_);
  }
  static std::size_t first_pair(const Routing<Real>& routing, int expert) {
    return routing.every_pair ? entries(expert, routing.rows) : size(routing.offsets[size(expert)]);
  }
  static int row_of(const Routing<Real>& routing, int expert, int i) {
    return routing.every_pair ? i : routing.pair_rows[size(routing.offsets[size(expert)] + i)];
  }

  /// ∂L/∂gates at an expert's pairs, and `delta` ← ∂L/∂(the expert's outputs).
  void backward_gates(const Routing<Real>& routing, int expert, const ExpertGradients<Real>& gradients,
                      NetworkScratch<Real>& mine) const {
    const int rows = routing.pairs_of(expert);
    const Real* const output = outputs_of(mine, first_pair(routing, expert), rows);
    for (int i = 0; i < rows; ++i) {
      const int row = row_of(routing, expert, i);
      const Real* const upstream = gradients.outputs + entries(row, stride_);
      if (gradients.gates) {
        gradients.gates[entries(row, routing.stride) + size(expert)] =
            kernels::dot(output + entries(i, stride_), upstream, stride_);
      }
      Real* const delta = mine.delta.data() + entries(i, stride_);
      kernels::scale_into(routing.gate_of(row, expert), upstream, delta, stride_);
      if (gradients.pair_outputs) {
        const std::ptrdiff_t pair = static_cast<std::ptrdiff_t>(row) * experts_ + expert;
        kernels::add_scaled(Real(1), gradients.pair_outputs + entries(pair, stride_), delta, stride_);
      }
    }
  }

  Network network_;
  int input_dim_;
  int experts_;
  int stride_;
};

}  // namespace moelab
