#include <algorithm>

#include "sim/base/kernels/kernels.h"
#include "sim/model/expert/expert.h"

namespace moelab {
namespace {

/// The first stream of shared experts; no layer of a stack uses it.
constexpr int kSharedStreams = 1 << 20;

template <class Real>
struct SharedScratch final : Scratch {
  std::unique_ptr<Scratch> own, shared;
  Routing<Real> routing;          ///< routes every row to every shared expert
  AlignedVector<Real> gates;      ///< gates of this routing, all 1
  AlignedVector<Real> outputs;    ///< outputs of the shared experts
  AlignedVector<Real> of_inputs;  ///< ∂L/∂x through the shared experts
};

template <class Real>
class BankWithShared final : public ExpertBank<Real> {
 public:
  BankWithShared(std::unique_ptr<ExpertBank<Real>> bank, std::unique_ptr<ExpertBank<Real>> shared,
                 const ExpertSetting& setting, int count)
      : bank_(std::move(bank)),
        shared_(std::move(shared)),
        count_(count),
        input_stride_(kernels::padded(setting.input_dim)),
        output_stride_(kernels::padded(setting.output_dim)) {}

  std::size_t parameters_per_expert() const override { return bank_->parameters_per_expert(); }
  std::size_t parameters_beside() const override {
    return bank_->parameters_beside() + static_cast<std::size_t>(count_) * shared_->parameters_per_expert();
  }
  std::size_t block_size() const override { return bank_->block_size() + shared_->block_size(); }
  void initialize(const Seeds& seeds, Real* parameters) const override {
    bank_->initialize(seeds, parameters);
    shared_->initialize(seeds.of_layer(kSharedStreams), of_shared(parameters));
  }
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    std::vector<NamedArray<Real>> all = bank_->arrays(parameters);
    for (NamedArray<Real>& array : shared_->arrays(of_shared(parameters))) {
      array.name = "shared_" + array.name;
      all.push_back(std::move(array));
    }
    return all;
  }
  std::unique_ptr<Scratch> make_scratch() const override {
    auto scratch = std::make_unique<SharedScratch<Real>>();
    scratch->own = bank_->make_scratch();
    scratch->shared = shared_->make_scratch();
    return scratch;
  }

  void forward(const View<const Real>& x, const Routing<Real>& routing, const Real* parameters,
               Scratch& scratch, Real* outputs, bool keep) const override {
    auto& mine = static_cast<SharedScratch<Real>&>(scratch);
    bank_->forward(x, routing, parameters, *mine.own, outputs, keep);
    route_all(x.rows, mine);
    const std::size_t count = entries(x.rows, output_stride_);
    reserve_entries(mine.outputs, count);
    shared_->forward(x, mine.routing, of_shared(parameters), *mine.shared, mine.outputs.data(), keep);
    kernels::add_scaled(Real(1), mine.outputs.data(), outputs, static_cast<int>(count));
  }

  void backward(const View<const Real>& x, const Routing<Real>& routing, const Real* parameters,
                Scratch& scratch, const ExpertGradients<Real>& gradients) const override {
    auto& mine = static_cast<SharedScratch<Real>&>(scratch);
    bank_->backward(x, routing, parameters, *mine.own, gradients);
    const std::size_t count = entries(x.rows, input_stride_);
    ExpertGradients<Real> of_shared_ones;
    of_shared_ones.outputs = gradients.outputs;
    of_shared_ones.parameters = of_shared(gradients.parameters);
    if (gradients.inputs) {
      reserve_entries(mine.of_inputs, count);
      of_shared_ones.inputs = mine.of_inputs.data();
    }
    shared_->backward(x, mine.routing, of_shared(parameters), *mine.shared, of_shared_ones);
    if (gradients.inputs)
      kernels::add_scaled(Real(1), mine.of_inputs.data(), gradients.inputs, static_cast<int>(count));
  }

  void pair_outputs(const Routing<Real>& routing, const Real* parameters, const Scratch& scratch,
                    Real* outputs) const override {
    bank_->pair_outputs(routing, parameters, *static_cast<const SharedScratch<Real>&>(scratch).own, outputs);
  }

 private:
  template <class Value>
  Value* of_shared(Value* parameters) const {
    return parameters + bank_->block_size();
  }
  void route_all(int rows, SharedScratch<Real>& scratch) const {
    Routing<Real>& routing = scratch.routing;
    routing.rows = rows;
    routing.experts = count_;
    routing.stride = kernels::padded(count_);
    routing.every_pair = true;
    reserve_entries(scratch.gates, entries(rows, routing.stride));
    for (int row = 0; row < rows; ++row) {
      Real* const gates = scratch.gates.data() + entries(row, routing.stride);
      std::fill_n(gates, count_, Real(1));
      std::fill(gates + count_, gates + routing.stride, Real(0));
    }
    routing.gates = scratch.gates.data();
  }

  std::unique_ptr<ExpertBank<Real>> bank_, shared_;
  int count_;
  int input_stride_;
  int output_stride_;
};

template <class Real>
struct NullScratch final : Scratch {
  std::unique_ptr<Scratch> own;
  Routing<Real> routing;  ///< routes to the experts that are networks
  AlignedVector<Real> gates, gate_gradient;
  AlignedVector<Real> pair_gradient;  ///< their gradient (n, E, padded(o))
};

template <class Real>
class BankWithNulls final : public ExpertBank<Real> {
 public:
  BankWithNulls(std::unique_ptr<ExpertBank<Real>> bank, const ExpertSetting& setting, int count)
      : bank_(std::move(bank)),
        networks_(setting.experts),
        experts_(setting.experts + count),
        output_stride_(kernels::padded(setting.output_dim)) {}

  std::size_t parameters_per_expert() const override { return bank_->parameters_per_expert(); }
  std::size_t parameters_beside() const override { return bank_->parameters_beside(); }
  std::size_t block_size() const override { return bank_->block_size(); }
  void initialize(const Seeds& seeds, Real* parameters) const override {
    bank_->initialize(seeds, parameters);
  }
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    return bank_->arrays(parameters);
  }
  std::unique_ptr<Scratch> make_scratch() const override {
    auto scratch = std::make_unique<NullScratch<Real>>();
    scratch->own = bank_->make_scratch();
    return scratch;
  }

  void forward(const View<const Real>& x, const Routing<Real>& routing, const Real* parameters,
               Scratch& scratch, Real* outputs, bool keep) const override {
    auto& mine = static_cast<NullScratch<Real>&>(scratch);
    Routing<Real>& narrow = mine.routing;
    narrow.rows = routing.rows;
    narrow.experts = networks_;
    narrow.stride = kernels::padded(networks_);
    reserve_entries(mine.gates, entries(routing.rows, narrow.stride));
    narrow.gates = mine.gates.data();
    for (int row = 0; row < routing.rows; ++row) {
      Real* const gates = mine.gates.data() + entries(row, narrow.stride);
      std::copy_n(routing.gates + entries(row, routing.stride), networks_, gates);
      std::fill(gates + networks_, gates + narrow.stride, Real(0));
    }
    list_pairs(narrow);
    bank_->forward(x, narrow, parameters, *mine.own, outputs, keep);
  }

  void backward(const View<const Real>& x, const Routing<Real>& routing, const Real* parameters,
                Scratch& scratch, const ExpertGradients<Real>& gradients) const override {
    auto& mine = static_cast<NullScratch<Real>&>(scratch);
    const Routing<Real>& narrow = mine.routing;
    ExpertGradients<Real> of_networks = gradients;
    if (gradients.gates) {
      reserve_entries(mine.gate_gradient, entries(narrow.rows, narrow.stride));
      of_networks.gates = mine.gate_gradient.data();
    }
    if (gradients.pair_outputs) {
      reserve_entries(mine.pair_gradient, pair_entries(narrow));
      for (int row = 0; row < narrow.rows; ++row) {
        std::copy_n(gradients.pair_outputs + entries(row, experts_ * output_stride_),
                    networks_ * output_stride_,
                    mine.pair_gradient.data() + entries(row, networks_ * output_stride_));
      }
      of_networks.pair_outputs = mine.pair_gradient.data();
    }
    bank_->backward(x, narrow, parameters, *mine.own, of_networks);
    for (int row = 0; row < narrow.rows && gradients.gates; ++row) {
      Real* const gates = gradients.gates + entries(row, routing.stride);
      std::copy_n(mine.gate_gradient.data() + entries(row, narrow.stride), networks_, gates);
      std::fill(gates + networks_, gates + routing.stride, Real(0));
    }
  }

  void pair_outputs(const Routing<Real>& routing, const Real* parameters, const Scratch& scratch,
                    Real* outputs) const override {
    const auto& mine = static_cast<const NullScratch<Real>&>(scratch);
    bank_->pair_outputs(mine.routing, parameters, *mine.own, outputs);
    // Rows of the networks are closer together, so move the last rows first.
    const int own = networks_ * output_stride_, all = experts_ * output_stride_;
    for (int row = routing.rows - 1; row >= 0; --row) {
      const Real* const from = outputs + entries(row, own);
      Real* const to = outputs + entries(row, all);
      if (row > 0) std::copy_backward(from, from + own, to + own);
      std::fill(to + own, to + all, Real(0));
    }
  }

 private:
  std::size_t pair_entries(const Routing<Real>& narrow) const {
    return entries(narrow.rows, networks_ * output_stride_);
  }

  std::unique_ptr<ExpertBank<Real>> bank_;
  int networks_;
  int experts_;
  int output_stride_;
};

}  // namespace

template <class Real>
std::unique_ptr<ExpertBank<Real>> with_shared_experts(std::unique_ptr<ExpertBank<Real>> bank,
                                                      const ExpertOptions& expert,
                                                      const ExpertSetting& setting, int count) {
  auto shared = make_expert_bank<Real>(expert, {setting.input_dim, setting.output_dim, count});
  return std::make_unique<BankWithShared<Real>>(std::move(bank), std::move(shared), setting, count);
}

template std::unique_ptr<ExpertBank<float>> with_shared_experts(std::unique_ptr<ExpertBank<float>>,
                                                                const ExpertOptions&, const ExpertSetting&,
                                                                int);
template std::unique_ptr<ExpertBank<double>> with_shared_experts(std::unique_ptr<ExpertBank<double>>,
                                                                 const ExpertOptions&, const ExpertSetting&,
                                                                 int);

template <class Real>
std::unique_ptr<ExpertBank<Real>> with_null_experts(std::unique_ptr<ExpertBank<Real>> bank,
                                                    const ExpertSetting& setting, int count) {
  return std::make_unique<BankWithNulls<Real>>(std::move(bank), setting, count);
}

template std::unique_ptr<ExpertBank<float>> with_null_experts(std::unique_ptr<ExpertBank<float>>,
                                                              const ExpertSetting&, int);
template std::unique_ptr<ExpertBank<double>> with_null_experts(std::unique_ptr<ExpertBank<double>>,
                                                               const ExpertSetting&, int);

}  // namespace moelab
