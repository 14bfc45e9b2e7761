#include "sim/data/moe_regression.h"

#include <fmt/format.h>

#include "sim/base/error.h"

namespace moelab {
namespace {

Vector vector_of(const Json& values) {
  const std::vector<double> entries = values.get<std::vector<double>>();
  return Eigen::Map<const Vector>(entries.data(), static_cast<Eigen::Index>(entries.size()));
}

Matrix matrix_of(const Json& rows, int columns) {
  Matrix matrix(static_cast<Eigen::Index>(rows.size()), columns);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    matrix.row(static_cast<Eigen::Index>(i)) = vector_of(rows[i]).transpose();
  }
  return matrix;
}

MixingMeasure given_measure(const Json& measure, int dim) {
  return {{},
          matrix_of(measure.at("gate"), dim),
          vector_of(measure.at("bias")),
          matrix_of(measure.at("slope"), dim),
          vector_of(measure.at("intercept"))};
}

MixingMeasure drawn_measure(const Json& spec, int dim, const Seeds& seeds) {
  const int components = spec.at("components");
  MixingMeasure measure{
      {}, Matrix(components, dim), Vector(components), Matrix(components, dim), Vector(components)};
  const std::size_t entries = static_cast<std::size_t>(dim);
  for (int j = 0; j < components; ++j) {
    Engine engine = seeds.stream(Purpose::problem, static_cast<std::uint64_t>(j));
    fill_normal(engine, spec.at("gate_std"), measure.gate.row(j).data(), entries);
    fill_normal(engine, spec.at("slope_std"), measure.slope.row(j).data(), entries);
    fill_normal(engine, spec.at("bias_std"), &measure.bias[j], 1);
    fill_normal(engine, spec.at("intercept_std"), &measure.intercept[j], 1);
  }
  return measure;
}

class MoeRegression final : public Problem {
 public:
  MoeRegression(const Json& data, const Seeds& seeds)
      : dim_(data.at("dim")),
        noise_std_(data.at("noise_std")),
        half_width_(data.at("inputs").value("half_width", 0.0)) {
    const Json& measure = data.at("measure");
    measure_ =
        measure.at("kind") == "given" ? given_measure(measure, dim_) : drawn_measure(measure, dim_, seeds);
    measure_.form = *mixture_form(data);
  }

  Layout layout() const override { return {.input_dim = dim_, .output_dim = 1}; }
  int clusters() const override { return measure_.components(); }

  Dataset draw(Engine& engine, const SampleRange& range) const override {
    Dataset data;
    data.x.resize(range.count, dim_);
    data.y.resize(range.count, 1);
    data.cluster.resize(static_cast<std::size_t>(range.count));
    boost::random::normal_distribution<double> normal;
    for (int i = 0; i < range.count; ++i) {
      for (int j = 0; j < dim_; ++j) {
        data.x(i, j) = half_width_ > 0 ? half_width_ * (2 * draw_uniform(engine) - 1) : normal(engine);
      }
      data.y(i, 0) = regression_value(measure_, data.x.row(i)) + noise_std_ * normal(engine);
      gate_scores(measure_, data.x.row(i)).maxCoeff(&data.cluster[static_cast<std::size_t>(i)]);
    }
    return data;
  }

  std::optional<Matrix> bayes_prediction(const Matrix& x) const override {
    Matrix prediction(x.rows(), 1);
    for (Eigen::Index i = 0; i < x.rows(); ++i) prediction(i, 0) = regression_value(measure_, x.row(i));
    return prediction;
  }

  const MixingMeasure* true_measure() const override { return &measure_; }

 private:
  int dim_;
  double noise_std_;
  double half_width_;  // 0 for normal inputs
  MixingMeasure measure_;
};

Shape measure_shape() {
  const Shape vector = Shape::list(Shape::real(), 1), matrix = Shape::list(vector, 1);
  return Shape::variant({{"given",
                          "the same for every seed",
                          {{"gate", matrix, "β1, one list of data.dim numbers for each component"},
                           {"bias", vector, "β0, one number for each component"},
                           {"slope", matrix, "a, one list of data.dim numbers for each component"},
                           {"intercept", vector, "b, one number for each component"}}},
                         {"drawn",
                          "drawn anew for every seed",
                          {{"components", Shape::count(1, 1000), "number of components k*"},
                           {"gate_std", Shape::real_at_least(0), "entries of β1 are N(0, gate_std²)", 1.0},
                           {"bias_std", Shape::real_at_least(0), "β0 is N(0, bias_std²)", 0.0},
                           {"slope_std", Shape::real_at_least(0), "entries of a are N(0, slope_std²)", 1.0},
                           {"intercept_std", Shape::real_at_least(0), "b is N(0, intercept_std²)", 1.0}}}});
}

}  // namespace

const Kind& moe_regression_kind() {
  const Shape tau = Shape::positive_real();
  static const Kind kind = {
      "moe_regression",
      "y = f_G*(x) + ε, f a softmax-gated mixture of experts with known mixing measure G* (Nguyen et al.)",
      {
          {"dim", Shape::count(1, 1e4), "input width d"},
          {"router",
           Shape::variant({{"linear", "γ_j(x) = β1_j^T x + β0_j", {}},
                           {"cosine", "γ_j(x) = β1_j^T x / (‖β1_j‖ ‖x‖) + β0_j", {}},
                           {"perturbed_cosine",
                            "γ_j(x) = β1_j^T x / ((‖β1_j‖ + τ1) (‖x‖ + τ2)) + β0_j",
                            {{"tau1", tau, "τ1", 0.1}, {"tau2", tau, "τ2", 0.1}}}}),
           "the gates of f"},
          {"expert",
           Shape::variant(
               {{"linear", "h(x) = a^T x + b", {}},
                {"polynomial", "h(x) = (a^T x + b)^power", {{"power", Shape::count(1, 16), "p", 2}}},
                {"relu", "h(x) = (a^T x + b)_+", {}}}),
           "the experts of f"},
          {"measure", measure_shape(), "G*"},
          {"inputs",
           Shape::variant({{"normal", "x ~ N(0, I)", {}},
                           {"uniform",
                            "x uniform on a cube around 0",
                            {{"half_width", Shape::positive_real(), "half of its side", 1.0}}}}),
           "the law of x", "normal"},
          {"noise_std", Shape::real_at_least(0), "√ν, the standard deviation of ε", 0.1},
      }};
  return kind;
}

void check_moe_regression(const Json& data) {
  const Json& measure = data.at("measure");
  if (measure.at("kind") != "given") return;
  const std::size_t dim = data.at("dim"), components = measure.at("gate").size();
  for (const char* name : {"gate", "bias", "slope", "intercept"}) {
    const std::string path = join_path("data.measure", name);
    const Json& values = measure.at(name);
    if (values.size() != components) {
      throw UserError(path, fmt::format("got {} components, needs {} as data.measure.gate has", values.size(),
                                        components));
    }
    for (std::size_t j = 0; j < components && values[j].is_array(); ++j) {
      if (values[j].size() == dim) continue;
      throw UserError(join_path(path, j),
                      fmt::format("got {} numbers, needs data.dim = {}", values[j].size(), dim));
    }
  }
}

std::unique_ptr<Problem> draw_moe_regression(const Json& data, const Seeds& seeds) {
  return std::make_unique<MoeRegression>(data, seeds);
}

}  // namespace moelab
