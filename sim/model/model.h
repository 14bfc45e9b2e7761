#pragma once

/// A model: router, gating and experts of a mixture, or one dense network.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sim/base/aligned.h"
#include "sim/loss/loss.h"
#include "sim/model/expert/expert.h"
#include "sim/model/gating.h"
#include "sim/model/router/router.h"

namespace moelab {

/// A range of the flat parameter buffer that shares a learning rate and a weight decay.
struct ParameterGroup {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool trainable = true;
};

template <class Real>
class Model {
 public:
  /// From a resolved `model` object. `default_skip_below` is for a soft training gating that does not set it.
  Model(const Json& spec, const Layout& layout, double default_skip_below);
  Model(const Json& spec, int input_dim, int output_dim, double default_skip_below)
      : Model(spec, Layout{.input_dim = input_dim, .output_dim = output_dim}, default_skip_below) {}

  void initialize(const Seeds& seeds);
  /// Starts a router that is linear in x at `rows` (E, d); see Router::start_at.
  void start_router_at(const Matrix& rows) { router_->start_at(rows, parameters_.data()); }

  /// How the model reads a sample: the data's layout, or that of one long row for a dense model that reads
  /// whole sequences. A sample has the same entries either way.
  const Layout& layout() const { return layout_; }
  int experts() const { return experts_; }  ///< 1 for dense models
  bool has_router() const { return router_ != nullptr; }
  /// Free parameters, padding excluded.
  std::size_t parameter_count() const;
  std::size_t router_parameter_count() const { return router_ ? router_->parameter_count() : 0; }
  std::size_t parameters_per_expert() const { return experts_bank_->parameters_per_expert(); }
  const Gating& train_gating() const { return train_gating_; }
  const Gating& eval_gating() const { return eval_gating_; }

  /// Entries of one expert's block, 0 where the experts are interleaved; see ExpertBank.
  std::size_t expert_block_size() const { return experts_bank_->expert_block_size(); }
  /// The routing of the last batch.
  const Routing<Real>& routing() const { return state_.routing; }
  /// Called in every forward pass between gating and experts: the last moment to bring the parameters of the
  /// active experts up to date, where a trainer defers updates.
  void before_experts(std::function<void(const Routing<Real>&)> hook) { before_experts_ = std::move(hook); }

  /// One flat buffer: [router | experts].
  AlignedVector<Real>& parameters() { return parameters_; }
  const AlignedVector<Real>& gradient() const { return gradient_; }
  ParameterGroup router_group() const { return {0, router_size_, router_trainable_}; }
  ParameterGroup expert_group() const { return {router_size_, parameters_.size(), true}; }

  /// L of a batch of n samples x (n, s, d), y (n, o) or (n, s, o) under the training gating, and its gradient
  /// in `gradient()`. With one target a sample the outputs of its tokens are added: f = Σ_t f(x_t). The
  /// router's part is not computed where it is frozen. Allocates only while batches, or the active pairs of a
  /// batch, grow beyond any before.
  double loss_and_gradient(const Real* x, const Real* y, int samples, const TaskLoss<Real>& loss);

  /// outputs (n, o) or (n, s, o) under `gating`, for any number of samples (done in blocks).
  void predict(const Real* x, int samples, const Gating& gating, Real* outputs);

  /// r = softmax(γ(x)) (n·s, E). Only for models with a router.
  void route(const Real* x, int samples, Real* probabilities);

  /// Rows that each expert computes under `gating`, (E).
  std::vector<std::int64_t> expert_loads(const Real* x, int samples, const Gating& gating);

  /// The router's and the experts' arrays, padding removed.
  std::vector<NamedArray<Real>> arrays() const;

 private:
  void forward(const Real* x, int samples, const Gating& gating, bool keep);
  /// What the experts read: x itself, or its columns after the image with the router's features.
  const Real* expert_inputs(const Real* x, int rows);
  void router_backward(const Real* x, int rows);
  int samples_of_block() const;
  /// One target a sample, and several rows of outputs that are added up for it.
  bool adds_tokens() const { return layout_.tokens > 1 && !layout_.target_per_token; }

  Layout layout_;
  int experts_;
  int expert_dim_;  ///< columns that the experts read
  bool router_trainable_ = false;
  Gating train_gating_;
  Gating eval_gating_;
  std::unique_ptr<Router<Real>> router_;
  std::unique_ptr<ExpertBank<Real>> experts_bank_;
  std::size_t router_size_ = 0;
  AlignedVector<Real> parameters_;
  AlignedVector<Real> gradient_;
  AlignedVector<Real> scores_;
  AlignedVector<Real> expert_inputs_;
  AlignedVector<Real> outputs_;  ///< (n·s, padded(o))
  AlignedVector<Real> sums_;     ///< (n, padded(o)), outputs added over tokens
  AlignedVector<Real> sums_gradient_;
  AlignedVector<Real> expert_input_gradient_;
  AlignedVector<Real> feature_gradient_;
  AlignedVector<Real> output_gradient_;
  AlignedVector<Real> gate_gradient_;
  GatingState<Real> state_;
  std::function<void(const Routing<Real>&)> before_experts_;
};

/// The `expert` object of the dense network that a resolved `model` of kind "dense" asks for: one more layer
/// than an expert unless `depth` is given, and the width whose parameter count is nearest to that of one
/// expert or of the whole mixture.
Json dense_network(const Json& spec, const Layout& layout);

}  // namespace moelab
