#include "sim/model/router/oracle_router.h"

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/model/router/row_draws.h"

namespace moelab {
namespace {

template <class Real>
class OracleRouter final : public Router<Real> {
 public:
  OracleRouter(const OracleRouterOptions& options, const RouterSetting& setting)
      : scale_(static_cast<Real>(options.scale)), experts_(setting.experts) {}

  std::size_t parameter_count() const override { return 0; }
  std::size_t block_size() const override { return 0; }
  void initialize(const Start& /*start*/, Real* /*parameters*/) const override {}
  std::vector<NamedArray<Real>> arrays(const Real* /*parameters*/) const override { return {}; }

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* /*parameters*/,
                             Scratch& /*scratch*/, Real* scores) const override {
    const int* const labels = context.signals.labels;
    if (!labels) throw no_labels_error("model.router.kind", "oracle");
    for (int i = 0; i < context.x.rows; ++i) {
      name_expert(expert_of_cluster(labels[i], experts_), scale_,
                  mixed_bits(static_cast<std::uint64_t>(labels[i])), experts_,
                  scores + entries(i, kernels::padded(experts_)));
    }
    return {};
  }

  void backward(const RouterContext<Real>& context, const Real* /*parameters*/, Scratch& /*scratch*/,
                const RouterGradients<Real>& gradients) const override {
    clear_input_gradient(context, gradients);
  }

 private:
  Real scale_;
  int experts_;
};

}  // namespace

void OracleRouterOptions::bind(Fields& fields) {
  fields.add("scale", scale, at_least(0),
             "score of the cluster's expert; the others are just below 0, in an order of the cluster's own");
}

InvalidOption no_labels_error(const std::string& path, const std::string& given) {
  return {path, fmt::format("got \"{}\", which needs the true cluster of every row: data with one label each",
                            given)};
}

RouterKind oracle_router() {
  RouterKind kind = router_kind<OracleRouterOptions, OracleRouter>(
      "oracle",
      "γ_e(x) = scale for the expert c mod E of the row's true cluster c, else 0: an upper bound for what a "
      "router can know of the clusters; nothing is learned",
      {.scale = 2.0});
  kind.needs_labels = [](const AnyOptions&) { return "kind"; };
  kind.needed = "data with one label a row";
  return kind;
}

}  // namespace moelab
