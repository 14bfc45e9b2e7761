#include "sim/data/moe_regression.h"

#include <fmt/format.h>

#include "sim/base/error.h"

namespace moelab {
namespace {

using namespace moe_regression;

Vector vector_of(const std::vector<double>& entries) {
  return Eigen::Map<const Vector>(entries.data(), static_cast<Eigen::Index>(entries.size()));
}

Matrix matrix_of(const std::vector<std::vector<double>>& rows, int columns) {
  Matrix matrix(static_cast<Eigen::Index>(rows.size()), columns);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    matrix.row(static_cast<Eigen::Index>(i)) = vector_of(rows[i]).transpose();
  }
  return matrix;
}

MixingMeasure given_measure(const GivenMeasure& measure, int dim) {
  return {{},
          matrix_of(measure.gate, dim),
          vector_of(measure.bias),
          matrix_of(measure.slope, dim),
          vector_of(measure.intercept)};
}

MixingMeasure drawn_measure(const DrawnMeasure& law, int dim, const Seeds& seeds) {
  const int components = law.components;
  MixingMeasure measure{
      {}, Matrix(components, dim), Vector(components), Matrix(components, dim), Vector(components)};
  const std::size_t entries = static_cast<std::size_t>(dim);
  for (int j = 0; j < components; ++j) {
    Engine engine = seeds.stream(Purpose::problem, static_cast<std::uint64_t>(j));
    fill_normal(engine, law.gate_std, measure.gate.row(j).data(), entries);
    fill_normal(engine, law.slope_std, measure.slope.row(j).data(), entries);
    fill_normal(engine, law.bias_std, &measure.bias[j], 1);
    fill_normal(engine, law.intercept_std, &measure.intercept[j], 1);
  }
  return measure;
}

class MoeRegression final : public Problem {
 public:
  MoeRegression(const MoeRegressionOptions& options, const Seeds& seeds)
      : dim_(options.dim), noise_std_(options.noise_std) {
    if (const UniformInputs* const cube = options.inputs.as<UniformInputs>()) half_width_ = cube->half_width;
    const GivenMeasure* const given = options.measure.as<GivenMeasure>();
    measure_ = given ? given_measure(*given, dim_)
                     : drawn_measure(options.measure.options().get<DrawnMeasure>(), dim_, seeds);
    measure_.form = form_of(options);
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
  double half_width_ = 0;  // 0 for normal inputs
  MixingMeasure measure_;
};

/// The arrays of a given measure have to fit each other and data.dim.
void check_measure(const DataOptions& data) {
  const MoeRegressionOptions& options = data.options().get<MoeRegressionOptions>();
  const GivenMeasure* const measure = options.measure.as<GivenMeasure>();
  if (!measure) return;
  const std::size_t dim = static_cast<std::size_t>(options.dim), components = measure->gate.size();
  const auto check_count = [&](const std::string& path, std::size_t count) {
    if (count == components) return;
    throw InvalidOption(
        path, fmt::format("got {} components, needs {} as data.measure.gate has", count, components));
  };
  const auto check_rows = [&](const std::string& path, const std::vector<std::vector<double>>& rows) {
    check_count(path, rows.size());
    for (std::size_t j = 0; j < rows.size(); ++j) {
      if (rows[j].size() == dim) continue;
      throw InvalidOption(fmt::format("{}[{}]", path, j),
                          fmt::format("got {} numbers, needs data.dim = {}", rows[j].size(), dim));
    }
  };
  check_rows("data.measure.gate", measure->gate);
  check_count("data.measure.bias", measure->bias.size());
  check_rows("data.measure.slope", measure->slope);
  check_count("data.measure.intercept", measure->intercept.size());
}

}  // namespace

MixtureForm form_of(const MoeRegressionOptions& options) {
  MixtureForm form;
  if (const PerturbedCosineRouter* const perturbed = options.router.as<PerturbedCosineRouter>()) {
    form.router = MixtureForm::Router::cosine;
    form.tau1 = perturbed->tau1;
    form.tau2 = perturbed->tau2;
  } else if (options.router.as<CosineRouter>()) {
    form.router = MixtureForm::Router::cosine;
  }
  if (const PolynomialExpert* const polynomial = options.expert.as<PolynomialExpert>()) {
    form.power = polynomial->power;
  } else if (options.expert.as<ReluExpert>()) {
    form.expert = MixtureForm::Expert::relu;
  }
  return form;
}

int components_of(const MoeRegressionOptions& options) {
  if (const GivenMeasure* const given = options.measure.as<GivenMeasure>()) {
    return static_cast<int>(given->gate.size());
  }
  return options.measure.options().get<DrawnMeasure>().components;
}

namespace moe_regression {

void PerturbedCosineRouter::bind(Fields& fields) {
  fields.add("tau1", tau1, positive(), "τ1");
  fields.add("tau2", tau2, positive(), "τ2");
}

const std::vector<KindEntry>& Routers::table() {
  static const std::vector<KindEntry> kinds = {
      plain_kind<LinearRouter>("linear", "γ_j(x) = β1_j^T x + β0_j"),
      plain_kind<CosineRouter>("cosine", "γ_j(x) = β1_j^T x / (‖β1_j‖ ‖x‖) + β0_j"),
      plain_kind<PerturbedCosineRouter>("perturbed_cosine",
                                        "γ_j(x) = β1_j^T x / ((‖β1_j‖ + τ1) (‖x‖ + τ2)) + β0_j")};
  return kinds;
}

void PolynomialExpert::bind(Fields& fields) {
  fields.add("power", power, between(1, 16), "p");
}

const std::vector<KindEntry>& Experts::table() {
  static const std::vector<KindEntry> kinds = {
      plain_kind<LinearExpert>("linear", "h(x) = a^T x + b"),
      plain_kind<PolynomialExpert>("polynomial", "h(x) = (a^T x + b)^power"),
      plain_kind<ReluExpert>("relu", "h(x) = (a^T x + b)_+")};
  return kinds;
}

void GivenMeasure::bind(Fields& fields) {
  fields.required().add("gate", gate, "β1, one list of data.dim numbers for each component");
  fields.required().add("bias", bias, any_number(), 1, "β0, one number for each component");
  fields.required().add("slope", slope, "a, one list of data.dim numbers for each component");
  fields.required().add("intercept", intercept, any_number(), 1, "b, one number for each component");
}

void DrawnMeasure::bind(Fields& fields) {
  fields.required().add("components", components, between(1, 1000), "number of components k*");
  fields.add("gate_std", gate_std, at_least(0), "entries of β1 are N(0, gate_std²)");
  fields.add("bias_std", bias_std, at_least(0), "β0 is N(0, bias_std²)");
  fields.add("slope_std", slope_std, at_least(0), "entries of a are N(0, slope_std²)");
  fields.add("intercept_std", intercept_std, at_least(0), "b is N(0, intercept_std²)");
}

const std::vector<KindEntry>& Measures::table() {
  static const std::vector<KindEntry> kinds = {
      plain_kind<GivenMeasure>("given", "the same for every seed"),
      plain_kind<DrawnMeasure>("drawn", "drawn anew for every seed")};
  return kinds;
}

void UniformInputs::bind(Fields& fields) {
  fields.add("half_width", half_width, positive(), "half of its side");
}

const std::vector<KindEntry>& Inputs::table() {
  static const std::vector<KindEntry> kinds = {
      plain_kind<NormalInputs>("normal", "x ~ N(0, I)"),
      plain_kind<UniformInputs>("uniform", "x uniform on a cube around 0")};
  return kinds;
}

}  // namespace moe_regression

void MoeRegressionOptions::bind(Fields& fields) {
  fields.required().add("dim", dim, between(1, 1e4), "input width d");
  fields.required().add("router", router, "the gates of f");
  fields.required().add("expert", expert, "the experts of f");
  fields.required().add("measure", measure, "G*");
  fields.add("inputs", inputs, "the law of x");
  fields.add("noise_std", noise_std, at_least(0), "√ν, the standard deviation of ε");
}

GeneratorKind moe_regression_generator() {
  return {{"moe_regression",
           "y = f_G*(x) + ε, f a softmax-gated mixture of experts with known mixing measure G* (Nguyen et "
           "al.)",
           MoeRegressionOptions{},
           MoeRegressionOptions{.dim = 3,
                                .router = PerturbedCosineRouter{},
                                .expert = LinearExpert{},
                                .measure = DrawnMeasure{.components = 2}}},
          draw_as<MoeRegression, MoeRegressionOptions>,
          check_measure};
}

}  // namespace moelab
