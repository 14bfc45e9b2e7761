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

/// The columns of a row that experts read when a router hands on `features` more.
int expert_columns(const Layout& layout, int features) {
  return layout.input_dim - layout.image.size() + features;
}

/// A sample as one row, for a network that reads a sequence whole.
Layout flattened(const Layout& layout) {
  return {.input_dim = layout.sample_dim(), .output_dim = layout.target_dim()};
}

bool reads_sequence(const Json& spec) {
  return spec.at("kind") == "dense" && spec.at("reads") == "sequence";
}

}  // namespace

template <class Real>
Model<Real>::Model(const Json& spec, const Layout& layout, double default_skip_below)
    : layout_(reads_sequence(spec) ? flattened(layout) : layout) {
  if (spec.at("kind") == "dense") {
    experts_ = 1;
    expert_dim_ = layout_.input_dim;
    experts_bank_ =
        make_expert_bank<Real>(dense_network(spec, layout), expert_dim_, layout_.output_dim, experts_);
  } else {
    experts_ = spec.at("experts");
    router_ = make_router<Real>(spec.at("router"), layout_, experts_);
    router_trainable_ = spec.at("router").at("trainable").get<bool>();
    router_size_ = router_->block_size();
    train_gating_ = read_gating(spec.at("gating").at("train"), default_skip_below);
    eval_gating_ = read_gating(spec.at("gating").at("eval"), default_skip_below);
    expert_dim_ = expert_columns(layout_, router_->feature_dim());
    experts_bank_ = make_expert_bank<Real>(spec.at("expert"), expert_dim_, layout_.output_dim, experts_);
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
const Real* Model<Real>::expert_inputs(const Real* x, int rows) {
  if (expert_dim_ == layout_.input_dim) return x;
  const int features = router_->feature_dim();
  const int own = expert_dim_ - features;
  reserve_entries(expert_inputs_, entries(rows, expert_dim_));
  for (int row = 0; row < rows; ++row) {
    Real* const place = expert_inputs_.data() + entries(row, expert_dim_);
    std::copy_n(x + entries(row, layout_.input_dim) + layout_.image.size(), own, place);
    if (features > 0) std::copy_n(router_->features() + entries(row, features), features, place + own);
  }
  return expert_inputs_.data();
}

template <class Real>
void Model<Real>::forward(const Real* x, int samples, const Gating& gating, bool keep) {
  const int rows = samples * layout_.tokens;
  const int stride = kernels::padded(experts_);
  const int output_stride = kernels::padded(layout_.output_dim);
  reserve_entries(outputs_, entries(rows, output_stride));
  reserve_entries(scores_, entries(rows, stride));
  // A dense network is a single expert with gate softmax of one score = 1.
  if (router_) {
    router_->forward({x, rows, layout_.input_dim}, parameters_.data(), scores_.data());
  } else {
    std::fill_n(scores_.begin(), entries(rows, stride), Real(0));
  }
  gate(gating, scores_.data(), rows, experts_, state_);
  if (before_experts_) before_experts_(state_.routing);
  experts_bank_->forward(expert_inputs(x, rows), state_.routing, parameters_.data() + router_size_,
                         outputs_.data(), keep);
  if (!adds_tokens()) return;
  reserve_entries(sums_, entries(samples, output_stride));
  for (int i = 0; i < samples; ++i) {
    kernels::sum_rows(outputs_.data() + entries(i * layout_.tokens, output_stride), layout_.tokens,
                      layout_.output_dim, output_stride, sums_.data() + entries(i, output_stride));
  }
}

template <class Real>
double Model<Real>::loss_and_gradient(const Real* x, const Real* y, int samples, const TaskLoss<Real>& loss) {
  forward(x, samples, train_gating_, true);
  const int rows = samples * layout_.tokens;
  const int output_dim = layout_.output_dim;
  const int stride = kernels::padded(output_dim);
  reserve_entries(output_gradient_, entries(rows, stride));
  reserve_entries(gate_gradient_, entries(rows, kernels::padded(experts_)));
  double value = 0;
  if (adds_tokens()) {
    reserve_entries(sums_gradient_, entries(samples, stride));
    value = loss.value_and_gradient(sums_.data(), y, samples, output_dim, sums_gradient_.data());
    for (int row = 0; row < rows; ++row) {
      std::copy_n(sums_gradient_.data() + entries(row / layout_.tokens, stride), stride,
                  output_gradient_.data() + entries(row, stride));
    }
  } else {
    value = loss.value_and_gradient(outputs_.data(), y, rows, output_dim, output_gradient_.data());
  }
  const bool router_learns = router_ && router_trainable_;
  Real* input_gradient = nullptr;
  if (router_learns && router_->feature_dim() > 0) {
    reserve_entries(expert_input_gradient_, entries(rows, kernels::padded(expert_dim_)));
    input_gradient = expert_input_gradient_.data();
  }
  const Real* const inputs = expert_dim_ == layout_.input_dim ? x : expert_inputs_.data();
  experts_bank_->backward(inputs, state_.routing, parameters_.data() + router_size_, output_gradient_.data(),
                          gradient_.data() + router_size_, gate_gradient_.data(), input_gradient);
  if (router_learns) router_backward(x, rows);
  return value;
}

template <class Real>
void Model<Real>::router_backward(const Real* x, int rows) {
  gate_backward(train_gating_, state_, gate_gradient_.data(), gate_gradient_.data());
  const int features = router_->feature_dim();
  RouterGradients<Real> gradients{gate_gradient_.data(), nullptr, gradient_.data(), nullptr};
  if (features > 0) {
    reserve_entries(feature_gradient_, entries(rows, features));
    for (int row = 0; row < rows; ++row) {
      const std::size_t at = entries(row, kernels::padded(expert_dim_)) + entries(1, expert_dim_ - features);
      std::copy_n(expert_input_gradient_.data() + at, features,
                  feature_gradient_.data() + entries(row, features));
    }
    gradients.features = feature_gradient_.data();
  }
  router_->backward({x, rows, layout_.input_dim}, parameters_.data(), gradients);
}

template <class Real>
int Model<Real>::samples_of_block() const {
  return std::max(1, kEvaluationRows / layout_.tokens);
}

template <class Real>
void Model<Real>::predict(const Real* x, int samples, const Gating& gating, Real* outputs) {
  const int output_dim = layout_.output_dim;
  const int stride = kernels::padded(output_dim);
  const int rows_of_sample = adds_tokens() ? 1 : layout_.tokens;
  for (int start = 0; start < samples; start += samples_of_block()) {
    const int block = std::min(samples_of_block(), samples - start);
    forward(x + entries(start, layout_.sample_dim()), block, gating, false);
    const Real* const values = adds_tokens() ? sums_.data() : outputs_.data();
    for (int i = 0; i < block * rows_of_sample; ++i) {
      std::copy_n(values + entries(i, stride), output_dim,
                  outputs + entries(start * rows_of_sample + i, output_dim));
    }
  }
}

template <class Real>
void Model<Real>::route(const Real* x, int samples, Real* probabilities) {
  const int stride = kernels::padded(experts_);
  for (int start = 0; start < samples; start += samples_of_block()) {
    const int rows = std::min(samples_of_block(), samples - start) * layout_.tokens;
    reserve_entries(scores_, entries(rows, stride));
    router_->forward({x + entries(start, layout_.sample_dim()), rows, layout_.input_dim}, parameters_.data(),
                     scores_.data());
    kernels::softmax_rows(scores_.data(), scores_.data(), rows, experts_, stride);
    for (int i = 0; i < rows; ++i) {
      std::copy_n(scores_.data() + entries(i, stride), experts_,
                  probabilities + entries(start * layout_.tokens + i, experts_));
    }
  }
}

template <class Real>
std::vector<std::int64_t> Model<Real>::expert_loads(const Real* x, int samples, const Gating& gating) {
  std::vector<std::int64_t> loads(static_cast<std::size_t>(experts_), 0);
  for (int start = 0; start < samples; start += samples_of_block()) {
    const int rows = std::min(samples_of_block(), samples - start) * layout_.tokens;
    reserve_entries(scores_, entries(rows, kernels::padded(experts_)));
    router_->forward({x + entries(start, layout_.sample_dim()), rows, layout_.input_dim}, parameters_.data(),
                     scores_.data());
    gate(gating, scores_.data(), rows, experts_, state_);
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

Json dense_network(const Json& spec, const Layout& layout) {
  const Json& expert = spec.at("expert");
  const int experts = spec.at("experts");
  const std::unique_ptr<Router<float>> router = make_router<float>(spec.at("router"), layout, experts);
  const int expert_dim = expert_columns(layout, router->feature_dim());
  const std::size_t per_expert =
      make_expert_bank<float>(expert, expert_dim, layout.output_dim, 1)->parameters_per_expert();
  const std::size_t target = spec.at("match") == "expert"
                                 ? per_expert
                                 : router->parameter_count() + static_cast<std::size_t>(experts) * per_expert;
  const Layout own = reads_sequence(spec) ? flattened(layout) : layout;
  const int depth = spec.value("depth", expert_depth(expert) + 1);
  Json network = {{"kind", "mlp"}, {"depth", depth}, {"width", 1}, {"init_scale", 1.0}};
  if (expert.at("kind") == "mlp") network["init_scale"] = expert.at("init_scale");
  if (depth == 1) return network;  // one matrix from inputs to outputs, whatever the width
  const auto count_at = [&](int width) {
    network["width"] = width;
    return make_expert_bank<float>(network, own.input_dim, own.output_dim, 1)->parameters_per_expert();
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
