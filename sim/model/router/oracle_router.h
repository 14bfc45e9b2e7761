#pragma once

#include "sim/model/router/router.h"

namespace moelab {

/// γ_e(x) = scale for the expert of the row's true cluster c, e = c mod E, just below 0 for the others: what
/// a router could know at most of the clusters, an upper bound for every comparison. Second choices are a
/// fixed order of the experts for each cluster. Labels come with the data; without them there are no scores.
struct OracleRouterOptions {
  static constexpr bool trainable = true;  ///< there is nothing to freeze
  double scale = 20.0;                     ///< e^-20 is below what soft gates skip by default
  void bind(Fields& fields);
};

/// Where clusters stand for experts: c mod E of a true cluster c.
inline int expert_of_cluster(int cluster, int experts) {
  return static_cast<int>(static_cast<unsigned>(cluster) % static_cast<unsigned>(experts));
}

/// The refusal of data whose rows have no true cluster each.
InvalidOption no_labels_error(const std::string& path, const std::string& given);

}  // namespace moelab
