#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "analysis/theory/questions.h"
#include "sim/base/kernels/kernels.h"
#include "sim/model/gating/gating.h"
#include "sim/model/loss/auxiliary_loss.h"

namespace moelab {
namespace {

const std::string kDualId = "questions.loss_free.dual_slope", kSwapsId = "questions.loss_free.swaps",
                  kGroupsId = "questions.balance_scope.covariance",
                  kFilterId = "questions.noise_filter.theorem4.2";

// Loss-free balancing

constexpr int kFrozenRows = 60, kFrozenExperts = 6, kFrozenActive = 2;
constexpr int kDualInstances = 400, kSwapRuns = 20, kSwapRounds = 40;
constexpr double kBiasRate = 0.05;
/// Rounding of sums of 120 scores of order one.
constexpr double kDualRounding = 1e-11;

/// The experts of each row, sorted.
std::vector<std::vector<int>> frozen_choices(const Matrix& scores, const Vector& biases, int active) {
  std::vector<std::vector<int>> choices;
  for (Eigen::Index i = 0; i < scores.rows(); ++i) {
    std::vector<int> order(size(scores.cols()));
    std::iota(order.begin(), order.end(), 0);
    const Vector raised = scores.row(i).transpose() + biases;
    std::partial_sort(order.begin(), order.begin() + active, order.end(),
                      [&](int a, int b) { return raised[a] > raised[b]; });
    order.resize(size(active));
    std::sort(order.begin(), order.end());
    choices.push_back(std::move(order));
  }
  return choices;
}

Vector loads_of(const std::vector<std::vector<int>>& choices, Eigen::Index experts) {
  Vector loads = Vector::Zero(experts);
  for (const std::vector<int>& row : choices) {
    for (const int e : row) ++loads[e];
  }
  return loads;
}

constexpr double kMeanLoad = 1.0 * kFrozenRows * kFrozenActive / kFrozenExperts;

double dual_value(const Matrix& scores, const Vector& biases, const std::vector<std::vector<int>>& choices) {
  double value = -kMeanLoad * biases.sum();
  for (std::size_t i = 0; i < choices.size(); ++i) {
    for (const int e : choices[i]) value += scores(static_cast<Eigen::Index>(i), e) + biases[e];
  }
  return value;
}

// Groups

constexpr int kGroups = 4, kGroupRows = 6, kGroupExperts = 5, kGroupActive = 2, kGroupBatches = 20;

// Soft to hard

/// Integrates loss(s, σ(s/τ)) over s ~ N(0, 1) by the midpoint rule in t = s/τ near the interface. Beyond
/// |t| = 60 gates are 0 or 1 to the last bit, so soft and hard losses agree.
double first_order_gap(const LossAtScore& loss, double temperature) {
  constexpr double kReach = 60;
  constexpr int kMidpoints = 120000;
  double sum = 0;
  for (int i = 0; i < kMidpoints; ++i) {
    const double t = kReach * (2 * (i + 0.5) / kMidpoints - 1), score = temperature * t;
    const double density = std::exp(-score * score / 2) / std::sqrt(2 * std::numbers::pi);
    const double gate = 1 / (1 + std::exp(-t));
    sum += density * (loss(score, gate) - loss(score, t > 0 ? 1 : 0)) * 2 * kReach / kMidpoints;
  }
  return sum;
}

// Reinforced router

/// z after simulating ż = a tanh(βz/2) − λz from a small start with a = β = 1.
double simulated_difference(double decay) {
  double z = 0.01;
  for (int step = 0; step < 400000; ++step) z += 0.05 * (std::tanh(z / 2) - decay * z);
  return z;
}

/// Whether a winner among E experts keeps more than twice an even share, a = β = 1.
bool winner_stays(int experts, double feedback) {
  const double decay = 1 / feedback;
  double winner = 1 / decay, other = 0;
  for (int step = 0; step < 40000; ++step) {
    const double rest = (experts - 1) * std::exp(other - winner);
    const double p = 1 / (1 + rest);
    const double moved = p - decay * winner;
    other += 0.1 * feedback * ((1 - p) / (experts - 1) - decay * other);
    winner += 0.1 * feedback * moved;
  }
  return winner - other > 0.01 * feedback;
}

}  // namespace

CheckFinding check_dual_slope(const CheckEffort& effort, double sign) {
  const int instances = kDualInstances * effort.seeds;
  int hits = 0;
  for (int repetition = 0; repetition < instances; ++repetition) {
    Engine engine = check_stream(effort, kDualId, repetition);
    const Matrix scores = draw_normals(engine, kFrozenRows, kFrozenExperts);
    const Vector from = draw_normals(engine, kFrozenExperts, 1), to = draw_normals(engine, kFrozenExperts, 1);
    const auto here = frozen_choices(scores, from, kFrozenActive),
               there = frozen_choices(scores, to, kFrozenActive);
    const Vector slope = loads_of(here, kFrozenExperts).array() - kMeanLoad;
    const double bound = dual_value(scores, from, here) + sign * slope.dot(to - from);
    hits += dual_value(scores, to, there) >= bound - kDualRounding;
  }
  return every_instance(hits, instances, "none: rounding is allowed for");
}

CheckFinding check_swaps(const CheckEffort& effort, double drift) {
  int swaps = 0, hits = 0;
  for (int repetition = 0; repetition < kSwapRuns * effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, kSwapsId, repetition);
    Matrix scores = draw_normals(engine, kFrozenRows, kFrozenExperts);
    Vector biases = Vector::Zero(kFrozenExperts);
    auto choices = frozen_choices(scores, biases, kFrozenActive);
    for (int round = 0; round < kSwapRounds; ++round) {
      const Vector errors = kMeanLoad - loads_of(choices, kFrozenExperts).array();
      const Vector move = kBiasRate * errors.array().sign();
      biases += move;
      if (drift > 0) scores += draw_normals(engine, kFrozenRows, kFrozenExperts, drift);
      auto next = frozen_choices(scores, biases, kFrozenActive);
      for (std::size_t i = 0; i < next.size(); ++i) {
        std::vector<int> lost, gained;
        std::set_difference(choices[i].begin(), choices[i].end(), next[i].begin(), next[i].end(),
                            std::back_inserter(lost));
        std::set_difference(next[i].begin(), next[i].end(), choices[i].begin(), choices[i].end(),
                            std::back_inserter(gained));
        for (const int e : lost) {
          for (const int other : gained) {
            ++swaps;
            hits += move[other] > move[e];
          }
        }
      }
      choices = std::move(next);
    }
  }
  return every_instance(hits, swaps, "none: swaps are counted");
}

CheckFinding check_group_covariance(const CheckEffort& effort, const std::string& term) {
  double largest = 0;
  for (int repetition = 0; repetition < kGroupBatches * effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, kGroupsId, repetition);
    constexpr int kRows = kGroups * kGroupRows;
    const int stride = kernels::padded(kGroupExperts);
    AlignedVector<double> scores(entries(kRows, stride), 0.0);
    for (int i = 0; i < kRows; ++i)
      fill_normal(engine, 1.5, scores.data() + entries(i, stride), size(kGroupExperts));
    GatingScratch<double> scratch;
    make_gating<double>(TopKGatingOptions{.k = kGroupActive, .renormalize = std::nullopt})
        ->gate({scores.data(), kRows, kGroupExperts}, scratch);
    RoutedBatch<double> batch{scores.data(), scratch.probabilities.data(), &scratch.routing};
    batch.tokens = kGroupRows;
    const auto value = [&](const std::string& name) {
      AuxiliaryScratch of_term;
      return auxiliary_loss_kinds()[auxiliary_loss_place(name)].value.in_double(batch, of_term);
    };
    Matrix shares = Matrix::Zero(kGroups, kGroupExperts), means = shares;
    for (int i = 0; i < kRows; ++i) {
      for_each_active(scratch.routing, i,
                      [&](int e) { shares(i / kGroupRows, e) += 1.0 / (kGroupRows * kGroupActive); });
      for (int e = 0; e < kGroupExperts; ++e)
        means(i / kGroupRows, e) += scratch.probabilities[entries(i, stride) + size(e)] / kGroupRows;
    }
    const double covariance = (shares.rowwise() - shares.colwise().mean())
                                  .cwiseProduct(means.rowwise() - means.colwise().mean())
                                  .sum() /
                              kGroups;
    largest = larger(largest, std::abs(value(term) - value("aux") - kGroupExperts * covariance));
  }
  return expected_zero(largest, 1e-12, "rounding of sums of 24 rows");
}

double loss_at_jump(double score, double gate) {
  const double error = gate - (score > 0 ? 1 : 0);
  return error * error;
}

double loss_at_continuous(double /*score*/, double gate) {
  return (gate - 0.5) * (gate - 0.5);
}

CheckFinding check_soft_to_hard(Interface interface, const LossAtScore& loss) {
  constexpr double kTemperature = 1e-3;
  const double density = 1 / std::sqrt(2 * std::numbers::pi);
  const double factor = interface == Interface::jump ? 2 * std::numbers::ln2 - 1 : -1;
  return {.predicted = factor * density,
          .measured = first_order_gap(loss, kTemperature),
          .error_bound = 1e-5,
          .error_origin = "terms of order τ², τ = 1/1000, and the quadrature",
          .details = {{"density at the interface", density}}};
}

CheckFinding check_pitchfork(double critical) {
  // a = β = 1: κ = 1/λ, and the statement's z² = 24 (1/critical − λ).
  constexpr double kAbove = 1.01;
  const double decay = 1 / (2 * kAbove), predicted = std::sqrt(24 * (1 / critical - decay));
  return {.predicted = 1,
          .measured = simulated_difference(decay) / predicted,
          .error_bound = 0.02,
          .error_origin = "the next order of z, for κ 1 % above 2",
          .details = {{"z simulated", simulated_difference(decay)}}};
}

double least_winning_feedback(int experts) {
  double least = kInfinity;
  for (int i = 1; i < 100000; ++i) {
    const double p = 1.0 / experts + (1 - 1.0 / experts) * i / 100000;
    least = std::min(least, std::log(p * (experts - 1) / (1 - p)) * (experts - 1) / (p * experts - 1));
  }
  return least;
}

CheckFinding check_winner(const std::function<double(int)>& least) {
  double largest = 0;
  CheckDetails details;
  for (const int experts : {3, 4, 8, 16, 64}) {
    double low = 1, high = 2.0 * experts;
    while (high - low > 1e-4) {
      const double middle = (low + high) / 2;
      (winner_stays(experts, middle) ? high : low) = middle;
    }
    details.emplace_back("least feedback, E = " + std::to_string(experts), high);
    largest = larger(largest, std::abs(high / least(experts) - 1));
  }
  return expected_zero(largest, 2e-3, "simulations of finite length near the fold", std::move(details));
}

CheckFinding check_noise_filter(const CheckEffort& effort, double most) {
  constexpr int kInstances = 500, kDim = 4;
  int hits = 0;
  for (int repetition = 0; repetition < kInstances * effort.seeds; ++repetition) {
    Engine engine = check_stream(effort, kFilterId, repetition);
    const Matrix root = draw_normals(engine, kDim, kDim);
    const Matrix covariance = root * root.transpose();
    const Vector beta = draw_normals(engine, kDim, 1);
    const double p = most * draw_uniform(engine), noise = std::exp(draw_normal(engine));
    const auto risk = [&](double weight) {
      const Matrix ridge = weight * covariance + noise * Matrix::Identity(kDim, kDim);
      const Vector solved = ridge.ldlt().solve(beta);
      return beta.dot(covariance * solved);
    };
    hits += risk(1) <= risk(p) * (1 + 1e-12);
  }
  return every_instance(hits, kInstances * effort.seeds, "none: rounding is allowed for");
}

std::vector<Check> questions_exact_checks() {
  const std::string balancing = "Wang et al. 2024 (2408.15664); 2512.03915", soft = "2605.02124",
                    router = "2605.29121";
  return {
      {kDualId, balancing,
       "frozen scores: the dual G(b) is convex with subgradient A − L, G(b') >= G(b) + (A(b) − L)(b' − b) "
       "(share of random pairs)",
       CheckVerdict::holds, [](Effort effort) { return check_dual_slope(effort); }},
      {kSwapsId, balancing,
       "frozen scores: a row swaps an expert only for one whose bias rose more (share of swaps under the "
       "sign "
       "rule)",
       CheckVerdict::holds, [](Effort effort) { return check_swaps(effort); }},
      {"questions.soft_to_hard.jump", soft,
       "two experts, a target that jumps with the hard mixture: (L_tau − L_0)/tau = (2 ln 2 − 1) rho D^2",
       CheckVerdict::holds, [](Effort) { return check_soft_to_hard(Interface::jump, loss_at_jump); }},
      {"questions.soft_to_hard.continuous", soft,
       "two experts, a target that is continuous at the interface: (L_tau − L_0)/tau = −rho D^2",
       CheckVerdict::holds,
       [](Effort) { return check_soft_to_hard(Interface::continuous, loss_at_continuous); }},
      {kFilterId, "2601.14792, Theorem 4.2",
       "ridge regression of one block has no more risk than the dense map's part of it, "
       "b'S(S + s^2 I)^-1 b <= b'S(pS + s^2 I)^-1 b (share of random blocks)",
       CheckVerdict::holds, [](Effort effort) { return check_noise_filter(effort); }},
      {kGroupsId, "Qiu et al. 2025 (2501.11873), derived",
       "micro = global + E sum_e Cov_g(f_ge, P_ge) for groups of equal size (largest deviation)",
       CheckVerdict::holds, [](Effort effort) { return check_group_covariance(effort); }},
      {"questions.reinforced_router.pitchfork", router,
       "two experts: above kappa = 2 scores differ by z, z^2 = 24 (a beta/2 − lambda)/(a beta^3) (simulated "
       "z "
       "over the formula)",
       CheckVerdict::holds, [](Effort) { return check_pitchfork(); }},
      {"questions.reinforced_router.winner", router,
       "E >= 3 experts: a winner exists from kappa = min_p ln(p(E − 1)/(1 − p))(E − 1)/(pE − 1) on (largest "
       "relative difference from simulations)",
       CheckVerdict::holds, [](Effort) { return check_winner(); }}};
}

}  // namespace moelab
