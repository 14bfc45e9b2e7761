#include "sim/data/moe_regression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.h"

namespace moelab {

namespace moe_regression {

void PerturbedCosineRouter::bind(Fields& fields) {
  fields.add("tau1", tau1, positive(), "τ1");
  fields.add("tau2", tau2, positive(), "τ2");
}

void LinearRouter::bind(Fields& fields) {
  fields.add("temperature", temperature, positive(), "t, which the scores are divided by (default: none)");
}

void TwoLevelRouter::bind(Fields& fields) {
  fields.add("groups", groups, between(1, 1000), "G: component j of k is in group ⌊j G / k⌋");
}

const std::vector<KindEntry>& Routers::table() {
  static const std::vector<KindEntry> kinds = {
      plain_kind<LinearRouter>("linear", "γ_j(x) = β1_j^T x + β0_j, over a temperature if given"),
      plain_kind<CosineRouter>("cosine", "γ_j(x) = β1_j^T x / (‖β1_j‖ ‖x‖) + β0_j"),
      plain_kind<PerturbedCosineRouter>("perturbed_cosine",
                                        "γ_j(x) = β1_j^T x / ((‖β1_j‖ + τ1) (‖x‖ + τ2)) + β0_j"),
      plain_kind<SquaredDistanceRouter>("squared_distance", "γ_j(x) = −‖x − β1_j‖² / 2 + β0_j"),
      plain_kind<TwoLevelRouter>(
          "two_level",
          "γ_j(x) = log softmax(U x + c)_g + log softmax over the group g of j of β1_j^T x + β0_j")};
  return kinds;
}

void TopKGates::bind(Fields& fields) {
  fields.required().add("k", k, between(1, 1000), "K; more than there are components count as all");
}

void SigmoidGates::bind(Fields& fields) {
  fields.add("renormalize", renormalize, "divide the gates by their sum");
}

const std::vector<KindEntry>& Gates::table() {
  static const std::vector<KindEntry> kinds = {
      plain_kind<SoftGates>("soft", "r = softmax(γ)"),
      {"topk", "r = softmax of the K largest γ, 0 for the others", TopKGates{}, TopKGates{.k = 1}},
      plain_kind<SigmoidGates>("sigmoid", "r = σ(γ)")};
  return kinds;
}

static void bind_normalize(Fields& fields, Normalize& normalize) {
  fields.add("normalize", normalize, {"none", "unit"},
             "\"unit\" divides every (a, b) by its length, so that ‖(a, b)‖ = 1");
}

void OneUnitExpert::bind(Fields& fields) {
  bind_normalize(fields, normalize);
}

void PolynomialExpert::bind(Fields& fields) {
  fields.add("power", power, between(1, 16), "p");
  bind_normalize(fields, normalize);
}

const std::vector<KindEntry>& Experts::table() {
  static const std::vector<KindEntry> kinds = {
      plain_kind<LinearExpert>("linear", "h(x) = a^T x + b"),
      plain_kind<PolynomialExpert>("polynomial", "h(x) = (a^T x + b)^power"),
      plain_kind<ReluExpert>("relu", "h(x) = (a^T x + b)_+"),
      plain_kind<GeluExpert>("gelu", "h(x) = z Φ(z), z = a^T x + b, Φ the normal distribution function"),
      plain_kind<SigmoidExpert>("sigmoid", "h(x) = σ(a^T x + b), σ the logistic function")};
  return kinds;
}

void GivenMeasure::bind(Fields& fields) {
  fields.required().add("gate", gate, "β1, one list of data.dim numbers for each component");
  fields.required().add("bias", bias, any_number(), 1, "β0, one number for each component");
  fields.required().add("slope", slope, "a, one list of data.dim numbers for each component");
  fields.required().add("intercept", intercept, any_number(), 1, "b, one number for each component");
  fields.add("group_gate", group_gate,
             "U of a two-level router, one list of data.dim numbers for each group");
  fields.add("group_bias", group_bias, any_number(), 1, "c of a two-level router, one number for each group");
  fields.add("shared_slope", shared_slope, "a of shared experts, one list of data.dim numbers for each");
  fields.add("shared_intercept", shared_intercept, any_number(), 1,
             "b of shared experts, one number for each");
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
      plain_kind<GivenMeasure>("given", "one measure for all seeds"),
      plain_kind<DrawnMeasure>("drawn", "drawn anew for every seed")};
  return kinds;
}

void UniformInputs::bind(Fields& fields) {
  fields.add("half_width", half_width, positive(), "half of its side");
  fields.add("center", center, any_number(), "of every coordinate");
}

const std::vector<KindEntry>& Inputs::table() {
  static const std::vector<KindEntry> kinds = {plain_kind<NormalInputs>("normal", "x ~ N(0, I)"),
                                               plain_kind<UniformInputs>("uniform", "x uniform on a cube")};
  return kinds;
}

void MixtureLaw::bind(Fields& fields) {
  fields.required().add("variance", variance, positive(), 1, "of each component's noise");
}

const std::vector<KindEntry>& Laws::table() {
  static const std::vector<KindEntry> kinds = {
      plain_kind<MeanLaw>("mean", "y = f(x) + N(0, noise_std²)"),
      {"mixture", "y = h_j(x) + N(0, variance_j) with probability r_j(x); noise_std has no effect",
       MixtureLaw{}, MixtureLaw{.variance = {0.04, 0.09}}}};
  return kinds;
}

}  // namespace moe_regression

void MoeRegressionOptions::bind(Fields& fields) {
  fields.required().add("dim", dim, between(1, 1e4), "input width d");
  fields.required().add("router", router, "the gates of f");
  fields.required().add("expert", expert, "the experts of f");
  fields.add("gating", gating, "how scores become gates");
  fields.add("shared_experts", shared_experts, between(0, 1000),
             "experts that are added with weight 1, of the same kind");
  fields.required().add("measure", measure, "G*");
  fields.add("inputs", inputs, "the law of x");
  fields.add("law", law, "the law of y given x");
  fields.add("noise_std", noise_std, at_least(0), "√ν, the standard deviation of ε");
}

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

/// Streams of a drawn measure in addition to its components' streams.
constexpr std::uint64_t kGroupStreams = std::uint64_t{1} << 32, kSharedStreams = std::uint64_t{1} << 33;

int groups_of(const MoeRegressionOptions& options) {
  const TwoLevelRouter* const two_level = options.router.as<TwoLevelRouter>();
  return two_level ? std::min(two_level->groups, components_of(options)) : 0;
}

MixingMeasure given_measure(const GivenMeasure& measure, int dim) {
  MixingMeasure given{{},
                      matrix_of(measure.gate, dim),
                      vector_of(measure.bias),
                      matrix_of(measure.slope, dim),
                      vector_of(measure.intercept)};
  const std::vector<std::vector<double>> no_rows;
  const std::vector<double> no_numbers;
  given.group_gate = matrix_of(measure.group_gate.value_or(no_rows), dim);
  given.group_bias = vector_of(measure.group_bias.value_or(no_numbers));
  given.shared_slope = matrix_of(measure.shared_slope.value_or(no_rows), dim);
  given.shared_intercept = vector_of(measure.shared_intercept.value_or(no_numbers));
  return given;
}

MixingMeasure drawn_measure(const DrawnMeasure& law, const MoeRegressionOptions& options,
                            const Seeds& seeds) {
  const int components = law.components, dim = options.dim, groups = groups_of(options),
            shared = options.shared_experts;
  MixingMeasure measure{
      {}, Matrix(components, dim), Vector(components), Matrix(components, dim), Vector(components)};
  measure.group_gate.resize(groups, dim);
  measure.group_bias.resize(groups);
  measure.shared_slope.resize(shared, dim);
  measure.shared_intercept.resize(shared);
  const std::size_t entries = size(dim);
  for (int j = 0; j < components; ++j) {
    Engine engine = seeds.stream(Purpose::problem, static_cast<std::uint64_t>(j));
    fill_normal(engine, law.gate_std, measure.gate.row(j).data(), entries);
    fill_normal(engine, law.slope_std, measure.slope.row(j).data(), entries);
    fill_normal(engine, law.bias_std, &measure.bias[j], 1);
    fill_normal(engine, law.intercept_std, &measure.intercept[j], 1);
  }
  for (int g = 0; g < groups; ++g) {
    Engine engine = seeds.stream(Purpose::problem, kGroupStreams + static_cast<std::uint64_t>(g));
    fill_normal(engine, law.gate_std, measure.group_gate.row(g).data(), entries);
    fill_normal(engine, law.bias_std, &measure.group_bias[g], 1);
  }
  for (int s = 0; s < shared; ++s) {
    Engine engine = seeds.stream(Purpose::problem, kSharedStreams + static_cast<std::uint64_t>(s));
    fill_normal(engine, law.slope_std, measure.shared_slope.row(s).data(), entries);
    fill_normal(engine, law.intercept_std, &measure.shared_intercept[s], 1);
  }
  return measure;
}

class MoeRegression final : public Problem {
 public:
  MoeRegression(const MoeRegressionOptions& options, const Seeds& seeds)
      : dim_(options.dim), noise_std_(options.noise_std) {
    if (const UniformInputs* const cube = options.inputs.as<UniformInputs>()) {
      half_width_ = cube->half_width;
      center_ = cube->center;
    }
    const GivenMeasure* const given = options.measure.as<GivenMeasure>();
    measure_ = given ? given_measure(*given, dim_)
                     : drawn_measure(options.measure.options().get<DrawnMeasure>(), options, seeds);
    measure_.form = form_of(options);
    put_on_sphere(measure_);
    if (const LinearRouter* const linear = options.router.as<LinearRouter>())
      measure_.log_scale = -std::log(linear->temperature.value_or(1));
    if (const MixtureLaw* const mixture = options.law.as<MixtureLaw>())
      measure_.variance = vector_of(mixture->variance);
  }

  Layout layout() const override { return {.input_dim = dim_, .output_dim = 1}; }
  int clusters() const override { return measure_.components(); }

  Dataset draw(Engine& engine, const SampleRange& range) const override {
    Dataset data;
    data.x.resize(range.count, dim_);
    data.y.resize(range.count, 1);
    data.cluster.resize(size(range.count));
    boost::random::normal_distribution<double> normal;
    for (int i = 0; i < range.count; ++i) {
      for (int j = 0; j < dim_; ++j) {
        data.x(i, j) =
            half_width_ > 0 ? center_ + half_width_ * (2 * draw_uniform(engine) - 1) : normal(engine);
      }
      int& label = data.cluster[size(i)];
      if (measure_.variance.size() > 0) {
        label = draw_category(engine, gate_values(measure_, data.x.row(i)).transpose());
        data.y(i, 0) = expert_values(measure_, data.x.row(i))[label] +
                       std::sqrt(measure_.variance[label]) * normal(engine);
        continue;
      }
      data.y(i, 0) = regression_value(measure_, data.x.row(i)) + noise_std_ * normal(engine);
      gate_scores(measure_, data.x.row(i)).maxCoeff(&label);
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
  double center_ = 0;
  MixingMeasure measure_;
};

/// Sets the experts of a form.
void set_expert(const OneOf<Experts>& expert, MixtureForm& form) {
  using Expert = MixtureForm::Expert;
  const auto set = [&](const auto* kind, Expert own) {
    if (!kind) return;
    form.expert = own;
    form.unit = kind->normalize == Normalize::unit;
  };
  set(expert.as<LinearExpert>(), Expert::power);
  set(expert.as<PolynomialExpert>(), Expert::power);
  set(expert.as<ReluExpert>(), Expert::relu);
  set(expert.as<GeluExpert>(), Expert::gelu);
  set(expert.as<SigmoidExpert>(), Expert::sigmoid);
  if (const PolynomialExpert* const polynomial = expert.as<PolynomialExpert>())
    form.power = polynomial->power;
}

/// Unit experts need an (a, b) other than 0.
void check_lengths(const MoeRegressionOptions& options) {
  if (!form_of(options).unit) return;
  const std::string needs = "but data.expert.normalize is \"unit\"; needs (a, b) other than 0";
  if (const DrawnMeasure* const drawn = options.measure.as<DrawnMeasure>()) {
    if (drawn->slope_std > 0 || drawn->intercept_std > 0) return;
    throw InvalidOption("data.measure.slope_std", "slope_std and intercept_std are 0, " + needs);
  }
  const GivenMeasure& given = options.measure.options().get<GivenMeasure>();
  const auto refuse_zero = [&](const char* name, const std::vector<std::vector<double>>& slope,
                               const std::vector<double>& intercept) {
    for (std::size_t j = 0; j < slope.size(); ++j) {
      if (intercept[j] != 0 || vector_of(slope[j]).squaredNorm() > 0) continue;
      throw InvalidOption(fmt::format("data.measure.{}[{}]", name, j), "(a, b) is 0, " + needs);
    }
  };
  refuse_zero("slope", given.slope, given.intercept);
  refuse_zero("shared_slope", given.shared_slope.value_or(std::vector<std::vector<double>>{}),
              given.shared_intercept.value_or(std::vector<double>{}));
}

/// A law that draws y from the components needs gates that sum to 1 and a variance for each component.
void check_law(const MoeRegressionOptions& options) {
  const MixtureLaw* const law = options.law.as<MixtureLaw>();
  if (!law) return;
  const SigmoidGates* const sigmoid = options.gating.as<SigmoidGates>();
  if (options.shared_experts > 0 || (sigmoid && !sigmoid->renormalize)) {
    throw InvalidOption(
        "data.law",
        "got \"mixture\", needs gates that add up to 1 and no shared experts: y comes from one component");
  }
  const std::size_t components = size(components_of(options));
  if (law->variance.size() == components) return;
  throw InvalidOption("data.law.variance", fmt::format("got {} components, needs {} as data.measure has",
                                                       law->variance.size(), components));
}

/// The arrays of a given measure must fit each other and the rest of the data.
void check_measure(const DataOptions& data) {
  const MoeRegressionOptions& options = data.options().get<MoeRegressionOptions>();
  check_law(options);
  const GivenMeasure* const measure = options.measure.as<GivenMeasure>();
  if (!measure) return check_lengths(options);
  const std::size_t dim = size(options.dim);
  const auto check_count = [&](const char* name, std::size_t count, std::size_t needed, const char* reason) {
    if (count == needed) return;
    throw InvalidOption(std::string("data.measure.") + name,
                        fmt::format("got {} components, needs {} {}", count, needed, reason));
  };
  const auto check_rows = [&](const char* name, const std::vector<std::vector<double>>& rows,
                              std::size_t needed, const char* reason) {
    check_count(name, rows.size(), needed, reason);
    for (std::size_t j = 0; j < rows.size(); ++j) {
      if (rows[j].size() == dim) continue;
      throw InvalidOption(fmt::format("data.measure.{}[{}]", name, j),
                          fmt::format("got {} numbers, needs data.dim = {}", rows[j].size(), dim));
    }
  };
  const std::size_t components = measure->gate.size();
  const char* const as_gate = "as data.measure.gate has";
  check_rows("gate", measure->gate, components, as_gate);
  check_count("bias", measure->bias.size(), components, as_gate);
  check_rows("slope", measure->slope, components, as_gate);
  check_count("intercept", measure->intercept.size(), components, as_gate);
  const std::size_t groups = size(groups_of(options)), shared = size(options.shared_experts);
  const std::vector<std::vector<double>> no_rows;
  const auto size_of = [](const std::optional<std::vector<double>>& numbers) {
    return numbers ? numbers->size() : 0;
  };
  const char* const as_router = "as data.router has groups";
  check_rows("group_gate", measure->group_gate.value_or(no_rows), groups, as_router);
  check_count("group_bias", size_of(measure->group_bias), groups, as_router);
  const char* const as_shared = "as data.shared_experts says";
  check_rows("shared_slope", measure->shared_slope.value_or(no_rows), shared, as_shared);
  check_count("shared_intercept", size_of(measure->shared_intercept), shared, as_shared);
  check_lengths(options);
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
  } else if (options.router.as<SquaredDistanceRouter>()) {
    form.router = MixtureForm::Router::squared_distance;
  } else if (const TwoLevelRouter* const two_level = options.router.as<TwoLevelRouter>()) {
    form.router = MixtureForm::Router::two_level;
    form.groups = two_level->groups;
  } else {
    form.temperature = options.router.options().get<LinearRouter>().temperature.has_value();
  }
  set_expert(options.expert, form);
  if (const TopKGates* const sparse = options.gating.as<TopKGates>()) {
    form.selected = sparse->k;
  } else if (const SigmoidGates* const sigmoid = options.gating.as<SigmoidGates>()) {
    form.gate = sigmoid->renormalize ? MixtureForm::Gate::normalised_sigmoid : MixtureForm::Gate::sigmoid;
  }
  form.shared = options.shared_experts;
  return form;
}

int components_of(const MoeRegressionOptions& options) {
  if (const GivenMeasure* const given = options.measure.as<GivenMeasure>()) {
    return static_cast<int>(given->gate.size());
  }
  return options.measure.options().get<DrawnMeasure>().components;
}

GeneratorKind moe_regression_generator() {
  GeneratorKind kind = {
      {"moe_regression",
       "y = f_G*(x) + ε, f a gated mixture of experts with known mixing measure G* (Nguyen et al.)",
       MoeRegressionOptions{},
       MoeRegressionOptions{.dim = 3,
                            .router = PerturbedCosineRouter{},
                            .expert = LinearExpert{},
                            .measure = DrawnMeasure{.components = 2}}},
      draw_as<MoeRegression, MoeRegressionOptions>,
      check_measure};
  return kind;
}

}  // namespace moelab
