#pragma once

/// How alike the routings are that cells saved of the same test rows ("save": ["routing"]).

#include <filesystem>
#include <string>
#include <vector>

#include "app/run/results.h"

namespace moelab {

/// One of two routings: where it comes from.
struct RoutingPlace {
  std::string run;  ///< its directory, as given
  std::string arm;
  SweepPoint point;
  bool operator==(const RoutingPlace&) const = default;
};

/// Two places that differ in the run, in the arm or in the sweep point alone, or one place with itself:
/// between its seeds.
struct RoutingAgreement {
  RoutingPlace left, right;
  std::string layer;      ///< "_layer1" in a stack, or empty
  bool of_seeds = false;  ///< pairs are of two seeds, not of one seed in two places
  /// Of each pair, routing_ari and routing_nmi of the likeliest experts and routing_divergence
  /// (analysis/metrics/agreement.h), nats.
  std::vector<double> ari, nmi, divergence;
};

/// A run with its directory as it was given.
struct NamedRun {
  std::string name;
  std::filesystem::path directory;
  RunResults results;
};

/// Every pair of routings with equal test inputs, to the last byte, in the order of runs and tables: at the
/// same seed, and between the seeds of a place where these share their test data. Throws UserError for an
/// array that is missing or damaged.
std::vector<RoutingAgreement> routing_agreements(const std::vector<NamedRun>& runs);

}  // namespace moelab
