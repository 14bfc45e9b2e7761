#include <Eigen/QR>
#include <cmath>

#include "analysis/theory/continual2025.h"
#include "sim/model/router/routers.h"
#include "sim/train/experiment.h"
#include "sim/train/minimum_norm.h"

namespace moelab {
namespace {

constexpr int kTaskDim = 8, kTaskRows = 4, kPoolTasks = 5, kPoolRounds = 6;
constexpr double kContraction = 1 - static_cast<double>(kTaskRows) / kTaskDim;
constexpr int kSequences = 800;

const std::string kSingleId = "continual2025.single_expert", kForgettingId = "continual2025.forgetting",
                  kSentId = "continual2025.sent_tasks", kInterpolationId = "continual2025.interpolation";

/// A sequence of tasks on isotropic data. Every expert starts at 0, and noise alone routes the rounds.
ExperimentOptions sequence_of_tasks(int experts) {
  ExperimentOptions options;
  TaskPoolOptions pool;
  pool.tasks = pool.groups = kPoolTasks;
  pool.dim = kTaskDim;
  pool.rows = kTaskRows;
  pool.weight_norm = 1;
  pool.signal = TaskPoolOptions::Signal::none;
  options.data = DataOptions(pool);
  options.model.experts = experts;
  LinearRouterOptions router;
  router.init_scale = 0;
  router.trainable = false;
  options.model.router = router;
  options.model.expert = LinearExpertOptions{.init_scale = 0, .bias = false};
  options.model.gating.train = SequenceTop1GatingOptions{.noise = 1};
  options.model.gating.eval = SequenceTop1GatingOptions{};
  options.train.gradient = TrainOptions::Gradient::population;
  options.train.points = 1;
  options.train.optimizer = MinimumNormOptions{};
  options.train.lr = PerGroup(1);
  options.train.steps = kPoolRounds;
  options.train.rounds = RoundOptions{};
  options.train.precision = TrainOptions::Precision::in_double;
  return options;
}

/// w (E, d) of linear experts.
Matrix expert_weights(const Model<double>& model) {
  for (const NamedArray<double>& array : model.network->arrays(model.parameters)) {
    if (array.name == "expert_weight_1")
      return MatrixView(array.values.data(), array.shape.front(), array.shape.back());
  }
  return {};
}

/// A simulated sequence: the rounds, and w (E, d) after each.
struct TaskSequence {
  TaskPool pool;
  std::vector<FinishedRound> rounds;
  std::vector<Matrix> weights;
};

TaskSequence simulate(const CheckEffort& effort, const std::string& id, int repetition, int experts) {
  Engine engine = check_stream(effort, id, repetition);
  Experiment<double> experiment(sequence_of_tasks(experts), Seeds{engine(), 0});
  TaskSequence sequence;
  TrainCallbacks callbacks;
  callbacks.round = [&](const FinishedRound& round) {
    sequence.rounds.push_back(round);
    sequence.weights.push_back(expert_weights(experiment.model()));
  };
  experiment.train(callbacks);
  sequence.pool = *experiment.problem().task_pool();
  return sequence;
}

double squared_distance(const TaskSequence& sequence, int time, int expert, int task) {
  return (sequence.weights[size(time - 1)].row(expert) - sequence.pool.weights.row(task)).squaredNorm();
}

/// Compares values of rounds τ = 1 … T at time T with a law.
template <class Value>
CheckFinding compare_rounds(const CheckEffort& effort, const std::string& id, const RoundLaw& law,
                            const Value& value) {
  MeanOfZero deviations(kPoolRounds);
  for (int repetition = 0; repetition < kSequences * effort.seeds; ++repetition) {
    const TaskSequence sequence = simulate(effort, id, repetition, 1);
    const TaskMoments moments = moments_of(sequence.pool);
    Vector own(kPoolRounds);
    for (int tau = 1; tau <= kPoolRounds; ++tau)
      own[tau - 1] = value(sequence, tau) - law(moments, kContraction, kPoolRounds, tau);
    deviations.add(own);
  }
  return in_standard_errors(deviations.largest_deviation(), {{"r", kContraction}, {"rounds", kPoolRounds}});
}

}  // namespace

TaskMoments moments_of(const TaskPool& pool) {
  TaskMoments moments;
  const double count = static_cast<double>(pool.weights.rows());
  moments.size = pool.weights.squaredNorm() / count;
  for (Eigen::Index n = 0; n < pool.weights.rows(); ++n)
    moments.spread += (pool.weights.rowwise() - pool.weights.row(n)).squaredNorm() / (count * count);
  return moments;
}

double single_expert_error(const TaskMoments& moments, double r, int t, int tau) {
  return std::pow(r, t) * moments.size +
         moments.spread * ((1 - std::pow(r, t)) - (1 - r) * std::pow(r, t - tau));
}

double single_expert_forgetting(const TaskMoments& moments, double r, int t, int tau) {
  return (std::pow(r, t) - std::pow(r, tau)) * moments.size +
         moments.spread * (1 - std::pow(r, t - tau)) * (1 - r + std::pow(r, tau));
}

CheckFinding check_single_expert(const CheckEffort& effort, const RoundLaw& law) {
  return compare_rounds(effort, kSingleId, law, [](const TaskSequence& sequence, int tau) {
    return squared_distance(sequence, kPoolRounds, 0, sequence.rounds[size(tau - 1)].task);
  });
}

CheckFinding check_single_expert_forgetting(const CheckEffort& effort, const RoundLaw& law) {
  return compare_rounds(effort, kForgettingId, law, [](const TaskSequence& sequence, int tau) {
    const int task = sequence.rounds[size(tau - 1)].task;
    return squared_distance(sequence, kPoolRounds, 0, task) - squared_distance(sequence, tau, 0, task);
  });
}

double sent_tasks_error(const TaskPool& pool, double r, const std::vector<int>& sent, int task) {
  double error = pool.weights.row(task).squaredNorm();
  for (const int other : sent)
    error = r * error + (1 - r) * (pool.weights.row(other) - pool.weights.row(task)).squaredNorm();
  return error;
}

CheckFinding check_sent_tasks(const CheckEffort& effort, const SentTasksLaw& law) {
  constexpr int kExperts = 3;
  MeanOfZero deviations(kExperts);
  for (int repetition = 0; repetition < kSequences * effort.seeds; ++repetition) {
    const TaskSequence sequence = simulate(effort, kSentId, repetition, kExperts);
    std::vector<std::vector<int>> sent(kExperts);
    for (const FinishedRound& round : sequence.rounds) sent[size(round.expert)].push_back(round.task);
    Vector own(kExperts);
    for (int m = 0; m < kExperts; ++m) {
      own[m] =
          squared_distance(sequence, kPoolRounds, m, 0) - law(sequence.pool, kContraction, sent[size(m)], 0);
    }
    deviations.add(own);
  }
  return in_standard_errors(deviations.largest_deviation(),
                            {{"r", kContraction}, {"experts", kExperts}, {"rounds", kPoolRounds}});
}

CheckFinding check_interpolation(const CheckEffort& effort, double rate) {
  constexpr int kInstances = 50;
  double residual = 0, outside = 0;
  for (int repetition = 0; repetition < kInstances * effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, kInterpolationId, repetition);
    ExperimentOptions options = sequence_of_tasks(3);
    options.train.lr = PerGroup(rate);
    const Seeds seeds{engine(), 0};
    const std::unique_ptr<Problem> problem = draw_problem(options.data, seeds);
    Model<double> model(options.model, problem->layout(), {seeds});
    Workspace<double> workspace = model.network->make_workspace();
    MinimumNormSteps<double> steps(options.train, {}, model, workspace);
    for (int round = 0; round < kPoolRounds; ++round) {
      const Dataset data = problem->draw(engine, {Purpose::population, round, 1});
      const Matrix before = expert_weights(model);
      model.network->begin_step(0, model.parameters, model.state);
      steps.move({data.x.data()}, data.y.data(), 1, round, kPoolRounds);
      const Matrix moved = expert_weights(model) - before;
      Eigen::Index expert = 0;
      moved.rowwise().norm().maxCoeff(&expert);
      const MatrixView x(data.x.data(), kTaskRows, kTaskDim);
      const Vector step = moved.row(expert).transpose(), own = (before + moved).row(expert).transpose();
      residual = larger(residual, (x * own - data.y.row(0).transpose()).cwiseAbs().maxCoeff());
      const Vector inside = x.transpose() * x.transpose().completeOrthogonalDecomposition().solve(step);
      outside = larger(outside, (step - inside).norm());
    }
  }
  return expected_zero(larger(residual, outside), 1e-10, "rounding of a least-squares problem of 4 rows",
                       {{"residual", residual}, {"part of the step outside the rows", outside}});
}

std::vector<Check> continual2025_checks() {
  const std::string source = "Li et al. 2025 (2406.16437), derived";
  return {
      {kInterpolationId, source,
       "a round moves its expert to the nearest interpolant: X^T w = y, and the step lies in the span of the "
       "round's rows (largest residual)",
       CheckVerdict::holds, [](Effort effort) { return check_interpolation(effort); }},
      {kSingleId, source,
       "isotropic rows, one expert: E|w_t − w_tau|^2 = r^t W + D[(1 − r^t) − (1 − r) r^(t−tau)], r = 1 − s/d "
       "(largest deviation over tau)",
       CheckVerdict::holds, [](Effort effort) { return check_single_expert(effort); }},
      {kForgettingId, source,
       "isotropic rows, one expert: forgetting of round tau is (r^t − r^tau) W + D (1 − r^(t−tau))(1 − r + "
       "r^tau) "
       "(largest deviation over tau)",
       CheckVerdict::holds, [](Effort effort) { return check_single_expert_forgetting(effort); }},
      {kSentId, source,
       "isotropic rows, an expert that had tasks n_1 … n_L: E|w − w_n|^2 = r^L |w_n|^2 + sum_l (1 − r) "
       "r^(L−l) "
       "|w_n_l − w_n|^2 (largest deviation over experts)",
       CheckVerdict::holds, [](Effort effort) { return check_sent_tasks(effort); }}};
}

}  // namespace moelab
