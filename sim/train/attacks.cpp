#include "sim/train/attacks.h"

#include <algorithm>

#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

/// Stream of Purpose::evaluation for spsa's directions; contamination.cpp has those below.
constexpr std::uint64_t kDirections = 3;
constexpr int kBlockRows = 1024;

/// A block of samples under attack, in the precision of the model.
template <class Real>
class Attack {
 public:
  Attack(const Json& contamination, Model<Real>& model, const TaskLoss<Real>& loss)
      : spec_(contamination), model_(model), loss_(loss), layout_(model.layout()) {
    const double budget = spec_.at("budget");
    steps_ = spec_.value("steps", 1);
    step_size_ = spec_.value("step_size", steps_ > 1 ? 2.5 * budget / steps_ : budget);
  }

  void run(const Matrix& x, const Matrix& y, Engine& engine, Matrix& attacked) {
    samples_ = static_cast<int>(x.rows());
    clean_.assign(x.data(), x.data() + x.size());
    targets_.assign(y.data(), y.data() + y.size());
    inputs_ = clean_;
    const Real budget = static_cast<Real>(spec_.at("budget").get<double>());
    for (int step = 0; step < steps_; ++step) {
      if (spec_.at("kind") == "spsa") {
        estimate_gradient(engine);
      } else {
        exact_gradient();
      }
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        const Real sign = gradient_[i] > 0 ? Real(1) : gradient_[i] < 0 ? Real(-1) : Real(0);
        inputs_[i] = std::clamp(inputs_[i] + static_cast<Real>(step_size_) * sign, clean_[i] - budget,
                                clean_[i] + budget);
      }
    }
    attacked = Eigen::Map<const MatrixOf<Real>>(inputs_.data(), x.rows(), x.cols()).template cast<double>();
  }

 private:
  void exact_gradient() {
    const int rows = samples_ * layout_.tokens;
    const std::size_t stride = size(kernels::padded(layout_.input_dim));
    padded_.resize(size(rows) * stride);
    model_.input_gradient(inputs_.data(), targets_.data(), samples_, loss_, padded_.data());
    gradient_.resize(inputs_.size());
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      gradient_[i] = padded_[i / size(layout_.input_dim) * stride + i % size(layout_.input_dim)];
    }
  }

  /// Σ_v v (ℓ(x + δv) − ℓ(x − δv)) over random signs v, sample by sample: proportional to the estimate.
  void estimate_gradient(Engine& engine) {
    const Real difference = static_cast<Real>(spec_.at("difference").get<double>());
    gradient_.assign(inputs_.size(), Real(0));
    std::vector<Real> signs(inputs_.size()), moved(inputs_.size());
    for (int direction = 0; direction < spec_.at("directions").template get<int>(); ++direction) {
      for (Real& sign : signs) sign = draw_uniform(engine) < 0.5 ? Real(-1) : Real(1);
      std::vector<double> slopes(size(samples_), 0.0);
      for (const Real side : {Real(1), Real(-1)}) {
        for (std::size_t i = 0; i < moved.size(); ++i) moved[i] = inputs_[i] + side * difference * signs[i];
        add_losses(moved, static_cast<double>(side), slopes);
      }
      const std::size_t width = size(layout_.sample_dim());
      for (std::size_t i = 0; i < signs.size(); ++i) {
        gradient_[i] += static_cast<Real>(slopes[i / width]) * signs[i];
      }
    }
  }

  /// sums[i] += factor · the task loss of sample i, averaged over its targets.
  void add_losses(const std::vector<Real>& x, double factor, std::vector<double>& sums) {
    outputs_.resize(targets_.size());
    model_.predict(x.data(), samples_, model_.train_gating(), outputs_.data());
    const int output_dim = layout_.output_dim, targets_of_sample = layout_.target_dim() / output_dim;
    const std::size_t stride = size(kernels::padded(output_dim));
    padded_.resize(2 * size(targets_of_sample) * stride);
    Real* const gradient = padded_.data() + padded_.size() / 2;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const std::size_t first = i * size(layout_.target_dim());
      for (std::size_t row = 0; row < size(targets_of_sample); ++row) {
        std::copy_n(outputs_.data() + first + row * size(output_dim), output_dim,
                    padded_.data() + row * stride);
      }
      sums[i] += factor * loss_.value_and_gradient(padded_.data(), targets_.data() + first, targets_of_sample,
                                                   output_dim, gradient);
    }
  }

  const Json& spec_;
  Model<Real>& model_;
  const TaskLoss<Real>& loss_;
  const Layout layout_;
  int steps_;
  double step_size_;
  int samples_ = 0;
  std::vector<Real> clean_, targets_, inputs_, gradient_, outputs_;
  AlignedVector<Real> padded_;
};

}  // namespace

template <class Real>
Matrix attacked_inputs(const Json& contamination, Model<Real>& model, const TaskLoss<Real>& loss,
                       const Dataset& clean, const Seeds& seeds) {
  Attack<Real> attack(contamination, model, loss);
  Engine engine = seeds.stream(Purpose::evaluation, kDirections);
  Matrix attacked = clean.x;
  const Eigen::Index samples = std::max(1, kBlockRows / model.layout().tokens);
  Matrix block;
  for (Eigen::Index start = 0; start < clean.x.rows(); start += samples) {
    const Eigen::Index count = std::min(samples, clean.x.rows() - start);
    attack.run(clean.x.middleRows(start, count), clean.y.middleRows(start, count), engine, block);
    attacked.middleRows(start, count) = block;
  }
  return attacked;
}

template Matrix attacked_inputs(const Json&, Model<float>&, const TaskLoss<float>&, const Dataset&,
                                const Seeds&);
template Matrix attacked_inputs(const Json&, Model<double>&, const TaskLoss<double>&, const Dataset&,
                                const Seeds&);

}  // namespace moelab
