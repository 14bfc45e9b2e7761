#include "sim/model/gating/selection.h"

namespace moelab {
namespace {

template <class Real>
class ExpertChoiceGating final : public Gating<Real> {
 public:
  explicit ExpertChoiceGating(const ExpertChoiceGatingOptions& options)
      : capacity_factor_(options.capacity_factor) {}

  bool couples_rows() const override { return true; }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    start_routing(context, scratch);
    clear_gates(scratch);
    for_each_group(context, [&](int first, int rows) {
      const double share = static_cast<double>(rows) / context.experts;
      const int capacity = std::min(rows, capacity_of(capacity_factor_, share));
      for (int e = 0; e < context.experts; ++e) choose_rows(first, rows, e, capacity, scratch);
    });
    list_pairs(scratch.routing);
  }

  void backward(const GatingContext<Real>&, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real*) const override {
    selected_backward(false, scratch, gate_gradient, score_gradient);
  }

 private:
  /// Gates of the rows with the largest r_e, the earlier of two that are equal.
  void choose_rows(int first, int rows, int expert, int capacity, GatingScratch<Real>& scratch) const {
    const auto place = [&](int row) { return entries(row, scratch.routing.stride) + size(expert); };
    scratch.rows.clear();
    for (int row = first; row < first + rows; ++row) scratch.rows.push_back(row);
    // What is not a number comes last, so that this is an order.
    const auto key = [&](int row) {
      const Real r = scratch.probabilities[place(row)];
      return r >= 0 ? r : Real(-1);
    };
    std::nth_element(scratch.rows.begin(), scratch.rows.begin() + (capacity - 1), scratch.rows.end(),
                     [&](int a, int b) {
                       const Real key_a = key(a);
                       const Real key_b = key(b);
                       return key_a != key_b ? key_a > key_b : a < b;
                     });
    for (int i = 0; i < capacity; ++i) {
      const std::size_t at = place(scratch.rows[size(i)]);
      scratch.gates[at] = scratch.probabilities[at];
    }
  }

  double capacity_factor_;
};

}  // namespace

void ExpertChoiceGatingOptions::bind(Fields& fields) {
  fields.add(
      "capacity_factor", capacity_factor, positive(),
      "each expert takes ⌈capacity_factor · n / E⌉ of the n rows of a group: the mean of experts per row");
}

GatingKind expert_choice_gating() {
  GatingKind kind = gating_kind<ExpertChoiceGatingOptions, ExpertChoiceGating>(
      "expert_choice",
      "each expert takes its likeliest rows of a group, gates r_e (Zhou et al. 2022); a row may have none");
  kind.may_leave_rows = [](const AnyOptions&, int) { return true; };
  kind.experts_per_row = [](const AnyOptions& options, int, double) {
    return options.get<ExpertChoiceGatingOptions>().capacity_factor;
  };
  kind.looks_ahead = [](const AnyOptions&) -> std::string {
    return "each expert compares all rows of a group and takes the likeliest";
  };
  return kind;
}

}  // namespace moelab
