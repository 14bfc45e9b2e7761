#pragma once

/// Transformers among the models that options describe.

#include "sim/model/model_options.h"

namespace moelab {

/// What a transformer cannot have of other models, and they of it. Throws InvalidOption at "model.…".
void check_transformer(const ModelOptions& options);
/// Routers that cannot work in a transformer. Throws InvalidOption at "model.router.…".
void check_transformer_router(const ModelOptions& options);

/// Experts of a mixture; of a transformer, unless given, networks of depth 2 and width `feed_forward`.
ExpertOptions expert_of(const ModelOptions& options);
/// The network of a transformer's layer without a router; with `match`, as wide as to have about as many
/// parameters as the mixture that the other fields describe: those of the router and all experts (`total`),
/// or of as many experts as a row is sent to at most (`active`).
ExpertOptions transformer_network(const ModelOptions& options);

}  // namespace moelab
