#include "sim/base/error.h"
#include "sim/data/dictionary.h"
#include "sim/data/file_data.h"
#include "sim/data/gaussian_mixture.h"
#include "sim/data/image_clusters.h"
#include "sim/data/problem.h"
#include "sim/data/subspace_mixture.h"
#include "sim/data/tokenized_mixture.h"

namespace moelab {
namespace {

struct Generator {
  Kind kind;
  std::unique_ptr<Problem> (*draw)(const Json& data, const Seeds& seeds);
  bool has_image = false;
};

/// The table of generators: adding one is a new file and a line here.
const std::vector<Generator>& generators() {
  static const std::vector<Generator> table = {
      {gaussian_mixture_kind(), draw_gaussian_mixture},   {dictionary_kind(), draw_dictionary},
      {image_clusters_kind(), draw_image_clusters, true}, {subspace_mixture_kind(), draw_subspace_mixture},
      {tokenized_mixture_kind(), draw_tokenized_mixture}, {file_data_kind(), draw_file_data},
  };
  return table;
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

std::unique_ptr<Problem> draw_problem(const Json& data, const Seeds& seeds) {
  const std::string name = data.at("generator");
  for (const Generator& generator : generators()) {
    if (generator.kind.name == name) return generator.draw(data, seeds);
  }
  throw UserError("data.generator", "unknown generator '" + name + "'");
}

Dataset draw_set(const Problem& problem, const Seeds& seeds, Purpose purpose, int count) {
  Engine engine = seeds.stream(purpose);
  return problem.draw(engine, {purpose, 0, count});
}

}  // namespace moelab
