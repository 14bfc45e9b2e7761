#include "sim/base/error.h"
#include "sim/data/gaussian_mixture.h"
#include "sim/data/problem.h"

namespace moelab {
namespace {

struct Generator {
  Kind kind;
  std::unique_ptr<Problem> (*draw)(const Json& data, const Seeds& seeds);
};

/// The table of generators: adding one is a new file and a line here.
const std::vector<Generator>& generators() {
  static const std::vector<Generator> table = {
      {gaussian_mixture_kind(), draw_gaussian_mixture},
  };
  return table;
}

}  // namespace

const Shape& data_shape() {
  static const Shape shape = [] {
    std::vector<Kind> kinds;
    for (const Generator& generator : generators()) {
      Kind kind = generator.kind;
      kind.fields.push_back({"train_samples", Shape::count(1, 1e9), "number of training samples"});
      kind.fields.push_back({"test_samples", Shape::count(2, 1e9), "number of test samples", 10000});
      kinds.push_back(std::move(kind));
    }
    return Shape::variant(std::move(kinds), "generator");
  }();
  return shape;
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
