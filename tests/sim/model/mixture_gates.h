#pragma once

/// The gates of mixing measures: as data of moe_regression and as models have them.

#include <string>
#include <vector>

#include "sim/model/measure_places.h"
#include "tests/sim/data/data_of.h"
#include "tests/sim/model/example_model.h"

namespace moelab {

struct MixtureGates {
  std::string name;
  Json data;    ///< router, gating and shared_experts of the data
  Json router;  ///< model.router
  Json gating = {{"kind", "soft"}};
  int shared = 0;
};

inline std::vector<MixtureGates> mixture_gates() {
  const Json linear = {{"kind", "linear"}, {"bias", true}}, sigmoid = {{"kind", "sigmoid"}};
  const Json normalised = {{"kind", "sigmoid"}, {"renormalize", true}};
  return {
      {"linear", {{"router", "linear"}}, linear},
      {"cosine", {{"router", "cosine"}}, {{"kind", "cosine"}}},
      {"perturbed_cosine",
       {{"router", {{"kind", "perturbed_cosine"}, {"tau1", 0.3}, {"tau2", 0.7}}}},
       {{"kind", "perturbed_cosine"}, {"tau1", 0.3}, {"tau2", 0.7}}},
      {"temperature",
       {{"router", {{"kind", "linear"}, {"temperature", 2}}}},
       {{"kind", "linear"}, {"bias", true}, {"temperature", {{"start", 1}, {"learned", true}}}}},
      {"squared_distance", {{"router", "squared_distance"}}, {{"kind", "squared_distance"}, {"bias", true}}},
      {"two_level",
       {{"router", {{"kind", "two_level"}, {"groups", 2}}}},
       {{"kind", "two_level"}, {"groups", 2}, {"bias", true}}},
      {"topk",
       {{"router", "linear"}, {"gating", {{"kind", "topk"}, {"k", 2}}}},
       linear,
       {{"kind", "topk"}, {"k", 2}}},
      {"largest alone",
       {{"router", "linear"}, {"gating", {{"kind", "topk"}, {"k", 1}}}},
       linear,
       {{"kind", "topk"}, {"k", 1}, {"renormalize", true}}},
      {"sigmoid", {{"router", "linear"}, {"gating", "sigmoid"}}, linear, sigmoid},
      {"normalised sigmoid", {{"router", "linear"}, {"gating", normalised}}, linear, normalised},
      {"normalised sigmoid, two shared experts",
       {{"router", "linear"}, {"gating", normalised}, {"shared_experts", 2}},
       linear,
       normalised,
       2},
  };
}

inline ModelOptions mixture_model(const MixtureGates& gates, const Json& expert, int experts) {
  ModelOptions options =
      example_model(resolve_options<RouterOptions>(gates.router), resolve_options<ExpertOptions>(expert),
                    resolve_options<GatingRule>(gates.gating), experts);
  options.shared_experts = gates.shared;
  return options;
}

/// Data in R^dim with a drawn measure.
inline DataOptions mixture_data(const MixtureGates& gates, const Json& expert, int dim, int components,
                                double noise_std = 0.1) {
  Json data = {{"generator", "moe_regression"},
               {"dim", dim},
               {"expert", expert},
               {"noise_std", noise_std},
               {"measure", {{"kind", "drawn"}, {"components", components}, {"bias_std", 1}}}};
  data.update(gates.data);
  return data_of(data);
}

}  // namespace moelab
