/// A sequence mixer: a gated linear recurrence, the smallest of the "state space" blocks.

#include <algorithm>
#include <cmath>

#include "sim/base/kernels/kernels.h"
#include "sim/model/blocks/sequence_mixer.h"
#include "sim/model/layers.h"

namespace moelab {

/// For each sequence of rows x_1, …, x_s (d), with h_0 = 0:
///     a_t = σ(W_a x_t + b_a), v_t = W_v x_t + b_v,
///     h_t = a_t ∘ h_{t−1} + (1 − a_t) ∘ v_t, y_t = W_o h_t + b_o
/// with states h_t (m). y_t depends on rows up to t only.
struct GatedRecurrenceOptions {
  std::optional<int> states = {};  ///< m; unset: d
  void bind(Fields& fields);
};

namespace {

template <class Real>
struct GatedRecurrenceScratch final : Scratch {
  AlignedVector<Real> decays, values, states;           ///< a, v and h (n·s, padded(m))
  AlignedVector<Real> of_decays, of_values, of_states;  ///< ∂L/∂(W_a x + b_a), ∂L/∂v and ∂L/∂h
  AlignedVector<Real> of_inputs;                        ///< ∂L/∂x through v (n·s, padded(d))
};

template <class Real>
class GatedRecurrence final : public Block<Real> {
 public:
  GatedRecurrence(const GatedRecurrenceOptions& options, const MixerSetting& setting)
      : dim_(setting.dim),
        states_(options.states.value_or(setting.dim)),
        stride_(kernels::padded(states_)),
        decay_(dim_, states_, false),
        value_(dim_, states_, false),
        output_(states_, dim_, false) {}

  int output_dim() const override { return dim_; }
  std::size_t parameter_count() const override {
    return decay_.parameter_count() + value_.parameter_count() + output_.parameter_count();
  }
  std::size_t block_size() const override { return output_begin() + output_.block_size(); }
  std::vector<ParameterGroup> groups() const override { return {{.end = block_size()}}; }
  void initialize(const Start& start, Real* parameters) const override {
    // The stream of the largest number, which no expert has.
    Engine engine = start.seeds.stream(Purpose::expert_init, ~std::uint64_t{0});
    decay_.initialize(engine, 1.0, parameters);
    value_.initialize(engine, 1.0, parameters + value_begin());
    output_.initialize(engine, 1.0, parameters + output_begin());
  }
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    std::vector<NamedArray<Real>> all = layer_arrays(Mlp<Real>({dim_, states_}), parameters, "decay_");
    for (const auto& array : layer_arrays(Mlp<Real>({dim_, states_}), parameters + value_begin(), "value_"))
      all.push_back(array);
    for (const auto& array : layer_arrays(Mlp<Real>({states_, dim_}), parameters + output_begin(), "output_"))
      all.push_back(array);
    return all;
  }
  std::unique_ptr<Scratch> make_scratch() const override {
    return std::make_unique<GatedRecurrenceScratch<Real>>();
  }

  void forward(const Pass<Real>& pass, const View<const Real>& inputs, const BlockValues<Real>& values,
               LayerSignals<Real>& /*signals*/, Scratch& scratch, const View<Real>& outputs) const override {
    auto& mine = static_cast<GatedRecurrenceScratch<Real>&>(scratch);
    for (AlignedVector<Real>* const array : {&mine.decays, &mine.values, &mine.states})
      reserve_entries(*array, entries(inputs.rows, stride_));
    decay_.forward(inputs, values.parameters, mine.decays.data());
    value_.forward(inputs, values.parameters + value_begin(), mine.values.data());
    for (int row = 0; row < inputs.rows; ++row) {
      const std::size_t at = entries(row, stride_);
      const bool is_first = row % pass.tokens == 0;
      for (std::size_t j = at; j < at + size(states_); ++j) {
        Real& decay = mine.decays[j];
        decay = 1 / (1 + std::exp(-decay));
        const Real before = is_first ? Real(0) : mine.states[j - size(stride_)];
        mine.states[j] = decay * before + (1 - decay) * mine.values[j];
      }
    }
    output_.forward(kernels::padded_rows<const Real>(mine.states.data(), inputs.rows, states_),
                    values.parameters + output_begin(), outputs.data);
  }

  void backward(const Pass<Real>& pass, const View<const Real>& inputs, const BlockValues<Real>& values,
                const LayerSignals<Real>& /*signals*/, Scratch& scratch, const View<const Real>& /*outputs*/,
                const Real* output_gradient, Real* gradient, Real* input_gradient) const override {
    auto& mine = static_cast<GatedRecurrenceScratch<Real>&>(scratch);
    const int rows = inputs.rows;
    for (AlignedVector<Real>* const array : {&mine.of_decays, &mine.of_values, &mine.of_states})
      reserve_entries(*array, entries(rows, stride_));
    output_.parameter_gradient(kernels::padded_rows<const Real>(mine.states.data(), rows, states_),
                               output_gradient, gradient + output_begin());
    output_.input_gradient(output_gradient, rows, values.parameters + output_begin(), mine.of_states.data());
    // From the last token of a sequence to the first: ∂L/∂h_t is whole when token t is reached.
    for (int row = rows - 1; row >= 0; --row) {
      const std::size_t at = entries(row, stride_);
      const bool is_first = row % pass.tokens == 0;
      for (std::size_t j = at; j < at + size(states_); ++j) {
        const Real decay = mine.decays[j], of_state = mine.of_states[j];
        const Real before = is_first ? Real(0) : mine.states[j - size(stride_)];
        mine.of_values[j] = (1 - decay) * of_state;
        mine.of_decays[j] = of_state * (before - mine.values[j]) * decay * (1 - decay);
        if (!is_first) mine.of_states[j - size(stride_)] += decay * of_state;
      }
    }
    decay_.parameter_gradient(inputs, mine.of_decays.data(), gradient);
    value_.parameter_gradient(inputs, mine.of_values.data(), gradient + value_begin());
    if (!input_gradient) return;
    const std::size_t count = entries(rows, kernels::padded(dim_));
    reserve_entries(mine.of_inputs, count);
    decay_.input_gradient(mine.of_decays.data(), rows, values.parameters, input_gradient);
    value_.input_gradient(mine.of_values.data(), rows, values.parameters + value_begin(),
                          mine.of_inputs.data());
    kernels::add_scaled(Real(1), mine.of_inputs.data(), input_gradient, static_cast<int>(count));
  }

 private:
  std::size_t value_begin() const { return decay_.block_size(); }
  std::size_t output_begin() const { return decay_.block_size() + value_.block_size(); }

  int dim_;
  int states_;
  int stride_;
  DenseLayer<Real> decay_, value_, output_;
};

}  // namespace

void GatedRecurrenceOptions::bind(Fields& fields) {
  fields.add("states", states, between(1, 65536), "states m of the recurrence (default model.width)");
}

MixerKind gated_recurrence_mixer() {
  return mixer_kind<GatedRecurrenceOptions, GatedRecurrence>(
      "gated_recurrence", "h_t = a_t ∘ h_{t−1} + (1 − a_t) ∘ v_t with a_t = σ(W_a x_t + b_a)",
      GatedRecurrenceOptions{.states = 5});
}

}  // namespace moelab
