#include <algorithm>
#include <cmath>

#include "analysis/theory/specialization2025.h"
#include "sim/base/kernels/kernels.h"
#include "sim/model/expert/expert.h"
#include "sim/model/gating/gating.h"
#include "sim/model/router/routers.h"

namespace moelab {

namespace {

/// The auxiliary loss of that name on a batch, unweighted.
double term_value(const std::string& term, const RoutedBatch<double>& batch) {
  AuxiliaryScratch scratch;
  return auxiliary_loss_kinds()[auxiliary_loss_place(term)].value.in_double(batch, scratch);
}

/// That loss alone, with coefficient 1.
AuxiliaryLosses losses_with(const std::string& term) {
  LossOptions options;
  options.coefficient(term) = 1;
  return AuxiliaryLosses(options);
}

const std::string kCrossGradientPrefix = "specialization2025.cross_gradient.";
constexpr int kCrossGradientRows = 24, kCrossGradientDim = 5, kCrossGradientOutputs = 4,
              kCrossGradientExperts = 6;
constexpr int kCrossGradientRepetitions = 8;

Model<double> draw_model(Engine& engine, int layers) {
  ModelOptions options;
  options.layers = layers;
  options.experts = kCrossGradientExperts;
  options.router = LinearRouterOptions{};
  options.expert = LinearExpertOptions{};
  options.gating.train = TopKGatingOptions{.k = 2, .renormalize = std::nullopt};
  const Layout layout{.input_dim = kCrossGradientDim, .output_dim = kCrossGradientOutputs};
  return {options, layout, Start{Seeds{engine(), 0}}};
}

/// The entries of a flat array that belong to parameters of a role.
Vector part_of(const AlignedVector<double>& values, const Model<double>& model, ParameterGroup::Role role) {
  Vector part = Vector::Zero(static_cast<Eigen::Index>(values.size()));
  for (const ParameterGroup& group : model.network->groups()) {
    if (group.role != role) continue;
    for (std::size_t i = group.begin; i < group.end; ++i) part[static_cast<Eigen::Index>(i)] = values[i];
  }
  return part;
}

constexpr const char* kBalanceId = "specialization2025.aux.uniform_factor";
constexpr int kBalanceExperts = 8, kBalanceActive = 2, kRowsPerExpert = 5, kBatches = 20;
/// A score that leaves no probability to other experts: exp(−50) is below the rounding of 1.
constexpr double kSure = 50;

/// The matrix with padded rows, as kernels need them.
AlignedVector<double> padded_copy(const Matrix& matrix) {
  const int rows = static_cast<int>(matrix.rows()), columns = static_cast<int>(matrix.cols());
  const int stride = kernels::padded(columns);
  AlignedVector<double> copy(entries(rows, stride), 0.0);
  for (int i = 0; i < rows; ++i) std::copy_n(matrix.data() + i * columns, columns, copy.data() + i * stride);
  return copy;
}

/// A term of a batch of scores (n, E) with the K likeliest experts active.
double balance_term(const Matrix& scores, int active, const std::string& term) {
  const int rows = static_cast<int>(scores.rows()), experts = static_cast<int>(scores.cols());
  const AlignedVector<double> padded = padded_copy(scores);
  GatingScratch<double> scratch;
  make_gating<double>(TopKGatingOptions{.k = active, .renormalize = std::nullopt})
      ->gate({padded.data(), rows, experts}, scratch);
  RoutedBatch<double> batch;
  batch.scores = padded.data();
  batch.probabilities = scratch.probabilities.data();
  batch.routing = &scratch.routing;
  return term_value(term, batch);
}

const std::string kSlopePrefix = "specialization2025.";
constexpr int kSlopeRows = 16, kSlopeExperts = 6, kSlopeActive = 3, kSlopeOutputs = 5;
constexpr int kSlopeRepetitions = 8;
/// The error of central differences: about step² = 1e-10 from curvature, 1e-11 from rounding.
constexpr double kSlopeDifferenceTolerance = 1e-7;
constexpr double kShrinkage = 0.1;

constexpr int kLayerRows = 12, kLayerDim = 5, kLayerExperts = 4, kLayerActive = 2;
constexpr double kBalanceWeight = 0.1;  // α

LinearLayer draw_linear_layer(Engine& engine) {
  LinearLayer layer{.x = draw_normals(engine, kLayerRows, kLayerDim),
                    .targets = draw_normals(engine, kLayerRows, 1),
                    .experts = draw_normals(engine, kLayerExperts, kLayerDim),
                    .router = draw_normals(engine, kLayerExperts, kLayerDim),
                    .active = Matrix::Ones(kLayerRows, kLayerExperts),
                    .loads = Vector::Zero(kLayerExperts)};
  Matrix left = layer.scores();
  layer.active.setZero();
  for (int k = 0; k < kLayerActive; ++k) {
    for (Eigen::Index i = 0; i < kLayerRows; ++i) {
      Eigen::Index best = 0;
      left.row(i).maxCoeff(&best);
      left(i, best) = -1;
      layer.active(i, best) = 1;
    }
  }
  layer.loads = layer.active.colwise().mean().transpose();
  return layer;
}

/// Σ_{k≠j} of visit(j, k) in row j of a matrix of the shape of `outputs`.
template <class Visit>
Matrix sum_over_others(const Matrix& outputs, const Visit& visit) {
  Matrix sums = Matrix::Zero(outputs.rows(), outputs.cols());
  for (Eigen::Index j = 0; j < outputs.rows(); ++j) {
    for (Eigen::Index k = 0; k < outputs.rows(); ++k) {
      if (k != j) sums.row(j) += visit(j, k);
    }
  }
  return sums;
}

/// (s_ij − s̄_j).
Matrix centred(const Matrix& scores) {
  return scores.rowwise() - scores.colwise().mean();
}

Matrix central_differences(const std::function<double(const Matrix&)>& loss, Matrix at) {
  Matrix differences(at.rows(), at.cols());
  for (Eigen::Index i = 0; i < at.size(); ++i) {
    differences.data()[i] = central_difference(at.data()[i], 1e-5, [&] { return loss(at); });
  }
  return differences;
}

/// `draw` gives the matrix of a repetition.
CheckFinding compare_slopes(const CheckEffort& effort, const std::function<double(const Matrix&)>& loss,
                            const MatrixSlope& slope, const std::function<Matrix(int)>& draw) {
  double largest = 0, least_cosine = 1;
  for (int repetition = 0; repetition < kSlopeRepetitions * effort.seeds; ++repetition) {
    const Matrix at = draw(repetition);
    const Matrix differences = central_differences(loss, at), found = slope(at);
    largest = larger(largest, (found - differences).cwiseAbs().maxCoeff<Eigen::PropagateNaN>() /
                                  differences.cwiseAbs().maxCoeff());
    least_cosine =
        smaller(least_cosine, found.cwiseProduct(differences).sum() / (found.norm() * differences.norm()));
  }
  return expected_zero(largest, kSlopeDifferenceTolerance,
                       "central differences of step 1e-5: curvature about 1e-10, rounding 1e-11",
                       {{"smallest cosine of the angle to the differences", least_cosine}});
}

/// A term of a batch in which all of `experts` answer: outputs (n · E, o).
double slope_term(const Matrix& outputs, int experts, const std::string& term) {
  const int rows = static_cast<int>(outputs.rows()) / experts;
  const AlignedVector<double> padded = padded_copy(outputs),
                              scores = padded_copy(Matrix::Zero(rows, experts));
  GatingScratch<double> scratch;
  make_gating<double>(SoftGatingOptions{.skip_below = 0.0})->gate({scores.data(), rows, experts}, scratch);
  return term_value(term, {scores.data(), scratch.probabilities.data(), &scratch.routing, padded.data(),
                           kernels::padded(static_cast<int>(outputs.cols()))});
}

}  // namespace

CheckFinding check_cross_gradient(const CheckEffort& effort, const std::string& term,
                                  ParameterGroup::Role role, int layers) {
  using Role = ParameterGroup::Role;
  const Role other = role == Role::router ? Role::expert : Role::router;
  const std::unique_ptr<TaskLoss<double>> task = make_task_loss<double>("mse");
  double largest = 0, smallest_other = kInfinity;
  for (int repetition = 0; repetition < kCrossGradientRepetitions * effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, kCrossGradientPrefix + term, repetition);
    const Matrix x = draw_normals(engine, kCrossGradientRows, kCrossGradientDim),
                 y = draw_normals(engine, kCrossGradientRows, kCrossGradientOutputs);
    Model<double> model = draw_model(engine, layers);
    Workspace<double> workspace = model.network->make_workspace();
    const auto pass = [&](const Objective<double>& objective) {
      loss_and_gradient(model, objective, x.data(), y.data(), kCrossGradientRows, workspace);
      return workspace.gradient;
    };
    const auto value_of_term = [&] {
      pass({*task});
      double sum = 0;
      for (int layer = 0; layer < layers; ++layer) {
        const PlacedBlock<double>& placed = model.network->placed_mixture(layer);
        MixtureScratch<double>& scratch = model.network->mixture_scratch(layer, workspace);
        placed.mixture->pair_outputs(model.network->values(placed, model.parameters, model.state), scratch);
        sum += term_value(term, placed.mixture->routed_batch(scratch, true));
      }
      return sum;
    };
    const AlignedVector<double> with_term = pass({*task, losses_with(term)});
    const AlignedVector<double> without = pass({*task});
    const auto gradient = [&](Role of) {
      return Vector(part_of(with_term, model, of) - part_of(without, model, of));
    };
    const double found = gradient(role).norm(), in_other = gradient(other).norm();
    const AlignedVector<double> kept = model.parameters;
    AlignedVector<double> direction(kept.size());
    fill_normal(engine, 1.0, direction.data(), direction.size());
    const Vector along = part_of(direction, model, role).normalized();
    double distance = 0;
    const double slope = central_difference(distance, 1e-6, [&] {
      for (std::size_t i = 0; i < kept.size(); ++i)
        model.parameters[i] = kept[i] + distance * along[static_cast<Eigen::Index>(i)];
      return value_of_term();
    });
    largest = larger(largest, std::max(found, std::abs(slope)) / in_other);
    smallest_other = smaller(smallest_other, in_other);
  }
  return {.hypotheses = {{"the term has a gradient in the other parameters (smallest norm > 0)",
                          smallest_other, smallest_other > 0}},
          .measured = largest,
          .error_bound = 1e-12,
          .error_origin = "rounding of the two gradients' difference"};
}

std::vector<Check> specialization2025_cross_gradient_checks() {
  using Role = ParameterGroup::Role;
  const std::string source = "Guo et al. 2025, section 3.2";
  struct Statement {
    std::string term;
    Role role;
    std::string text;
  };
  std::vector<Check> list;
  for (const int layers : {1, 2}) {
    const std::string ending = layers == 1 ? "" : "_in_two_layers";
    const std::string norm =
        std::string(layers == 1 ? " in one layer" : " in two layers, as in the paper's models") +
        " (its norm over the norm of the term's gradient in the others)";
    for (const Statement& statement :
         {Statement{"aux", Role::expert, "the balance loss has no gradient in the experts"},
          Statement{"variance", Role::expert, "the variance loss has no gradient in the experts"},
          Statement{
              "orthogonality", Role::router,
              "the orthogonality loss has no gradient in the router, whose selection is held fixed,"}}) {
      list.push_back({kCrossGradientPrefix + statement.term + ending, source, statement.text + norm,
                      layers == 1 ? CheckVerdict::holds : CheckVerdict::fails, [=](Effort effort) {
                        return check_cross_gradient(effort, statement.term, statement.role, layers);
                      }});
    }
  }
  return list;
}

Matrix LinearLayer::scores() const {
  const Matrix odds = (x * router.transpose()).array().exp();
  return (odds.array().colwise() / odds.rowwise().sum().array()) * active.array();
}

Vector LinearLayer::outputs() const {
  return scores().cwiseProduct(x * experts.transpose()).rowwise().sum();
}

double LinearLayer::loss() const {
  return (outputs() - targets).squaredNorm() / 2 + kBalanceWeight * scores().colwise().sum().dot(loads);
}

Vector ones_as_printed(const LinearLayer& layer) {
  return Vector::Ones(layer.x.rows());
}

Vector task_gradient(const LinearLayer& layer) {
  return layer.outputs() - layer.targets;
}

CheckFinding check_task_gradient(const CheckEffort& effort, bool in_router, const OutputGradient& rule) {
  double largest = 0;
  for (int repetition = 0; repetition < kSlopeRepetitions * effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, kSlopePrefix + "task_gradient", repetition);
    LinearLayer layer = draw_linear_layer(engine);
    const Vector g = rule(layer);
    Matrix found;
    if (in_router) {
      // Σ_i (g_i x_i·θ_j + α f_j) ∂s_ij/∂ρ_k, with ∂s_ij/∂ρ_k = s_ij (δ_jk − r_ik) x_i, r the whole softmax.
      const Matrix s = layer.scores();
      LinearLayer whole = layer;
      whole.active.setOnes();
      Matrix weights = layer.x * layer.experts.transpose();
      weights.array().colwise() *= g.array();
      weights.rowwise() += kBalanceWeight * layer.loads.transpose();
      weights = weights.cwiseProduct(s).eval();
      const Vector totals = weights.rowwise().sum();
      Matrix of_scores = whole.scores();
      of_scores.array().colwise() *= -totals.array();
      of_scores += weights;
      found = of_scores.transpose() * layer.x;
    } else {
      Matrix weights = layer.scores();
      weights.array().colwise() *= g.array();
      found = weights.transpose() * layer.x;
    }
    Matrix& at = in_router ? layer.router : layer.experts;
    Matrix differences(at.rows(), at.cols());
    for (Eigen::Index i = 0; i < at.size(); ++i)
      differences.data()[i] = central_difference(at.data()[i], 1e-5, [&] { return layer.loss(); });
    largest = larger(largest, (found - differences).cwiseAbs().maxCoeff<Eigen::PropagateNaN>() /
                                  differences.cwiseAbs().maxCoeff());
  }
  return expected_zero(largest, kSlopeDifferenceTolerance,
                       "central differences of step 1e-5: curvature about 1e-10, rounding 1e-11");
}

std::vector<Check> specialization2025_task_gradient_checks() {
  const std::string compared = " (largest relative difference from central differences)";
  std::vector<Check> list;
  for (const bool in_router : {false, true}) {
    const std::string id = kSlopePrefix + (in_router ? "router_gradient." : "expert_gradient.");
    const std::string source =
        in_router ? "Guo et al. 2025, Eqs. 4 and 23" : "Guo et al. 2025, Eqs. 3 and 20";
    const auto statement = [&](const std::string& g) {
      return in_router
                 ? "dL/dR = sum_ij " + g + "(x_i.theta_j) ds_ij/dR + alpha sum_ij f_j ds_ij/dR" + compared
                 : "dL/dtheta_j = sum_i " + g + "s_ij x_i" + compared;
    };
    list.push_back({id + "as_printed", source, statement(""), CheckVerdict::fails,
                    [=](Effort effort) { return check_task_gradient(effort, in_router, ones_as_printed); }});
    list.push_back({id + "corrected", source, statement("g_i "), CheckVerdict::holds,
                    [=](Effort effort) { return check_task_gradient(effort, in_router, task_gradient); }});
  }
  return list;
}

CheckFinding check_uniform_factor(const CheckEffort& effort, const std::string& term) {
  constexpr int kBalanceRows = kBalanceExperts * kRowsPerExpert;
  double largest = 0, smallest_mean = kInfinity;
  for (int repetition = 0; repetition < kBatches * effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, kBalanceId, repetition);
    // Row i selects experts i and i + 1 (mod E). The margin is free and differs between experts.
    Matrix scores = draw_normals(engine, kBalanceRows, kBalanceExperts);
    const Vector lead = draw_normals(engine, kBalanceExperts, 1).cwiseAbs();
    for (Eigen::Index i = 0; i < kBalanceRows; ++i) {
      const double highest = scores.row(i).maxCoeff();
      for (int k = 0; k < kBalanceActive; ++k) {
        const Eigen::Index expert = (i + k) % kBalanceExperts;
        scores(i, expert) = highest + lead[expert] + draw_uniform(engine);
      }
    }
    const Matrix odds = scores.array().exp();
    const Matrix r = odds.array().colwise() / odds.rowwise().sum().array();
    smallest_mean = smaller(smallest_mean, r.colwise().mean().minCoeff());
    largest = larger(largest, std::abs(balance_term(scores, kBalanceActive, term) - 1));
  }
  const double undecided = balance_term(Matrix::Zero(kBalanceRows, kBalanceExperts), kBalanceActive, term);
  largest = larger(largest, std::abs(undecided - 1));
  return expected_zero(
      largest, kBalanceRows * kBalanceExperts * kEpsilon, "rounding: n E epsilon",
      {{"smallest mean probability at equal loads, times E", kBalanceExperts * smallest_mean},
       {"value at equal probabilities, all rows with the same experts", undecided}});
}

CheckFinding check_below_one(const std::string& term) {
  CheckFinding finding;
  finding.error_bound = 1e-12;
  finding.error_origin = "rounding; the sure row leaves exp(-50) to the others";
  double worst = -1;
  for (const int experts : {2, 4, 8, 16}) {
    Matrix scores = Matrix::Zero(2 * experts, experts);
    scores(2 * experts - 1, 1) = kSure;
    const double predicted = 1 - 1 / (4.0 * experts), measured = balance_term(scores, 1, term);
    if (std::abs(measured - predicted) > worst) {
      worst = std::abs(measured - predicted);
      finding.predicted = predicted;
      finding.measured = measured;
    }
    finding.details.emplace_back("value at E = " + std::to_string(experts), measured);
  }
  return finding;
}

std::vector<Check> specialization2025_balance_checks() {
  const std::string source = "Guo et al. 2025, Eq. 2, normalised";
  return {{kBalanceId, source,
           "E sum_j f_j P_j = 1 where the loads f or the mean probabilities P are uniform (largest "
           "difference from 1)",
           CheckVerdict::holds, [](Effort effort) { return check_uniform_factor(effort); }},
          {"specialization2025.aux.below_one", source,
           "E sum_j f_j P_j = 1 - 1/(4E) where all of 2E rows but one are undecided and go to one expert, "
           "the last is sure of another: balance is not the least value (the value that differs most)",
           CheckVerdict::holds, [](Effort) { return check_below_one(); }}};
}

double variance_loss(const Matrix& scores) {
  return -centred(scores).squaredNorm() / static_cast<double>(scores.cols());
}

Matrix variance_slope(const Matrix& scores) {
  return -2 / static_cast<double>(scores.cols()) * centred(scores);
}

Matrix variance_slope_as_printed(const Matrix& scores) {
  const double rows = static_cast<double>(scores.rows());
  return (rows - 1) / rows * variance_slope(scores);
}

double orthogonality_loss(const Matrix& outputs) {
  const Matrix products = outputs * outputs.transpose();
  double sum = 0;
  for (Eigen::Index j = 0; j < outputs.rows(); ++j) {
    for (Eigen::Index k = 0; k < outputs.rows(); ++k) {
      if (k != j) sum += products(j, k) * products(j, k) / products(k, k);
    }
  }
  return sum;
}

Matrix orthogonality_slope(const Matrix& outputs) {
  const Vector squares = outputs.rowwise().squaredNorm();
  return sum_over_others(outputs, [&](Eigen::Index j, Eigen::Index k) -> Eigen::RowVectorXd {
    const double product = outputs.row(j).dot(outputs.row(k)), share = product / squares[j];
    return 2 * product * (1 / squares[k] + 1 / squares[j]) * outputs.row(k) -
           2 * share * share * outputs.row(j);
  });
}

Matrix orthogonality_slope_as_printed(const Matrix& outputs) {
  const Vector squares = outputs.rowwise().squaredNorm();
  return sum_over_others(outputs, [&](Eigen::Index j, Eigen::Index k) -> Eigen::RowVectorXd {
    return outputs.row(j).dot(outputs.row(k)) / squares[k] * outputs.row(k);
  });
}

CheckFinding check_variance_slope(const CheckEffort& effort, const MatrixSlope& slope) {
  return compare_slopes(effort, variance_loss, slope, [&](int repetition) {
    Engine engine = check_stream(effort, kSlopePrefix + "variance.slope", repetition);
    const Matrix odds = draw_normals(engine, kSlopeRows, kSlopeExperts).array().exp();
    return Matrix(odds.array().colwise() / odds.rowwise().sum().array());
  });
}

CheckFinding check_orthogonality_slope(const CheckEffort& effort, const MatrixSlope& slope) {
  return compare_slopes(effort, orthogonality_loss, slope, [&](int repetition) {
    Engine engine = check_stream(effort, kSlopePrefix + "orthogonality.slope", repetition);
    return draw_normals(engine, kSlopeActive, kSlopeOutputs);
  });
}

CheckFinding check_shrinking(const CheckEffort& effort, const std::string& term, int power) {
  CheckFinding finding;
  finding.predicted = std::pow(kShrinkage, power);
  finding.measured = finding.predicted;
  for (int repetition = 0; repetition < kSlopeRepetitions * effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, kSlopePrefix + "orthogonality.shrinking", repetition);
    const Matrix outputs = draw_normals(engine, kSlopeRows * kSlopeActive, kSlopeOutputs);
    const double ratio =
        slope_term(kShrinkage * outputs, kSlopeActive, term) / slope_term(outputs, kSlopeActive, term);
    if (!(std::abs(ratio - finding.predicted) <= std::abs(finding.measured - finding.predicted)))
      finding.measured = ratio;
  }
  finding.error_bound = 1e-4 * finding.predicted;
  finding.error_origin = "the guard 1e-8 beside squared lengths, at least 1e-4 after shrinking";
  return finding;
}

std::vector<Check> specialization2025_slope_checks() {
  const std::string eq7 = "Guo et al. 2025, Eq. 7 and 9", eq6 = "Guo et al. 2025, Eq. 6, 8 and 28";
  const std::string compared = " (largest relative difference from central differences)";
  return {{kSlopePrefix + "variance.slope.as_printed", eq7,
           "dL_v/ds_ij = -2(N - 1)/(E N) (s_ij - mean_j)" + compared, CheckVerdict::fails,
           [](Effort effort) { return check_variance_slope(effort, variance_slope_as_printed); }},
          {kSlopePrefix + "variance.slope.corrected", eq7, "dL_v/ds_ij = -(2/E)(s_ij - mean_j)" + compared,
           CheckVerdict::holds, [](Effort effort) { return check_variance_slope(effort, variance_slope); }},
          {kSlopePrefix + "orthogonality.slope.as_printed", eq6,
           "dL_o/dx_j = sum_k (x_j.x_k)/|x_k|^2 x_k" + compared, CheckVerdict::fails,
           [](Effort effort) { return check_orthogonality_slope(effort, orthogonality_slope_as_printed); }},
          {kSlopePrefix + "orthogonality.slope.corrected", eq6,
           "dL_o/dx_j = 2 sum_k [(x_j.x_k)(1/|x_k|^2 + 1/|x_j|^2) x_k - (x_j.x_k)^2/|x_j|^4 x_j]" + compared,
           CheckVerdict::holds,
           [](Effort effort) { return check_orthogonality_slope(effort, orthogonality_slope); }},
          {kSlopePrefix + "orthogonality.shrinking.projection", eq6,
           "a tenth of the experts' outputs lowers L_o by the square, without any change of direction",
           CheckVerdict::holds, [](Effort effort) { return check_shrinking(effort, "orthogonality", 2); }},
          {kSlopePrefix + "orthogonality.shrinking.cosine", eq6,
           "a tenth of the experts' outputs leaves the form with cosines, sum of cos^2, as it is",
           CheckVerdict::holds,
           [](Effort effort) { return check_shrinking(effort, "orthogonality_cosine", 0); }}};
}

}  // namespace moelab
