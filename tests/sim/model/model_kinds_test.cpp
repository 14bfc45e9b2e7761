/// What every model kind and every sequence mixer has to pass, and the tables themselves.

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "app/scenario/schema.h"
#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "tests/sim/model/gradient_check.h"
#include "tests/sim/model/small_transformer.h"

namespace moelab::model_kinds_test {
namespace {

using small_transformer::kSamples;
using small_transformer::kVocabulary;
using small_transformer::own;
using small_transformer::with_mixer;

constexpr int kExperts = 3, kRows = 7;
const Layout kRowLayout{.input_dim = 5, .output_dim = 3};

const Layout& layout_of(const ModelOptions& options) {
  return reads_ids(options) ? small_transformer::kLayout : kRowLayout;
}

/// A small model of a kind, by its example.
ModelOptions example_of(const ModelKind& kind) {
  ModelOptions options = example_model(LinearRouterOptions{}, MlpExpertOptions{.depth = 2, .width = 4},
                                       SoftGatingOptions{}, kExperts);
  options.kind = OneOf<ModelAxis>::example(kind.name);
  return options;
}

/// The fields of a kind, each with its range and names as one text.
std::map<std::string, std::string> fields_of_kind(const ModelKind& kind) {
  std::map<std::string, std::string> texts;
  AnyOptions options = kind.defaults;
  for (const Field& field : fields_of([&](Fields& fields) { options.bind(fields); })) {
    Shape shape = Shape::object({field});
    texts[field.name] = json_schema(shape).at("properties").dump();
  }
  return texts;
}

}  // namespace

TEST_CASE("every model kind: gradients equal central differences, in one layer and in two") {
  for (const ModelKind& kind : ModelAxis::table()) {
    CAPTURE(kind.name);
    for (const int layers : {1, 2}) {
      ModelOptions options = example_of(kind);
      options.layers = layers;
      check_gradients(options, layout_of(options), reads_ids(options) ? kSamples : kRows,
                      reads_ids(options) ? "cross_entropy" : "mse");
    }
  }
}

TEST_CASE("every model kind trains in float, and has as many routers as it says") {
  for (const ModelKind& kind : ModelAxis::table()) {
    CAPTURE(kind.name);
    const ModelOptions options = example_of(kind);
    ExampleModel<float> model(options, layout_of(options), {1, 0});
    CHECK(model.network().has_router() == (mixtures_of(options) > 0));
    if (mixtures_of(options) > 0) CHECK(model.network().layers() == mixtures_of(options));
    LossOptions loss;
    loss.task = reads_ids(options) ? "cross_entropy" : "mse";
    const std::unique_ptr<TaskLoss<float>> task = make_task_loss<float>(loss, reads_ids(options));
    const ExampleBatch<float> batch = model.batch(1, kRows);
    const double before = model.descend(batch, *task, 0.02);
    double after = before;
    for (int step = 0; step < 50; ++step) after = model.descend(batch, *task, 0.02);
    CHECK(after < before);
  }
}

TEST_CASE("fields that two model kinds share have the same range and meaning") {
  std::map<std::string, std::string> known;
  std::set<std::string> shared;
  for (const ModelKind& kind : ModelAxis::table()) {
    for (const auto& field : fields_of_kind(kind)) {
      const auto &name = field.first, &text = field.second;
      const auto [place, is_new] = known.emplace(name, text);
      if (!is_new) shared.insert(name);
      CAPTURE(name);
      CHECK(place->second == text);
    }
  }
  CHECK(shared == std::set<std::string>{"match", "width"});
}

TEST_CASE("a kind of a program's own: fields that it requires, and that others do not have") {
  struct RankOptions {
    int rank = 1;
    void bind(Fields& fields) { fields.required().add("rank", rank, count(), "rank"); }
  };
  ModelKind kind =
      model_kind<RankOptions>("ranked", "a kind of this test", ModelAxis::table()[0].make_blocks);
  kind.mixtures = ModelAxis::table()[0].mixtures;
  const Extended<ModelAxis> extended({kind});
  const auto read = [](const char* text) {
    const Shape shape = shape_of<ModelOptions>();
    return read_options<ModelOptions>(resolve(shape, Json::parse(text), "model"));
  };
  CHECK(read(R"({"kind": "ranked", "rank": 3})").kind.as<RankOptions>()->rank == 3);
  const ModelOptions missing = read(R"({"kind": "ranked"})");
  REQUIRE(missing.refused.size() == 1);
  CHECK(missing.refused[0].path() == "model.rank");
  CHECK(missing.refused[0].message() == "missing; model.kind 'ranked' needs it");
  const ModelOptions misplaced = read(R"({"rank": 3})");
  REQUIRE(misplaced.refused.size() == 1);
  CHECK(misplaced.refused[0].message() == "given, but model.kind is not 'ranked'");
  CHECK(read("{}").refused.empty());
}

TEST_CASE("every sequence mixer: gradients equal central differences") {
  for (const MixerKind& mixer : MixerAxis::table()) {
    CAPTURE(mixer.name);
    for (const bool is_causal : {true, false}) {
      ModelOptions options = with_mixer(mixer);
      options.layers = 2;
      own(options).causal = is_causal;
      check_gradients(options, small_transformer::kLayout, kSamples,
                      is_causal ? "cross_entropy" : "masked_tokens");
    }
  }
}

TEST_CASE("every sequence mixer is causal where it is asked to be, and mixes tokens") {
  for (const MixerKind& mixer : MixerAxis::table()) {
    CAPTURE(mixer.name);
    const ModelOptions options = with_mixer(mixer);
    ExampleModel<double> model(options, small_transformer::kLayout, {1, 0});
    ExampleBatch<double> batch = model.batch(1, 1);
    const std::vector<double> before = model.predict(batch.x, model.network().eval_gating());
    batch.x[2] = batch.x[2] == 0 ? 1 : 0;
    const std::vector<double> after = model.predict(batch.x, model.network().eval_gating());
    for (std::size_t i = 0; i < before.size(); ++i) CHECK((before[i] == after[i]) == (i < 2 * kVocabulary));
  }
}

TEST_CASE("every sequence mixer trains in float") {
  for (const MixerKind& mixer : MixerAxis::table()) {
    CAPTURE(mixer.name);
    ExampleModel<float> model(with_mixer(mixer), small_transformer::kLayout, {1, 0});
    LossOptions loss;
    loss.task = "cross_entropy";
    const std::unique_ptr<TaskLoss<float>> task = make_task_loss<float>(loss, true);
    const ExampleBatch<float> batch = model.batch(1, kRows);
    const double before = model.descend(batch, *task, 0.05);
    double after = before;
    for (int step = 0; step < 50; ++step) after = model.descend(batch, *task, 0.05);
    CHECK(after < 0.9 * before);
  }
}

}  // namespace moelab::model_kinds_test
