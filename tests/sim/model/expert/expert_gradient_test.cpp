#include <doctest/doctest.h>

#include "tests/sim/model/expert/banks.h"

namespace moelab::banks::expert_gradient_test {
namespace {

/// A bank behind fixed gates as a block, rows x ↦ (f, x̃) of 1 + E parts, for the gradients through both.
class Routed final : public Block<double> {
 public:
  struct BankScratch final : Scratch {
    std::unique_ptr<Scratch> bank;
    AlignedVector<double> f, pairs, gates;
  };
  Routed(const std::string& kind, int outputs, const Routing<double>& routing)
      : routing_(routing),
        outputs_(outputs),
        stride_(kernels::padded(outputs)),
        bank_(make_expert_bank<double>(ExpertOptions::example(kind), {kInputs, outputs, kExperts})) {}
  int output_dim() const override { return outputs_ * (1 + kExperts); }
  std::size_t block_size() const override { return bank_->block_size(); }
  void initialize(const Start& start, double* parameters) const override {
    bank_->initialize(start.seeds, parameters);
  }
  std::vector<NamedArray<double>> arrays(const double* parameters) const override {
    return bank_->arrays(parameters);
  }
  std::unique_ptr<Scratch> make_scratch() const override {
    auto scratch = std::make_unique<BankScratch>();
    scratch->bank = bank_->make_scratch();
    scratch->f.resize(entries(kRows, stride_));
    scratch->pairs.resize(entries(kRows * kExperts, stride_));
    scratch->gates.resize(entries(kRows, routing_.stride));
    return scratch;
  }
  void forward(const Pass<double>& pass, const View<const double>& inputs, const BlockValues<double>& values,
               LayerSignals<double>& /*signals*/, Scratch& scratch,
               const View<double>& outputs) const override {
    BankScratch& mine = dynamic_cast<BankScratch&>(scratch);
    bank_->forward(inputs, routing_, values.parameters, *mine.bank, mine.f.data(), pass.keep);
    bank_->pair_outputs(routing_, values.parameters, *mine.bank, mine.pairs.data());
    for (int row = 0; row < kRows; ++row) {
      for (int part = 0; part <= kExperts; ++part) {
        std::copy_n(place(mine, row, part), outputs_, outputs.row(row) + part * outputs_);
      }
    }
  }
  void backward(const Pass<double>& /*pass*/, const View<const double>& inputs,
                const BlockValues<double>& values, const LayerSignals<double>& /*signals*/, Scratch& scratch,
                const View<const double>& /*outputs*/, const double* output_gradient, double* gradient,
                double* input_gradient) const override {
    BankScratch& mine = dynamic_cast<BankScratch&>(scratch);
    for (int row = 0; row < kRows; ++row) {
      const double* const own = output_gradient + entries(row, kernels::padded(output_dim()));
      for (int part = 0; part <= kExperts; ++part) {
        std::copy_n(own + part * outputs_, outputs_, place(mine, row, part));
        std::fill_n(place(mine, row, part) + outputs_, stride_ - outputs_, 0.0);
      }
    }
    bank_->backward(inputs, routing_, values.parameters, *mine.bank,
                    {.outputs = mine.f.data(),
                     .pair_outputs = mine.pairs.data(),
                     .parameters = gradient,
                     .gates = mine.gates.data(),
                     .inputs = input_gradient});
  }

 private:
  double* place(BankScratch& mine, int row, int part) const {
    return part == 0 ? mine.f.data() + entries(row, stride_)
                     : mine.pairs.data() + entries(row * kExperts + part - 1, stride_);
  }

  const Routing<double>& routing_;
  int outputs_, stride_;
  std::unique_ptr<ExpertBank<double>> bank_;
};

TEST_CASE("every bank: gradients through the mixture and through pairs equal central differences") {
  for_each_bank([](const std::string& kind, int outputs) {
    for (Gates::Inactive* const pattern : kPatterns) {
      const Gates gates(*pattern);
      check_block_gradients(Routed(kind, outputs, gates.routing), kInputs, kRows);
    }
  });
}

}  // namespace
}  // namespace moelab::banks::expert_gradient_test
