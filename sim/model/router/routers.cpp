#include "sim/base/error.h"
#include "sim/model/router/adaptive_clustering_router.h"
#include "sim/model/router/cnn_router.h"
#include "sim/model/router/cosine_router.h"
#include "sim/model/router/linear_router.h"
#include "sim/model/router/mlp_router.h"
#include "sim/model/router/router.h"
#include "sim/model/router/stable_router.h"

namespace moelab {
namespace {

struct Entry {
  Kind kind;
  std::unique_ptr<Router<float>> (*make_float)(const Json&, const Layout&, int);
  std::unique_ptr<Router<double>> (*make_double)(const Json&, const Layout&, int);
};

/// The table of routers: adding one is a new file and a line here.
const std::vector<Entry>& entries() {
  static const std::vector<Entry> table = {
      {linear_router_kind(), make_linear_router<float>, make_linear_router<double>},
      {mlp_router_kind(), make_mlp_router<float>, make_mlp_router<double>},
      {cnn_router_kind(), make_cnn_router<float>, make_cnn_router<double>},
      {adaptive_clustering_router_kind(), make_adaptive_clustering_router<float>,
       make_adaptive_clustering_router<double>},
      {stable_router_kind(), make_stable_router<float>, make_stable_router<double>},
      {cosine_router_kind(), make_cosine_router<float>, make_cosine_router<double>},
      {perturbed_cosine_router_kind(), make_cosine_router<float>, make_cosine_router<double>},
  };
  return table;
}

const Entry& find(const Json& spec) {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) {
    if (spec.at("kind") == entry.kind.name) return entry;
    names.push_back(entry.kind.name);
  }
  throw UserError("model.router.kind", unknown_name("router", spec.at("kind").get<std::string>(), names));
}

}  // namespace

std::vector<Kind> router_kinds() {
  std::vector<Kind> kinds;
  for (const Entry& entry : entries()) kinds.push_back(entry.kind);
  return kinds;
}

template <>
std::unique_ptr<Router<float>> make_router<float>(const Json& spec, const Layout& layout, int experts) {
  return find(spec).make_float(spec, layout, experts);
}
template <>
std::unique_ptr<Router<double>> make_router<double>(const Json& spec, const Layout& layout, int experts) {
  return find(spec).make_double(spec, layout, experts);
}

}  // namespace moelab
