#include "plots/labels.h"

#include <algorithm>
#include <array>

namespace moelab {
namespace {

struct Label {
  const char* name;
  const char* axis;
  const char* legend;
};

constexpr std::array kLabels = {
    Label{"step", "training step", "step"},
    Label{"data.train_samples", "training samples", "samples"},
    Label{"data.clusters", "clusters", "clusters"},
    Label{"data.dim", "input width", "width"},
    Label{"data.spurious_dims", "spurious dimensions", "spurious dimensions"},
    Label{"data.mean_std", "standard deviation of the means", "mean_std"},
    Label{"data.noise_std", "noise standard deviation", "noise_std"},
    Label{"data.separation", "cluster separation c", "separation"},
    Label{"model.experts", "experts", "experts"},
    Label{"model.router.init_scale", "initial scale of the router", "router scale"},
    Label{"model.router.kind", "router", "router"},
    Label{"train.batch_size", "batch size", "batch"},
    Label{"train.steps", "training steps", "steps"},
    Label{"train.weight_decay", "weight decay", "weight decay"},
    Label{"train.lr.router", "learning rate of the router", "router rate"},
    Label{"train.lr.expert", "learning rate of the experts", "expert rate"},
    Label{"train_loss", "training loss", "training"},
    Label{"test_loss_soft", "test loss (soft)", "test, soft"},
    Label{"test_loss_top1", "test loss (top-1)", "test, top-1"},
    Label{"test_loss_eval", "test loss (evaluation gating)", "test, evaluation"},
    Label{"train_nmse", "training loss ÷ label variance", "training"},
    Label{"test_nmse_soft", "test loss ÷ label variance (soft)", "test, soft"},
    Label{"test_nmse_top1", "test loss ÷ label variance (top-1)", "test, top-1"},
    Label{"bayes_nmse", "Bayes loss ÷ label variance", "Bayes floor"},
    Label{"parameter_count", "parameters", "parameters"},
    Label{"cluster_entropy", "routing entropy per cluster (nats)", "router"},
    Label{"cluster_entropy_shuffled", "routing entropy per cluster, shuffled (nats)", "shuffled"},
    Label{"effective_experts", "effective experts per cluster", "router"},
    Label{"effective_experts_shuffled", "effective experts per cluster, shuffled", "shuffled"},
    Label{"effective_experts_per_atom", "effective experts with one atom fixed", "one atom fixed"},
    Label{"effective_experts_overall", "effective experts of all inputs", "all inputs"},
    Label{"top1_cluster_purity", "cluster purity of experts (top-1)", "purity"},
    Label{"top1_cluster_concentration", "share of a cluster in one expert (top-1)", "concentration"},
    Label{"router_norm_ratio", "norm ratio E‖M‖² ÷ (E‖M‖)²", "norm ratio"},
    Label{"router_signal_fraction", "router weight in signal subspace", "signal fraction"},
    Label{"expert_load_max_violation", "largest excess load ÷ mean load", "largest violation"},
    Label{"expert_load_std_percent", "load standard deviation (% of rows)", "load deviation"},
    Label{"voronoi_loss", "Voronoi loss", "Voronoi loss"},
    Label{"voronoi_loss_exact", "Voronoi loss, cells with one fit", "Voronoi loss, one fit"},
    Label{"voronoi_loss_over", "Voronoi loss, cells with several fits", "Voronoi loss, several fits"},
    Label{"expert_error_exact", "expert error, cells with one fit", "cells with one fit"},
    Label{"expert_error_over", "expert error, cells with several fits", "cells with several fits"},
    Label{"slope_error_exact", "error of a, cells with one fit", "a, one fit"},
    Label{"slope_error_over", "error of a, cells with several fits", "a, several fits"},
    Label{"intercept_error_exact", "error of b, cells with one fit", "b, one fit"},
    Label{"intercept_error_over", "error of b, cells with several fits", "b, several fits"},
    Label{"gate_error_exact", "gate error, cells with one fit", "gate, one fit"},
    Label{"gate_error_over", "gate error, cells with several fits", "gate, several fits"},
};

std::string label(const std::string& name, const char* Label::*form) {
  const auto entry = [](const std::string& wanted) {
    return std::find_if(kLabels.begin(), kLabels.end(),
                        [&](const Label& known) { return known.name == wanted; });
  };
  if (const auto* known = entry(name); known != kLabels.end()) return known->*form;
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return name;
  const auto* metric = entry(name.substr(dot + 1));
  return metric == kLabels.end() ? name : std::string(metric->*form) + ", " + name.substr(0, dot);
}

}  // namespace

std::string axis_label(const std::string& name) {
  return label(name, &Label::axis);
}
std::string legend_label(const std::string& name) {
  return label(name, &Label::legend);
}

}  // namespace moelab
