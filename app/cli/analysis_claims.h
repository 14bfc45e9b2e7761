#pragma once

/// Claims on two analyses of the same documents.

#include <string>
#include <vector>

#include "analysis/stats/claims.h"
#include "app/cli/analyze.h"

namespace moelab {

/// Judges claims such as "routing_entropy <": the metric is smaller here than in the other analysis. The
/// operators are < and >. Documents are the pairs, so each layer is a point with its paired t interval. The
/// two models may differ in everything but the documents. Throws UserError at `option` for other documents,
/// for layers that differ, and for unknown metrics.
std::vector<ClaimResult> judge_analyses(const ArrayAnalysis& own, const ArrayAnalysis& other,
                                        const std::vector<std::string>& claims, const std::string& option);

}  // namespace moelab
