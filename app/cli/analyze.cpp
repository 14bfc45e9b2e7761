#include "app/cli/analyze.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "analysis/metrics/fluctuation.h"
#include "analysis/metrics/load.h"
#include "analysis/metrics/measured_data.h"
#include "analysis/metrics/metric_groups.h"
#include "analysis/metrics/overlap.h"
#include "analysis/metrics/router_norms.h"
#include "analysis/metrics/routing.h"
#include "analysis/metrics/sparsity.h"
#include "app/cli/verbs.h"
#include "sim/base/error.h"
#include "sim/base/numerics.h"

namespace moelab {
namespace {

/// Rows of float32 softmaxes of some thousand experts sum to one within 1e-4; the rest is for probabilities
/// that were computed in half precision.
constexpr double kSumTolerance = 1e-3;

using ArrayShape = std::vector<std::int64_t>;

[[noreturn]] void refuse_shape(const NpyReader& array, const std::string& needed, const NpyReader& probs) {
  array.refuse(fmt::format("has shape {}, needs {} beside {} of shape {}", shape_text(array.shape()), needed,
                           probs.place(), shape_text(probs.shape())));
}

/// `rows` followed by one dimension that may be of any length, by its name.
std::string needed_text(ArrayShape rows, const std::string& last) {
  return fmt::format("({}, {})", fmt::join(rows, ", "), last);
}

std::optional<NpyReader> open(const ArraySource& array, const std::string& option) {
  if (array.memory) return NpyReader(*array.memory, option);
  if (array.file.empty()) return std::nullopt;
  return NpyReader(array.file, option);
}

/// Options whose arrays are scores, of which probabilities() takes the softmax.
constexpr const char *kLogits = "--logits", *kPreviousLogits = "--previous-logits";

/// The first file, of probabilities, or else the second, of logits; both are refused.
std::optional<NpyReader> open_either(const ArraySource& probs, const std::string& option,
                                     const ArraySource& logits, const std::string& logits_option) {
  if (probs.is_given() && logits.is_given())
    throw UserError(logits_option, fmt::format("given, but so is {}; needs one of the two", option));
  return probs.is_given() ? open(probs, option) : open(logits, logits_option);
}

NpyReader open_routing(const AnalyzedArrays& files) {
  std::optional<NpyReader> routing = open_either(files.probs, "--probs", files.logits, kLogits);
  if (!routing) throw UserError("--probs", "missing; needs routing probabilities, or --logits");
  return std::move(*routing);
}

/// Scores are finite, or −∞ for experts that a row cannot go to; it can go to one.
void check_scores(const ArrayFiles& arrays, const NpyReader& array, std::int64_t first,
                  const Matrix& scores) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  for (Eigen::Index i = 0; i < scores.rows(); ++i) {
    const std::int64_t sample = first + i / arrays.tokens, token = i % arrays.tokens;
    const auto place_of = [&](Eigen::Index e) { return array.place_of(sample, token * arrays.experts + e); };
    for (Eigen::Index e = 0; e < scores.cols(); ++e) {
      if (!std::isfinite(scores(i, e)) && scores(i, e) != kNone)
        array.refuse(fmt::format("holds {} in {}; needs finite numbers or -inf", scores(i, e), place_of(e)));
    }
    if (scores.row(i).maxCoeff() == kNone)
      array.refuse(fmt::format("holds nothing but -inf from {} to {}; needs a finite number in every row",
                               place_of(0), place_of(scores.cols() - 1)));
  }
}

bool begins_with(const ArrayShape& shape, const ArrayShape& start) {
  return shape.size() >= start.size() && std::equal(start.begin(), start.end(), shape.begin());
}

/// (n, …, width) of any width.
void check_rows(const std::optional<NpyReader>& array, const ArrayShape& rows, const NpyReader& probs) {
  if (!array) return;
  if (array->shape().size() != rows.size() + 1 || !begins_with(array->shape(), rows))
    refuse_shape(*array, needed_text(rows, "d"), probs);
}

void check_router(const ArrayFiles& arrays, const NpyReader& router) {
  if (router.shape().size() != 2 || router.rows() != arrays.experts)
    refuse_shape(router, fmt::format("({}, d)", arrays.experts), arrays.probs);
  if (arrays.inputs && arrays.inputs->shape().back() != router.row_size()) {
    router.refuse(fmt::format("has shape {}, needs ({}, {}) beside --inputs of shape {}",
                              shape_text(router.shape()), arrays.experts, arrays.inputs->shape().back(),
                              shape_text(arrays.inputs->shape())));
  }
}

void check_labels(const NpyReader& labels, const ArrayShape& rows, const NpyReader& probs) {
  // Several labels to a row are for rows that are no tokens.
  const bool has_parts = rows.size() == 1 && labels.shape().size() == 2 && labels.rows() == rows.front();
  if (labels.shape() != rows && !has_parts) refuse_shape(labels, shape_text(rows), probs);
}

void check_snapshots(const ArrayFiles& arrays, const ArrayShape& rows, int top_k) {
  if (arrays.previous_probs && arrays.previous_probs->shape() != arrays.probs.shape())
    refuse_shape(*arrays.previous_probs, shape_text(arrays.probs.shape()), arrays.probs);
  if (!arrays.previous_assignments) return;
  if (arrays.previous_probs)
    throw UserError("--previous-assignments",
                    fmt::format("given, but so is {}; needs one of the two", arrays.previous_probs->place()));
  const NpyReader& previous = *arrays.previous_assignments;
  ArrayShape sets = rows;
  sets.push_back(top_k);
  if (previous.shape() != sets && (previous.shape() != rows || top_k > 1))
    refuse_shape(previous, shape_text(top_k > 1 ? sets : rows) + fmt::format(" (--top-k {})", top_k),
                 arrays.probs);
}

}  // namespace

const NpyReader* ArrayFiles::space() const {
  if (embeddings) return &*embeddings;
  return inputs ? &*inputs : nullptr;
}

Matrix ArrayFiles::token_rows(const NpyReader& array, std::int64_t first, std::int64_t count) const {
  Matrix rows = array.read_finite(first, count);
  rows.resize(count * tokens, array.row_size() / tokens);
  return rows;
}

Matrix ArrayFiles::probabilities(const NpyReader& array, std::int64_t first, std::int64_t count) const {
  if (array.place() == kLogits || array.place() == kPreviousLogits) {
    Matrix scores = array.read(first, count);
    scores.resize(count * tokens, experts);
    check_scores(*this, array, first, scores);
    return softmax(scores);
  }
  Matrix rows = token_rows(array, first, count);
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    const std::int64_t sample = first + i / tokens, token = i % tokens;
    Eigen::Index lowest = 0;
    if (rows.row(i).minCoeff() < 0) {
      const double value = rows.row(i).minCoeff(&lowest);
      array.refuse(fmt::format("holds {} in {}; probabilities are not negative", value,
                               array.place_of(sample, token * experts + lowest)));
    }
    const double sum = rows.row(i).sum();
    if (std::abs(sum - 1) > kSumTolerance) {
      const std::string place =
          tokens > 1 ? fmt::format("row [{}, {}]", sample, token) : fmt::format("row {}", sample);
      array.refuse(fmt::format("has {} with the sum {:.6g}; rows of probabilities sum to 1 (within {})",
                               place, sum, kSumTolerance));
    }
  }
  return rows;
}

ArrayFiles open_arrays(const AnalyzedArrays& files) {
  ArrayFiles arrays{
      open_routing(files),
      open(files.labels, "--labels"),
      open(files.inputs, "--inputs"),
      open(files.embeddings, "--embeddings"),
      open(files.expert_outputs, "--expert-outputs"),
      open_either(files.previous_probs, "--previous-probs", files.previous_logits, kPreviousLogits),
      open(files.previous_assignments, "--previous-assignments"),
      {}};
  const NpyReader& probs = arrays.probs;
  const std::int64_t limit = std::numeric_limits<int>::max();
  const std::size_t dimensions = probs.shape().size();
  if (dimensions != 2 && dimensions != 3)
    probs.refuse(
        fmt::format("has shape {}, needs (n, E), or (n, s, E) for sequences", shape_text(probs.shape())));
  if (probs.rows() * (probs.row_size() / probs.shape().back()) > limit || probs.row_size() > limit)
    probs.refuse(fmt::format("has shape {}, needs at most {} rows", shape_text(probs.shape()), limit));
  arrays.experts = static_cast<int>(probs.shape().back());
  arrays.tokens = static_cast<int>(probs.row_size() / arrays.experts);
  if (files.top_k > arrays.experts)
    throw UserError("--top-k", fmt::format("got {}, needs at most {}, the experts of {}", files.top_k,
                                           arrays.experts, probs.place()));
  if (files.neighbours > arrays.other_rows())
    throw UserError("--neighbours", fmt::format("got {}, needs at most {}, the other rows of {}",
                                                files.neighbours, arrays.other_rows(), probs.place()));

  const ArrayShape rows(probs.shape().begin(), probs.shape().end() - 1);
  check_rows(arrays.inputs, rows, probs);
  check_rows(arrays.embeddings, rows, probs);
  check_rows(arrays.expert_outputs, probs.shape(), probs);
  if (arrays.labels) check_labels(*arrays.labels, rows, probs);
  check_snapshots(arrays, rows, files.top_k);
  if (const std::optional<NpyReader> router = open(files.router, "--router")) {
    check_router(arrays, *router);
    arrays.router = router->read_finite(0, router->rows());
  }
  return arrays;
}

QueryPoints query_points(const ArrayFiles& arrays, const NpyReader& space, const std::vector<int>& top1,
                         const Seeds& seeds) {
  std::set<std::int64_t> rows;
  if (arrays.rows() <= kMaxAllRows) {
    for (std::int64_t row = 0; row < arrays.rows(); ++row) rows.insert(row);
  } else {
    Engine engine = seeds.stream(Purpose::evaluation);
    while (static_cast<std::int64_t>(rows.size()) < kQueryRows)
      rows.insert(draw_index(engine, static_cast<int>(arrays.rows())));
  }
  QueryPoints queries;
  queries.rows.assign(rows.begin(), rows.end());
  queries.points.resize(static_cast<Eigen::Index>(rows.size()), space.row_size() / arrays.tokens);
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const std::int64_t row = queries.rows[i];
    queries.points.row(static_cast<Eigen::Index>(i)) =
        arrays.token_rows(space, row / arrays.tokens, 1).row(row % arrays.tokens);
    queries.experts.push_back(top1[static_cast<std::size_t>(row)]);
  }
  return queries;
}

namespace {

bool is_given(const Need& need, const ArrayFiles& arrays, int top_k) {
  if (&need == &needs::labels) return arrays.labels.has_value();
  if (&need == &needs::inputs) return arrays.inputs.has_value();
  if (&need == &needs::space) return arrays.space() != nullptr;
  if (&need == &needs::router_weight || &need == &needs::router_columns) return arrays.router.has_value();
  if (&need == &needs::expert_outputs) return arrays.expert_outputs.has_value();
  if (&need == &needs::several_experts) return arrays.experts > 1;
  if (&need == &needs::sets || &need == &needs::sets_of_k) return top_k > 1;
  if (&need == &needs::probabilities_before) return arrays.previous_probs.has_value();
  if (&need == &needs::step_before || &need == &needs::layer_before || &need == &needs::last_step)
    return arrays.previous_probs || arrays.previous_assignments;
  return true;  // probabilities
}

}  // namespace

void skip_not_given(const ArrayFiles& arrays, int top_k, ArrayAnalysis& analysis) {
  for (const std::string& name : metric_names()) {
    const std::vector<const Need*> all = needs_of(name);
    if (std::any_of(all.begin(), all.end(), [](const Need* need) { return !need->argument; })) continue;
    std::vector<std::string> missing;
    for (const Need* const need : all) {
      if (!is_given(*need, arrays, top_k)) missing.emplace_back(need->argument);
    }
    if (!missing.empty()) analysis.skipped[name] = fmt::format("needs {}", fmt::join(missing, ", "));
  }
}

void skip_not_finite(ArrayAnalysis& analysis) {
  Json finite = Json::object();
  for (const auto& [name, value] : analysis.metrics.items()) {
    if (std::isfinite(value.get<double>())) {
      finite[name] = value;
    } else {
      analysis.skipped[name] = "not finite: the numbers of its arrays are too large";
      analysis.intervals.erase(name);
    }
  }
  analysis.metrics = std::move(finite);
}

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

namespace {

std::string value_text(const ArrayAnalysis& analysis, const std::string& name, double value) {
  const auto interval = analysis.intervals.find(name);
  if (interval == analysis.intervals.end()) return fmt::format("{:.6g}", value);
  return fmt::format("{:.4g} ± {:.2g}", value, (interval->second.high - interval->second.low) / 2);
}

/// What the numbers rest on, one sentence to a line.
std::string notes(const Json& settings) {
  std::string text;
  if (settings.contains("shuffles")) {
    text += fmt::format(
        "shuffled: mean over {} column permutations of --router (seed {}); softmax of its scores differs "
        "from the routing given by at most {:.2g}\n",
        settings.at("shuffles").dump(), settings.at("seed").dump(),
        settings.at("router_difference").get<double>());
  }
  if (settings.contains("space")) {
    text +=
        fmt::format("expert_overlap: {} neighbours; like silhouette in the space of {}, by top-1 experts\n",
                    settings.at("neighbours").dump(), settings.at("space").get<std::string>());
  }
  if (settings.contains("sampled_rows")) {
    text += fmt::format("± : 95 % interval; {} rows drawn at random (seed {}), each against all rows\n",
                        settings.at("sampled_rows").dump(), settings.at("seed").dump());
  }
  return text;
}

std::string to_text(const ArrayAnalysis& analysis) {
  const Json& settings = analysis.settings;
  std::string text =
      fmt::format("{} rows, {} experts", settings.at("rows").dump(), settings.at("experts").dump());
  if (settings.contains("top_k")) text += fmt::format(", {} to a row", settings.at("top_k").dump());
  if (settings.contains("clusters")) text += fmt::format(", {} clusters", settings.at("clusters").dump());
  text += "\n\n";
  std::size_t width = 0;
  for (const Json* names : {&analysis.metrics, &analysis.skipped}) {
    for (const auto& [name, value] : names->items()) width = std::max(width, name.size());
  }
  for (const auto& [name, value] : analysis.metrics.items())
    text += fmt::format("{:<{}}  {}\n", name, width, value_text(analysis, name, value.get<double>()));
  const std::string below = notes(settings);
  if (!below.empty()) text += "\n" + below;
  if (!analysis.skipped.empty()) text += "\nleft out:\n";
  for (const auto& [name, reason] : analysis.skipped.items())
    text += fmt::format("{:<{}}  {}\n", name, width, reason.get<std::string>());
  return text;
}

}  // namespace

Json to_json(const ArrayAnalysis& analysis) {
  Json intervals = Json::object();
  for (const auto& [name, interval] : analysis.intervals)
    intervals[name] = Json::array({interval.low, interval.high});
  return {{"metrics", analysis.metrics},
          {"skipped", analysis.skipped},
          {"intervals", std::move(intervals)},
          {"settings", analysis.settings}};
}

int run_analyze_command(const AnalyzedArrays& arrays, bool json) {
  const ArrayAnalysis analysis = analyze_arrays(arrays);
  std::cout << (json ? to_json(analysis).dump(2) + "\n" : to_text(analysis));
  return 0;
}

Verb analyze_verb() {
  return {"analyze", "Measure routing from your own arrays (.npy, rows may be (n, s) tokens)",
          "analyze --probs P.npy --labels C.npy --inputs X.npy --router W.npy",
          [](Arguments& arguments) -> VerbCall {
            const auto files = std::make_shared<AnalyzedArrays>();
            return {
                {{"--probs", &files->probs.file, "routing probabilities (n, E)"},
                 {"--logits", &files->logits.file, "or the router's scores (n, E), whose softmax they are"},
                 {"--labels", &files->labels.file, "cluster of each row, integers (n), for sparsity"},
                 {"--inputs", &files->inputs.file, "router inputs (n, d)"},
                 {"--router", &files->router.file,
                  "weights (E, d) of a linear router, for the shuffled baseline"},
                 {"--embeddings", &files->embeddings.file,
                  "where overlap and silhouette are measured (n, m) (default: the inputs)"},
                 {"--expert-outputs", &files->expert_outputs.file, "outputs of every expert (n, E, o)"},
                 {"--previous-probs", &files->previous_probs.file,
                  "an earlier snapshot of --probs, for fluctuation"},
                 {"--previous-logits", &files->previous_logits.file, "or of --logits"},
                 {"--previous-assignments", &files->previous_assignments.file,
                  "or its experts, integers (n), or (n, K) with --top-k K"},
                 {"--top-k", &files->top_k,
                  "experts that serve a row: load and fluctuation count them (default 1)", false,
                  whole_number(1, 1000000)},
                 {"--neighbours", &files->neighbours,
                  "neighbours of expert overlap (default 10, or all other rows where they are fewer)", false,
                  whole_number(1, 1000000)},
                 json_option(arguments)},
                [files, &arguments] { return run_analyze_command(*files, arguments.json); }};
          }};
}

}  // namespace moelab
