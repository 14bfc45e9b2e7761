#include <cmath>
#include <numbers>

#include "sim/data/problem.h"

namespace moelab {
namespace {

struct RingsOptions {
  int clusters = 3;
  double noise_std = 0.1;

  void bind(Fields& fields) {
    fields.add("clusters", clusters, between(1, 1e6), "number of rings k");
    fields.add("noise_std", noise_std, at_least(0), "standard deviation around the rings");
  }
};

/// Ring c of k has radius c + 1 around the origin of the plane: x = (c + 1) (cos t, sin t) + noise. Its
/// target is y = v_c ~ N(0, 1). No linear router separates the rings.
class Rings final : public Problem {
 public:
  Rings(const RingsOptions& options, const Seeds& seeds) : noise_std_(options.noise_std) {
    Engine engine = seeds.stream(Purpose::problem);
    values_ = draw_normals(engine, options.clusters, 1);
  }

  Layout layout() const override { return {.input_dim = 2, .output_dim = 1}; }
  int clusters() const override { return static_cast<int>(values_.rows()); }

  // Sample after sample from the one engine, so that the first m of n samples do not depend on n.
  Dataset draw(Engine& engine, const SampleRange& range) const override {
    Dataset data{Matrix(range.count, 2), Matrix(range.count, 1), {}};
    for (int i = 0; i < range.count; ++i) {
      const int c = draw_index(engine, clusters());
      const double angle = 2 * std::numbers::pi * draw_uniform(engine);
      data.x(i, 0) = (c + 1) * std::cos(angle) + noise_std_ * draw_normal(engine);
      data.x(i, 1) = (c + 1) * std::sin(angle) + noise_std_ * draw_normal(engine);
      data.y(i, 0) = values_(c, 0);
      data.cluster.push_back(c);
    }
    return data;
  }

 private:
  double noise_std_;
  Matrix values_;  // (k, 1)
};

}  // namespace

GeneratorKind rings_generator() {
  GeneratorKind kind{
      {"rings", "rings around the origin of the plane, y = v_c", RingsOptions{}, RingsOptions{}}};
  kind.draw = [](const DataOptions& data, const Seeds& seeds) -> std::unique_ptr<Problem> {
    return std::make_unique<Rings>(data.options().get<RingsOptions>(), seeds);
  };
  return kind;
}

}  // namespace moelab
