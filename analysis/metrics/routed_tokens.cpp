#include "analysis/metrics/routed_tokens.h"

#include <algorithm>
#include <boost/random/binomial_distribution.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "analysis/metrics/agreement.h"
#include "analysis/metrics/routing.h"

namespace moelab {
namespace {

/// Sums of documents are kept apart up to this many numbers.
constexpr std::size_t kMostDocumentSums = std::size_t{1} << 25;
/// Token ids seen less often do not count in token_specialisation.
constexpr double kLeastSeen = 10;
constexpr int kPermutations = 200, kTokenPermutations = 20, kDraws = 200;

const std::string kTooManyExperts =
    "is measured for at most " + std::to_string(kMostPairedExperts) + " experts";

double entropy_of_counts(std::span<const double> counts) {
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  double sum = 0;
  for (const double count : counts) {
    if (count > 0) sum -= count / total * std::log(count / total);
  }
  return sum;
}

bool has_any(std::span<const double> counts) {
  return std::any_of(counts.begin(), counts.end(), [](double count) { return count > 0; });
}

ContingencyTable table_of(std::span<const double> counts, std::size_t rows, std::size_t columns) {
  std::vector<std::size_t> used;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::span<const double> own = counts.subspan(row * columns, columns);
    if (has_any(own)) used.push_back(row);
  }
  ContingencyTable table(static_cast<Eigen::Index>(used.size()), static_cast<Eigen::Index>(columns));
  for (std::size_t i = 0; i < used.size(); ++i) {
    for (std::size_t e = 0; e < columns; ++e)
      table(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(e)) =
          static_cast<std::int64_t>(counts[used[i] * columns + e]);
  }
  return table;
}

/// Σ_e max_c n_ec ÷ Σ n of a table (clusters, E).
double purity_of(std::span<const double> counts, std::size_t clusters, std::size_t experts) {
  double most = 0, all = 0;
  for (std::size_t e = 0; e < experts; ++e) {
    double largest = 0;
    for (std::size_t c = 0; c < clusters; ++c) {
      largest = std::max(largest, counts[c * experts + e]);
      all += counts[c * experts + e];
    }
    most += largest;
  }
  return most / all;
}

/// How many of `draws` uniform draws fall on each of `cells`.
std::vector<double> even_counts(std::int64_t draws, std::size_t cells, Engine& engine) {
  std::vector<double> counts(cells);
  for (std::size_t cell = 0; cell + 1 < cells; ++cell) {
    const auto got = boost::random::binomial_distribution<std::int64_t, double>(
        draws, 1.0 / static_cast<double>(cells - cell))(engine);
    counts[cell] = static_cast<double>(got);
    draws -= got;
  }
  counts.back() = static_cast<double>(draws);
  return counts;
}

/// The metrics of loads (E), which are counts.
void add_loads(std::span<const double> loads, RoutedValues& values) {
  const std::vector<std::int64_t> counts(loads.begin(), loads.end());
  const std::optional<double> violation = expert_load_max_violation(counts);
  if (!violation) return;  // no choices
  const double total = std::accumulate(loads.begin(), loads.end(), 0.0),
               percent = expert_load_std_percent(counts).value();
  std::vector<double> falling(loads.begin(), loads.end());
  std::sort(falling.begin(), falling.end(), std::greater<>());
  values.insert(values.end(),
                {{"expert_load_max_violation", *violation},
                 {"expert_load_max_deviation", expert_load_max_deviation(counts).value()},
                 {"expert_load_std_percent", percent},
                 {"load_coefficient_of_variation", percent / 100 * static_cast<double>(loads.size())},
                 {"load_entropy", entropy_of_counts(loads)},
                 {"unused_experts", static_cast<double>(std::count(counts.begin(), counts.end(), 0))},
                 {"dead_experts_topk", dead_experts_of(counts).value()}});
  for (std::size_t most = 1; most <= 8 && most <= loads.size(); most *= 2)
    values.emplace_back(
        "coverage_" + std::to_string(most),
        std::accumulate(falling.begin(), falling.begin() + static_cast<std::ptrdiff_t>(most), 0.0) / total);
}

/// The probability that two independent uniform sets of K of E experts have no expert in common.
double disjoint_probability(int experts, int k) {
  double value = 1;
  for (int i = 0; i < k && value > 0; ++i) value *= static_cast<double>(experts - k - i) / (experts - i);
  return value;
}

double percentile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const double rest = place - static_cast<double>(below);
  return below + 1 < sorted.size() ? sorted[below] + rest * (sorted[below + 1] - sorted[below])
                                   : sorted[below];
}

}  // namespace

const std::vector<RoutedMetric>& routed_metrics() {
  static const std::vector<RoutedMetric> metrics = {
      {"tokens", "n, tokens that count", ""},
      {"selections", "N, choices of all tokens: the sum of the loads n_e", "K choices"},
      {"expert_load_max_violation", "max n_e / mean n_e - 1", "K choices"},
      {"expert_load_max_deviation", "max |n_e - mean n_e| / mean n_e", "K choices"},
      {"expert_load_std_percent", "standard deviation over experts of 100 n_e / N", "K choices"},
      {"load_coefficient_of_variation", "standard deviation of n_e / mean n_e", "K choices"},
      {"load_entropy", "H(n_e / N), at most ln E", "K choices"},
      {"unused_experts", "experts with n_e = 0", "K choices"},
      {"dead_experts_topk", "share of experts with n_e < N / (10 E)", "K choices"},
      {"coverage_1", "share of the largest load in N", "K choices"},
      {"coverage_2", "share of the 2 largest loads in N", "K choices"},
      {"coverage_4", "share of the 4 largest loads in N", "K choices"},
      {"coverage_8", "share of the 8 largest loads in N", "K choices"},
      {"unserved_share", "share of tokens that no expert serves", "K choices"},
      {"dead_experts_top1", "share of experts that are the first choice of less than n / (10 E) tokens",
       "first choice"},
      {"top1_cluster_purity", "sum over experts of the largest n_ec / sum of n_ec", "first choice"},
      {"top1_cluster_concentration", "mean over clusters of max_e n_ec / n_c", "first choice"},
      {"top1_cluster_ari", "adjusted Rand index of first choices and clusters", "first choice"},
      {"top1_cluster_nmi", "normalised mutual information of first choices and clusters", "first choice"},
      {"dispatch_entropy", "mean over tokens of H(cluster | first choice)", "first choice"},
      {"topk_cluster_purity", "sum over experts of the largest N_ec / N", "K choices"},
      {"token_specialisation", "mean over token ids seen 10 times or more of max_e n_xe / n_x",
       "first choice"},
      {"token_specialisation_all", "mean over all token ids of max_e n_xe / n_x; ids seen once have 1",
       "first choice"},
      {"token_nmi", "normalised mutual information of first choices and token ids", "first choice"},
      {"co_activation", "mean over experts i of max_j n_ij / n_i", "K choices"},
      {"repeat_first", "share of neighbours in a document with the same first choice", "first choice"},
      {"repeat_any", "share of neighbours in a document with a common expert", "K choices"},
      {"routing_entropy", "mean over tokens of H(r)", "r"},
      {"mean_routing_entropy", "H of the mean of r over tokens", "r"},
      {"router_margin", "mean of the largest r less the second largest", "r"},
      {"selected_mass", "mean of the sum of r over the chosen experts", "r"},
      {"selection_margin",
       "mean of the K-th largest selection score less the next one: r, or s + b among allowed experts", "r"},
      {"rows_where_scores_alone_select_others", "share of tokens for which the K largest r are other experts",
       "K choices"},
      {"tied_rows", "tokens whose K-th and next selection scores are equal", "K choices"},
      {"tied_first_rows", "tokens whose two largest selection scores are equal", "first choice"},
      {"any_layer_mismatch",
       "share of tokens whose experts differ from the earlier snapshot's in one layer or more", "K choices"},
      {"load_drift", "half the sum over experts of |n_e / N - the same in the earlier snapshot|",
       "K choices"},
      {"max_violation_change", "expert_load_max_violation less the one of the earlier snapshot",
       "K choices"}};
  return metrics;
}

RoutedTokens::RoutedTokens(const RoutedSetting& setting) : setting_(setting) {
  is_by_document_ = setting_.documents > 0 &&
                    size_of_sums() * static_cast<std::size_t>(setting_.documents) <= kMostDocumentSums;
  sums_.assign(size_of_sums() * (is_by_document_ ? static_cast<std::size_t>(setting_.documents) : 1), 0);
  if (is_by_document_ && setting_.clusters > 0)
    document_clusters_.assign(static_cast<std::size_t>(setting_.documents),
                              std::vector<std::int64_t>(clusters(), 0));
  if (setting_.top_k > 1 && setting_.experts > 1 && setting_.experts <= kMostPairedExperts)
    both_ = Matrix::Zero(setting_.experts, setting_.experts);
  if (setting_.has_probabilities && setting_.clusters > 0)
    cluster_routing_ = Matrix::Zero(setting_.clusters, setting_.experts);
  least_.assign(experts(), 0);
  most_.assign(experts(), 0);
}

std::span<double> RoutedTokens::sums_of(int document) {
  return std::span(sums_).subspan(is_by_document_ ? static_cast<std::size_t>(document) * size_of_sums() : 0,
                                  size_of_sums());
}

void RoutedTokens::add_tie(const RoutedToken& token, std::span<double> sums) {
  // The selection scores around the K-th tell ties, and how clear the choice is.
  const std::size_t k = static_cast<std::size_t>(setting_.top_k), count = experts();
  const int* const chosen = token.experts;
  const double* const scores = token.selection;
  if (chosen[k - 1] < 0) return;
  const double edge = scores[chosen[k - 1]];
  const bool is_tied = token.next >= 0 && scores[token.next] == edge;
  if (is_tied) {
    ++tied_;
    for (std::size_t e = 0; e < count; ++e) {
      if (scores[e] > edge) ++least_[e];
      if (scores[e] >= edge) ++most_[e];
    }
  } else {
    for (std::size_t j = 0; j < k; ++j) {
      ++least_[static_cast<std::size_t>(chosen[j])];
      ++most_[static_cast<std::size_t>(chosen[j])];
    }
  }
  const int second = k > 1 ? chosen[1] : token.next;
  if (second >= 0 && scores[second] == scores[chosen[0]]) ++tied_first_;
  if (k >= count || !token.probabilities) return;
  if (!setting_.is_biased) {
    // Without a bias the margin is one of r.
    const double* const r = token.probabilities;
    sums[kSelectionMargin] += r[chosen[k - 1]] - (token.next >= 0 ? r[token.next] : 0);
    ++sums[kSelectionRows];
  } else if (token.next >= 0) {
    sums[kSelectionMargin] += edge - scores[token.next];
    ++sums[kSelectionRows];
  }
}

void RoutedTokens::add(const RoutedToken& token) {
  const std::span<double> sums = sums_of(token.document);
  const std::size_t k = static_cast<std::size_t>(setting_.top_k), count = experts();
  ++sums[kTokens];
  const int* const chosen = token.experts;
  const std::size_t cluster = token.cluster >= 0 ? static_cast<std::size_t>(token.cluster) : 0;
  const bool has_cluster = token.cluster >= 0 && setting_.clusters > 0;
  double* const of_cluster = has_cluster ? &sums[clusters_at() + cluster * (1 + 2 * count)] : nullptr;
  if (of_cluster) {
    ++of_cluster[0];
    if (is_by_document_) ++document_clusters_[static_cast<std::size_t>(token.document)][cluster];
  }
  std::size_t served = 0;
  for (std::size_t j = 0; j < k; ++j) {
    if (chosen[j] < 0) continue;
    ++served;
    ++sums[loads_at() + static_cast<std::size_t>(chosen[j])];
    if (of_cluster) ++of_cluster[1 + static_cast<std::size_t>(chosen[j])];
  }
  if (served > 0) ++sums[kServed];
  if (served < k) ++partly_served_;
  const bool knows_first = setting_.is_ordered && chosen[0] >= 0;
  if (knows_first) {
    ++sums[kFirst];
    ++sums[firsts_at() + static_cast<std::size_t>(chosen[0])];
    if (of_cluster) ++of_cluster[1 + count + static_cast<std::size_t>(chosen[0])];
    if (token.token >= 0 && setting_.experts <= kMostPairedExperts) {
      std::vector<std::int64_t>& of_token = of_token_[token.token];
      of_token.resize(count, 0);
      ++of_token[static_cast<std::size_t>(chosen[0])];
    }
  }
  if (!is_by_document_ && has_cluster && setting_.is_ordered) {
    firsts_.push_back(chosen[0]);
    clusters_.push_back(token.cluster);
  }
  if (both_.size() > 0) {
    for (std::size_t i = 0; i < k; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        if (chosen[i] >= 0 && chosen[j] >= 0) ++both_(chosen[i], chosen[j]);
      }
    }
  }
  if (token.position >= 0 && last_document_ == token.document && last_position_ + 1 == token.position) {
    ++sums[kPairs];
    if (setting_.is_ordered && chosen[0] >= 0 && last_[0] == chosen[0]) ++sums[kSameFirst];
    const bool has_common = std::any_of(chosen, chosen + k, [&](int expert) {
      return expert >= 0 && std::find(last_.begin(), last_.end(), expert) != last_.end();
    });
    if (has_common) ++sums[kCommon];
  }
  last_.assign(chosen, chosen + k);
  last_document_ = token.document;
  last_position_ = token.position;
  if (token.selection && served > 0) add_tie(token, sums);
  if (!token.probabilities) return;
  const double* const r = token.probabilities;
  sums[kEntropy] += token.entropy;
  const Eigen::Map<const Vector> all(r, setting_.experts);
  Eigen::Map<Vector>(&sums[routing_at()], setting_.experts) += all;
  if (has_cluster) cluster_routing_.row(static_cast<Eigen::Index>(cluster)) += all.transpose();
  double first = 0, second = 0;
  if (token.selection && !setting_.is_biased && chosen[0] >= 0) {
    // The scores and r have the same order.
    const int after = k > 1 ? chosen[1] : token.next;
    first = r[chosen[0]];
    if (after >= 0) second = r[after];
  } else {
    for (std::size_t e = 0; e < count; ++e) {
      second = std::max(second, std::min(first, r[e]));
      first = std::max(first, r[e]);
    }
  }
  sums[kMargin] += first - second;
  double mass = 0, least = std::numeric_limits<double>::infinity();
  for (std::size_t j = 0; j < k; ++j) {
    if (chosen[j] < 0) continue;
    mass += r[chosen[j]];
    least = std::min(least, r[chosen[j]]);
  }
  sums[kMass] += mass;
  if (setting_.is_biased) {
    for (std::size_t e = 0; e < count; ++e) {
      if (r[e] > least && std::find(chosen, chosen + k, static_cast<int>(e)) == chosen + k) {
        ++sums[kOthers];
        break;
      }
    }
  }
}

std::vector<std::pair<std::int64_t, std::span<const std::int64_t>>> RoutedTokens::of_tokens() const {
  std::vector<std::pair<std::int64_t, std::span<const std::int64_t>>> sorted(of_token_.begin(),
                                                                             of_token_.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& left, const auto& right) { return left.first < right.first; });
  return sorted;
}

std::vector<double> RoutedTokens::total() const {
  std::vector<double> all(size_of_sums(), 0);
  for (std::size_t at = 0; at < sums_.size(); ++at) all[at % all.size()] += sums_[at];
  return all;
}

RoutedValues RoutedTokens::values_of(std::span<const double> sums) const {
  RoutedValues values;
  const std::size_t count = experts();
  const double tokens = sums[kTokens];
  const std::span<const double> loads = sums.subspan(loads_at(), count),
                                firsts = sums.subspan(firsts_at(), count);
  values.emplace_back("tokens", tokens);
  values.emplace_back("selections", std::accumulate(loads.begin(), loads.end(), 0.0));
  add_loads(loads, values);
  values.emplace_back("unserved_share", 1 - sums[kServed] / tokens);
  if (setting_.is_ordered && sums[kFirst] > 0) {
    const auto dead = std::count_if(firsts.begin(), firsts.end(), [&](double load) {
      return 10 * static_cast<double>(count) * load < tokens;
    });
    values.emplace_back("dead_experts_top1", static_cast<double>(dead) / static_cast<double>(count));
  }
  if (setting_.clusters > 0) {
    std::vector<double> chosen, first;
    for (std::size_t c = 0; c < clusters(); ++c) {
      const std::span<const double> own = sums.subspan(clusters_at() + c * (1 + 2 * count), 1 + 2 * count);
      chosen.insert(chosen.end(), own.begin() + 1, own.begin() + 1 + static_cast<std::ptrdiff_t>(count));
      first.insert(first.end(), own.begin() + 1 + static_cast<std::ptrdiff_t>(count), own.end());
    }
    if (has_any(first)) {
      const ContingencyTable table = table_of(first, clusters(), count);
      double concentration = 0;
      for (Eigen::Index c = 0; c < table.rows(); ++c)
        concentration +=
            static_cast<double>(table.row(c).maxCoeff()) / static_cast<double>(table.row(c).sum());
      values.emplace_back("top1_cluster_purity", purity_of(first, clusters(), count));
      values.emplace_back("top1_cluster_concentration", concentration / static_cast<double>(table.rows()));
      values.emplace_back("top1_cluster_ari", adjusted_rand_index(table).value_or(0));
      values.emplace_back("top1_cluster_nmi", normalized_mutual_information(table).value_or(0));
      values.emplace_back("dispatch_entropy", moelab::dispatch_entropy(table).value_or(0));
    }
    if (has_any(chosen)) values.emplace_back("topk_cluster_purity", purity_of(chosen, clusters(), count));
  }
  if (sums[kPairs] > 0 && partly_served_ == 0) {
    if (setting_.is_ordered) values.emplace_back("repeat_first", sums[kSameFirst] / sums[kPairs]);
    values.emplace_back("repeat_any", sums[kCommon] / sums[kPairs]);
  }
  if (setting_.has_probabilities) {
    std::vector<double> mean(count);
    for (std::size_t e = 0; e < count; ++e) mean[e] = sums[routing_at() + e] / tokens;
    values.emplace_back("routing_entropy", sums[kEntropy] / tokens);
    values.emplace_back("mean_routing_entropy", entropy(mean));
    if (count > 1) values.emplace_back("router_margin", sums[kMargin] / tokens);
    // Of chosen experts alone the mass is 1, and there is no next probability.
    if (!setting_.is_over_chosen) values.emplace_back("selected_mass", sums[kMass] / tokens);
    if (!setting_.is_over_chosen && sums[kSelectionRows] > 0)
      values.emplace_back("selection_margin", sums[kSelectionMargin] / sums[kSelectionRows]);
    if (setting_.is_biased)
      values.emplace_back("rows_where_scores_alone_select_others", sums[kOthers] / tokens);
  }
  return values;
}

RoutedValues RoutedTokens::token_values(std::span<const double> counts) const {
  double often = 0, all = 0;
  std::size_t many = 0;
  const std::size_t ids = counts.size() / experts();
  for (std::size_t id = 0; id < ids; ++id) {
    const std::span<const double> own = counts.subspan(id * experts(), experts());
    const double seen = std::accumulate(own.begin(), own.end(), 0.0),
                 share = *std::max_element(own.begin(), own.end()) / seen;
    all += share;
    if (seen >= kLeastSeen) {
      often += share;
      ++many;
    }
  }
  RoutedValues values;
  if (many > 0) values.emplace_back("token_specialisation", often / static_cast<double>(many));
  values.emplace_back("token_specialisation_all", all / static_cast<double>(ids));
  values.emplace_back("token_nmi",
                      normalized_mutual_information(table_of(counts, ids, experts())).value_or(0));
  return values;
}

RoutedValues RoutedTokens::values() const {
  RoutedValues values = values_of(total());
  if (!of_token_.empty()) {
    std::vector<double> counts;
    for (const auto& [token, own] : of_tokens()) counts.insert(counts.end(), own.begin(), own.end());
    const RoutedValues of_ids = token_values(counts);
    values.insert(values.end(), of_ids.begin(), of_ids.end());
  }
  if (const std::optional<double> mean = mean_co_activation()) values.emplace_back("co_activation", *mean);
  if (std::any_of(most_.begin(), most_.end(), [](double tokens) { return tokens > 0; })) {
    values.emplace_back("tied_rows", static_cast<double>(tied_));
    values.emplace_back("tied_first_rows", static_cast<double>(tied_first_));
  }
  return values;
}

std::map<std::string, std::string> RoutedTokens::skipped() const {
  std::map<std::string, std::string> reasons;
  std::set<std::string> found;
  for (const auto& [name, value] : values()) found.insert(name);
  const std::vector<double> sums = total();
  for (const RoutedMetric& metric : routed_metrics()) {
    const std::string name = metric.name;
    if (found.contains(name)) continue;
    std::string why;
    if (name.starts_with("repeat")) {
      why = partly_served_ > 0  ? "some tokens have less than K experts"
            : sums[kPairs] == 0 ? "needs --documents or --lengths"
                                : "needs --by-score";
    } else if (name.find("cluster") != std::string::npos || name == "dispatch_entropy") {
      why = setting_.clusters == 0 ? "needs --labels"
            : setting_.is_ordered || name == "topk_cluster_purity"
                ? "no token with a label has an expert"
                : "needs --by-score: ids in another order do not tell the first choice";
    } else if (name.starts_with("token_")) {
      why =
          setting_.experts > kMostPairedExperts ? kTooManyExperts
          : of_token_.empty()
              ? (setting_.is_ordered ? "needs --tokens"
                                     : "needs --by-score: ids in another order do not tell the first choice")
              : "no token id is seen 10 times";
    } else if (std::string_view(metric.follows) == "first choice" && !setting_.is_ordered) {
      why = "needs --by-score: ids in another order do not tell the first choice";
    } else if (std::string_view(metric.follows) == "r" && !setting_.has_probabilities) {
      why = "needs --logits, --probs or --scores: sets do not tell r";
    } else if (setting_.is_over_chosen && (name == "selected_mass" || name == "selection_margin")) {
      why = "r is over the chosen experts alone";
    } else if (name == "co_activation") {
      why = setting_.top_k > 1 && setting_.experts > 1 ? kTooManyExperts : "needs --top-k above 1";
    } else {
      continue;
    }
    reasons[name] = why;
  }
  return reasons;
}

RoutedValues RoutedTokens::of_counts(std::span<const std::int64_t> counts, int top_k) {
  RoutedValues values;
  const std::vector<double> loads(counts.begin(), counts.end());
  const double total = std::accumulate(loads.begin(), loads.end(), 0.0);
  if (top_k > 0) values.emplace_back("tokens", total / top_k);
  values.emplace_back("selections", total);
  add_loads(loads, values);
  // Counts do not tell first choices, so `dead_experts` counts all of them.
  const auto dead = std::find_if(values.begin(), values.end(),
                                 [](const auto& value) { return value.first == "dead_experts_topk"; });
  if (dead != values.end()) values.emplace_back("dead_experts", dead->second);
  return values;
}

namespace {

std::vector<double> scaled(std::span<const double> values, double by) {
  std::vector<double> all(values.begin(), values.end());
  for (double& value : all) value = by > 0 ? value / by : 0;
  return all;
}

}  // namespace

std::vector<double> RoutedTokens::load() const {
  const std::vector<double> sums = total();
  const std::span<const double> loads = std::span(sums).subspan(loads_at(), experts());
  return scaled(loads, std::accumulate(loads.begin(), loads.end(), 0.0));
}

std::vector<double> RoutedTokens::activation_rate() const {
  const std::vector<double> sums = total();
  return scaled(std::span(sums).subspan(loads_at(), experts()), sums[kTokens]);
}

std::vector<double> RoutedTokens::top1_load() const {
  const std::vector<double> sums = total();
  if (!setting_.is_ordered) return {};
  return scaled(std::span(sums).subspan(firsts_at(), experts()), sums[kFirst]);
}

std::vector<double> RoutedTokens::mean_routing() const {
  const std::vector<double> sums = total();
  if (!setting_.has_probabilities) return {};
  return scaled(std::span(sums).subspan(routing_at(), experts()), sums[kTokens]);
}

std::vector<double> RoutedTokens::least_tokens() const {
  return tied_ > 0 ? least_ : std::vector<double>();
}

std::vector<double> RoutedTokens::most_tokens() const {
  return tied_ > 0 ? most_ : std::vector<double>();
}

Matrix RoutedTokens::cluster_specialisation() const {
  const std::vector<double> sums = total();
  Matrix shares = Matrix::Zero(setting_.clusters, setting_.experts);
  for (Eigen::Index c = 0; c < shares.rows(); ++c) {
    const double* const own = &sums[clusters_at() + static_cast<std::size_t>(c) * (1 + 2 * experts())];
    for (Eigen::Index e = 0; e < shares.cols() && own[0] > 0; ++e) shares(c, e) = own[1 + e] / own[0];
  }
  return shares;
}

Matrix RoutedTokens::co_activation() const {
  Matrix shares = both_;
  for (Eigen::Index i = 0; i < shares.rows(); ++i) {
    const double of = both_(i, i);
    for (Eigen::Index j = 0; j < shares.cols(); ++j)
      shares(i, j) =
          i == j || of == 0 ? std::numeric_limits<double>::quiet_NaN() : (both_(i, j) + both_(j, i)) / of;
  }
  return shares;
}

std::optional<double> RoutedTokens::mean_co_activation() const {
  const Matrix shares = co_activation();
  double sum = 0;
  int used = 0;
  for (Eigen::Index i = 0; i < shares.rows(); ++i) {
    double most = -1;
    for (const double share : shares.row(i)) {
      if (!std::isnan(share)) most = std::max(most, share);
    }
    if (most < 0) continue;
    sum += most;
    ++used;
  }
  if (used == 0) return std::nullopt;
  return sum / used;
}

Matrix RoutedTokens::cluster_divergence() const {
  if (cluster_routing_.size() == 0) return {};
  Matrix means = cluster_routing_, divergences = Matrix::Zero(means.rows(), means.rows());
  for (Eigen::Index c = 0; c < means.rows(); ++c) means.row(c) /= std::max(means.row(c).sum(), 1e-300);
  for (Eigen::Index a = 0; a < means.rows(); ++a) {
    for (Eigen::Index b = 0; b < means.rows(); ++b)
      if (a != b)
        divergences(a, b) = jensen_shannon_divergence(means.row(a).transpose(), means.row(b).transpose());
  }
  return divergences;
}

Matrix RoutedTokens::cluster_overlap(int most) const {
  const Matrix shares = cluster_specialisation();
  std::vector<std::set<int>> best;
  for (Eigen::Index c = 0; c < shares.rows(); ++c) {
    std::vector<int> order(experts());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return shares(c, a) > shares(c, b); });
    best.emplace_back(order.begin(), order.begin() + std::min<std::ptrdiff_t>(most, std::ssize(order)));
  }
  Matrix overlap(shares.rows(), shares.rows());
  for (std::size_t a = 0; a < best.size(); ++a) {
    for (std::size_t b = 0; b < best.size(); ++b) {
      const auto common = static_cast<double>(
          std::count_if(best[a].begin(), best[a].end(), [&](int e) { return best[b].contains(e); }));
      overlap(static_cast<Eigen::Index>(a), static_cast<Eigen::Index>(b)) =
          common / (static_cast<double>(best[a].size() + best[b].size()) - common);
    }
  }
  return overlap;
}

std::pair<std::vector<std::int64_t>, Matrix> RoutedTokens::frequent_tokens(std::size_t most) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> seen;
  for (const auto& [token, counts] : of_tokens())
    seen.emplace_back(-std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), token);
  std::sort(seen.begin(), seen.end());
  seen.resize(std::min(seen.size(), most));
  std::vector<std::int64_t> ids;
  Matrix shares(static_cast<Eigen::Index>(seen.size()), setting_.experts);
  for (const auto& [count, token] : seen) {
    const std::vector<std::int64_t>& counts = of_token_.at(token);
    for (std::size_t e = 0; e < experts(); ++e)
      shares(static_cast<Eigen::Index>(ids.size()), static_cast<Eigen::Index>(e)) =
          static_cast<double>(counts[e]) / -static_cast<double>(count);
    ids.push_back(token);
  }
  return {ids, shares};
}

std::map<std::string, Interval> document_intervals(
    std::span<const double> sums, std::size_t width, const DocumentStrata& strata, int times, Engine& engine,
    const std::function<RoutedValues(std::span<const double>)>& values_of) {
  std::map<std::string, std::vector<double>> drawn;
  std::vector<double> total(width);
  for (int t = 0; t < times; ++t) {
    std::fill(total.begin(), total.end(), 0);
    for (const std::vector<std::size_t>& own : strata) {
      for (std::size_t i = 0; i < own.size(); ++i) {
        const std::size_t picked =
            own[static_cast<std::size_t>(draw_index(engine, static_cast<int>(own.size())))];
        const double* const from = &sums[picked * width];
        for (std::size_t at = 0; at < width; ++at) total[at] += from[at];
      }
    }
    for (const auto& [name, value] : values_of(total)) drawn[name].push_back(value);
  }
  std::map<std::string, Interval> intervals;
  for (auto& [name, values] : drawn) {
    if (values.size() != static_cast<std::size_t>(times)) continue;
    std::sort(values.begin(), values.end());
    intervals[name] = {percentile(values, 0.025), percentile(values, 0.975)};
  }
  return intervals;
}

std::vector<std::pair<int, RoutedValues>> RoutedTokens::document_values() const {
  std::vector<std::pair<int, RoutedValues>> documents;
  for (int d = 0; is_by_document_ && d < setting_.documents; ++d) {
    const std::span<const double> sums =
        std::span(sums_).subspan(static_cast<std::size_t>(d) * size_of_sums(), size_of_sums());
    if (sums[kTokens] > 0) documents.emplace_back(d, values_of(sums));
  }
  return documents;
}

DocumentStrata RoutedTokens::strata() const {
  std::map<std::size_t, std::vector<std::size_t>> by_cluster;
  for (std::size_t d = 0; is_by_document_ && d < static_cast<std::size_t>(setting_.documents); ++d) {
    if (sums_[d * size_of_sums() + kTokens] == 0) continue;
    std::size_t cluster = 0;
    if (!document_clusters_.empty())
      cluster = static_cast<std::size_t>(
          std::max_element(document_clusters_[d].begin(), document_clusters_[d].end()) -
          document_clusters_[d].begin());
    by_cluster[cluster].push_back(d);
  }
  DocumentStrata strata;
  for (auto& [cluster, own] : by_cluster) strata.push_back(std::move(own));
  return strata;
}

std::map<std::string, Interval> RoutedTokens::intervals(Engine& engine, int times, int& fewest) const {
  fewest = 0;
  if (!is_by_document_) return {};
  const DocumentStrata drawn = strata();
  fewest = setting_.documents;
  for (const std::vector<std::size_t>& own : drawn) fewest = std::min(fewest, static_cast<int>(own.size()));
  if (fewest < kFewestDocuments) return {};
  std::map<std::string, Interval> intervals =
      document_intervals(sums_, size_of_sums(), drawn, times, engine,
                         [&](std::span<const double> sums) { return values_of(sums); });
  intervals.erase("tokens");
  intervals.erase("selections");
  return intervals;
}

std::map<std::string, double> RoutedTokens::token_chance(Engine& engine) const {
  std::vector<int> firsts;
  std::vector<std::size_t> seen;
  for (const auto& [token, own] : of_tokens()) {
    seen.push_back(0);
    for (std::size_t e = 0; e < experts(); ++e) {
      firsts.insert(firsts.end(), static_cast<std::size_t>(own[e]), static_cast<int>(e));
      seen.back() += static_cast<std::size_t>(own[e]);
    }
  }
  std::map<std::string, double> chance;
  std::vector<double> counts;
  for (int t = 0; t < kTokenPermutations; ++t) {
    shuffle(engine, firsts);
    counts.assign(seen.size() * experts(), 0);
    std::size_t at = 0;
    for (std::size_t id = 0; id < seen.size(); ++id) {
      for (const std::size_t last = at + seen[id]; at < last; ++at)
        ++counts[id * experts() + static_cast<std::size_t>(firsts[at])];
    }
    for (const auto& [name, value] : token_values(counts)) chance[name] += value / kTokenPermutations;
  }
  return chance;
}

std::map<std::string, double> RoutedTokens::chance(Engine& engine) const {
  const std::vector<double> sums = total();
  const int count = setting_.experts, k = setting_.top_k;
  std::map<std::string, double> chance;
  if (count < 2) return chance;
  // Loads of as many uniform draws.
  const std::span<const double> loads = std::span(sums).subspan(loads_at(), experts());
  const auto selections = static_cast<std::int64_t>(std::accumulate(loads.begin(), loads.end(), 0.0));
  std::map<std::string, double> mean;
  for (int draw = 0; draw < kDraws && selections > 0; ++draw) {
    RoutedValues of_draw;
    add_loads(even_counts(selections, experts(), engine), of_draw);
    for (const auto& [name, value] : of_draw) mean[name] += value / kDraws;
  }
  chance = mean;
  // Of an even router's tokens of one expert, the largest share that one other expert gets. K − 1 of the
  // other E − 1 experts are drawn without putting back, so counts vary less than sums of single draws.
  const auto tokens_of_one = static_cast<std::int64_t>(std::llround(static_cast<double>(selections) / count));
  if (both_.size() > 0 && count == 2) chance["co_activation"] = 1;
  if (both_.size() > 0 && count > 2 && tokens_of_one > 0) {
    const double share = static_cast<double>(k - 1) / (count - 1),
                 shrunk = std::sqrt(static_cast<double>(count - k) / (count - 2));
    Engine own = engine;  // draws of the other levels stay as they are
    double sum = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      const std::vector<double> drawn = even_counts(tokens_of_one * (k - 1), experts() - 1, own);
      const double most = *std::max_element(drawn.begin(), drawn.end()) / static_cast<double>(tokens_of_one);
      sum += share + (most - share) * shrunk;
    }
    chance["co_activation"] = std::min(1.0, sum / kDraws);
  }
  if (sums[kPairs] > 0) {
    chance["repeat_first"] = 1.0 / count;
    chance["repeat_any"] = 1 - disjoint_probability(count, k);
  }
  if (!of_token_.empty()) {
    Engine own = engine;
    chance.merge(token_chance(own));
  }
  if (setting_.clusters < 2) return chance;
  // Clusters permuted over documents, or over tokens. What has no cluster keeps none.
  std::map<std::string, double> permuted;
  if (is_by_document_) {
    const std::size_t width = 1 + 2 * experts();
    std::vector<std::size_t> cluster_of;  // of each document with tokens of a cluster
    std::vector<double> own_sums;         // tokens, loads and first choices of these documents
    for (std::size_t d = 0; d < document_clusters_.size(); ++d) {
      const std::vector<std::int64_t>& own = document_clusters_[d];
      const auto most = std::max_element(own.begin(), own.end());
      if (*most == 0) continue;
      cluster_of.push_back(static_cast<std::size_t>(most - own.begin()));
      own_sums.resize(own_sums.size() + width, 0);
      double* const to = &own_sums[own_sums.size() - width];
      const double* const from = &sums_[d * size_of_sums() + clusters_at()];
      for (std::size_t at = 0; at < clusters() * width; ++at) to[at % width] += from[at];
    }
    for (int t = 0; t < kPermutations && !cluster_of.empty(); ++t) {
      const std::vector<int> order = draw_permutation(engine, static_cast<int>(cluster_of.size()));
      std::vector<double> mixed = sums;
      std::fill(mixed.begin() + static_cast<std::ptrdiff_t>(clusters_at()), mixed.end(), 0);
      for (std::size_t i = 0; i < cluster_of.size(); ++i) {
        const std::size_t cluster = cluster_of[static_cast<std::size_t>(order[i])];
        for (std::size_t at = 0; at < width; ++at)
          mixed[clusters_at() + cluster * width + at] += own_sums[i * width + at];
      }
      for (const auto& [name, value] : values_of(mixed)) {
        if (name.find("cluster") != std::string::npos || name == "dispatch_entropy")
          permuted[name] += value / kPermutations;
      }
    }
  } else if (!firsts_.empty()) {
    std::vector<int> shuffled = clusters_;
    for (int t = 0; t < kTokenPermutations; ++t) {
      shuffle(engine, shuffled);
      std::vector<double> counts(clusters() * experts(), 0);
      for (std::size_t i = 0; i < shuffled.size(); ++i) {
        if (firsts_[i] >= 0)
          ++counts[static_cast<std::size_t>(shuffled[i]) * experts() + static_cast<std::size_t>(firsts_[i])];
      }
      const ContingencyTable table = table_of(counts, clusters(), experts());
      permuted["top1_cluster_purity"] += purity_of(counts, clusters(), experts()) / kTokenPermutations;
      permuted["top1_cluster_nmi"] += normalized_mutual_information(table).value_or(0) / kTokenPermutations;
      permuted["top1_cluster_ari"] += adjusted_rand_index(table).value_or(0) / kTokenPermutations;
    }
  }
  chance.insert(permuted.begin(), permuted.end());
  return chance;
}

}  // namespace moelab
