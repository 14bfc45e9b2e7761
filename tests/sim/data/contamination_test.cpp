#include "sim/data/contamination.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/error.h"
#include "sim/data/problem.h"
#include "sim/train/attacks.h"
#include "tests/sim/model/example.h"

namespace moelab {
namespace {

constexpr Eigen::Index kRows = 4000;

Json contamination(const Json& spec) {
  return resolve(contamination_shape(), spec, "data.contamination");
}

TEST_CASE("noise has the deviations asked for, and nothing else changes the rows") {
  const Layout layout{.input_dim = 3, .output_dim = 1};
  Matrix x = Matrix::Constant(kRows, 3, 2.0);
  contaminate(contamination("none"), layout, {1, 0}, x);
  contaminate(contamination({{"kind", "fgsm"}, {"budget", 1}}), layout, {1, 0}, x);
  CHECK((x.array() == 2.0).all());
  contaminate(contamination({{"kind", "noise"}, {"std", {0.0, 0.5, 3.0}}}), layout, {1, 0}, x);
  CHECK((x.col(0).array() == 2.0).all());
  for (const auto& [column, deviation] : {std::pair{1, 0.5}, {2, 3.0}}) {
    const double variance = (x.col(column).array() - 2).square().mean();
    // A variance over n draws has relative standard error √(2/n).
    CHECK(std::abs(variance / (deviation * deviation) - 1) < 4 * std::sqrt(2.0 / kRows));
  }
  CHECK_THROWS_AS(contaminate(contamination({{"kind", "noise"}, {"std", {1.0, 2.0}}}), layout, {1, 0}, x),
                  UserError);
}

TEST_CASE("a share of the tokens becomes one fixed token; a larger share takes the same and more") {
  const Layout layout{.input_dim = 2, .output_dim = 1, .sequences = true, .tokens = 3};
  const auto replaced = [&](double share) {
    Matrix x = Matrix::Constant(kRows, 6, 9.0);
    contaminate(contamination({{"kind", "replaced"}, {"share", share}}), layout, {1, 0}, x);
    return x;
  };
  const Matrix some = replaced(0.1), more = replaced(0.3);
  int count = 0;
  Vector token;
  for (Eigen::Index i = 0; i < kRows; ++i) {
    for (Eigen::Index t = 0; t < 3; ++t) {
      const Vector row = some.row(i).segment(2 * t, 2);
      if ((row.array() == 9.0).all()) continue;
      if (count++ == 0) token = row;
      CHECK(row == token);
      CHECK(more.row(i).segment(2 * t, 2) == token.transpose());
    }
  }
  const double tokens = 3.0 * kRows;
  CHECK(std::abs(count / tokens - 0.1) < 4 * std::sqrt(0.1 * 0.9 / tokens));
}

TEST_CASE("attacks stay within the budget and raise the loss, more with a larger budget and by a gradient") {
  constexpr int kInputs = 6, kOutputs = 2, kSamples = 200;
  const Json spec = example_model("linear", example_of(kind_named(expert_kinds(), "mlp")), "soft", 4);
  Model<double> model(spec, kInputs, kOutputs, 0.0);
  model.initialize({3, 0});
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  const ExampleBatch<double> batch(1, kSamples, kInputs, kOutputs);
  Dataset clean;
  clean.x = Eigen::Map<const Matrix>(batch.x.data(), kSamples, kInputs);
  clean.y = Eigen::Map<const Matrix>(batch.y.data(), kSamples, kOutputs);
  const auto loss_at = [&](const Matrix& x) {
    Matrix outputs(kSamples, kOutputs);
    model.predict(x.data(), kSamples, model.train_gating(), outputs.data());
    return (outputs - clean.y).squaredNorm();
  };
  const std::vector<double> parameters(model.parameters().begin(), model.parameters().end());
  const auto attacked = [&](Json attack) {
    const Matrix x = attacked_inputs(contamination(attack), model, *loss, clean, {1, 0});
    CHECK((x - clean.x).cwiseAbs().maxCoeff() <= attack.at("budget").get<double>() * (1 + 1e-12));
    return loss_at(x);
  };
  const double untouched = loss_at(clean.x);
  const double fgsm = attacked({{"kind", "fgsm"}, {"budget", 0.1}});
  const double pgd = attacked({{"kind", "pgd"}, {"budget", 0.1}});
  const double spsa = attacked({{"kind", "spsa"}, {"budget", 0.1}, {"steps", 5}});
  CHECK(fgsm > 1.05 * untouched);
  CHECK(pgd >= fgsm);
  CHECK(spsa > untouched);
  CHECK(spsa <= pgd);
  CHECK(attacked({{"kind", "fgsm"}, {"budget", 0.2}}) > fgsm);
  CHECK(attacked({{"kind", "fgsm"}, {"budget", 0}}) == untouched);
  // Random signs of the same size do far less.
  Engine engine(1);
  Matrix random = clean.x;
  for (Eigen::Index i = 0; i < random.size(); ++i)
    random.data()[i] += draw_uniform(engine) < 0.5 ? 0.1 : -0.1;
  CHECK(loss_at(random) - untouched < 0.5 * (fgsm - untouched));
  CHECK(std::equal(parameters.begin(), parameters.end(), model.parameters().begin()));
}

}  // namespace
}  // namespace moelab
