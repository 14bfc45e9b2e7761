#pragma once

/// Metrics of the experts that tokens were sent to, as sums over documents.
///
/// A metric here is a function of sums that add up over documents, so that a bootstrap over documents costs
/// no second look at the tokens. n tokens of D documents go to K of E experts each; n_e tokens chose expert
/// e, and N = Σ_e n_e. Entropies are in nats, standard deviations have ddof 0.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/stats/intervals.h"
#include "sim/base/arrays.h"
#include "sim/base/random.h"

namespace moelab {

/// The name of a metric here, its definition, and which choices it follows.
struct RoutedMetric {
  const char* name;
  const char* definition;
  const char* follows;  ///< "K choices", "first choice", "r" or ""
};
const std::vector<RoutedMetric>& routed_metrics();

/// What is known of a layer's tokens.
struct RoutedSetting {
  int experts = 1, top_k = 1, clusters = 0, documents = 0;  ///< clusters, documents: 0 where unknown
  bool has_probabilities = false, is_ordered = true;
  bool is_biased = false;       ///< selected by other scores than r
  bool is_over_chosen = false;  ///< r is a softmax over the chosen experts alone
};

/// One token of a layer.
struct RoutedToken {
  const int* experts = nullptr;           ///< (K), −1 for none
  const double* probabilities = nullptr;  ///< r (E), or null
  const double* selection = nullptr;      ///< selection scores (E), or null
  int next = -1;                          ///< the first by selection score that is not chosen, −1 for none
  double entropy = 0;                     ///< H(r)
  int cluster = -1, document = 0, position = -1;
  std::int64_t token = -1;
};

/// Values by name. A metric without a value is absent.
using RoutedValues = std::vector<std::pair<std::string, double>>;

/// Documents that a bootstrap draws again: the places of each domain's documents.
using DocumentStrata = std::vector<std::vector<std::size_t>>;

/// 95 % percentile intervals of functions of sums over documents. `sums` has a row of `width` numbers for
/// each document. Documents are drawn again within their stratum, `times` times, and `values_of` measures the
/// sums of what was drawn. A name that some draw lacks has no interval.
std::map<std::string, Interval> document_intervals(
    std::span<const double> sums, std::size_t width, const DocumentStrata& strata, int times, Engine& engine,
    const std::function<RoutedValues(std::span<const double>)>& values_of);

/// A bootstrap over fewer documents of a domain says nothing.
constexpr int kFewestDocuments = 4;

/// Tables of pairs of experts, and of token ids and experts, are kept up to this many experts.
constexpr int kMostPairedExperts = 4096;

/// The sums of one layer. Tokens are added in order.
class RoutedTokens {
 public:
  explicit RoutedTokens(const RoutedSetting& setting);
  const RoutedSetting& setting() const { return setting_; }

  void add(const RoutedToken& token);
  /// The metrics of `counts` (E), the tokens or selections of each expert. `top_k` is 0 if unknown.
  static RoutedValues of_counts(std::span<const std::int64_t> counts, int top_k);

  RoutedValues values() const;
  /// Why a metric has no value here; empty where it has one or does not apply.
  std::map<std::string, std::string> skipped() const;

  // Vectors, (E) each.
  std::vector<double> load() const;             ///< n_e ÷ N
  std::vector<double> activation_rate() const;  ///< n_e ÷ n
  std::vector<double> top1_load() const;        ///< first choices; empty where they are unknown
  std::vector<double> mean_routing() const;     ///< empty without r
  /// The least and most tokens of each expert where ties leave its choice open; empty without ties.
  std::vector<double> least_tokens() const;
  std::vector<double> most_tokens() const;

  // Matrices.
  Matrix cluster_specialisation() const;  ///< N_ec ÷ N_c (clusters, E): rows sum to K
  Matrix co_activation() const;  ///< n_ij ÷ n_i (E, E); NaN on the diagonal and for experts without tokens
  /// Mean over experts with tokens of the largest entry of a row of co_activation(). None without pairs.
  std::optional<double> mean_co_activation() const;
  /// JS divergence of the mean r of two clusters (clusters, clusters); empty without r.
  Matrix cluster_divergence() const;
  /// |A ∩ B| ÷ |A ∪ B| of the `most` most loaded experts of two clusters.
  Matrix cluster_overlap(int most) const;
  /// The most frequent tokens, and the share of each expert in their first choices.
  std::pair<std::vector<std::int64_t>, Matrix> frequent_tokens(std::size_t most) const;

  /// Whether sums of each document are kept. Very many are too large for it.
  bool is_by_document() const { return is_by_document_; }
  /// The metrics of each document with tokens, by its number. Empty where documents are not kept apart.
  std::vector<std::pair<int, RoutedValues>> document_values() const;
  /// The documents with tokens, by the cluster of most of their tokens; empty where documents are unknown.
  DocumentStrata strata() const;
  /// Intervals of metrics over documents. Empty with less than four documents in a cluster. `fewest` receives
  /// the documents of the smallest cluster.
  std::map<std::string, Interval> intervals(Engine& engine, int times, int& fewest) const;
  /// The values under chance: uniform choices for loads, clusters permuted over documents (over tokens where
  /// documents are not kept apart) for metrics of clusters, and first choices permuted over tokens for
  /// metrics of token ids.
  std::map<std::string, double> chance(Engine& engine) const;

 private:
  /// Places in the sums of a document.
  enum Place : std::size_t {
    kTokens,
    kServed,
    kFirst,
    kEntropy,
    kMargin,
    kMass,
    kSelectionMargin,
    kSelectionRows,
    kPairs,
    kSameFirst,
    kCommon,
    kOthers,
    kUnits
  };
  std::size_t loads_at() const { return kUnits; }
  std::size_t firsts_at() const { return loads_at() + experts(); }
  std::size_t routing_at() const { return firsts_at() + experts(); }
  std::size_t clusters_at() const { return routing_at() + experts(); }
  std::size_t experts() const { return static_cast<std::size_t>(setting_.experts); }
  std::size_t clusters() const { return static_cast<std::size_t>(setting_.clusters); }
  std::size_t size_of_sums() const { return clusters_at() + clusters() * (1 + 2 * experts()); }
  std::span<double> sums_of(int document);
  void add_tie(const RoutedToken& token, std::span<double> sums);

  /// The token ids with their first choices, by number.
  std::vector<std::pair<std::int64_t, std::span<const std::int64_t>>> of_tokens() const;
  RoutedValues values_of(std::span<const double> sums) const;
  /// The metrics of a table of first choices (token ids, E).
  RoutedValues token_values(std::span<const double> counts) const;
  std::map<std::string, double> token_chance(Engine& engine) const;
  std::vector<double> total() const;

  RoutedSetting setting_;
  std::vector<double> sums_;  // (documents, size_of_sums()), one document where they are unknown
  bool is_by_document_ = false;
  Matrix both_;             // (E, E): n_ii, and n_ij = both_(i, j) + both_(j, i); empty for K = 1
  Matrix cluster_routing_;  // Σ r of each cluster (clusters, E)
  std::unordered_map<std::int64_t, std::vector<std::int64_t>>
      of_token_;  // first choices of each token id (E)
  std::vector<int> last_;
  int last_document_ = -1, last_position_ = -1;
  std::int64_t tied_ = 0, tied_first_ = 0, partly_served_ = 0;
  std::vector<double> least_, most_;
  std::vector<int> firsts_, clusters_;  // of tokens with a cluster, where documents are unknown
  std::vector<std::vector<std::int64_t>> document_clusters_;  // tokens of each cluster, by document
};

}  // namespace moelab
