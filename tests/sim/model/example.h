#pragma once

/// Small models of every registered kind, for tests that each of them must pass.

#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/random.h"
#include "sim/model/array_places.h"
#include "sim/model/model.h"
#include "sim/model/schema.h"

namespace moelab {

/// The kind with its defaults; required fields get the least value allowed, hidden layers small widths that
/// are no multiple of the padding.
inline Json example_of(const Kind& kind) {
  constexpr int kWidth = 6;
  Json spec = {{"kind", kind.name}};
  for (const Field& field : kind.fields) {
    if (field.name == "width") {
      spec["width"] = kWidth;
    } else if (field.name == "channels") {
      spec["channels"] = Json::array({3, 5});
    } else if (!field.default_value) {
      spec[field.name] = field.shape.type == Shape::Type::boolean ? Json(true) : Json(field.shape.minimum);
    }
  }
  return resolve(Shape::variant({kind}), spec, kind.name);
}

/// The layout, with a small image before its columns where the router of a `model` object reads one.
inline Layout with_image(const Json& spec, Layout layout) {
  if (spec.at("router").at("kind").get<std::string>() != "cnn") return layout;
  layout.image = {.channels = 2, .height = 4, .width = 4};
  layout.input_dim += layout.image.size();
  return layout;
}

/// A named training gating.
struct NamedGating {
  std::string name;
  Json spec;
};

/// The gatings that training must support, and every further registered kind by its defaults.
inline std::vector<NamedGating> example_gatings() {
  std::vector<NamedGating> gatings = {
      {"soft", {{"kind", "soft"}}},
      {"soft, tiny gates skipped", {{"kind", "soft"}, {"skip_below", 0.05}}},
      {"top-2, renormalised", {{"kind", "topk"}, {"k", 2}, {"renormalize", true}}},
      {"top-2, raw", {{"kind", "topk"}, {"k", 2}, {"renormalize", false}}},
      {"top-1 of topk, raw", {{"kind", "topk"}, {"k", 1}}},
      {"top1", {{"kind", "top1"}}},
      {"learnable threshold", {{"kind", "topp"}, {"p", 0.2}, {"learnable", true}, {"renormalize", true}}},
      {"learnable threshold, raw",
       {{"kind", "topp"}, {"p", 0.2}, {"learnable", true}, {"renormalize", false}}},
      {"topp", {{"kind", "topp"}, {"p", 0.2}, {"learnable", false}, {"renormalize", true}}},
  };
  for (const Kind& kind : gating_kinds()) {
    bool known = false;
    for (const NamedGating& gating : gatings) known = known || gating.spec.at("kind") == kind.name;
    if (!known) gatings.push_back({kind.name, example_of(kind)});
  }
  return gatings;
}

inline const Kind& kind_named(const std::vector<Kind>& kinds, const std::string& name) {
  for (const Kind& kind : kinds) {
    if (kind.name == name) return kind;
  }
  throw UserError("kind", "no kind '" + name + "'");
}

/// A resolved `model` object.
inline Json example_model(const Json& router, const Json& expert, const Json& train_gating, int experts) {
  return resolve(model_shape(),
                 {{"kind", "moe"},
                  {"experts", experts},
                  {"router", router},
                  {"expert", expert},
                  {"gating", {{"train", train_gating}, {"eval", "top1"}}}},
                 "model");
}

/// The same by the names of the kinds.
inline Json model_of_kinds(const std::string& router, const std::string& expert, const Json& train_gating,
                           int experts) {
  const std::vector<Kind> routers = router_kinds(), banks = expert_kinds();
  return example_model(example_of(kind_named(routers, router)), example_of(kind_named(banks, expert)),
                       train_gating, experts);
}

inline ArrayPlaces array_places(const Json& spec, int inputs, int outputs) {
  return array_places(spec, Layout{.input_dim = inputs, .output_dim = outputs});
}

/// x (n, d) and y (n, o), standard normal.
template <class Real>
struct ExampleBatch {
  ExampleBatch(std::uint64_t seed, int row_count, int input_dim, int output_dim)
      : rows(row_count),
        x(static_cast<std::size_t>(row_count) * static_cast<std::size_t>(input_dim)),
        y(static_cast<std::size_t>(row_count) * static_cast<std::size_t>(output_dim)) {
    Engine engine = Seeds{seed, 0}.stream(Purpose::train_data);
    for (Real& value : x) value = static_cast<Real>(draw_normal(engine));
    for (Real& value : y) value = static_cast<Real>(draw_normal(engine));
  }
  int rows;
  std::vector<Real> x;
  std::vector<Real> y;
};

}  // namespace moelab
