#include "sim/model/model.h"

#include <algorithm>

#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

/// Rows of a block in evaluation: enough to keep the kernels busy, few enough to stay in the cache.
constexpr int kEvaluationRows = 1024;

/// A sample as one row, for a network that reads a sequence whole.
Layout flattened(const Layout& layout) {
  return {.input_dim = layout.sample_dim(), .output_dim = layout.target_dim()};
}

bool reads_sequence(const Json& spec) {
  return spec.at("kind") == "dense" && spec.at("reads") == "sequence";
}

/// Whether the router of a layer of a stack is handed the layer before: an adaptive router may be placed in
/// some layers only (Nielsen et al. 2025, placement).
bool is_placed(const std::string& placement, int layer, int layers) {
  if (layer == 0) return false;
  if (placement == "skip_1") return layer >= 2;
  if (placement == "alternating") return layer % 2 == 1;
  if (placement == "back_half") return layer >= (layers + 1) / 2;
  return true;
}

}  // namespace

template <class Real>
Model<Real>::Model(const Json& spec, const Layout& layout, double default_skip_below)
    : layout_(reads_sequence(spec) ? flattened(layout) : layout) {
  if (spec.at("kind") == "dense") {
    layers_.emplace_back(dense_network(spec, layout), layout_);
    reads_previous_.push_back(false);
  } else {
    const Json& gating = spec.at("gating");
    train_gating_ = read_gating(gating.at("train"), default_skip_below);
    eval_gating_ = read_gating(gating.at("eval"), default_skip_below);
    balance_rate_ = static_cast<Real>(gating.value("balance_rate", 0.0));
    const int layers = spec.at("layers");
    if (layers > 1 && layout_.image.size() > 0) {
      throw UserError("model.layers", "got " + std::to_string(layers) +
                                          ", needs 1 where an image leads the input: the experts of a stack "
                                          "read all that the router reads");
    }
    for (int l = 0; l < layers; ++l) {
      layers_.emplace_back(spec, layout_, layers > 1 ? layout_.input_dim : layout_.output_dim);
      reads_previous_.push_back(is_placed(spec.at("router").value("placement", "full"), l, layers));
    }
    if (layers > 1) {
      readout_ = std::make_unique<Mlp<Real>>(std::vector<int>{layout_.input_dim, layout_.output_dim});
      hidden_.resize(static_cast<std::size_t>(layers));
    }
  }
  std::size_t size = 0;
  for (const MoeLayer<Real>& layer : layers_) {
    offsets_.push_back(size);
    size += layer.block_size();
  }
  offsets_.push_back(size);
  if (readout_) size += readout_->block_size();
  parameters_.resize(size);
  gradient_.resize(size);
}

template <class Real>
void Model<Real>::initialize(const Seeds& seeds) {
  for (int l = 0; l < layers(); ++l) {
    layers_[static_cast<std::size_t>(l)].initialize(seeds.of_layer(l), parameters_.data() + offset(l));
  }
  if (!readout_) return;
  Engine engine = seeds.of_layer(layers()).stream(Purpose::expert_init);
  readout_->initialize(engine, 1.0, parameters_.data() + offset(layers()));
}

template <class Real>
std::size_t Model<Real>::parameter_count() const {
  std::size_t count = readout_ ? readout_->parameter_count() : 0;
  for (const MoeLayer<Real>& layer : layers_) count += layer.parameter_count();
  return count;
}

template <class Real>
std::vector<ParameterGroup> Model<Real>::groups() const {
  using Role = ParameterGroup::Role;
  std::vector<ParameterGroup> groups;
  for (int l = 0; l < layers(); ++l) {
    const std::size_t experts_begin = offset(l) + layer(l).router_size();
    if (layer(l).has_router()) {
      groups.push_back({offset(l), experts_begin, layer(l).router_trainable(), Role::router, l});
    }
    groups.push_back({experts_begin, offset(l + 1), true, Role::expert, l});
  }
  if (readout_) groups.push_back({offset(layers()), parameters_.size(), true, Role::expert, -1});
  return groups;
}

template <class Real>
void Model<Real>::before_experts(const std::function<void(int, const Routing<Real>&)>& hook) {
  for (int l = 0; l < layers(); ++l) {
    if (!hook) {
      layers_[static_cast<std::size_t>(l)].before_experts(nullptr);
    } else {
      layers_[static_cast<std::size_t>(l)].before_experts(
          [hook, l](const Routing<Real>& routing) { hook(l, routing); });
    }
  }
}

template <class Real>
RouterContext<Real> Model<Real>::context(int layer, const Real* x, int rows) const {
  RouterContext<Real> context;
  const auto inputs = [&](int l) { return l > 0 ? hidden_[static_cast<std::size_t>(l) - 1].data() : x; };
  context.x = inputs(layer);
  context.rows = rows;
  context.stride = layout_.input_dim;
  context.first_x = x;
  context.training = in_training_step_;
  context.progress = progress_;
  if (layer < layers() && reads_previous_[static_cast<std::size_t>(layer)]) {
    const MoeLayer<Real>& previous = layers_[static_cast<std::size_t>(layer) - 1];
    context.previous_x = inputs(layer - 1);
    context.previous_probabilities = previous.state().probabilities.data();
    context.previous_stride = previous.routing().stride;
  }
  return context;
}

template <class Real>
RouterContext<Real> Model<Real>::forward_to(int layer, const Real* x, int rows, const Gating& gating,
                                            bool keep) {
  const int dim = layout_.input_dim;
  const int stride = kernels::padded(dim);
  for (int l = 0; l < layer; ++l) {
    const std::size_t at = static_cast<std::size_t>(l);
    const RouterContext<Real> read = context(l, x, rows);
    reserve_entries(layer_output_, entries(rows, stride));
    reserve_entries(hidden_[at], entries(rows, dim));
    layers_[at].forward(read, gating, parameters_.data() + offset(l), layer_output_.data(), keep);
    for (int row = 0; row < rows; ++row) {
      const Real* const h = read.x + entries(row, dim);
      const Real* const branch = layer_output_.data() + entries(row, stride);
      Real* const next = hidden_[at].data() + entries(row, dim);
      for (int j = 0; j < dim; ++j) next[j] = h[j] + branch[j];
    }
  }
  return context(layer, x, rows);
}

template <class Real>
void Model<Real>::forward(const Real* x, int samples, const Gating& gating, bool keep) {
  const int rows = samples * layout_.tokens;
  const int output_stride = kernels::padded(layout_.output_dim);
  reserve_entries(outputs_, entries(rows, output_stride));
  if (is_stack()) {
    const RouterContext<Real> top = forward_to(layers(), x, rows, gating, keep);
    readout_->forward(top.x, top.stride, rows, parameters_.data() + offset(layers()), outputs_.data());
  } else {
    layers_[0].forward(context(0, x, rows), gating, parameters_.data(), outputs_.data(), keep);
  }
  if (!adds_tokens()) return;
  reserve_entries(sums_, entries(samples, output_stride));
  for (int i = 0; i < samples; ++i) {
    kernels::sum_rows(outputs_.data() + entries(i * layout_.tokens, output_stride), layout_.tokens,
                      layout_.output_dim, output_stride, sums_.data() + entries(i, output_stride));
  }
}

template <class Real>
double Model<Real>::loss_and_gradient(const Real* x, const Real* y, int samples, const TaskLoss<Real>& loss) {
  in_training_step_ = true;
  double value = pass(x, y, samples, loss, losses_, nullptr);
  in_training_step_ = false;
  for (const MoeLayer<Real>& layer : layers_) value += layer.router_loss();
  for (int l = 0; l < layers() && has_router() && !losses_.empty(); ++l) {
    value += losses_.weighted_sum(layers_[static_cast<std::size_t>(l)].auxiliary_values(
        losses_, parameters_.data() + offset(l), losses_.reads_outputs()));
  }
  for (MoeLayer<Real>& layer : layers_) {
    if (balance_rate_ > 0) layer.balance_selection(balance_rate_);
  }
  return value;
}

template <class Real>
double Model<Real>::input_gradient(const Real* x, const Real* y, int samples, const TaskLoss<Real>& loss,
                                   Real* input_gradient) {
  AuxiliaryLosses none;
  return pass(x, y, samples, loss, none, input_gradient);
}

template <class Real>
double Model<Real>::pass(const Real* x, const Real* y, int samples, const TaskLoss<Real>& loss,
                         AuxiliaryLosses& losses, Real* input_gradient) {
  forward(x, samples, train_gating_, true);
  const int rows = samples * layout_.tokens;
  const int output_dim = layout_.output_dim;
  const int stride = kernels::padded(output_dim);
  reserve_entries(output_gradient_, entries(rows, stride));
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
  backward(x, rows, losses, output_gradient_.data(), input_gradient);
  return value;
}

template <class Real>
void Model<Real>::backward(const Real* x, int rows, AuxiliaryLosses& losses, Real* output_gradient,
                           Real* input_gradient) {
  const auto backward_layer = [&](int l, const Real* upstream, Real* down) {
    layers_[static_cast<std::size_t>(l)].backward(context(l, x, rows), train_gating_, losses,
                                                  parameters_.data() + offset(l), upstream,
                                                  gradient_.data() + offset(l), down);
  };
  const int dim = layout_.input_dim;
  if (!is_stack()) return backward_layer(0, output_gradient, input_gradient);
  const std::size_t size = entries(rows, kernels::padded(dim));
  reserve_entries(hidden_gradient_, size);
  reserve_entries(branch_gradient_, size);
  reserve_entries(scratch_, readout_->scratch_size(rows));
  readout_->backward(hidden_.back().data(), dim, rows, parameters_.data() + offset(layers()), outputs_.data(),
                     output_gradient, gradient_.data() + offset(layers()), scratch_.data(),
                     hidden_gradient_.data());
  for (int l = layers() - 1; l >= 0; --l) {
    const bool goes_on = l > 0 || input_gradient;
    backward_layer(l, hidden_gradient_.data(), goes_on ? branch_gradient_.data() : nullptr);
    if (goes_on) {
      kernels::add_scaled(Real(1), branch_gradient_.data(), hidden_gradient_.data(), static_cast<int>(size));
    }
  }
  if (input_gradient) std::copy_n(hidden_gradient_.begin(), size, input_gradient);
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

namespace {

/// Rows with coordinate π(j) at place j of the first places; the rest stays.
template <class Real>
const Real* permute_columns(const Real* rows, int count, std::ptrdiff_t stride,
                            std::span<const int> permutation, AlignedVector<Real>& permuted) {
  if (rows == nullptr) return nullptr;
  const std::size_t size = static_cast<std::size_t>(count) * static_cast<std::size_t>(stride);
  reserve_entries(permuted, size);
  std::copy_n(rows, size, permuted.begin());
  for (std::ptrdiff_t row = 0; row < count; ++row) {
    for (std::size_t j = 0; j < permutation.size(); ++j) {
      permuted[static_cast<std::size_t>(row * stride) + j] = rows[row * stride + permutation[j]];
    }
  }
  return permuted.data();
}

}  // namespace

template <class Real>
void Model<Real>::route(const Real* x, int samples, Real* probabilities, int layer,
                        std::span<const int> permutation) {
  MoeLayer<Real>& routed = layers_[static_cast<std::size_t>(layer)];
  for (int start = 0; start < samples; start += samples_of_block()) {
    const int rows = std::min(samples_of_block(), samples - start) * layout_.tokens;
    RouterContext<Real> context =
        forward_to(layer, x + entries(start, layout_.sample_dim()), rows, eval_gating_, false);
    if (!permutation.empty()) {
      context.x = permute_columns(context.x, rows, context.stride, permutation, permuted_);
      context.previous_x =
          permute_columns(context.previous_x, rows, context.stride, permutation, permuted_previous_);
    }
    routed.route(context, {}, parameters_.data() + offset(layer));
    const int stride = routed.routing().stride;
    for (int i = 0; i < rows; ++i) {
      std::copy_n(routed.state().probabilities.data() + entries(i, stride), experts(),
                  probabilities + entries(start * layout_.tokens + i, experts()));
    }
  }
}

template <class Real>
std::vector<std::int64_t> Model<Real>::expert_loads(const Real* x, int samples, const Gating& gating,
                                                    int layer) {
  MoeLayer<Real>& routed = layers_[static_cast<std::size_t>(layer)];
  std::vector<std::int64_t> loads(static_cast<std::size_t>(experts()), 0);
  for (int start = 0; start < samples; start += samples_of_block()) {
    const int rows = std::min(samples_of_block(), samples - start) * layout_.tokens;
    const RouterContext<Real> context =
        forward_to(layer, x + entries(start, layout_.sample_dim()), rows, eval_gating_, false);
    routed.route(context, gating, parameters_.data() + offset(layer));
    for (int e = 0; e < experts(); ++e) loads[static_cast<std::size_t>(e)] += routed.routing().pairs_of(e);
  }
  return loads;
}

template <class Real>
void Model<Real>::visit_blocks(const Real* x, int samples, const Gating& gating,
                               const std::function<void(int)>& visit) {
  for (int start = 0; start < samples; start += samples_of_block()) {
    const int block = std::min(samples_of_block(), samples - start);
    forward(x + entries(start, layout_.sample_dim()), block, gating, true);
    visit(start * layout_.tokens);
  }
}

template <class Real>
AuxiliaryValues Model<Real>::auxiliary_values(int layer) {
  return layers_[static_cast<std::size_t>(layer)].auxiliary_values(losses_,
                                                                   parameters_.data() + offset(layer), true);
}

template <class Real>
const Real* Model<Real>::pair_outputs(int layer) {
  return layers_[static_cast<std::size_t>(layer)].pair_outputs(parameters_.data() + offset(layer));
}

template <class Real>
std::vector<NamedArray<Real>> Model<Real>::arrays() const {
  std::vector<NamedArray<Real>> all;
  for (int l = 0; l < layers(); ++l) {
    for (NamedArray<Real>& array : layer(l).arrays(parameters_.data() + offset(l))) {
      if (is_stack()) array.name += "_layer" + std::to_string(l);
      all.push_back(std::move(array));
    }
  }
  if (readout_) {
    for (NamedArray<Real>& array :
         layer_arrays(*readout_, parameters_.data() + offset(layers()), "readout_")) {
      all.push_back(std::move(array));
    }
  }
  return all;
}

Json dense_network(const Json& spec, const Layout& layout) {
  const Json& expert = spec.at("expert");
  const int layers = spec.at("layers");
  const MoeLayer<float> layer(spec, layout, layers > 1 ? layout.input_dim : layout.output_dim);
  std::size_t target = layer.parameters_per_expert();
  if (spec.at("match") == "moe") target = static_cast<std::size_t>(layers) * layer.parameter_count();
  if (spec.at("match") == "moe" && layers > 1) {
    target += Mlp<float>({layout.input_dim, layout.output_dim}).parameter_count();
  }
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
