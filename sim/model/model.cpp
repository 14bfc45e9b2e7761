#include "sim/model/model.h"

#include <algorithm>

#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

/// Rows of a block in evaluation: enough to keep the kernels busy, few enough to stay in the cache.
constexpr int kEvaluationRows = 1024;

std::size_t entries(int rows, int stride) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(stride);
}

}  // namespace

template <class Real>
Model<Real>::Model(const Json& spec, int input_dim, int output_dim, double default_skip_below)
    : input_dim_(input_dim), output_dim_(output_dim) {
  const bool dense = spec.at("kind") == "dense";
  experts_ = dense ? 1 : spec.at("experts").get<int>();
  experts_bank_ =
      make_expert_bank<Real>(dense ? dense_network(spec, input_dim, output_dim) : spec.at("expert"),
                             input_dim, output_dim, experts_);
  if (!dense) {
    router_ = make_router<Real>(spec.at("router"), input_dim, experts_);
    router_trainable_ = spec.at("router").at("trainable").get<bool>();
    router_size_ = router_->block_size();
    train_gating_ = read_gating(spec.at("gating").at("train"), default_skip_below);
    eval_gating_ = read_gating(spec.at("gating").at("eval"), default_skip_below);
  }
  parameters_.resize(router_size_ + experts_bank_->block_size());
  gradient_.resize(parameters_.size());
}

template <class Real>
void Model<Real>::initialize(const Seeds& seeds) {
  if (router_) router_->initialize(seeds, parameters_.data());
  experts_bank_->initialize(seeds, parameters_.data() + router_size_);
}

template <class Real>
std::size_t Model<Real>::parameter_count() const {
  return router_parameter_count() +
         static_cast<std::size_t>(experts_) * experts_bank_->parameters_per_expert();
}

template <class Real>
void Model<Real>::forward(const Real* x, int rows, const Gating& gating, bool keep) {
  const int stride = kernels::padded(experts_);
  reserve_entries(outputs_, entries(rows, kernels::padded(output_dim_)));
  reserve_entries(scores_, entries(rows, stride));
  // A dense network is a single expert with gate softmax of one score = 1.
  if (router_) {
    router_->forward({x, rows}, parameters_.data(), scores_.data());
  } else {
    std::fill_n(scores_.begin(), entries(rows, stride), Real(0));
  }
  gate(gating, scores_.data(), rows, experts_, state_);
  if (before_experts_) before_experts_(state_.routing);
  experts_bank_->forward(x, state_.routing, parameters_.data() + router_size_, outputs_.data(), keep);
}

template <class Real>
double Model<Real>::loss_and_gradient(const Real* x, const Real* y, int rows, const TaskLoss<Real>& loss) {
  forward(x, rows, train_gating_, true);
  reserve_entries(output_gradient_, entries(rows, kernels::padded(output_dim_)));
  reserve_entries(gate_gradient_, entries(rows, kernels::padded(experts_)));
  const double value =
      loss.value_and_gradient(outputs_.data(), y, rows, output_dim_, output_gradient_.data());
  experts_bank_->backward(x, state_.routing, parameters_.data() + router_size_, output_gradient_.data(),
                          gradient_.data() + router_size_, gate_gradient_.data());
  if (router_ && router_trainable_) {
    gate_backward(train_gating_, state_, gate_gradient_.data(), gate_gradient_.data());
    router_->backward({x, rows}, parameters_.data(), gate_gradient_.data(), gradient_.data());
  }
  return value;
}

template <class Real>
void Model<Real>::predict(const Real* x, int rows, const Gating& gating, Real* outputs) {
  const int stride = kernels::padded(output_dim_);
  for (int start = 0; start < rows; start += kEvaluationRows) {
    const int block = std::min(kEvaluationRows, rows - start);
    forward(x + entries(start, input_dim_), block, gating, false);
    for (int i = 0; i < block; ++i) {
      std::copy_n(outputs_.data() + entries(i, stride), output_dim_,
                  outputs + entries(start + i, output_dim_));
    }
  }
}

template <class Real>
void Model<Real>::route(const Real* x, int rows, Real* probabilities) {
  const int stride = kernels::padded(experts_);
  for (int start = 0; start < rows; start += kEvaluationRows) {
    const int block = std::min(kEvaluationRows, rows - start);
    reserve_entries(scores_, entries(block, stride));
    router_->forward({x + entries(start, input_dim_), block}, parameters_.data(), scores_.data());
    kernels::softmax_rows(scores_.data(), scores_.data(), block, experts_, stride);
    for (int i = 0; i < block; ++i) {
      std::copy_n(scores_.data() + entries(i, stride), experts_,
                  probabilities + entries(start + i, experts_));
    }
  }
}

template <class Real>
std::vector<std::int64_t> Model<Real>::expert_loads(const Real* x, int rows, const Gating& gating) {
  std::vector<std::int64_t> loads(static_cast<std::size_t>(experts_), 0);
  for (int start = 0; start < rows; start += kEvaluationRows) {
    const int block = std::min(kEvaluationRows, rows - start);
    reserve_entries(scores_, entries(block, kernels::padded(experts_)));
    router_->forward({x + entries(start, input_dim_), block}, parameters_.data(), scores_.data());
    gate(gating, scores_.data(), block, experts_, state_);
    for (int e = 0; e < experts_; ++e) loads[static_cast<std::size_t>(e)] += state_.routing.pairs_of(e);
  }
  return loads;
}

template <class Real>
std::vector<NamedArray<Real>> Model<Real>::arrays() const {
  std::vector<NamedArray<Real>> all;
  if (router_) all = router_->arrays(parameters_.data());
  for (NamedArray<Real>& array : experts_bank_->arrays(parameters_.data() + router_size_)) {
    all.push_back(std::move(array));
  }
  return all;
}

Json dense_network(const Json& spec, int input_dim, int output_dim) {
  const Json& expert = spec.at("expert");
  const int experts = spec.at("experts");
  const std::size_t per_expert =
      make_expert_bank<float>(expert, input_dim, output_dim, 1)->parameters_per_expert();
  const std::size_t router = make_router<float>(spec.at("router"), input_dim, experts)->parameter_count();
  const std::size_t target =
      spec.at("match") == "expert" ? per_expert : router + static_cast<std::size_t>(experts) * per_expert;
  Json network = {{"kind", "mlp"}, {"depth", expert_depth(expert) + 1}, {"width", 1}, {"init_scale", 1.0}};
  if (expert.at("kind") == "mlp") network["init_scale"] = expert.at("init_scale");
  const auto count_at = [&](int width) {
    network["width"] = width;
    return make_expert_bank<float>(network, input_dim, output_dim, 1)->parameters_per_expert();
  };
  int low = 1;
  int high = 2;
  while (count_at(high) < target) high *= 2;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (count_at(middle) <= target ? low : high) = middle;
  }
  const std::size_t below = count_at(low);
  const std::size_t above = count_at(high);
  const std::size_t miss_below = below > target ? below - target : target - below;
  const std::size_t miss_above = above > target ? above - target : target - above;
  network["width"] = miss_above < miss_below ? high : low;
  return network;
}

template class Model<float>;
template class Model<double>;

}  // namespace moelab
