#include "sim/data/contamination.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/error.h"
#include "sim/data/problem.h"
#include "sim/model/expert/expert.h"
#include "sim/model/router/routers.h"
#include "sim/train/measured_gradients.h"

namespace moelab::contamination_test {
namespace {

constexpr Eigen::Index kRows = 4000;

TEST_CASE("noise has the deviations asked for, and nothing else changes the rows") {
  const Layout layout{.input_dim = 3, .output_dim = 1};
  Matrix x = Matrix::Constant(kRows, 3, 2.0);
  contaminate(NoContaminationOptions{}, layout, {1, 0}, x);
  contaminate(FgsmOptions{.budget = 1}, layout, {1, 0}, x);
  CHECK((x.array() == 2.0).all());
  contaminate(NoiseOptions{{0.0, 0.5, 3.0}}, layout, {1, 0}, x);
  CHECK((x.col(0).array() == 2.0).all());
  for (const auto& [column, deviation] : {std::pair{1, 0.5}, {2, 3.0}}) {
    const double variance = (x.col(column).array() - 2).square().mean();
    // A variance over n draws has relative standard error √(2/n).
    CHECK(std::abs(variance / (deviation * deviation) - 1) < 4 * std::sqrt(2.0 / kRows));
  }
  CHECK_THROWS_AS(contaminate(NoiseOptions{{1.0, 2.0}}, layout, {1, 0}, x), InvalidOption);
}

TEST_CASE("a share of the tokens becomes one fixed token; a larger share takes the same and more") {
  const Layout layout{.input_dim = 2, .output_dim = 1, .sequences = true, .tokens = 3};
  const auto replaced = [&](double share) {
    Matrix x = Matrix::Constant(kRows, 6, 9.0);
    contaminate(ReplacedOptions{.share = share}, layout, {1, 0}, x);
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

TEST_CASE(
    "a share of the tokens becomes others, alike; targets move with inputs, a larger share takes more") {
  constexpr int kVocabulary = 5, kTokens = 4;
  const Layout layout{
      .input_dim = 1, .output_dim = 1, .sequences = true, .tokens = kTokens, .vocabulary = kVocabulary};
  Matrix clean_x(kRows, kTokens), clean_y(kRows, kTokens);
  for (Eigen::Index i = 0; i < kRows; ++i) {
    for (Eigen::Index t = 0; t < kTokens; ++t) {
      clean_x(i, t) = static_cast<double>((i + t) % kVocabulary);
      clean_y(i, t) = static_cast<double>((i + t + 1) % kVocabulary);
    }
  }
  const auto swapped = [&](double share, std::uint64_t seed) {
    Matrix x = clean_x, y = clean_y;
    contaminate(SwappedOptions{.share = share}, layout, {1, seed}, x, y);
    CHECK(x.rightCols(kTokens - 1) == y.leftCols(kTokens - 1));
    Matrix ids(kRows, kTokens + 1);
    ids << x, y.rightCols(1);
    return ids;
  };
  Matrix clean(kRows, kTokens + 1);
  clean << clean_x, clean_y.rightCols(1);
  CHECK(swapped(0, 0) == clean);
  CHECK((swapped(1, 0).array() != clean.array()).all());
  const Matrix some = swapped(0.1, 0), more = swapped(0.3, 0);
  CHECK(some == swapped(0.1, 0));
  CHECK(some != swapped(0.1, 1));
  const auto moved = some.array() != clean.array();
  CHECK((moved == (moved && some.array() == more.array())).all());
  const double ids = static_cast<double>(clean.size()), count = static_cast<double>(moved.count());
  CHECK(std::abs(count / ids - 0.1) < 4 * std::sqrt(0.1 * 0.9 / ids));
  CHECK(((more.array() != clean.array()) && !moved).count() > 0.15 * ids);
  // By how far: 1 … V − 1 alike.
  const Matrix all = swapped(1, 0);
  for (int step = 1; step < kVocabulary; ++step) {
    int reached = 0;
    for (Eigen::Index i = 0; i < all.size(); ++i) {
      const int difference = static_cast<int>(all.data()[i] - clean.data()[i]);
      if ((difference + kVocabulary) % kVocabulary == step) ++reached;
    }
    CHECK(std::abs(reached / ids - 0.25) < 4 * std::sqrt(0.25 * 0.75 / ids));
  }
  // Rows that are no ids stay in every case.
  Matrix numbers = clean_x;
  contaminate(SwappedOptions{.share = 1}, layout, {1, 0}, numbers);
  CHECK(numbers == clean_x);
}

TEST_CASE("what moves rows leaves targets alone") {
  const Layout layout{.input_dim = 2, .output_dim = 1};
  Matrix x = Matrix::Constant(20, 2, 2.0), y = Matrix::Constant(20, 1, 3.0), alone = x;
  contaminate(NoiseOptions{{0.5}}, layout, {1, 0}, x, y);
  contaminate(NoiseOptions{{0.5}}, layout, {1, 0}, alone);
  CHECK(x == alone);
  CHECK((y.array() == 3.0).all());
}

/// ℓ(x_i) = ½ ‖x_i‖² of samples of `width` entries; counts its calls.
class Bowl final : public AttackedLoss<double> {
 public:
  explicit Bowl(std::size_t width) : width_(width) {}
  void gradient(const std::vector<double>& x, std::vector<double>& gradient) override {
    gradient = x;
    ++asked;
  }
  void add_losses(const std::vector<double>& x, double factor, std::vector<double>& sums) override {
    for (std::size_t i = 0; i < x.size(); ++i) sums[i / width_] += factor * x[i] * x[i] / 2;
    ++asked;
  }
  int asked = 0;

 private:
  std::size_t width_;
};

TEST_CASE(
    "attacks move to the corner of the budget by the gradient's signs, in steps of the size asked for") {
  const std::vector<double> clean = {2, -1, 0, 0.5, -3, 1};  // two samples of three entries
  const auto attacked = [&](const ContaminationOptions& options, int asked) {
    Bowl loss(3);
    Engine engine(1);
    std::vector<double> x = clean;
    options.entry().attack.in_double(options.options(), loss, engine, 2, x);
    CHECK(loss.asked == asked);
    return x;
  };
  // The gradient is zero at an entry of zero, which stays.
  const std::vector<double> corner = {2.25, -1.25, 0, 0.75, -3.25, 1.25},
                            halfway = {2.125, -1.125, 0, 0.625, -3.125, 1.125};
  CHECK(attacked(FgsmOptions{.budget = 0.25}, 1) == corner);
  CHECK(attacked(PgdOptions{.budget = 0.25, .steps = 2, .step_size = 0.0625}, 2) == halfway);
  CHECK(attacked(PgdOptions{.budget = 0.25, .steps = 1}, 1) == corner);
  CHECK(attacked(PgdOptions{.budget = 0.25}, 10) == corner);  // 10 steps of a quarter of the budget
  // Estimates of enough directions have the signs of the gradient where it is large.
  const std::vector<double> estimated =
      attacked(SpsaOptions{.budget = 0.25, .steps = 1, .directions = 200}, 400);
  for (const std::size_t i : {0u, 1u, 4u, 5u}) CHECK(estimated[i] == corner[i]);
}

TEST_CASE("attacks stay within the budget and raise the loss, more with a larger budget and by a gradient") {
  constexpr int kInputs = 6, kOutputs = 2, kSamples = 200;
  ModelOptions options;
  options.experts = 4;
  options.router = LinearRouterOptions{};
  options.expert = MlpExpertOptions{.width = 6};
  const Model<double> model(options, {.input_dim = kInputs, .output_dim = kOutputs}, {{3, 0}});
  Workspace<double> workspace = model.network->make_workspace();
  const std::unique_ptr<TaskLoss<double>> loss = make_task_loss<double>("mse");
  Engine draws = Seeds{1, 0}.stream(Purpose::train_data);
  Dataset clean;
  clean.x = draw_normals(draws, kSamples, kInputs);
  clean.y = draw_normals(draws, kSamples, kOutputs);
  const auto loss_at = [&](const Matrix& x) {
    Matrix outputs(kSamples, kOutputs);
    predict(model, model.network->train_gating(), x.data(), kSamples, workspace, outputs.data());
    return (outputs - clean.y).squaredNorm();
  };
  const auto attacked = [&](const ContaminationOptions& attack, double budget) {
    const Matrix x = attacked_inputs(attack, model, *loss, clean, {1, 0}, workspace);
    CHECK((x - clean.x).cwiseAbs().maxCoeff() <= budget * (1 + 1e-12));
    return loss_at(x);
  };
  const double untouched = loss_at(clean.x);
  const double fgsm = attacked(FgsmOptions{.budget = 0.1}, 0.1);
  const double pgd = attacked(PgdOptions{.budget = 0.1}, 0.1);
  const double spsa = attacked(SpsaOptions{.budget = 0.1, .steps = 5}, 0.1);
  CHECK(fgsm > 1.05 * untouched);
  CHECK(pgd >= fgsm);
  CHECK(spsa > untouched);
  CHECK(spsa <= pgd);
  CHECK(attacked(FgsmOptions{.budget = 0.2}, 0.2) > fgsm);
  CHECK(attacked(FgsmOptions{.budget = 0}, 0) == untouched);
  // Random signs of the same size do far less.
  Engine engine(1);
  Matrix random = clean.x;
  for (Eigen::Index i = 0; i < random.size(); ++i)
    random.data()[i] += draw_uniform(engine) < 0.5 ? 0.1 : -0.1;
  CHECK(loss_at(random) - untouched < 0.5 * (fgsm - untouched));
}

TEST_CASE("every contamination's example leaves shapes and clean copies alone, and attacks a loss upwards") {
  const Layout layout{.input_dim = 3, .output_dim = 1};
  for (const ContaminationKind& kind : ContaminationAxis::table()) {
    CAPTURE(kind.name);
    const ContaminationOptions options = ContaminationOptions::example(kind.name);
    Matrix x = Matrix::Constant(50, 3, 2.0), again = x;
    contaminate(options, layout, {1, 0}, x);
    contaminate(options, layout, {1, 0}, again);
    CHECK(x == again);
    CHECK(x.allFinite());
    CHECK(x.rows() == 50);
    CHECK(x.cols() == 3);
    CHECK((kind.attack.in_float == nullptr) == (kind.attack.in_double == nullptr));
    if (!kind.is_attack()) continue;
    CHECK((x.array() == 2.0).all());
    Bowl loss(3);
    Engine engine(1);
    std::vector<double> inputs(x.data(), x.data() + x.size()), before(50, 0.0), after(50, 0.0);
    loss.add_losses(inputs, 1, before);
    kind.attack.in_double(options.options(), loss, engine, 50, inputs);
    loss.add_losses(inputs, 1, after);
    for (std::size_t i = 0; i < 50; ++i) CHECK(after[i] > before[i]);
  }
}

}  // namespace
}  // namespace moelab::contamination_test
