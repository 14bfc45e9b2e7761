#include <cmath>

#include "sim/base/kernels/multiply.h"
#include "sim/model/gating/selection.h"

namespace moelab {
namespace {

/// Soft MoE. With p > 1 slots per expert it has the parameters V (d, padded(E (p − 1))), in columns e (p − 1)
/// + j − 1. Their array is "gating_slot_weight" (E, p − 1, d).
template <class Real>
class SoftSlotsGating final : public Gating<Real> {
 public:
  SoftSlotsGating(const SoftSlotsGatingOptions& options, const GatingSetting& setting)
      : each_(options.slots),
        init_scale_(options.init_scale),
        input_dim_(setting.input_dim),
        experts_(setting.experts),
        further_(setting.experts * (options.slots - 1)),
        stride_(kernels::padded(setting.experts * options.slots)) {}

  bool couples_rows() const override { return true; }
  bool activates_all() const override { return true; }
  bool is_softmax() const override { return each_ == 1; }
  int slots() const override { return each_; }

  std::size_t parameter_count() const override { return entries(input_dim_, further_); }
  std::size_t block_size() const override { return entries(input_dim_, kernels::padded(further_)); }
  void initialize(const Start& start, Real* parameters) const override {
    std::fill_n(parameters, block_size(), Real(0));
    const double deviation = init_scale_ / std::sqrt(static_cast<double>(input_dim_));
    for (int column = 0; column < further_; ++column) {
      // Streams of the routers' rows have counters below 2^32. A slot's counter depends on neither E nor p.
      const std::uint64_t expert = static_cast<std::uint64_t>(column / (each_ - 1)) + 1;
      const std::uint64_t slot = static_cast<std::uint64_t>(column % (each_ - 1));
      Engine engine = start.seeds.stream(Purpose::router_init, expert << 32 | slot);
      draw_matrix(engine, deviation, weight(parameters).middle_columns(column, 1));
    }
  }
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    if (further_ == 0) return {};
    return {{"gating_slot_weight",
             {experts_, each_ - 1, input_dim_},
             values_of(weight(parameters).transposed())}};
  }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    shape_routing(context, scratch);
    SlotMixing<Real>& mixing = scratch.slots;
    mixing.each = each_;
    mixing.group_rows = context.group_rows > 0 ? std::min(context.group_rows, context.rows) : context.rows;
    mixing.has_logit_gradient = false;
    const std::size_t count = entries(context.rows, stride_);
    for (AlignedVector<Real>* array : {&mixing.dispatch, &mixing.combine, &mixing.of_dispatch,
                                       &mixing.of_combine, &mixing.logit_gradient}) {
      reserve_entries(*array, count);
    }
    write_logits(context, mixing);
    std::copy_n(mixing.dispatch.begin(), count, mixing.combine.begin());
    kernels::softmax_rows(mixing.combine.data(), mixing.combine.data(), context.rows, slot_count(), stride_);
    for_each_group(context, [&](int first, int rows) { softmax_columns(first, rows, scratch); });
    sum_slots(mixing.combine.data(), context.rows, scratch.routing.stride, scratch.probabilities.data());
    scratch.routing.gates = scratch.probabilities.data();
    scratch.routing.every_pair = true;
  }

  void backward(const GatingContext<Real>& context, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real* gradient) const override {
    SlotMixing<Real>& mixing = scratch.slots;
    if (gradient) std::fill_n(gradient, block_size(), Real(0));
    for (int row = 0; row < context.rows; ++row) {
      const std::size_t at = entries(row, stride_), row_at = entries(row, scratch.routing.stride);
      for (int i = 0; i < slot_count(); ++i)
        mixing.of_combine[at + size(i)] += gate_gradient[row_at + size(i / each_)];
    }
    kernels::softmax_backward_rows(mixing.combine.data(), mixing.of_combine.data(),
                                   mixing.logit_gradient.data(), context.rows, slot_count(), stride_);
    for_each_group(context, [&](int first, int rows) { add_dispatch_gradient(first, rows, scratch); });
    sum_slots(mixing.logit_gradient.data(), context.rows, scratch.routing.stride, score_gradient);
    mixing.has_logit_gradient = true;
  }

  /// The gradient through the probabilities goes to an expert's slots in proportion to their shares of r_e.
  void add_own_gradient(const GatingContext<Real>& context, GatingScratch<Real>& scratch,
                        const Real* score_gradient, Real* gradient,
                        const View<Real>& input_gradient) const override {
    SlotMixing<Real>& mixing = scratch.slots;
    const bool is_whole = std::exchange(mixing.has_logit_gradient, false);
    if (further_ == 0) return;
    const int further_stride = kernels::padded(further_);
    for (int row = 0; row < context.rows; ++row) {
      const std::size_t at = entries(row, stride_), row_at = entries(row, scratch.routing.stride);
      Real* const delta = mixing.further.data() + entries(row, further_stride);
      for (int column = 0; column < further_; ++column) {
        const int e = column / (each_ - 1);
        const std::size_t place = at + size(column + e + 1);
        const Real r = scratch.probabilities[row_at + size(e)];
        const Real share = r > 0 ? mixing.combine[place] / r : Real(0);
        delta[column] = is_whole ? mixing.logit_gradient[place] : share * score_gradient[row_at + size(e)];
      }
      std::fill(delta + further_, delta + further_stride, Real(0));
    }
    const View<const Real> deltas =
        kernels::padded_rows<const Real>(mixing.further.data(), context.rows, further_);
    if (gradient) kernels::multiply(context.x.transposed(), deltas, weight(gradient), {.accumulate = true});
    if (input_gradient.empty()) return;
    kernels::multiply(deltas, weight(context.parameters).transposed(), input_gradient, {.accumulate = true});
  }

 private:
  int slot_count() const { return experts_ * each_; }
  template <class Value>
  View<Value> weight(Value* block) const {
    return {block, input_dim_, further_, kernels::padded(further_)};
  }

  /// dispatch ← logits.
  void write_logits(const GatingContext<Real>& context, SlotMixing<Real>& mixing) const {
    const int further_stride = kernels::padded(further_);
    if (further_ > 0) {
      reserve_entries(mixing.further, entries(context.rows, further_stride));
      kernels::multiply(context.x, weight(context.parameters),
                        kernels::padded_rows(mixing.further.data(), context.rows, further_));
    }
    for (int row = 0; row < context.rows; ++row) {
      const Real* const scores = context.scores + entries(row, kernels::padded(experts_));
      const Real* const further = mixing.further.data() + entries(row, further_stride);
      Real* const logits = mixing.dispatch.data() + entries(row, stride_);
      for (int e = 0; e < experts_; ++e) {
        logits[e * each_] = scores[e];
        for (int j = 1; j < each_; ++j) logits[e * each_ + j] = scores[e] + further[e * (each_ - 1) + j - 1];
      }
      std::fill(logits + slot_count(), logits + stride_, Real(0));
    }
  }

  /// dispatch ← its softmax over the rows of a group, column by column.
  void softmax_columns(int first, int rows, GatingScratch<Real>& scratch) const {
    std::vector<double>&largest = scratch.keys, &sums = scratch.column_scales;
    largest.assign(size(slot_count()), -std::numeric_limits<double>::infinity());
    sums.assign(size(slot_count()), 0.0);
    const auto row_at = [&](int row) { return scratch.slots.dispatch.data() + entries(row, stride_); };
    for (int row = first; row < first + rows; ++row) {
      for (std::size_t i = 0; i < largest.size(); ++i)
        largest[i] = std::max(largest[i], static_cast<double>(row_at(row)[i]));
    }
    for (int row = first; row < first + rows; ++row) {
      for (std::size_t i = 0; i < largest.size(); ++i) {
        const double power = std::exp(static_cast<double>(row_at(row)[i]) - largest[i]);
        row_at(row)[i] = static_cast<Real>(power);
        sums[i] += power;
      }
    }
    for (int row = first; row < first + rows; ++row) {
      for (std::size_t i = 0; i < largest.size(); ++i)
        row_at(row)[i] = static_cast<Real>(static_cast<double>(row_at(row)[i]) / sums[i]);
    }
  }

  /// Adds D ∘ (∂L/∂D − Σ_rows D ∘ ∂L/∂D).
  void add_dispatch_gradient(int first, int rows, GatingScratch<Real>& scratch) const {
    SlotMixing<Real>& mixing = scratch.slots;
    std::vector<double>& means = scratch.column_scales;
    means.assign(size(slot_count()), 0.0);
    for (int row = first; row < first + rows; ++row) {
      const std::size_t at = entries(row, stride_);
      for (std::size_t i = 0; i < means.size(); ++i)
        means[i] +=
            static_cast<double>(mixing.dispatch[at + i]) * static_cast<double>(mixing.of_dispatch[at + i]);
    }
    for (int row = first; row < first + rows; ++row) {
      const std::size_t at = entries(row, stride_);
      for (std::size_t i = 0; i < means.size(); ++i) {
        mixing.logit_gradient[at + i] +=
            mixing.dispatch[at + i] * (mixing.of_dispatch[at + i] - static_cast<Real>(means[i]));
      }
    }
  }

  /// of_experts (n, stride) ← Σ_j of_slots, with zero padding.
  void sum_slots(const Real* of_slots, int rows, int stride, Real* of_experts) const {
    for (int row = 0; row < rows; ++row) {
      const Real* const from = of_slots + entries(row, stride_);
      Real* const to = of_experts + entries(row, stride);
      for (int e = 0; e < experts_; ++e) {
        Real sum = 0;
        for (int j = 0; j < each_; ++j) sum += from[e * each_ + j];
        to[e] = sum;
      }
      std::fill(to + experts_, to + stride, Real(0));
    }
  }

  int each_;
  double init_scale_;
  int input_dim_;
  int experts_;
  int further_;  ///< columns of V
  int stride_;   ///< padded(E p)
};

}  // namespace

void SoftSlotsGatingOptions::bind(Fields& fields) {
  fields.add("slots", slots, between(1, 4096),
             "slots p of each expert for a group of rows: experts compute E p rows in place of n");
  fields.add("init_scale", init_scale, at_least(0),
             "the vector of each further slot, x · v_ej added to γ_e, starts N(0, init_scale² I / d)");
}

GatingKind soft_slots_gating() {
  GatingKind kind = gating_kind<SoftSlotsGatingOptions, SoftSlotsGating>(
      "soft_slots",
      "experts read slots, which are means of all rows of a group, weighted by the softmax of scores over "
      "rows. A row gets the outputs of all slots, weighted by the softmax over slots (Soft MoE). r_e is the "
      "share of expert e",
      {.slots = 2});
  kind.needed = "experts that read no rows: no model.shared_experts, no loss on outputs";
  kind.experts_per_row = [](const AnyOptions& options, int experts, double group_rows) {
    return experts * options.get<SoftSlotsGatingOptions>().slots / group_rows;
  };
  kind.looks_ahead = [](const AnyOptions&) -> std::string {
    return "slots are means of all rows of a group";
  };
  return kind;
}

}  // namespace moelab
