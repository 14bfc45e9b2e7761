#include "sim/model/blocks/dense.h"

#include <doctest/doctest.h>

#include "sim/model/blocks/residual.h"
#include "sim/model/expert/expert.h"
#include "sim/model/layers.h"
#include "tests/sim/model/blocks/block_check.h"

namespace moelab::dense_test {
namespace {

constexpr int kInputs = 5, kOutputs = 3, kRows = 4, kTokens = 3;

/// Puts the values of a block's arrays, one after another, in their places.
void set_arrays(BlockRun& run, const std::vector<double>& values) {
  const std::vector<std::size_t> places =
      free_places(run.parameters.size(), [&](const double* buffer) { return run.block.arrays(buffer); });
  REQUIRE(places.size() == values.size());
  for (std::size_t i = 0; i < places.size(); ++i) run.parameters[places[i]] = values[i];
}

TEST_CASE("dense networks of every kind: gradients equal central differences") {
  for (const ExpertKind& kind : ExpertAxis::table()) {
    CAPTURE(kind.name);
    for (const int outputs : {1, kOutputs, 6}) {
      CAPTURE(outputs);
      const auto block = make_dense<double>(ExpertOptions::example(kind.name), kInputs, outputs);
      check_block_gradients(*block, kInputs, kRows);
    }
  }
}

TEST_CASE("read-outs, sums over tokens and residual connections: gradients equal central differences") {
  check_block_gradients(*make_readout<double>(kInputs, kOutputs), kInputs, kRows);
  check_block_gradients(*make_sum_over_tokens<double>(kInputs), kInputs, kRows * kTokens, kTokens, nullptr,
                        kernels::padded(kInputs) - kInputs);
  for (const ExpertKind& kind : ExpertAxis::table()) {
    CAPTURE(kind.name);
    const ExpertOptions network = ExpertOptions::example(kind.name);
    const auto once = make_residual(make_dense<double>(network, kInputs, kInputs));
    check_block_gradients(*once, kInputs, kRows);
    const auto twice = make_residual(make_residual(make_dense<double>(network, kInputs, kInputs)));
    check_block_gradients(*twice, kInputs, kRows);
  }
}

TEST_CASE("a dense network is its expert behind a gate of 1, for batches of any size") {
  const auto constant = make_dense<double>(ConstantExpertOptions{}, 2, 2);
  for (const int rows : {3, 40, 1}) {
    BlockRun run(*constant, rows, 2);
    run.set_inputs(normal_values(1, entries(rows, 2)));
    set_arrays(run, {7, -2});
    std::vector<double> expected;
    for (int i = 0; i < rows; ++i) expected.insert(expected.end(), {7, -2});
    CHECK(run.forward() == expected);
  }
  const auto linear = make_dense<double>(LinearExpertOptions{}, 2, 2);
  BlockRun run(*linear, 2, 2);
  set_arrays(run, {1, 2, 3, 4, 10, 20});  // A = (1 2; 3 4), b = (10, 20)
  run.set_inputs({1, -1, 0, 2});
  CHECK(run.forward() == std::vector<double>{9, 19, 14, 28});
  CHECK(linear->parameter_count() == 6);
  REQUIRE(linear->groups().size() == 1);
  CHECK(linear->groups()[0].end == linear->block_size());
  CHECK(linear->groups()[0].role == ParameterGroup::Role::expert);
  CHECK(linear->groups()[0].layer == -1);
}

TEST_CASE("a dense network starts as the first expert of a bank") {
  const ExpertOptions network = ExpertOptions::example("mlp");
  const auto block = make_dense<double>(network, kInputs, kOutputs);
  const auto bank = make_expert_bank<double>(network, {kInputs, kOutputs, 1});
  AlignedVector<double> own(block->block_size()), of_bank(bank->block_size());
  block->initialize({{8, 2}}, own.data());
  bank->initialize({8, 2}, of_bank.data());
  CHECK(own == of_bank);
}

TEST_CASE("a batch that follows a larger one leaves no trace") {
  const auto block = make_residual(make_dense<double>(ExpertOptions::example("mlp"), kInputs, kInputs));
  const std::vector<double> x = normal_values(2, entries(kRows, kInputs));
  const std::vector<double> upstream = normal_values(3, entries(kRows, kInputs));
  BlockRun large(*block, 10 * kRows, kInputs), used(*block, kRows, kInputs), fresh(*block, kRows, kInputs);
  large.set_inputs(normal_values(4, entries(10 * kRows, kInputs)));
  large.forward();
  large.backward(normal_values(5, entries(10 * kRows, kInputs)));
  used.scratch = std::move(large.scratch);
  for (BlockRun* run : {&used, &fresh}) {
    run->set_inputs(x);
    run->forward();
    run->backward(upstream);
  }
  CHECK(used.outputs == fresh.outputs);
  CHECK(used.gradient == fresh.gradient);
  CHECK(used.input_gradient == fresh.input_gradient);
}

TEST_CASE("a read-out worked out by hand; it starts as an MLP's output layer") {
  const auto block = make_readout<double>(2, 3);
  BlockRun run(*block, 2, 2);
  set_arrays(run, {1, 2, 3, 4, 5, 6, 10, 20, 30});  // A = (1 2; 3 4; 5 6), b = (10, 20, 30)
  run.set_inputs({1, 0, 2, -1});
  CHECK(run.forward() == std::vector<double>{11, 23, 35, 10, 22, 34});
  run.backward({1, 0, 0, 0, 1, 1});
  const double* const row = run.input_gradient.data();
  CHECK(row[0] == 1);
  CHECK(row[1] == 2);
  CHECK(row[kernels::kPadding] == 3 + 5);
  CHECK(row[kernels::kPadding + 1] == 4 + 6);
  const std::vector<NamedArray<double>> gradients = block->arrays(run.gradient.data());
  CHECK(gradients[0].name == "readout_weight_1");
  CHECK(gradients[0].values == std::vector<double>{1, 0, 2, -1, 2, -1});
  CHECK(gradients[1].name == "readout_bias_1");
  CHECK(gradients[1].values == std::vector<double>{1, 1, 1});
  CHECK(block->parameter_count() == 9);
  CHECK(readout_parameter_count<double>(2, 3) == 9);

  AlignedVector<double> started(block->block_size()), layer(block->block_size());
  block->initialize({{4, 1}}, started.data());
  Engine engine = Seeds{4, 1}.stream(Purpose::expert_init);
  Mlp<double>({2, 3}).initialize(engine, 1.0, layer.data());
  CHECK(started == layer);
}

TEST_CASE("outputs of a sequence's tokens are added") {
  const auto block = make_sum_over_tokens<double>(2);
  CHECK(block->output_rows(6, 3) == 2);
  BlockRun run(*block, 6, 2, 3, kernels::kPadding);
  run.set_inputs({1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60});
  CHECK(run.forward() == std::vector<double>{6, 60, 15, 150});
  run.backward({1, -1, 2, 0});
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(run.input_gradient[i * kernels::kPadding] == (i < 3 ? 1 : 2));
    CHECK(run.input_gradient[i * kernels::kPadding + 1] == (i < 3 ? -1 : 0));
  }
}

/// Doubles its inputs, and tells what it is asked.
class Probe final : public Block<double> {
 public:
  struct Mine final : Scratch {
    std::vector<double> outputs;  ///< as the backward pass saw them
    bool asked_for_inputs = false;
  };
  int output_dim() const override { return 1; }
  std::size_t parameter_count() const override { return 1; }
  std::size_t block_size() const override { return kernels::kPadding; }
  std::vector<ParameterGroup> groups() const override { return {{.end = 1, .layer = 7}}; }
  void initialize(const Start& /*start*/, double* parameters) const override { parameters[0] = 6; }
  std::vector<NamedArray<double>> arrays(const double* parameters) const override {
    return {{"probe", {1}, {parameters[0]}}};
  }
  std::vector<StateArray> state_arrays() const override { return {{"steps", {1}}}; }
  void start_state(const Start& /*start*/, double* state) const override { state[0] = 1; }
  void begin_step(double progress, const double* parameters, double* state) const override {
    state[0] += progress * parameters[0];
  }
  void end_step(const Scratch& scratch, double* state) const override {
    state[0] += dynamic_cast<const Mine&>(scratch).outputs.at(0);
  }
  std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<Mine>(); }
  void forward(const Pass<double>& /*pass*/, const View<const double>& inputs,
               const BlockValues<double>& /*values*/, LayerSignals<double>& signals, Scratch& /*scratch*/,
               const View<double>& outputs) const override {
    for (int i = 0; i < inputs.rows; ++i) outputs(i, 0) = 2 * inputs(i, 0);
    signals.previous_inputs = inputs;
  }
  void backward(const Pass<double>& /*pass*/, const View<const double>& inputs,
                const BlockValues<double>& /*values*/, const LayerSignals<double>& /*signals*/,
                Scratch& scratch, const View<const double>& outputs, const double* output_gradient,
                double* gradient, double* input_gradient) const override {
    Mine& mine = dynamic_cast<Mine&>(scratch);
    mine.outputs.clear();
    for (int i = 0; i < outputs.rows; ++i) mine.outputs.push_back(outputs(i, 0));
    mine.asked_for_inputs = input_gradient != nullptr;
    std::fill_n(gradient, kernels::kPadding, 0.0);
    for (std::size_t i = 0; input_gradient && i < entries(inputs.rows, kernels::kPadding); ++i) {
      input_gradient[i] = 2 * output_gradient[i];
    }
  }
  double added_loss(const Pass<double>& /*pass*/, const BlockValues<double>& values,
                    Scratch& scratch) const override {
    return values.parameters[0] + dynamic_cast<Mine&>(scratch).outputs.at(0);
  }
};

TEST_CASE("a residual connection adds x, and leaves the rest to the block inside") {
  const auto block = make_residual<double>(std::make_unique<Probe>());
  BlockRun run(*block, 2, 1);
  run.set_inputs({1, -3});
  CHECK(run.forward() == std::vector<double>{3, -9});
  CHECK(run.signals.previous_inputs.data == run.inputs.data);
  Probe::Mine& inner =
      dynamic_cast<Probe::Mine&>(*dynamic_cast<ResidualScratch<double>&>(*run.scratch).inner);
  run.backward({1, 10}, false);
  CHECK_FALSE(inner.asked_for_inputs);
  run.backward({1, 10});
  CHECK(inner.asked_for_inputs);
  CHECK(inner.outputs == std::vector<double>{2, -6});  // f(x), not x + f(x)
  CHECK(run.input_gradient[0] == 3);
  CHECK(run.input_gradient[kernels::kPadding] == 30);
  CHECK(dynamic_cast<const Probe*>(&dynamic_cast<Residual<double>&>(*block).inner()) != nullptr);

  CHECK(block->output_dim() == 1);
  CHECK(block->parameter_count() == 1);
  CHECK(block->block_size() == kernels::kPadding);
  CHECK(block->groups().at(0).layer == 7);
  CHECK(block->arrays(run.parameters.data()).at(0).values == std::vector<double>{6});
  CHECK(block->state_arrays().at(0).name == "steps");
  double state = 0;
  block->start_state({}, &state);
  CHECK(state == 1);
  block->begin_step(0.5, run.parameters.data(), &state);
  CHECK(state == 4);
  block->end_step(*run.scratch, &state);
  CHECK(state == 6);
  CHECK(block->added_loss(run.pass, {run.parameters.data()}, *run.scratch) == 6 + 2);
}

}  // namespace
}  // namespace moelab::dense_test
