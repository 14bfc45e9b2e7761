#include "app/run/metric_groups.h"

#include "sim/loss/auxiliary_losses.h"

namespace moelab {
namespace {

/// Without the prefix of an evaluation and the ending of a layer.
std::string_view bare_name(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot != std::string_view::npos) name = name.substr(dot + 1);
  const std::string_view number = layer_number(name);
  return number.empty() ? name : name.substr(0, name.rfind('_'));
}

std::vector<MetricGroup::Metric> auxiliary_loss_metrics() {
  std::vector<MetricGroup::Metric> metrics;
  for (const Field& field : auxiliary_loss_fields()) {
    // Both variance terms are negative by definition.
    const bool positive = field.name.rfind("variance", 0) != 0;
    metrics.push_back({field.name + "_loss", positive, "the term that loss." + field.name + " weighs"});
    metrics.push_back({field.name + "_loss_weighted", false, "times its coefficient"});
  }
  return metrics;
}

std::vector<MetricGroup> make_metric_groups() {
  const Field shuffles = {"shuffles", Shape::count(1, 10000),
                          "column permutations that the shuffled router averages over", 20};
  return {
      {{"task",
        "losses on training and test data, averaged over rows and outputs (cross-entropy: over rows, nats), "
        "and parameter counts",
        {}},
       {{"train_loss", true, "loss.task on the training set, gating as in training"},
        {"test_loss_soft", true, "loss.task on the test set, every expert weighted by r(x)"},
        {"test_loss_top1", true, "loss.task on the test set, the likeliest expert alone"},
        {"test_loss_eval", true, "loss.task on the test set under gating.eval"},
        {"train_nmse", true, "train_loss ÷ variance of the training labels (1 trivial, 0 perfect); mse only"},
        {"test_nmse_soft", true, "test_loss_soft ÷ variance of the test labels; mse only"},
        {"test_nmse_top1", true, "test_loss_top1 ÷ variance of the test labels; mse only"},
        {"bayes_nmse", true,
         "loss of E[y | x] on the test set ÷ variance of the test labels: the mixture's own floor; mse only"},
        {"train_accuracy", false,
         "targets that are classes: share of training rows with the largest output right"},
        {"test_accuracy_soft", false, "the same on the test set, every expert weighted by r(x)"},
        {"test_accuracy_top1", false, "the same on the test set, the likeliest expert alone"},
        {"test_accuracy_eval", false, "the same on the test set under gating.eval"},
        {"bayes_accuracy", false, "the same for E[y | x]: what no model surpasses on average"},
        {"parameter_count", true, "trained and frozen parameters of the whole model"}}},
      {{"sparsity",
        "how few experts serve a cluster, learned and with the router's columns shuffled "
        "(Dikkala et al. 2023, 3.1)",
        {shuffles}},
       {{"cluster_entropy", false, "mean over clusters c of H(E[r(x) | c]), nats"},
        {"cluster_entropy_shuffled", false,
         "the same with shuffled router columns, mean over shuffles, nats"},
        {"effective_experts", true, "mean over clusters c of exp H(E[r(x) | c])"},
        {"effective_experts_shuffled", true, "the same with shuffled router columns, mean over shuffles"},
        {"cluster_entropy_per_atom", false,
         "data of several parts: the same over clusters that share one part, nats"},
        {"cluster_entropy_per_atom_shuffled", false, "the same with shuffled router columns, nats"},
        {"effective_experts_per_atom", true, "mean of exp H over clusters that share one part"},
        {"effective_experts_per_atom_shuffled", true, "the same with shuffled router columns"},
        {"cluster_entropy_overall", false, "data of several parts: H of the mean routing of all rows, nats"},
        {"cluster_entropy_overall_shuffled", false, "the same with shuffled router columns, nats"},
        {"effective_experts_overall", true, "exp H of the mean routing of all rows"},
        {"effective_experts_overall_shuffled", true, "the same with shuffled router columns"},
        {"top1_cluster_purity", false, "Σ_e max_c n_ec ÷ n, n_ec rows of cluster c with likeliest expert e"},
        {"top1_cluster_concentration", false,
         "mean over clusters c of max_e n_ec ÷ n_c (1 under collapse, too)"},
        {"top1_cluster_ari", false,
         "adjusted Rand index of likeliest experts and clusters (1 equal, 0 as by chance)"},
        {"top1_cluster_nmi", false,
         "their normalised mutual information, I ÷ mean of the two entropies, in [0, 1]"}}},
      {{"router_norms", "the weights M_i into expert i of a router that is linear in x", {}},
       {{"router_norm_ratio", true, "E‖M_i‖² ÷ (E‖M_i‖)²: 1 when all are equal"},
        {"router_signal_fraction", false,
         "share of Σ_i ‖M_i‖² inside the subspace on which the target depends"}}},
      {{"gradient", "how well population gradients are known; empty for sample gradients", {}},
       {{"population_gradient_norm", true, "norm of the gradient, mean over 8 independent rules"},
        {"population_gradient_standard_error", true,
         "standard error of a single rule's gradient, as a norm"}}},
      {{"load", "how evenly the test rows spread over the experts", {}},
       {{"expert_load_max_violation", false, "(max_e load_e − mean load) ÷ mean load"},
        {"expert_load_std_percent", false,
         "standard deviation over experts of the percentage of rows (ddof 0)"}}},
      {{"routing", "the router's probabilities on the test rows (Guo et al. 2025; Nguyen et al. 2025)", {}},
       {{"routing_entropy", false, "mean over rows of H(r(x)), nats"},
        {"routing_variance_eq42", false,
         "mean over experts of (mean r_e − 1/E)²: imbalance of the mean gate"},
        {"score_variance", false, "mean over experts of the variance of r_e over rows (ddof 0)"},
        {"score_row_variance", false, "mean over rows of the variance of r_e over experts (ddof 0)"}},
       false},
      {{"overlap",
        "how separate the inputs are that different experts serve, each row labelled by its top-1 expert "
        "(Guo et al. 2025)",
        {{"neighbours", Shape::count(1, 1e6), "nearest neighbours of expert_overlap", 10},
         {"rows", Shape::count(2, 1e6), "first test rows that are compared with all; bounds the cost",
          1000}}},
       {{"expert_overlap", false, "mean share of a row's nearest neighbours with another expert"},
        {"silhouette", false,
         "mean of (b − a) ÷ max(a, b), distances to the own and the nearest other expert"}},
       false},
      {{"layers", "how the routing changes from a layer to the next (Nielsen et al. 2025)", {}},
       {{"router_instability", false,
         "mean |S − S'| over pairs of rows, S = 1 where both have one top-1 expert, in the layer before and "
         "here"},
        {"assignment_change_share", false,
         "share of rows that do not go where most rows of their expert in the layer before go"}},
       false},
      {{"layer_loads", "balance of a whole stack (Nielsen et al. 2025, Table 6)", {}},
       {{"expert_load_std_percent_mean", false, "mean over layers of expert_load_std_percent"},
        {"expert_load_std_percent_spread", false, "its standard deviation over layers (ddof 0)"}},
       false},
      {{"convergence",
        "how soon a metric reaches a target",
        {{"metric", Shape::text(), "a metric of task", "test_nmse_soft"},
         {"target", Shape::real(), "the value to reach from above", 0.1}}},
       {{"steps_to_target", true, "first recorded step with the metric at most the target; empty if none"}},
       false},
      {{"auxiliary_losses",
        "losses on the routing, on the test rows in blocks of 1024 under the training gating, whether or not "
        "training adds them; see the fields of loss",
        {}},
       auxiliary_loss_metrics(),
       false},
      {{"expert_outputs", "what the experts answer on the test rows, every expert on every row", {}},
       {{"expert_output_similarity", false, "mean cosine between the outputs of two different experts"},
        {"task_signal_variance", true,
         "mean over rows of the variance over experts of g^T expert_e(x), g the gradient of the row's loss "
         "in "
         "the output (Guo et al. 2025)"}},
       false},
      {{"voronoi",
        "a fitted mixture against the true one of moe_regression; fits belong to the nearest true component, "
        "errors are of differences g_i − g_k and of (a, b) (Nguyen et al.)",
        {}},
       {{"voronoi_loss", true,
         "Voronoi loss D: exact cells with power 1, over-specified with 2, and weights"},
        {"voronoi_loss_exact", true, "its part from cells with one fit"},
        {"voronoi_loss_over", true, "its part from cells with several fits"},
        {"voronoi_weight_error", true, "its part from weights, Σ_j |Σ_{i in cell j} w_i − w*_j|"},
        {"voronoi_empty_cells", false, "true components without a fit"},
        {"expert_error_exact", true, "(a, b) of fits alone in their cell, root of the weighted mean square"},
        {"slope_error_exact", true, "the same for a"},
        {"intercept_error_exact", true, "the same for b"},
        {"gate_error_exact", true, "the same for the gate direction g"},
        {"expert_error_over", true, "(a, b) of fits that share a cell, root of the weighted mean square"},
        {"slope_error_over", true, "the same for a"},
        {"intercept_error_over", true, "the same for b"},
        {"gate_error_over", true, "the same for the gate direction g"}},
       false},
      {{"fit", "how a least-squares fit (optimizer lbfgs) ended, at its last step", {}},
       {{"fit_converged", false, "1 when the gradient is below √L / n, else 0"},
        {"fit_evaluations", true, "evaluations of loss and gradient, all starts together"},
        {"fit_starts", true, "starts that were made"}},
       false},
  };
}

}  // namespace

std::vector<MetricGroup::Metric> metrics_of_group(std::string_view name) {
  for (const MetricGroup& group : metric_groups()) {
    if (group.kind.name == name) return group.metrics;
  }
  return {};
}

std::string_view layer_number(std::string_view name) {
  constexpr std::string_view kLayer = "_layer";
  const std::size_t layer = name.rfind(kLayer);
  if (layer == std::string_view::npos) return {};
  const std::string_view number = name.substr(layer + kLayer.size());
  return number.find_first_not_of("0123456789") == std::string_view::npos ? number : std::string_view();
}

const std::vector<MetricGroup>& metric_groups() {
  static const std::vector<MetricGroup> groups = make_metric_groups();
  return groups;
}

const std::vector<Kind>& metric_kinds() {
  static const std::vector<Kind> kinds = [] {
    std::vector<Kind> all;
    for (const MetricGroup& group : metric_groups()) all.push_back(group.kind);
    return all;
  }();
  return kinds;
}

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const MetricGroup& group : metric_groups()) {
    for (const MetricGroup::Metric& metric : group.metrics) names.push_back(metric.name);
  }
  return names;
}

const MetricGroup::Metric* find_metric(std::string_view name) {
  const std::string_view bare = bare_name(name);
  for (const MetricGroup& group : metric_groups()) {
    for (const MetricGroup::Metric& metric : group.metrics) {
      if (metric.name == bare) return &metric;
    }
  }
  return nullptr;
}

std::string group_of_metric(std::string_view name) {
  const MetricGroup::Metric* const wanted = find_metric(name);
  for (const MetricGroup& group : metric_groups()) {
    for (const MetricGroup::Metric& metric : group.metrics) {
      if (&metric == wanted) return group.kind.name;
    }
  }
  return {};
}

}  // namespace moelab
