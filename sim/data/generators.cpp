#include "sim/base/error.h"
#include "sim/data/contamination.h"
#include "sim/data/dictionary.h"
#include "sim/data/file_data.h"
#include "sim/data/gaussian_mixture.h"
#include "sim/data/image_clusters.h"
#include "sim/data/moe_regression.h"
#include "sim/data/problem.h"
#include "sim/data/subspace_mixture.h"
#include "sim/data/token_topics.h"
#include "sim/data/tokenized_mixture.h"

namespace moelab {
namespace {

struct Generator {
  Kind kind;
  std::unique_ptr<Problem> (*draw)(const Json& data, const Seeds& seeds);
  void (*check)(const Json& data) = nullptr;  ///< see check_data()
  bool has_image = false;
  std::vector<std::string> file_fields = {};    ///< fields that name files of samples
  std::vector<std::string> class_targets = {};  ///< kinds of data.target that are classes
};

/// The table of generators: adding one is a new file and a line here.
const std::vector<Generator>& generators() {
  static const std::vector<Generator> table = {
      {gaussian_mixture_kind(), draw_gaussian_mixture, check_gaussian_mixture},
      {subspace_mixture_kind(), draw_subspace_mixture, check_subspace_rank},
      {tokenized_mixture_kind(), draw_tokenized_mixture},
      {token_topics_kind(), draw_token_topics, check_token_topics, false, {}, {"class", "linear_class"}},
      {dictionary_kind(), draw_dictionary, check_dictionary_rank},
      {image_clusters_kind(), draw_image_clusters, check_image_files, true, {"path"}},
      {moe_regression_kind(), draw_moe_regression, check_moe_regression},
      {file_data_kind(),
       draw_file_data,
       check_file_data,
       false,
       {"inputs", "targets", "labels", "test_inputs", "test_targets", "test_labels"}},
  };
  return table;
}

const Generator& generator_of(const Json& data) {
  const std::string name = data.at("generator");
  for (const Generator& generator : generators()) {
    if (generator.kind.name == name) return generator;
  }
  throw UserError("data.generator", "unknown generator '" + name + "'");
}

}  // namespace

const Shape& data_shape() {
  static const Shape shape = [] {
    std::vector<Kind> kinds;
    for (const Generator& generator : generators()) {
      Kind kind = generator.kind;
      kind.fields.push_back({"train_samples", Shape::count(1, 1e9),
                             "number of training samples (sample gradients)", kOptional});
      kind.fields.push_back({"test_samples", Shape::count(2, 1e9), "number of test samples", 10000});
      kind.fields.push_back(
          {"contamination", contamination_shape(), "what is done to the test inputs", "none"});
      kinds.push_back(std::move(kind));
    }
    return Shape::variant(std::move(kinds), "generator");
  }();
  return shape;
}

std::vector<std::string> image_generators() {
  std::vector<std::string> names;
  for (const Generator& generator : generators()) {
    if (generator.has_image) names.push_back(generator.kind.name);
  }
  return names;
}

std::vector<std::string> class_target_kinds(const Json& data) {
  return generator_of(data).class_targets;
}

std::unique_ptr<Problem> draw_problem(const Json& data, const Seeds& seeds) {
  return generator_of(data).draw(data, seeds);
}

void check_data(const Json& data) {
  if (const auto check = generator_of(data).check) check(data);
}

std::vector<std::string> file_fields(const Json& data) {
  std::vector<std::string> given;
  for (const std::string& field : generator_of(data).file_fields) {
    if (data.contains(field)) given.push_back(field);
  }
  return given;
}

Dataset draw_set(const Problem& problem, const Seeds& seeds, Purpose purpose, int count) {
  Engine engine = seeds.stream(purpose);
  return problem.draw(engine, {purpose, 0, count});
}

}  // namespace moelab
