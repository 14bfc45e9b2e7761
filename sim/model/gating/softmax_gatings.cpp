#include <fmt/format.h>

#include <cmath>

#include "sim/base/error.h"
#include "sim/model/gating/selection.h"

namespace moelab {
namespace {

template <class Real>
class SoftGating final : public Gating<Real> {
 public:
  explicit SoftGating(const SoftGatingOptions& options) : skip_below_(options.skip_below.value_or(0.0)) {}

  bool activates_all() const override { return true; }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    start_routing(context, scratch);
    Routing<Real>& routing = scratch.routing;
    if (skip_below_ == 0.0) {
      routing.gates = scratch.probabilities.data();
      routing.every_pair = true;
      return;
    }
    const std::size_t count = entries(routing.rows, routing.stride);
    reserve_entries(scratch.gates, count);
    routing.gates = scratch.gates.data();
    const Real threshold = static_cast<Real>(skip_below_);
    for (std::size_t i = 0; i < count; ++i) {
      scratch.gates[i] = scratch.probabilities[i] >= threshold ? scratch.probabilities[i] : Real(0);
    }
    list_pairs(routing);
  }

  void backward(const GatingContext<Real>&, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real*) const override {
    selected_backward(false, scratch, gate_gradient, score_gradient);
  }

 private:
  double skip_below_;
};

template <class Real>
class Top1Gating final : public LimitedGating<Real> {
 public:
  explicit Top1Gating(const Top1GatingOptions& options)
      : LimitedGating<Real>(options.capacity, false), straight_through_(options.straight_through) {}

  bool selects() const override { return true; }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    start_routing(context, scratch);
    this->select(1, context, scratch, [](const GatedRow<Real>&) {});
  }

  void backward(const GatingContext<Real>&, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real*) const override {
    if (straight_through_) return selected_backward(false, scratch, gate_gradient, score_gradient);
    std::fill_n(score_gradient, entries(scratch.routing.rows, scratch.routing.stride), Real(0));
  }

 private:
  bool straight_through_;
};

template <class Real>
class TopKGating final : public LimitedGating<Real> {
 public:
  explicit TopKGating(const TopKGatingOptions& options)
      : LimitedGating<Real>(options.capacity, false),
        k_(options.k),
        renormalize_(options.renormalize.value_or(options.k > 1)) {}

  bool selects() const override { return true; }

  void gate(const GatingContext<Real>& context, GatingScratch<Real>& scratch) const override {
    start_routing(context, scratch);
    this->select(std::min(k_, context.experts), context, scratch, [&](const GatedRow<Real>& row) {
      set_gates<Real>(renormalize_, row, scratch.chosen, row.scores);
    });
  }

  void backward(const GatingContext<Real>&, GatingScratch<Real>& scratch, Real* gate_gradient,
                Real* score_gradient, Real*) const override {
    selected_backward(renormalize_, scratch, gate_gradient, score_gradient);
  }

 private:
  int k_;
  bool renormalize_;
};

/// Sets the gates of marked experts (gate 1) to (r_e − p)⁺, divided by their sum when renormalised. A row
/// without an expert above p keeps its mark.
template <class Real>
void set_excess_gates(bool renormalize, Real p, const GatedRow<Real>& row, int experts) {
  Real total = 0;
  for (int e = 0; e < experts; ++e) {
    if (row.probabilities[e] > p) total += row.gates[e] = row.probabilities[e] - p;
  }
  if (!renormalize || total == 0) return;
  for (int e = 0; e < experts; ++e) row.gates[e] /= total;
}

/// The backward pass of set_excess_gates() for one row: ∂L/∂gates → ∂L/∂r. Returns ∂L/∂p = −Σ_e ∂L/∂r_e.
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

/// The top-p gating. A learnable threshold has the parameter a = logit p at the front of its block: the array
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

  double p_;  ///< p, or the start of a learnable p
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

void SoftGatingOptions::bind(Fields& fields) {
  fields.add("skip_below", skip_below, fraction(),
             "leave out pairs with r_e(x) below this (default 1e-8 with sgd, 0 with adam and adamw)");
}

GatingKind soft_gating() {
  GatingKind kind = gating_kind<SoftGatingOptions, SoftGating>(
      "soft", "gate_e = r_e = softmax(γ)_e: every expert, weighted");
  // The largest r_e of a row is at least 1/E.
  kind.may_leave_rows = [](const AnyOptions& options, int experts) {
    return options.get<SoftGatingOptions>().skip_below.value_or(0) * experts > 1;
  };
  kind.reaches_scores = [](const AnyOptions& /*options*/, int experts) { return experts > 1; };
  return kind;
}

void Top1GatingOptions::bind(Fields& fields) {
  fields.add("straight_through", straight_through,
             "the gradient goes to the scores as though the gate were r_e");
  capacity.bind(fields);
}

GatingKind top1_gating() {
  GatingKind kind = gating_kind<Top1GatingOptions, Top1Gating>(
      "top1", "gate 1 for the largest score; gives the router no gradient, unless straight through");
  kind.selects = true;
  kind.reaches_scores = [](const AnyOptions& options, int /*experts*/) {
    return options.get<Top1GatingOptions>().straight_through;
  };
  kind.check = [](const AnyOptions& options, const std::string& path) {
    check_capacity(options.get<Top1GatingOptions>().capacity, path);
  };
  kind.looks_ahead = [](const AnyOptions& options) {
    return capacity_looks_ahead(options.get<Top1GatingOptions>().capacity, 1);
  };
  kind.most_experts = [](const AnyOptions&) { return 1; };
  return kind;
}

void TopKGatingOptions::bind(Fields& fields) {
  fields.required().add("k", k, between(1, 65536), "experts per row K");
  fields.add("renormalize", renormalize, "divide the K gates by their sum (default: true for K > 1)");
  capacity.bind(fields);
}

GatingKind topk_gating() {
  GatingKind kind = gating_kind<TopKGatingOptions, TopKGating>(
      "topk", "gates r_e of the K largest scores, renormalised to sum 1 by default", {.k = 2});
  kind.selects = true;
  kind.check = [](const AnyOptions& options, const std::string& path) {
    check_capacity(options.get<TopKGatingOptions>().capacity, path);
  };
  kind.looks_ahead = [](const AnyOptions& options) {
    const TopKGatingOptions& own = options.get<TopKGatingOptions>();
    return capacity_looks_ahead(own.capacity, own.k);
  };
  kind.most_experts = [](const AnyOptions& options) { return options.get<TopKGatingOptions>().k; };
  // A single renormalised gate is 1 for all scores.
  kind.reaches_scores = [](const AnyOptions& options, int experts) {
    const TopKGatingOptions& own = options.get<TopKGatingOptions>();
    return experts > 1 && (own.k > 1 || !own.renormalize.value_or(false));
  };
  return kind;
}

void TopPGatingOptions::bind(Fields& fields) {
  fields.add("p", p, fraction(), "threshold p");
  fields.add("learnable", learnable,
             "p starts here and is learned in every layer, at the router's rate; gates (r_e − p)⁺");
  fields.add("renormalize", renormalize, "divide the gates by their sum");
}

GatingKind topp_gating() {
  GatingKind kind = gating_kind<TopPGatingOptions, TopPGating>(
      "topp",
      "gates r_e of every expert with r_e > p, or of the argmax expert if there is none. Gates are "
      "renormalised to sum 1, unless renormalize is false (Nielsen et al. 2025)",
      {.p = 0.2});
  kind.check = check_threshold;
  return kind;
}

}  // namespace moelab
