#pragma once

namespace moelab {

/// What the cells of a cluster map hold: the field `value` of a figure of that kind.
inline constexpr const char* kMeanRouting = "routing";       ///< E[r_e(x) | c]
inline constexpr const char* kRouterCosine = "router_rows";  ///< cos(w_e, E[x | c])

}  // namespace moelab
