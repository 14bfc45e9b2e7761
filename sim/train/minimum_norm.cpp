#include "sim/train/minimum_norm.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "sim/base/error.h"
#include "sim/base/numerics.h"

namespace moelab {
namespace {

/// One output of one row as a loss: its gradient is a row of the Jacobian.
template <class Real>
class SingleOutput final : public TaskLoss<Real> {
 public:
  explicit SingleOutput(Eigen::Index place) : place_(place) {}

  double value_and_gradient(const Real* outputs, const Real* targets, int rows, int output_dim,
                            Real* output_gradient) const override {
    const int stride = kernels::padded(output_dim);
    std::fill_n(output_gradient, entries(rows, stride), Real(0));
    const auto row = static_cast<int>(place_ / output_dim), output = static_cast<int>(place_ % output_dim);
    output_gradient[entries(row, stride) + size(output)] = 1;
    count = static_cast<Eigen::Index>(rows) * output_dim;
    residual = static_cast<double>(targets[place_]) -
               static_cast<double>(outputs[entries(row, stride) + size(output)]);
    return 0;
  }

  mutable Eigen::Index count = 0;  ///< outputs of the batch
  mutable double residual = 0;     ///< y − f of this output

 private:
  Eigen::Index place_;
};

template <class Made>
std::unique_ptr<Optimizer<Made>> descent(const AnyOptions& /*options*/, std::size_t count) {
  return make_optimizer<Made>(TrainingRule(SgdOptions{}), count);
}

}  // namespace

void MinimumNormOptions::bind(Fields& fields) {
  fields.add("ridge", ridge, positive(), "λ of ‖J Δw − (y − f)‖² / k + λ ‖·‖² (default: the limit λ → 0)");
  fields.add("penalty", penalty, {"step", "weights"}, "what λ penalises: Δw, or w + Δw");
}

TrainingRuleKind minimum_norm_rule() {
  TrainingRuleKind kind{
      {"minimum_norm",
       "experts: Δw = η J⁺ (y − f), J the Jacobian of a batch's outputs in w; with linear experts and η = 1 "
       "the nearest interpolant (Li et al. 2025). The router follows its gradient afterwards, as with sgd",
       MinimumNormOptions{}, MinimumNormOptions{}},
      {descent<float>, descent<double>}};
  kind.rescales_gradients = false;
  return kind;
}

bool is_solved(const TrainOptions& options) {
  return options.optimizer.as<MinimumNormOptions>() != nullptr;
}

void check_minimum_norm(const TrainOptions& options, const ModelOptions& model, const LossOptions& loss) {
  const MinimumNormOptions* const own = options.optimizer.as<MinimumNormOptions>();
  if (!own) return;
  if (loss.task != "mse")
    throw InvalidOption("train.optimizer", "got \"minimum_norm\", needs loss.task \"mse\"");
  if (mixtures_of(model) == 0)  // not even a dense model that matches a mixture
    throw InvalidOption("train.optimizer", "got \"minimum_norm\", needs a model with experts");
  if (model.shared_experts > 0)
    throw InvalidOption("train.optimizer",
                        "got \"minimum_norm\", which does not move shared experts; needs "
                        "model.shared_experts 0");
  if (own->penalty == MinimumNormOptions::Penalty::weights && !own->ridge)
    throw InvalidOption("train.optimizer.penalty", "got \"weights\", needs train.optimizer.ridge");
}

template <class Real>
MinimumNormSteps<Real>::MinimumNormSteps(const TrainOptions& options, const std::vector<std::size_t>& frozen,
                                         Model<Real>& model, Workspace<Real>& workspace)
    : options_(*options.optimizer.as<MinimumNormOptions>()),
      rate_(options.lr->expert),
      schedule_(options.schedule),
      model_(model),
      workspace_(workspace) {
  const Network<Real>& network = *model.network;
  for (int layer = 0; layer < network.layers() && network.has_router(); ++layer) {
    const std::string ending = network.layer_ending(layer);
    for (const auto& [name, places] : array_places(network)) {
      if (!name.starts_with("expert_") || !name.ends_with(ending)) continue;
      const std::size_t of_expert = places.size() / size(network.mixture(layer).networks());
      for (std::size_t i = 0; i < places.size(); ++i) {
        if (std::find(frozen.begin(), frozen.end(), places[i]) == frozen.end())
          entries_.push_back({places[i], layer, static_cast<int>(i / of_expert)});
      }
    }
  }
}

template <class Real>
void MinimumNormSteps<Real>::move(const Samples<Real>& x, const Real* y, int samples, std::int64_t step,
                                  std::int64_t steps) {
  if (entries_.empty()) return;  // all experts are frozen
  Matrix jacobian;
  Vector residual(1);
  for (Eigen::Index k = 0; k < residual.size(); ++k) {
    const SingleOutput<Real> output(k);
    loss_and_gradient<Real>(model_, {output}, x, y, samples, workspace_);
    if (k == 0) {
      residual.resize(output.count);
      jacobian.resize(output.count, static_cast<Eigen::Index>(entries_.size()));
    }
    residual[k] = output.residual;
    for (std::size_t p = 0; p < entries_.size(); ++p)
      jacobian(k, static_cast<Eigen::Index>(p)) = static_cast<double>(workspace_.gradient[entries_[p].place]);
  }
  Vector change;
  if (!options_.ridge) {
    change = least_norm_solution(jacobian, residual);
  } else {
    const double rows = static_cast<double>(residual.size());
    Matrix normal = jacobian.transpose() * jacobian / rows;
    normal.diagonal().array() += *options_.ridge;
    change = jacobian.transpose() * residual / rows;
    if (options_.penalty == MinimumNormOptions::Penalty::weights) {
      for (std::size_t p = 0; p < entries_.size(); ++p)
        change[static_cast<Eigen::Index>(p)] -=
            *options_.ridge * static_cast<double>(model_.parameters[entries_[p].place]);
    }
    change = normal.ldlt().solve(change).eval();
  }
  change *= rate_ * schedule_.factor(step, steps);
  forget();
  for (std::size_t p = 0; p < entries_.size(); ++p) {
    const double own = change[static_cast<Eigen::Index>(p)];
    Real& parameter = model_.parameters[entries_[p].place];
    parameter = static_cast<Real>(static_cast<double>(parameter) + own);
    std::vector<double>& moves = model_.network->mixture_scratch(entries_[p].layer, workspace_).moves;
    moves.resize(size(model_.network->experts()), 0.0);
    moves[size(entries_[p].expert)] += own * own;
  }
  for (int layer = 0; layer < model_.network->layers(); ++layer)
    for (double& move : model_.network->mixture_scratch(layer, workspace_).moves) move = std::sqrt(move);
}

template <class Real>
void MinimumNormSteps<Real>::forget() {
  for (int layer = 0; layer < model_.network->layers(); ++layer)
    model_.network->mixture_scratch(layer, workspace_).moves.clear();
}

template class MinimumNormSteps<float>;
template class MinimumNormSteps<double>;

}  // namespace moelab
