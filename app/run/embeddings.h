#pragma once

/// From the arrays that a run saved to the projections that its plan asks for.

#include <filesystem>

#include "app/run/results.h"
#include "plots/embedding.h"

namespace moelab {

/// One figure of plan["figures"] of kind "embedding": {id, title, where, arms}. A panel is an arm's first
/// seed that is done, at the last sweep point of `where`: its test rows in the plane of their first two
/// principal components, the first 1000 drawn, each coloured by its likeliest expert where that is one of the
/// seven with most rows. Needs the arrays of "save": ["routing"] in `directory`; throws UserError where they
/// are missing.
Embedding build_embedding(const Json& description, const RunResults& results,
                          const std::filesystem::path& directory);

}  // namespace moelab
