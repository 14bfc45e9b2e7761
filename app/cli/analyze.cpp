#include "app/cli/analyze.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "analysis/metrics/agreement.h"
#include "analysis/metrics/meters.h"
#include "analysis/metrics/routed_change.h"
#include "analysis/metrics/routed_tokens.h"
#include "app/cli/analysis_files.h"
#include "app/cli/array_rows.h"
#include "app/cli/verbs.h"
#include "app/report/claim_results.h"
#include "app/store/durable_file.h"
#include "sim/base/error.h"

namespace moelab {
Json in_some_layer(const ArrayAnalysis& analysis, Json LayerAnalysis::*entries) {
  Json all = Json::object();
  for (const LayerAnalysis& layer : analysis.layers) {
    for (const auto& [name, value] : (layer.*entries).items()) {
      if (!all.contains(name)) all[name] = value;
    }
  }
  return all;
}

namespace {

constexpr const char *kNotFinite = "not finite: the numbers of its arrays are too large",
                     *kNoValue = "has no value for these arrays";

/// Numbers of the bootstrap and of chance: a stream for each layer.
enum Stream : std::uint64_t { kBootstrap = 1000, kChance = 2000000, kChange = 4000000, kPairs = 6000000 };

/// Metrics of clusters are measured for at most this many.
constexpr std::size_t kMostClusters = 4096;

Json matrix_json(std::vector<std::string> rows, std::vector<std::string> columns, const Matrix& values) {
  Json lines = Json::array();
  for (Eigen::Index i = 0; i < values.rows(); ++i) {
    Json line = Json::array();
    for (Eigen::Index j = 0; j < values.cols(); ++j)
      line.push_back(std::isnan(values(i, j)) ? Json() : Json(values(i, j)));
    lines.push_back(std::move(line));
  }
  return {{"rows", std::move(rows)}, {"columns", std::move(columns)}, {"values", std::move(lines)}};
}

std::vector<std::string> numbers_to(int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

/// What follows the chosen experts of each token of a layer.
class TokenSums final : public RowSums {
 public:
  /// `cluster_of` has the place of each label, and outlives the object.
  TokenSums(const RouterDump& dump, const LayerRouting& routing, const std::map<int, int>& cluster_of)
      : dump_(dump),
        routing_(routing),
        cluster_of_(cluster_of),
        tokens_(setting_of(dump, routing, cluster_of.size())) {}

  void add(const RoutedBlock& block) override {
    const auto k = static_cast<Eigen::Index>(setting().top_k);
    for (Eigen::Index i = 0; i < block.rows; ++i) {
      const auto row = static_cast<std::size_t>(block.first + i);
      RoutedToken token;
      token.experts = &block.sets[static_cast<std::size_t>(i * k)];
      if (block.probabilities.size() > 0) {
        token.probabilities = block.probabilities.data() + i * dump_.experts;
        token.entropy = block.entropies[static_cast<std::size_t>(i)];
      }
      // Experts that are given settle ties.
      if (!block.next.empty()) {
        token.selection = block.selection.data() + i * dump_.experts;
        token.next = block.next[static_cast<std::size_t>(i)];
      }
      if (setting().clusters > 0) token.cluster = cluster_of(dump_.labels[row]);
      if (!dump_.documents.empty()) {
        token.document = dump_.documents[row];
        token.position = dump_.positions[row];
      }
      if (!dump_.tokens.empty()) token.token = dump_.tokens[row];
      tokens_.add(token);
      if (keeps_first_) first_.push_back(static_cast<std::uint16_t>(token.experts[0]));
    }
    if (keeps_sets_) sets_.insert(sets_.end(), block.sets.begin(), block.sets.end());
  }
  std::optional<double> co_activation() const override { return tokens_.mean_co_activation(); }

  /// Keeps the first choice of each row, or all, in two bytes each.
  void keep(bool first, bool sets) {
    keeps_first_ = first && routing_.has_first_choice();
    keeps_sets_ = sets;
  }
  const RoutedTokens& tokens() const { return tokens_; }
  const RoutedSetting& setting() const { return tokens_.setting(); }
  std::vector<std::uint16_t> take_first() { return std::move(first_); }
  std::vector<std::uint16_t> take_sets() { return std::move(sets_); }

 private:
  static RoutedSetting setting_of(const RouterDump& dump, const LayerRouting& routing, std::size_t clusters) {
    return {dump.experts,
            routing.rule.top_k,
            clusters <= kMostClusters ? static_cast<int>(clusters) : 0,
            dump.document_count,
            routing.has_probabilities(),
            routing.has_first_choice(),
            routing.bias.size() > 0 || routing.rule.groups > 1 || !routing.ids.empty(),
            routing.rule.score == SelectionRule::Score::selected};
  }

  /// Neighbours mostly have the same label.
  int cluster_of(int label) {
    if (last_label_ != label) last_cluster_ = cluster_of_.at(label);
    last_label_ = label;
    return last_cluster_;
  }

  const RouterDump& dump_;
  const LayerRouting& routing_;
  const std::map<int, int>& cluster_of_;
  int last_label_ = -1, last_cluster_ = -1;
  RoutedTokens tokens_;
  bool keeps_first_ = false, keeps_sets_ = false;
  std::vector<std::uint16_t> first_, sets_;
};

/// One layer, and what the others need of it.
struct MeasuredLayer {
  LayerAnalysis layer;
  Json metrics, skipped;                      // of the metric groups alone
  std::map<std::string, Interval> intervals;  // likewise
  std::vector<std::string> checks;
  std::vector<std::uint16_t> first, sets;  // of each row, −1 as the largest number; or empty
  int shuffles = 0;
  double router_difference = 0;
};

/// The analysis of the layers of one routing, and of an earlier one if it is given.
class Analysis {
 public:
  explicit Analysis(const AnalyzedArrays& arrays)
      : files_(open_arrays(arrays)),
        routing_(files_.routing),
        given_counts_(!routing_.counts.empty()),
        threads_(thread_count(arrays.threads)) {
    if (routing_.labels.empty() || routing_.parts != 1) return;
    // Labels of one array are names, which need not count from 0.
    for (const int label : routing_.labels) cluster_of_.try_emplace(label, 0);
    int next = 0;
    for (auto& [label, place] : cluster_of_) place = next++;
  }

  ArrayAnalysis run() {
    result_.checks = routing_.checks;
    if (given_counts_)
      measure_counts();
    else
      measure_layers();
    add_means();
    return std::move(result_);
  }

 private:
  bool is_single() const { return routing_.layers.size() + routing_.counts.size() == 1; }

  /// Experts of all layers are kept to compare layers, in two bytes each.
  bool compares_layers() const { return !is_single() && routing_.experts <= kMostPairedExperts; }
  bool keeps_first_and_sets() const {
    constexpr std::int64_t kMostKeptExperts = std::int64_t{1} << 28;
    return compares_layers() &&
           files_.rows() * routing_.top_k * std::ssize(routing_.layers) <= kMostKeptExperts;
  }

  void measure_layers() {
    std::vector<MeasuredLayer> measured(routing_.layers.size());
    run_in_parallel(measured.size(), threads_, "layers",
                    [&](std::size_t at) { measured[at] = measure_layer(at); });
    for (MeasuredLayer& own : measured) {
      result_.checks.insert(result_.checks.end(), own.checks.begin(), own.checks.end());
      firsts_.push_back(std::move(own.first));
      sets_.push_back(std::move(own.sets));
      result_.layers.push_back(std::move(own.layer));
    }
    if (is_single()) {
      result_.metrics = std::move(measured.front().metrics);
      result_.skipped = std::move(measured.front().skipped);
      result_.intervals = std::move(measured.front().intervals);
      add_settings(&measured.front());
      return;
    }
    add_settings(nullptr);
    result_.settings["layers"] = routing_.layers.size();
    compare_layers();
    if (!mismatch_.empty()) {
      const auto differ = std::count(mismatch_.begin(), mismatch_.end(), 1);
      result_.metrics["any_layer_mismatch"] =
          static_cast<double>(differ) / static_cast<double>(mismatch_.size());
    } else {
      result_.skipped["any_layer_mismatch"] =
          "needs --previous-probs, --previous-logits or --previous-assignments";
    }
  }

  MeasuredLayer measure_layer(std::size_t at) {
    const LayerRouting& routing = routing_.layers[at];
    MeasuredLayer own;
    LayerAnalysis& layer = own.layer;
    layer.layer = routing.layer;
    layer.name = routing.name;
    const GivenArrays given = files_.given(routing);
    TokenSums sums(routing_, routing, cluster_of_);
    sums.keep(compares_layers(), keeps_first_and_sets());
    std::optional<ArrayRows> previous;
    if (!routing_.previous.empty()) previous.emplace(files_, routing_.previous[at], 0, nullptr);
    ArrayRows rows(files_, routing, 1, previous ? &*previous : nullptr, &sums);
    const std::vector<MetricGroup>& groups = metric_groups();
    std::vector<LayerMetrics> measured(groups.size());
    // Metrics of r share the first pass over the rows. It counts what the other groups need.
    for (const bool is_of_r : {true, false}) {
      for (std::size_t g = 0; g < groups.size(); ++g) {
        if ((groups[g].name == "routing") == is_of_r) measured[g] = measure(groups[g], given, previous, rows);
      }
    }
    rows.look();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (const MetricGroup::Metric& metric : groups[g].metrics) report(metric, given, measured[g], own);
    }
    // With several layers an earlier snapshot is no layer before this one. Pairs of layers have matrices.
    if (previous && routing_.layers.size() > 1) {
      for (const char* const name : {"layer_ari", "router_instability", "assignment_change_share"}) {
        if (layer.metrics.erase(name) > 0)
          layer.skipped[name] = "compares a layer with the one before it: see the matrices of layers";
      }
    }
    own.metrics = layer.metrics;
    own.skipped = layer.skipped;
    own.shuffles = rows.shuffles();
    own.router_difference = rows.router_difference();
    for (const auto& [name, interval] : own.intervals)
      layer.intervals[name] = Json::array({interval.low, interval.high});
    add_tokens(at, sums, own);
    if (previous) measure_change(at, *previous, rows, sums.tokens().strata(), layer);
    own.first = sums.take_first();
    own.sets = sums.take_sets();
    // Sets have no metrics of r, and all others are the answer.
    if (!routing.has_probabilities()) {
      own.metrics = layer.metrics;
      own.skipped = layer.skipped;
    } else if (is_single() && layer.metrics.contains("co_activation") &&
               !own.metrics.contains("co_activation")) {
      own.metrics["co_activation"] = layer.metrics["co_activation"];
      own.skipped.erase("co_activation");
    }
    return own;
  }

  /// The group's metrics; none where no metric of it applies to the arrays.
  static LayerMetrics measure(const MetricGroup& group, const GivenArrays& given,
                              std::optional<ArrayRows>& previous, ArrayRows& rows) {
    LayerMetrics metrics;
    const auto applies = [&](std::string_view metric) { return applies_to(metric, given); };
    const bool is_asked = std::any_of(group.metrics.begin(), group.metrics.end(),
                                      [&](const auto& metric) { return applies(metric.name); });
    if (!group.make_row_meter || !is_asked) return metrics;
    const AnyOptions options = group.options_for ? group.options_for(given) : group.defaults;
    const std::unique_ptr<RowMeter> meter = group.make_row_meter(options, {applies});
    if (previous) meter->remember(*previous);
    meter->measure(rows, metrics);
    if (previous) meter->complete(previous->step(), previous->layer(), metrics.values);
    return metrics;
  }

  /// Puts a metric among the results, or says why it is left out.
  void report(const MetricGroup::Metric& metric, const GivenArrays& given, const LayerMetrics& measured,
              MeasuredLayer& own) const {
    const std::string& name = metric.name;
    LayerAnalysis& layer = own.layer;
    if (!applies_to(name, given)) {
      const std::vector<std::string> missing = missing_arguments(name, given);
      if (!missing.empty()) layer.skipped[name] = fmt::format("needs {}", fmt::join(missing, ", "));
      return;
    }
    std::optional<MeanEstimate> found;
    if (const auto value = measured.values.find(name); value != measured.values.end())
      found = MeanEstimate{value->second, 1, {}};
    if (const auto of_rows = measured.of_rows.find(name);
        of_rows != measured.of_rows.end() && !of_rows->second.empty()) {
      found = mean_estimate(of_rows->second);
      if (std::ssize(of_rows->second) == files_.rows()) found->interval.reset();  // no sample
    }
    if (!found) {
      layer.skipped[name] = metric.otherwise.empty() ? kNoValue : metric.otherwise;
    } else if (!std::isfinite(found->mean)) {
      layer.skipped[name] = kNotFinite;
    } else {
      layer.metrics[name] = found->mean;
      if (found->interval) own.intervals[name] = *found->interval;
    }
  }

  /// What follows the chosen experts of each token.
  void add_tokens(std::size_t at, const TokenSums& sums, MeasuredLayer& own) const {
    const RoutedTokens& tokens = sums.tokens();
    LayerAnalysis& layer = own.layer;
    for (const auto& [name, value] : tokens.values()) {
      if (layer.metrics.contains(name) || !std::isfinite(value)) continue;
      layer.metrics[name] = value;
      layer.skipped.erase(name);
    }
    for (const auto& [name, reason] : tokens.skipped()) {
      if (layer.metrics.contains(name) || layer.skipped.contains(name)) continue;
      const bool has_labels = reason == "needs --labels" && !routing_.labels.empty();
      layer.skipped[name] = !has_labels ? reason
                            : routing_.parts > 1
                                ? "needs one label to a row"
                                : fmt::format("is measured for at most {} labels", kMostClusters);
    }
    note_ties(layer, own.checks);
    add_intervals(at, tokens, own);
    Engine engine = kAnalysisSeeds.stream(Purpose::evaluation, kChance + at);
    for (const auto& [name, value] : tokens.chance(engine)) {
      if (layer.metrics.contains(name)) layer.chance[name] = value;
    }
    add_vectors(tokens, layer);
    add_matrices(tokens, sums.setting(), layer);
    add_documents(tokens, layer);
  }

  /// What changed since the earlier snapshot, with intervals over the documents that both share.
  void measure_change(std::size_t at, ArrayRows& previous, ArrayRows& rows, const DocumentStrata& strata,
                      LayerAnalysis& layer) {
    const LayerRouting& routing = routing_.layers[at];
    const LayerRouting& earlier = routing_.previous[at];
    const std::vector<int> before = previous.likeliest(routing.rule.top_k),
                           now = rows.likeliest(routing.rule.top_k);
    const auto k = static_cast<std::size_t>(routing.rule.top_k);
    add_mismatch(before, now, routing.rule.top_k);
    RoutedChange change(routing_.experts, routing.rule.top_k, routing_.document_count,
                        routing.has_first_choice() && earlier.has_first_choice());
    for (std::size_t row = 0; row * k < now.size(); ++row)
      change.add(&before[row * k], &now[row * k], routing_.documents.empty() ? 0 : routing_.documents[row]);
    for (const auto& [name, value] : change.values()) {
      if (layer.metrics.contains(name) || (is_single() && routing_.is_one_array)) continue;
      layer.metrics[name] = value;
      layer.skipped.erase(name);
    }
    const bool has_enough = std::all_of(strata.begin(), strata.end(),
                                        [](const auto& own) { return std::ssize(own) >= kFewestDocuments; });
    if (!has_enough || strata.empty()) return;
    Engine engine = kAnalysisSeeds.stream(Purpose::evaluation, kChange + at);
    constexpr int kTimes = 2000;
    for (const auto& [name, interval] : change.intervals(strata, kTimes, engine)) {
      if (layer.metrics.contains(name) && !layer.intervals.contains(name))
        layer.intervals[name] = Json::array({interval.low, interval.high});
    }
  }

  static void note_ties(const LayerAnalysis& layer, std::vector<std::string>& checks) {
    const Json& metrics = layer.metrics;
    if (!metrics.contains("tied_rows") || metrics.at("tied_rows").get<double>() == 0) return;
    checks.push_back(fmt::format(
        "layer {}: {} of {} rows are tied at the last chosen expert. The scores do not tell which of the "
        "equal experts served; the lower number counts, and loads lie between least_tokens and most_tokens",
        layer.layer, metrics.at("tied_rows").get<double>(), metrics.at("tokens").get<double>()));
  }

  void add_intervals(std::size_t at, const RoutedTokens& tokens, MeasuredLayer& own) const {
    if (routing_.document_count == 0) return;
    LayerAnalysis& layer = own.layer;
    Engine engine = kAnalysisSeeds.stream(Purpose::evaluation, kBootstrap + at);
    // At most so many additions for a layer.
    constexpr double kMostWork = 1e9;
    const double work = static_cast<double>(routing_.document_count) * (routing_.experts * 3.0 + 20);
    const int times = static_cast<int>(std::clamp(kMostWork / work, 200.0, 2000.0));
    int fewest = 0;
    for (const auto& [name, interval] : tokens.intervals(engine, times, fewest)) {
      if (layer.metrics.contains(name) && !layer.intervals.contains(name))
        layer.intervals[name] = Json::array({interval.low, interval.high});
    }
    if (at > 0) return;
    constexpr int kEnough = 10;
    if (!tokens.is_by_document()) {
      own.checks.push_back(fmt::format(
          "no intervals, and no metrics of each document: the sums of {} would take too much memory{}",
          counted(static_cast<std::size_t>(routing_.document_count), "document"),
          cluster_of_.empty() ? ""
                              : "; chance levels permute clusters over tokens, so they are lower than "
                                "over documents"));
    } else if (fewest < kFewestDocuments) {
      own.checks.push_back(fmt::format("no intervals: {} in a domain, and a bootstrap needs {}",
                                       counted(fewest, "document"), kFewestDocuments));
    } else {
      own.checks.push_back(fmt::format(
          "intervals are 95 % percentile intervals of {} bootstrap draws of documents within their domain{}",
          times,
          fewest < kEnough
              ? fmt::format("; with {} they are too narrow by a factor of about {:.2f}",
                            counted(fewest, "document"), std::sqrt(static_cast<double>(fewest - 1) / fewest))
              : ""));
    }
  }

  static void add_vectors(const RoutedTokens& tokens, LayerAnalysis& layer) {
    layer.experts["load"] = tokens.load();
    layer.experts["activation_rate"] = tokens.activation_rate();
    const auto add = [&](const char* name, const std::vector<double>& values) {
      if (!values.empty()) layer.experts[name] = values;
    };
    add("top1_load", tokens.top1_load());
    add("mean_routing", tokens.mean_routing());
    add("least_tokens", tokens.least_tokens());
    add("most_tokens", tokens.most_tokens());
  }

  void add_matrices(const RoutedTokens& tokens, const RoutedSetting& setting, LayerAnalysis& layer) const {
    const std::vector<std::string> experts = numbers_to(setting.experts);
    if (setting.clusters > 0 && std::ssize(routing_.label_names) == setting.clusters) {
      const std::vector<std::string>& names = routing_.label_names;
      layer.matrices["domain"] = matrix_json(names, experts, tokens.cluster_specialisation());
      layer.matrices["domain_iou"] = matrix_json(names, names, tokens.cluster_overlap(setting.top_k));
      layer.matrices["domain_iou4"] = matrix_json(names, names, tokens.cluster_overlap(4));
      if (const Matrix divergence = tokens.cluster_divergence(); divergence.size() > 0)
        layer.matrices["domain_divergence"] = matrix_json(names, names, divergence);
    }
    if (const Matrix both = tokens.co_activation(); both.size() > 0)
      layer.matrices["co_activation"] = matrix_json(experts, experts, both);
    constexpr std::size_t kMostTokens = 50;
    const auto frequent = tokens.frequent_tokens(kMostTokens);
    if (frequent.first.empty()) return;
    std::vector<std::string> ids;
    for (const std::int64_t id : frequent.first) ids.push_back(std::to_string(id));
    layer.matrices["token"] = matrix_json(std::move(ids), experts, frequent.second);
  }

  /// Values of metrics that do not follow clusters. A document has one cluster.
  void add_documents(const RoutedTokens& tokens, LayerAnalysis& layer) const {
    constexpr std::int64_t kMostDocuments = 20000;
    if (routing_.document_count * std::ssize(routing_.layers) > kMostDocuments) return;
    const std::vector<std::pair<int, RoutedValues>> documents = tokens.document_values();
    for (std::size_t at = 0; at < documents.size(); ++at) {
      layer.documents["document"].push_back(documents[at].first);
      for (const auto& [name, value] : documents[at].second) {
        if (name.find("cluster") != std::string::npos || name == "dispatch_entropy") continue;
        Json& values = layer.documents[name];
        if (values.is_null()) values = std::vector<Json>(documents.size());
        if (std::isfinite(value)) values[at] = value;
      }
    }
  }

  // What is about all layers.

  void add_mismatch(const std::vector<int>& before, const std::vector<int>& now, int k) {
    const std::size_t width = static_cast<std::size_t>(k);
    const std::lock_guard lock(mutex_);
    mismatch_.resize(now.size() / width, 0);
    std::vector<int> one(width), other(width);
    for (std::size_t row = 0; row < mismatch_.size(); ++row) {
      std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(row * width), width, one.begin());
      std::copy_n(now.begin() + static_cast<std::ptrdiff_t>(row * width), width, other.begin());
      std::sort(one.begin(), one.end());
      std::sort(other.begin(), other.end());
      if (one != other) mismatch_[row] = 1;
    }
  }

  static constexpr std::uint16_t kNoExpert = std::numeric_limits<std::uint16_t>::max();

  /// n_ab, rows whose first choices are a and b in two layers, (E, E).
  ContingencyTable table_of(const std::vector<std::uint16_t>& one,
                            const std::vector<std::uint16_t>& other) const {
    ContingencyTable table = ContingencyTable::Zero(routing_.experts, routing_.experts);
    for (std::size_t row = 0; row < one.size(); ++row) {
      if (one[row] != kNoExpert && other[row] != kNoExpert) ++table(one[row], other[row]);
    }
    return table;
  }

  void compare_layers() {
    const auto count = static_cast<Eigen::Index>(routing_.layers.size());
    std::vector<std::string> names;
    for (const LayerRouting& layer : routing_.layers) names.push_back(std::to_string(layer.layer));
    Matrix nmi = Matrix::Constant(count, count, std::nan("")), ari = nmi, common = nmi, chance = nmi;
    // Rows in another order for the second layer of a pair tell what chance gives.
    Engine engine = kAnalysisSeeds.stream(Purpose::evaluation, kPairs);
    const std::vector<int> order = draw_permutation(engine, static_cast<int>(std::ssize(firsts_.front())));
    std::vector<std::uint16_t> shuffled(order.size());
    for (Eigen::Index b = 1; b < count; ++b) {
      const std::vector<std::uint16_t>& other = firsts_[size(b)];
      if (!other.empty())
        std::transform(order.begin(), order.end(), shuffled.begin(),
                       [&](int row) { return other[static_cast<std::size_t>(row)]; });
      for (Eigen::Index a = 0; a < b; ++a) {
        const std::vector<std::uint16_t>& first = firsts_[size(a)];
        if (!first.empty() && !other.empty()) {
          const ContingencyTable table = table_of(first, other);
          nmi(a, b) = nmi(b, a) = normalized_mutual_information(table).value_or(std::nan(""));
          ari(a, b) = ari(b, a) = adjusted_rand_index(table).value_or(std::nan(""));
          chance(a, b) = chance(b, a) =
              normalized_mutual_information(table_of(first, shuffled)).value_or(std::nan(""));
        }
        const std::size_t k = static_cast<std::size_t>(routing_.layers[size(a)].rule.top_k);
        if (static_cast<std::size_t>(routing_.layers[size(b)].rule.top_k) != k) continue;
        const std::vector<std::uint16_t>&own = sets_[size(a)], &others = sets_[size(b)];
        if (own.empty()) continue;
        std::size_t same = 0;
        for (std::size_t at = 0; at < own.size(); ++at) {
          const auto begin = others.begin() + static_cast<std::ptrdiff_t>(at / k * k);
          same += own[at] != kNoExpert && std::find(begin, begin + static_cast<std::ptrdiff_t>(k), own[at]) !=
                                              begin + static_cast<std::ptrdiff_t>(k)
                      ? 1
                      : 0;
        }
        common(a, b) = common(b, a) = static_cast<double>(same) / static_cast<double>(own.size());
      }
    }
    if (!keeps_first_and_sets())
      result_.checks.push_back(fmt::format(
          "{} left out: the experts of all layers would take too much memory",
          compares_layers() ? "same_name_share is" : "layer_nmi, layer_ari and same_name_share are"));
    if (!firsts_.front().empty()) {
      result_.matrices["layer_nmi"] = matrix_json(names, names, nmi);
      result_.matrices["layer_nmi_chance"] = matrix_json(names, names, chance);
      result_.matrices["layer_ari"] = matrix_json(names, names, ari);
    }
    if (keeps_first_and_sets()) result_.matrices["same_name_share"] = matrix_json(names, names, common);
  }

  void measure_counts() {
    for (std::size_t at = 0; at < routing_.counts.size(); ++at) {
      LayerAnalysis& layer = result_.layers.emplace_back();
      layer.layer = routing_.counted_layers[at];
      const std::vector<std::int64_t>& counts = routing_.counts[at];
      for (const auto& [name, value] : RoutedTokens::of_counts(counts, routing_.top_k))
        layer.metrics[name] = value;
      for (const RoutedMetric& metric : routed_metrics()) {
        if (!layer.metrics.contains(metric.name)) layer.skipped[metric.name] = "counts alone do not tell it";
      }
      double total = 0;
      for (const std::int64_t count : counts) total += static_cast<double>(count);
      Json load = Json::array(), rate = Json::array();
      for (const std::int64_t count : counts) {
        load.push_back(static_cast<double>(count) / total);
        rate.push_back(static_cast<double>(count) * routing_.top_k / total);
      }
      layer.experts["load"] = std::move(load);
      if (routing_.top_k > 0) layer.experts["activation_rate"] = std::move(rate);
    }
    result_.settings["experts"] = routing_.experts;
    if (routing_.top_k > 0) result_.settings["top_k"] = routing_.top_k;
    result_.settings["layers"] = routing_.counts.size();
    if (!routing_.without_router.empty()) result_.settings["without_router"] = routing_.without_router;
    if (is_single()) {
      result_.metrics = result_.layers.front().metrics;
      result_.skipped = result_.layers.front().skipped;
    }
  }

  /// A mean over layers is one of their values: rows of several layers are never pooled.
  void add_means() {
    if (result_.layers.size() < 2) return;
    std::map<std::string, std::pair<double, std::size_t>> sums;
    for (const LayerAnalysis& layer : result_.layers) {
      for (const auto& [name, value] : layer.metrics.items()) {
        sums[name].first += value.get<double>();
        ++sums[name].second;
      }
    }
    for (const auto& [name, value] : result_.layers.front().metrics.items()) {
      const auto& [sum, count] = sums[name];
      if (count == result_.layers.size()) result_.means[name] = sum / static_cast<double>(count);
    }
  }

  void add_settings(const MeasuredLayer* single) {
    Json& settings = result_.settings;
    settings["rows"] = files_.rows();
    settings["experts"] = routing_.experts;
    if (routing_.top_k > 1) settings["top_k"] = routing_.top_k;
    if (!routing_.labels.empty()) {
      std::set<std::vector<int>> sorted;
      for (std::size_t at = 0; at < routing_.labels.size(); at += static_cast<std::size_t>(routing_.parts)) {
        std::vector<int> own(routing_.labels.begin() + static_cast<std::ptrdiff_t>(at),
                             routing_.labels.begin() + static_cast<std::ptrdiff_t>(at) + routing_.parts);
        std::sort(own.begin(), own.end());
        sorted.insert(std::move(own));
      }
      settings["clusters"] = sorted.size();
    }
    if (routing_.document_count > 0) settings["documents"] = routing_.document_count;
    if (!routing_.without_router.empty()) settings["without_router"] = routing_.without_router;
    if (!single) return;
    if (single->shuffles > 0) {
      settings["shuffles"] = single->shuffles;
      settings["seed"] = kAnalysisSeeds.root;
      settings["router_difference"] = single->router_difference;
    }
    if (!files_.space()) return;
    settings["space"] = files_.space()->place();
    settings["neighbours"] = std::min<std::int64_t>(files_.neighbours, files_.rows() - 1);
    if (files_.rows() <= kMaxAllRows) return;
    settings["sampled_rows"] = kQueryRows;
    settings["seed"] = kAnalysisSeeds.root;
  }

  ArrayFiles files_;
  const RouterDump& routing_;
  bool given_counts_;
  int threads_;
  std::map<int, int> cluster_of_;  // the place of each label in their order
  // Of each layer, −1 as the largest number.
  std::vector<std::vector<std::uint16_t>> firsts_, sets_;
  std::mutex mutex_;
  std::vector<unsigned char> mismatch_;  // rows whose set differs from the earlier one in some layer
  ArrayAnalysis result_;
};

/// "0.4142", or "0.41 ± 0.02" of a metric with an interval.
std::string value_text(const ArrayAnalysis& analysis, const std::string& name, double value) {
  const auto interval = analysis.intervals.find(name);
  if (interval == analysis.intervals.end()) return fmt::format("{:.6g}", value);
  return fmt::format("{:.4g} ± {:.2g}", value, (interval->second.high - interval->second.low) / 2);
}

/// The settings in sentences, one to a line.
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

constexpr const char* kMetricsHint = "moelab list NAME explains a metric.\n";

std::string checks_text(const ArrayAnalysis& analysis) {
  std::string text;
  for (const std::string& check : analysis.checks) text += "- " + check + "\n";
  return text.empty() ? text : "\nfound and assumed:\n" + text;
}

std::string skipped_text(const Json& skipped, std::size_t width) {
  std::string text = skipped.empty() ? "" : "\nleft out:\n";
  for (const auto& [name, reason] : skipped.items())
    text += fmt::format("{:<{}}  {}\n", name, width, reason.get<std::string>());
  return text;
}

std::size_t longest_name(std::initializer_list<const Json*> objects) {
  std::size_t width = 0;
  for (const Json* names : objects) {
    for (const auto& [name, value] : names->items()) width = std::max(width, name.size());
  }
  return width;
}

/// A table of the layers' metrics: a column for each of few layers, their mean and range for many.
std::string layers_text(const ArrayAnalysis& analysis) {
  const Json& settings = analysis.settings;
  std::string text;
  if (settings.contains("rows")) text += settings.at("rows").dump() + " rows, ";
  text += fmt::format("{} experts", settings.at("experts").dump());
  if (settings.contains("top_k")) text += fmt::format(", {} to a row", settings.at("top_k").dump());
  if (settings.contains("clusters")) text += fmt::format(", {} clusters", settings.at("clusters").dump());
  if (settings.contains("documents")) text += fmt::format(", {} documents", settings.at("documents").dump());
  text += fmt::format(", {}\n\n", counted(analysis.layers.size(), "layer"));
  const Json names = in_some_layer(analysis, &LayerAnalysis::metrics);
  const std::size_t width = std::max(longest_name({&names}), longest_name({&analysis.metrics}));
  constexpr std::size_t kMostColumns = 8;
  const bool has_columns = analysis.layers.size() <= kMostColumns;
  text += fmt::format("{:<{}}", "layer", width);
  if (has_columns) {
    for (const LayerAnalysis& layer : analysis.layers) text += fmt::format("  {:>9}", layer.layer);
  }
  text += has_columns ? fmt::format("  {:>9}\n", "mean")
                      : fmt::format("  {:>9}  {:>9}  {:>9}\n", "mean", "least", "most");
  for (const auto& [name, unused] : names.items()) {
    double least = INFINITY, most = -INFINITY;
    std::string line = fmt::format("{:<{}}", name, width);
    for (const LayerAnalysis& layer : analysis.layers) {
      const bool is_there = layer.metrics.contains(name);
      const double value = is_there ? layer.metrics.at(name).get<double>() : 0;
      if (is_there) {
        least = std::min(least, value);
        most = std::max(most, value);
      }
      if (has_columns) line += is_there ? fmt::format("  {:>9.4g}", value) : fmt::format("  {:>9}", "");
    }
    if (analysis.means.contains(name))
      line += fmt::format("  {:>9.4g}", analysis.means.at(name).get<double>());
    if (!has_columns) line += fmt::format("  {:>9.4g}  {:>9.4g}", least, most);
    text += line + "\n";
  }
  for (const auto& [name, value] : analysis.metrics.items())
    text += fmt::format("\n{:<{}}  {:.6g}  (all layers)\n", name, width, value.get<double>());
  text += fmt::format("\n{}", kMetricsHint);
  return text + checks_text(analysis) + skipped_text(analysis.layers.front().skipped, width);
}

std::string to_text(const ArrayAnalysis& analysis) {
  const Json& settings = analysis.settings;
  if (analysis.layers.size() != 1 || !settings.contains("rows")) return layers_text(analysis);
  std::string text =
      fmt::format("{} rows, {} experts", settings.at("rows").dump(), settings.at("experts").dump());
  if (settings.contains("top_k")) text += fmt::format(", {} to a row", settings.at("top_k").dump());
  if (settings.contains("clusters")) text += fmt::format(", {} clusters", settings.at("clusters").dump());
  text += "\n\n";
  // The metrics of the table, then those that follow the chosen experts.
  Json further = Json::object();
  for (const auto& [name, value] : analysis.layers.front().metrics.items()) {
    if (!analysis.metrics.contains(name)) further[name] = value;
  }
  const std::size_t width = longest_name({&analysis.metrics, &analysis.skipped, &further});
  for (const auto& [name, value] : analysis.metrics.items())
    text += fmt::format("{:<{}}  {}\n", name, width, value_text(analysis, name, value.get<double>()));
  for (const auto& [name, value] : further.items())
    text += fmt::format("{:<{}}  {:.6g}\n", name, width, value.get<double>());
  text += fmt::format("\n{}{}", kMetricsHint, notes(settings));
  return text + checks_text(analysis) + skipped_text(analysis.skipped, width);
}

}  // namespace

ArrayAnalysis analyze_arrays(const AnalyzedArrays& arrays) {
  return Analysis(arrays).run();
}

ArrayAnalysis analysis_of(const Json& answer) {
  ArrayAnalysis analysis;
  analysis.metrics = answer.at("metrics");
  analysis.skipped = answer.at("skipped");
  analysis.settings = answer.at("settings");
  analysis.means = answer.at("means");
  analysis.matrices = answer.at("matrices");
  analysis.checks = answer.at("checks").get<std::vector<std::string>>();
  for (const auto& [name, interval] : answer.at("intervals").items())
    analysis.intervals[name] = {interval.at(0).get<double>(), interval.at(1).get<double>()};
  for (const Json& layer : answer.at("layers")) {
    analysis.layers.push_back({layer.at("layer").get<int>(), layer.at("name").get<std::string>(),
                               layer.at("metrics"), layer.at("skipped"), layer.at("intervals"),
                               layer.at("chance"), layer.at("experts"), layer.at("matrices"),
                               layer.value("documents", Json::object())});
  }
  return analysis;
}

Json to_json(const ArrayAnalysis& analysis, int most_experts) {
  Json intervals = Json::object();
  for (const auto& [name, interval] : analysis.intervals)
    intervals[name] = Json::array({interval.low, interval.high});
  Json layers = Json::array();
  for (const LayerAnalysis& layer : analysis.layers) {
    Json own = {{"layer", layer.layer},     {"name", layer.name},           {"metrics", layer.metrics},
                {"skipped", layer.skipped}, {"intervals", layer.intervals}, {"chance", layer.chance},
                {"experts", layer.experts}, {"matrices", layer.matrices}};
    if (!layer.documents.empty()) own["documents"] = layer.documents;
    if (analysis.settings.at("experts") > most_experts) own["matrices"].erase("co_activation");
    layers.push_back(std::move(own));
  }
  return {{"metrics", analysis.metrics},       {"skipped", analysis.skipped},
          {"intervals", std::move(intervals)}, {"settings", analysis.settings},
          {"checks", analysis.checks},         {"layers", std::move(layers)},
          {"means", analysis.means},           {"matrices", analysis.matrices}};
}

namespace {

struct AnalyzeOptions {
  AnalyzedArrays arrays;
  std::filesystem::path model, out, against;
  std::vector<std::string> claims;
  bool figures = false, json = false;

  void bind(VerbOptions& options) {
    const auto several = [&](const char* name, ArraySource& source, const char* help) {
      options.add(name, &source.files, help, {.takes_several = true});
    };
    several("--logits", arrays.logits,
            "the router's scores (n, E), FILE[:ARRAY]…; several files are batches");
    several("--probs", arrays.probs, "routing probabilities (n, E), in place of --logits");
    several("--scores", arrays.scores, "scores after a sigmoid (n, E), in place of --logits");
    several("--gates", arrays.gates,
            "gates or dispatch masks (n, E), 0 for experts that are not chosen, in place of --logits");
    several("--experts", arrays.experts,
            "ids of the chosen experts (n, K), in place of scores; if scores are given, too, the ids win");
    several("--counts", arrays.counts, "numbers of tokens of each expert, in place of scores");
    options.add("--axes", &arrays.axes,
                "the arrays' dimensions, letters of L (layers), N (steps), B (sequences), S (positions), T "
                "(tokens), E (experts), K (choices)");
    options.add("--layers", &arrays.layers, "numbers of the layers, such as 1,2,5-8");
    options.add("--model", &model, "config.json of the model: experts, K, layers, scores, groups, padding");
    options.add("--expert-count", &arrays.expert_count, "E, where ids or tables do not determine it",
                {.check = whole_number(1, 1000000)});
    options.add("--top-k", &arrays.top_k,
                "experts that serve a row: load and fluctuation count them (default 1 for one layer of r)",
                {.check = whole_number(1, 1000000)});
    options.add("--score", &arrays.score, "how logits become scores (default softmax)",
                {.check = one_of("score", {"softmax", "sigmoid", "selected"})});
    several("--selection-bias", arrays.selection_bias,
            "numbers added to scores when experts are selected, or none");
    options.add("--groups", &arrays.groups,
                "experts are selected within the best groups, GROUPS:KEPT such as 4:2");
    options.add("--by-score", &arrays.by_score, "ids come by falling score: the first is the first choice");
    options.add("--dtype", &arrays.dtype, "what 16-bit integers of the files stand for: bfloat16, float16");
    several("--mask", arrays.mask, "1 for tokens that count, 0 for padding; none to count all");
    several("--tokens", arrays.tokens, "ids of the tokens");
    several("--labels", arrays.labels,
            "cluster or domain of each row, sequence or document: integers (n) or names, for sparsity");
    several("--documents", arrays.documents,
            "rows (of a batch), lines, or the document of each row; for intervals");
    several("--lengths", arrays.lengths, "rows of each document, one document after another");
    options.add("--ranks", &arrays.ranks,
                "if several files hold equal batches: count them once (first) or each time (all)",
                {.check = one_of("choice", {"first", "all"})});
    several("--inputs", arrays.inputs, "router inputs (n, d)");
    several("--router", arrays.router, "weights (E, d) of a linear router, for the shuffled baseline");
    several("--embeddings", arrays.embeddings,
            "vectors (n, m) in which overlap and silhouette are measured (default: --inputs)");
    several("--expert-outputs", arrays.expert_outputs, "outputs of every expert (n, E, o)");
    several("--previous-probs", arrays.previous_probs, "an earlier snapshot of --probs, for fluctuation");
    several("--previous-logits", arrays.previous_logits, "an earlier snapshot of --logits, for fluctuation");
    several("--previous-assignments", arrays.previous_assignments,
            "experts of an earlier snapshot, integers (n), or (n, K) with --top-k K, for fluctuation");
    options.add("--neighbours", &arrays.neighbours,
                "neighbours of expert overlap (default 10, or all other rows where they are fewer)",
                {.check = whole_number(1, 1000000)});
    bind_threads(options, arrays.threads, "layers measured at a time (default: one per processor)");
    options.add("--out", &out,
                "folder for tables (CSV), analysis.json, analysis.npz and a page with figures (report.html)");
    options.add("--against", &against,
                "analysis.json of another router on the same documents, which --claim compares with");
    options.add(
        "--claim", &claims,
        "\"METRIC <\" or \"METRIC >\": judge whether the metric is smaller or larger here than there, "
        "paired over documents",
        {.takes_several = true});
    options.add("--figures", &figures, "draw the figures as SVG, PDF and PNG into the folder of --out, too");
    bind_json(options, json);
  }
};

/// Judges the claims of --claim against an analysis.json that --out wrote.
std::vector<ClaimResult> judge_against(const ArrayAnalysis& own, const std::filesystem::path& file,
                                       const std::vector<std::string>& claims) {
  const Json answer = read_json_file(file);
  try {
    return judge_analyses(own, analysis_of(answer), claims, "--against");
  } catch (const Json::exception&) {
    throw UserError("--against", fmt::format("'{}' is no analysis.json of `analyze --out`", file.string()));
  }
}

int analyze(const AnalyzeOptions& options) {
  if (options.against.empty() != options.claims.empty())
    throw UserError(options.claims.empty() ? "--claim" : "--against",
                    "missing; --against and --claim go together");
  if (options.figures && options.out.empty())
    throw UserError("--figures", "needs the folder that --out names");
  if (!options.out.empty()) {
    check_output_folder(options.out, "--out");
    check_written_file(options.out / "analysis.json", "--out");
    if (options.figures) check_output_folder(options.out / "figures", "--out");
  }
  AnalyzedArrays arrays = options.arrays;
  if (!options.model.empty()) arrays.model = read_json_file(options.model);
  const ArrayAnalysis analysis = analyze_arrays(arrays);
  std::vector<ClaimResult> judged;
  if (!options.against.empty()) judged = judge_against(analysis, options.against, options.claims);
  std::vector<std::filesystem::path> written;
  if (!options.out.empty()) written = write_analysis(analysis, options.out, options.figures);
  if (options.json) {
    // Larger matrices of pairs are in the files of --out.
    constexpr int kMostExperts = 64;
    Json answer = to_json(analysis, kMostExperts);
    for (const ClaimResult& claim : judged) answer["claims"].push_back(to_json(claim));
    if (!written.empty()) answer["files"] = file_names(written);
    print_json(answer);
  } else {
    std::cout << to_text(analysis);
    if (!judged.empty()) std::cout << "\n" << claims_text(judged);
    const auto figures = options.out / "figures";
    for (const std::filesystem::path& file : written) {
      if (file.parent_path() != figures) std::cout << "wrote " << file.string() << "\n";
    }
    if (options.figures) std::cout << "drew the figures in " << figures.string() << "\n";
  }
  return 0;
}

}  // namespace

Verb analyze_verb() {
  return make_verb(
      "analyze",
      "Measure a router from files: logits, probabilities, scores, gates, chosen experts or counts",
      "analyze --logits d.safetensors --model config.json --mask d.safetensors:attention_mask", analyze);
}

}  // namespace moelab
