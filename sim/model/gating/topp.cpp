#include <fmt/format.h>

#include <cmath>

#include "sim/base/error.h"
#include "sim/model/gating/selection.h"

namespace moelab {
namespace {

/// (r_e − p)⁺ for the experts whose gate is marked by 1, over their sum when renormalised; a row without an
/// expert above p keeps its mark.
template <class Real>
void set_excess_gates(bool renormalize, Real p, const GatedRow<Real>& row, int experts) {
  Real total = 0;
  for (int e = 0; e < experts; ++e) {
    if (row.probabilities[e] > p) total += row.gates[e] = row.probabilities[e] - p;
  }
  if (!renormalize || total == 0) return;
  for (int e = 0; e < experts; ++e) row.gates[e] /= total;
}

/// ∂L/∂gates of one row → ∂L/∂r for set_excess_gates; returns ∂L/∂p = −Σ_e ∂L/∂r_e.
template <class Real>
Real excess_gates_backward(bool renormalize, Real p, const Real* probabilities, const Real* gates,
                           int experts, Real* gradient) {
  Real total = 0;
  Real mean = 0;  // Σ_e gate_e ∂L/∂gate_e
  for (int e = 0; e < experts; ++e) {
    if (!(probabilities[e] > p)) continue;
    total += probabilities[e] - p;
    mean += gates[e] * gradient[e];
  }
  Real sum = 0;
  for (int e = 0; e < experts; ++e) {
    const bool active = probabilities[e] > p;
    gradient[e] = !active ? Real(0) : renormalize ? (gradient[e] - mean) / total : gradient[e];
    sum += gradient[e];
  }
  return -sum;
}

/// A learnable threshold has the parameter a = logit p, at the front of its block: the array
/// "gating_threshold_logit" (1).
template <class Real>
class TopPGating final : public Gating<Real> {
 public:
  explicit TopPGating(const TopPGatingOptions& options)
      : p_(options.p), learnable_(options.learnable), renormalize_(options.renormalize) {}

  std::size_t parameter_count() const override { return learnable_ ? 1 : 0; }
  std::size_t block_size() const override { return learnable_ ? kernels::kPadding : 0; }
  void initialize(const Start& /*start*/, Real* parameters) const override {
    if (!learnable_) return;
    std::fill_n(parameters, kernels::kPadding, Real(0));
    *parameters = static_cast<Real>(std::log(p_ / (1 - p_)));
  }
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    if (!learnable_) return {};
    return {{"gating_threshold_logit", {1}, {*parameters}}};
  }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    const Real p = static_cast<Real>(threshold(context.parameters));
    start_routing(context, scratch);
    gate_rows(scratch.probabilities.data(), scratch, [&](const GatedRow<Real>& row) {
      mark_above(p, row, context.experts, scratch);
      if (learnable_) {
        set_excess_gates(renormalize_, p, row, context.experts);
      } else {
        set_gates<Real>(renormalize_, row, scratch.chosen);
      }
    });
  }

  void backward(const GatingContext<Real>& context, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real* gradient) const override {
    if (!learnable_) return selected_backward(renormalize_, scratch, gate_gradient, score_gradient);
    const Routing<Real>& routing = scratch.routing;
    clear_inactive(routing, gate_gradient);
    const double p = threshold(context.parameters);
    Real threshold_gradient = 0;
    for (int row = 0; row < routing.rows; ++row) {
      const std::size_t at = entries(row, routing.stride);
      threshold_gradient +=
          excess_gates_backward(renormalize_, static_cast<Real>(p), scratch.probabilities.data() + at,
                                routing.gates + at, routing.experts, gate_gradient + at);
    }
    kernels::softmax_backward_rows(scratch.probabilities.data(), gate_gradient, score_gradient, routing.rows,
                                   routing.experts, routing.stride);
    if (!gradient) return;
    std::fill_n(gradient, kernels::kPadding, Real(0));
    *gradient = threshold_gradient * static_cast<Real>(p * (1 - p));
  }

 private:
  double threshold(const Real* parameters) const {
    return learnable_ ? 1 / (1 + std::exp(-static_cast<double>(*parameters))) : p_;
  }

  double p_;  ///< of a learnable threshold its start
  bool learnable_;
  bool renormalize_;
};

void check_threshold(const AnyOptions& options, const std::string& path) {
  const TopPGatingOptions& own = options.get<TopPGatingOptions>();
  if (!own.learnable || (own.p > 0 && own.p < 1)) return;
  throw InvalidOption(path + ".p",
                      fmt::format("got {}, a learnable threshold starts between 0 and 1", own.p));
}

}  // namespace

void TopPGatingOptions::bind(Fields& fields) {
  fields.add("p", p, fraction(), "threshold p");
  fields.add("learnable", learnable,
             "p starts here and is learned in every layer, at the router's rate; gates (r_e − p)⁺");
  fields.add("renormalize", renormalize, "divide the gates by their sum");
}

GatingKind topp_gating() {
  GatingKind kind = gating_kind<TopPGatingOptions, TopPGating>(
      "topp",
      "gates r_e of every expert with r_e > p, the likeliest where there is none, renormalised to sum 1 "
      "unless told (Nielsen et al. 2025)",
      {.p = 0.2});
  kind.check = check_threshold;
  return kind;
}

}  // namespace moelab
