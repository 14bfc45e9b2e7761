#include "app/commands/array_analysis.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/metrics/co_activation.h"
#include "analysis/metrics/entropy.h"
#include "analysis/metrics/fluctuation.h"
#include "analysis/metrics/load.h"
#include "analysis/metrics/overlap.h"
#include "analysis/metrics/router_norms.h"
#include "analysis/metrics/shuffled_router.h"
#include "analysis/metrics/silhouette.h"
#include "analysis/metrics/similarity.h"
#include "analysis/metrics/sparsity.h"
#include "analysis/metrics/variance.h"
#include "app/commands/array_files.h"
#include "app/commands/array_needs.h"
#include "app/commands/array_space.h"
#include "app/metrics/cluster_labels.h"

namespace moelab {
namespace {

/// Entries of a block of probabilities: half a megabyte stays in the cache from one metric to the next.
constexpr std::int64_t kBlockEntries = 1 << 16;

/// Why a metric of labels is left out.
constexpr const char* kNoRows = "there are no rows";

/// One way to cut the rows into clusters, with the routing of each, learned and shuffled.
struct ClusterCut {
  ClusterLabels clusters;
  ClusterRouting learned;
  std::vector<ClusterRouting> shuffled;

  /// Adds rows first … of the whole array.
  void add(ClusterRouting& routing, const Eigen::Ref<const Matrix>& probabilities, std::int64_t first) const {
    for (const std::vector<int>& labels : clusters.labels) {
      routing.add(probabilities,
                  std::span<const int>(labels).subspan(static_cast<std::size_t>(first),
                                                       static_cast<std::size_t>(probabilities.rows())));
    }
  }
};

void append(std::vector<int>& all, const std::vector<int>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

class Analysis {
 public:
  explicit Analysis(const AnalyzedArrays& files)
      : arrays_(open_arrays(files)),
        top_k_(files.top_k),
        neighbours_(files.neighbours > 0 ? files.neighbours : kDefaultNeighbours),
        together_(arrays_.experts),
        routing_sum_(Vector::Zero(arrays_.experts)),
        previous_routing_sum_(routing_sum_) {
    if (arrays_.labels) cut_clusters();
    if (arrays_.router && arrays_.inputs && arrays_.labels)
      shuffled_router_.emplace(*arrays_.router, kSeeds, kAnalysisShuffles);
    for (ClusterCut& cut : cuts_) {
      if (shuffled_router_) cut.shuffled.assign(kAnalysisShuffles, ClusterRouting(arrays_.experts));
    }
  }

  ArrayAnalysis run() {
    const std::int64_t block = std::max<std::int64_t>(1, kBlockEntries / arrays_.probs.row_size());
    for (std::int64_t first = 0; first < arrays_.probs.rows(); first += block)
      read_block(first, std::min(block, arrays_.probs.rows() - first));
    result_.settings["rows"] = arrays_.rows();
    result_.settings["experts"] = arrays_.experts;
    if (top_k_ > 1) result_.settings["top_k"] = top_k_;
    report_routing();
    report_clusters();
    report_router();
    report_space();
    report_outputs();
    report_changes();
    skip_not_given(arrays_, top_k_, result_);
    skip_not_finite(result_);
    return std::move(result_);
  }

 private:
  static constexpr Seeds kSeeds{kAnalysisSeed, 0};
  static constexpr int kDefaultNeighbours = 10;

  void cut_clusters() {
    const NpyReader& labels = *arrays_.labels;
    Layout layout;
    layout.sequences = arrays_.probs.shape().size() == 3;
    layout.labels = layout.sequences ? arrays_.tokens : static_cast<int>(labels.row_size());
    for (ClusterLabels& clusters :
         cluster_labels(layout, read_labels(labels, 0, labels.rows(), kLabelLimit))) {
      cuts_.push_back({std::move(clusters), ClusterRouting(arrays_.experts), {}});
    }
  }

  /// Samples first … first + count − 1 of every array.
  void read_block(std::int64_t first, std::int64_t count) {
    const Matrix probabilities = arrays_.probabilities(arrays_.probs, first, count);
    entropy_sum_ += routing_entropies(probabilities).sum();
    variance_.add(probabilities);
    if (arrays_.experts > 1) margin_sum_ += router_margins(probabilities).sum();
    routing_sum_ += probabilities.colwise().sum().transpose();
    append(top1_, top1_assignment(probabilities));
    if (top_k_ > 1) {
      const std::vector<int> sets = topk_assignment(probabilities, top_k_);
      for (std::size_t at = 0; at < sets.size(); at += static_cast<std::size_t>(top_k_))
        together_.add(std::span<const int>(sets).subspan(at, static_cast<std::size_t>(top_k_)));
      append(topk_, sets);
    }
    for (ClusterCut& cut : cuts_) cut.add(cut.learned, probabilities, first * arrays_.tokens);
    if (shuffled_router_) add_shuffled(probabilities, first, count);
    if (arrays_.expert_outputs && arrays_.experts > 1) {
      similarity_sum_ += expert_output_similarities(arrays_.token_rows(*arrays_.expert_outputs, first, count),
                                                    arrays_.experts)
                             .sum();
    }
    if (arrays_.previous_probs) {
      const Matrix previous = arrays_.probabilities(*arrays_.previous_probs, first, count);
      append(previous_top1_, top1_assignment(previous));
      previous_routing_sum_ += previous.colwise().sum().transpose();
      if (top_k_ > 1) append(previous_topk_, topk_assignment(previous, top_k_));
    } else if (arrays_.previous_assignments) {
      append(top_k_ > 1 ? previous_topk_ : previous_top1_,
             read_labels(*arrays_.previous_assignments, first, count, arrays_.experts));
    }
  }

  void add_shuffled(const Matrix& probabilities, std::int64_t first, std::int64_t count) {
    const Matrix inputs = arrays_.token_rows(*arrays_.inputs, first, count);
    const Matrix routed = shuffled_router_->route(inputs);
    if (!routed.allFinite()) throw UserError("--router", "too large: its scores of --inputs are not finite");
    const double difference = (routed - probabilities).cwiseAbs().maxCoeff();
    router_difference_ = std::max(router_difference_, difference);
    for (int s = 0; s < kAnalysisShuffles; ++s) {
      const ShuffledRouter::Probabilities shuffled = shuffled_router_->route_shuffled(s, inputs);
      for (ClusterCut& cut : cuts_)
        cut.add(cut.shuffled[static_cast<std::size_t>(s)], shuffled, first * arrays_.tokens);
    }
  }

  void report(const std::string& name, const std::optional<double>& value, const std::string& otherwise) {
    if (value) {
      result_.metrics[name] = *value;
    } else {
      result_.skipped[name] = otherwise;
    }
  }

  void skip(std::initializer_list<const char*> names, const std::string& reason) {
    for (const char* name : names) result_.skipped[name] = reason;
  }

  void report_routing() {
    const double rows = static_cast<double>(arrays_.rows());
    const std::vector<std::int64_t> loads = expert_loads(top_k_ > 1 ? topk_ : top1_, arrays_.experts);
    report("routing_entropy", entropy_sum_ / rows, "");
    report("expert_load_max_violation", expert_load_max_violation(loads), "");
    report("expert_load_max_deviation", expert_load_max_deviation(loads), "");
    report("expert_load_std_percent", expert_load_std_percent(loads), "");
    report("routing_variance_eq42", variance_.routing_variance_eq42(), "");
    report("score_variance", variance_.score_variance(), "");
    report("score_row_variance", variance_.score_row_variance(), "");
    report("dead_experts", dead_experts(top1_, arrays_.experts), "");
    if (arrays_.experts > 1) report("router_margin", margin_sum_ / rows, "");
    if (top_k_ > 1) report("co_activation", together_.value(), "");
  }

  void report_clusters() {
    if (!cuts_.empty()) result_.settings["clusters"] = cuts_.front().learned.clusters();
    for (const ClusterCut& cut : cuts_) {
      result_.metrics["cluster_entropy" + cut.clusters.suffix] = cut.learned.cluster_entropy();
      result_.metrics["effective_experts" + cut.clusters.suffix] = cut.learned.effective_experts();
      if (!cut.clusters.suffix.empty()) continue;
      report("top1_cluster_purity", cut.learned.top1_cluster_purity(), kNoRows);
      report("top1_cluster_concentration", cut.learned.top1_cluster_concentration(), kNoRows);
      report("top1_cluster_ari", adjusted_rand_index(cut.learned.top1_table()), kNoRows);
      report("top1_cluster_nmi", normalized_mutual_information(cut.learned.top1_table()), kNoRows);
      report("dispatch_entropy", dispatch_entropy(cut.learned.top1_table()), kNoRows);
    }
    if (!shuffled_router_) return;
    for (const ClusterCut& cut : cuts_) {
      double entropy = 0, experts = 0;
      for (const ClusterRouting& routing : cut.shuffled) {
        entropy += routing.cluster_entropy();
        experts += routing.effective_experts();
      }
      result_.metrics["cluster_entropy" + cut.clusters.suffix + "_shuffled"] = entropy / kAnalysisShuffles;
      result_.metrics["effective_experts" + cut.clusters.suffix + "_shuffled"] = experts / kAnalysisShuffles;
    }
    result_.settings["shuffles"] = kAnalysisShuffles;
    result_.settings["seed"] = kAnalysisSeed;
    result_.settings["router_difference"] = router_difference_;
  }

  void report_router() {
    if (arrays_.router) report("router_norm_ratio", router_norm_ratio(*arrays_.router), "the router is zero");
  }

  void report_mean(const std::string& name, const std::vector<double>& values, const std::string& otherwise) {
    if (values.empty()) return skip({name.c_str()}, otherwise);
    const MeanEstimate estimate = mean_estimate(values);
    result_.metrics[name] = estimate.mean;
    if (static_cast<std::int64_t>(values.size()) < arrays_.rows() && estimate.interval)
      result_.intervals[name] = *estimate.interval;
  }

  void report_space() {
    const NpyReader* const space = arrays_.space();
    if (space == nullptr) return;
    const QueryPoints queries = query_points(arrays_, *space, top1_, kSeeds);
    NearestNeighbours neighbours(queries, neighbours_);
    Silhouette silhouettes(queries, arrays_.experts);
    const std::int64_t block = std::max<std::int64_t>(1, kBlockEntries / space->row_size());
    for (std::int64_t first = 0; first < space->rows(); first += block) {
      const Matrix points = arrays_.token_rows(*space, first, std::min(block, space->rows() - first));
      const std::span<const int> experts = std::span<const int>(top1_).subspan(
          static_cast<std::size_t>(first * arrays_.tokens), static_cast<std::size_t>(points.rows()));
      visit_distances(queries, points, experts,
                      [&](const Matrix& distances_to_queries, std::span<const int> of_experts) {
                        neighbours.add(distances_to_queries, of_experts);
                        silhouettes.add(distances_to_queries, of_experts);
                      });
    }
    result_.settings["space"] = space->place();
    result_.settings["neighbours"] = std::min<std::int64_t>(neighbours_, arrays_.other_rows());
    if (static_cast<std::int64_t>(queries.size()) < arrays_.rows()) {
      result_.settings["sampled_rows"] = queries.size();
      result_.settings["seed"] = kAnalysisSeed;
    }
    report_mean("expert_overlap", neighbours.other_expert_shares(), "needs at least two rows");
    report_mean("silhouette", silhouettes.coefficients(), "all rows have the same top-1 expert");
  }

  void report_outputs() {
    if (!arrays_.expert_outputs || arrays_.experts < 2) return;
    result_.metrics["expert_output_similarity"] = similarity_sum_ / static_cast<double>(arrays_.rows());
  }

  void report_changes() {
    if (!previous_top1_.empty()) {
      const ContingencyTable both = routing_table(previous_top1_, top1_);
      report("routing_fluctuation", routing_fluctuation(previous_top1_, top1_), kNoRows);
      report("router_instability", router_instability(previous_top1_, top1_), kNoRows);
      report("assignment_change_share", assignment_change_share(previous_top1_, top1_), kNoRows);
      report("layer_ari", layer_ari(previous_top1_, top1_), kNoRows);
      report("routing_ari", adjusted_rand_index(both), kNoRows);
      report("routing_nmi", normalized_mutual_information(both), kNoRows);
    } else if (!previous_topk_.empty()) {
      skip({"routing_fluctuation", "router_instability", "assignment_change_share", "layer_ari",
            "routing_ari", "routing_nmi"},
           "needs --previous-probs or --previous-logits: sets do not tell the top-1 expert");
    }
    if (arrays_.previous_probs) {
      const double rows = static_cast<double>(arrays_.rows());
      report("routing_divergence",
             jensen_shannon_divergence(previous_routing_sum_ / rows, routing_sum_ / rows), "");
    }
    const std::vector<int>& sets = top_k_ > 1 ? topk_ : top1_;
    const std::vector<int>& previous = top_k_ > 1 ? previous_topk_ : previous_top1_;
    if (previous.empty()) return;
    report("routing_saturation", routing_saturation(previous, sets, top_k_), kNoRows);
    if (top_k_ > 1) report("routing_fluctuation_topk", routing_fluctuation(previous, sets, top_k_), kNoRows);
  }

  ArrayFiles arrays_;
  int top_k_, neighbours_;
  std::vector<ClusterCut> cuts_;
  std::optional<ShuffledRouter> shuffled_router_;
  double router_difference_ = 0;  // largest |softmax(W x) − r(x)|
  CoActivation together_;
  double entropy_sum_ = 0, margin_sum_ = 0, similarity_sum_ = 0;
  Vector routing_sum_, previous_routing_sum_;  // (E)
  ScoreVariance variance_;
  std::vector<int> top1_, topk_, previous_top1_, previous_topk_;  // (rows), (rows · K)
  ArrayAnalysis result_;
};

}  // namespace

ArrayAnalysis analyze_arrays(const AnalyzedArrays& files) {
  return Analysis(files).run();
}

}  // namespace moelab
