#pragma once

/// Small models of every registered kind, for tests that each of them must pass.

#include <string>
#include <vector>

#include "sim/model/model.h"
#include "sim/model/network.h"
#include "tests/sim/field_visitor.h"

namespace moelab {

/// The layout, with a small image before its columns where the router reads one.
inline Layout with_image(const ModelOptions& options, Layout layout) {
  if (!options.router.entry().needs_image) return layout;
  layout.image = {.channels = 2, .height = 4, .width = 4};
  layout.input_dim += layout.image.size();
  return layout;
}

/// A named training gating.
struct NamedGating {
  std::string name;
  GatingRule rule;
};

/// The gatings that training must support, and every further registered kind by its example.
inline std::vector<NamedGating> example_gatings() {
  std::vector<NamedGating> gatings = {
      {"soft", SoftGatingOptions{}},
      {"soft, tiny gates skipped", SoftGatingOptions{.skip_below = 0.05}},
      {"top-2, renormalised", TopKGatingOptions{.k = 2, .renormalize = true}},
      {"top-2, raw", TopKGatingOptions{.k = 2, .renormalize = false}},
      {"top-1 of topk, raw", TopKGatingOptions{.k = 1}},
      {"top1", Top1GatingOptions{}},
      {"learnable threshold", TopPGatingOptions{.p = 0.2, .learnable = true, .renormalize = true}},
      {"learnable threshold, raw", TopPGatingOptions{.p = 0.2, .learnable = true, .renormalize = false}},
      {"topp", TopPGatingOptions{.p = 0.2, .learnable = false, .renormalize = true}},
  };
  for (const GatingKind& kind : GatingAxis::table()) {
    bool known = false;
    for (const NamedGating& gating : gatings) known = known || gating.rule.chosen() == kind.name;
    if (!known) gatings.push_back({kind.name, GatingRule::example(kind.name)});
  }
  return gatings;
}

/// Options of a kind. Its fields of that name, and such fields of its choices, are set to a number or to a
/// truth value.
template <class Axis>
OneOf<Axis> with_field(OneOf<Axis> options, const std::string& name, double value) {
  class Setter final : public FieldVisitor {
   public:
    Setter(const std::string& field, double to) : field_(field), to_(to) {}
    void boolean(const About& about, bool& member) override {
      if (about.name == field_) member = to_ != 0;
    }
    void real(const About& about, const Range&, double& member) override {
      if (about.name == field_) member = to_;
    }
    void one_of(const About&, KindChoice& choice) override { choice.bind(*this); }

   private:
    const std::string& field_;
    double to_;
  } setter(name, value);
  options.bind(setter);
  return options;
}

/// A mixture, with attention where the router looks at it.
inline ModelOptions example_model(const RouterOptions& router, const ExpertOptions& expert,
                                  const GatingRule& train_gating, int experts) {
  ModelOptions options;
  options.experts = experts;
  options.router = router;
  options.expert = expert;
  options.gating.train = train_gating;
  if (router.entry().needs_attention) options.attention = AttentionOptions{.heads = 2};
  return options;
}

/// The same of the kinds' examples.
inline ModelOptions model_of_kinds(const std::string& router, const std::string& expert,
                                   const GatingRule& train_gating, int experts) {
  return example_model(RouterOptions::example(router), ExpertOptions::example(expert), train_gating, experts);
}

/// x (n, d) and y (n, o), standard normal or ids; clusters of rows, where a model has given them some.
template <class Real>
struct ExampleBatch {
  ExampleBatch(std::uint64_t seed, int row_count, int input_dim, int output_dim)
      : rows(row_count), x(entries(row_count, input_dim)), y(entries(row_count, output_dim)) {
    Engine engine = Seeds{seed, 0}.stream(Purpose::train_data);
    for (Real& value : x) value = static_cast<Real>(draw_normal(engine));
    for (Real& value : y) value = static_cast<Real>(draw_normal(engine));
  }
  /// Ids x, y (n) below `vocabulary`.
  static ExampleBatch of_ids(std::uint64_t seed, int row_count, int tokens, int vocabulary) {
    ExampleBatch batch(seed, row_count, tokens, tokens);
    Engine engine = Seeds{seed, 0}.stream(Purpose::train_data);
    for (std::vector<Real>* const ids : {&batch.x, &batch.y}) {
      for (Real& id : *ids) id = static_cast<Real>(draw_index(engine, vocabulary));
    }
    return batch;
  }
  int rows;
  std::vector<Real> x;
  std::vector<Real> y;
  std::vector<int> labels = {};

  Samples<Real> samples() const { return {x.data(), labels.empty() ? nullptr : labels.data()}; }
};

}  // namespace moelab
