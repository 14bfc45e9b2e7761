#include "sim/model/blocks/residual.h"

#include <algorithm>
#include <functional>

#include "sim/base/kernels/multiply.h"
#include "sim/model/gating/step_stream.h"

namespace moelab {

template <class Real>
Residual<Real>::Residual(std::unique_ptr<Block<Real>> block, Dropout dropout)
    : inner_(std::move(block)), dropout_(std::move(dropout)) {
  for (const StateArray& array : inner_->state_arrays()) dropout_state_ += size(array.size());
}

template <class Real>
std::vector<StateArray> Residual<Real>::state_arrays() const {
  std::vector<StateArray> all = inner_->state_arrays();
  if (dropout_.probability > 0) all.push_back(step_stream::array(dropout_.name.c_str()));
  return all;
}

template <class Real>
void Residual<Real>::start_state(const Start& start, double* state) const {
  inner_->start_state(start, state);
  if (dropout_.probability > 0) step_stream::start(start, state + dropout_state_, dropout_.stream);
}

template <class Real>
void Residual<Real>::begin_step(double progress, const Real* parameters, double* state) const {
  inner_->begin_step(progress, parameters, state);
  if (dropout_.probability > 0) step_stream::advance(state + dropout_state_);
}

template <class Real>
void Residual<Real>::end_step(const Scratch& scratch, double* state) const {
  inner_->end_step(*static_cast<const ResidualScratch<Real>&>(scratch).inner, state);
}

template <class Real>
std::unique_ptr<Scratch> Residual<Real>::make_scratch() const {
  auto scratch = std::make_unique<ResidualScratch<Real>>();
  scratch->inner = inner_->make_scratch();
  return scratch;
}

template <class Real>
View<Real> Residual<Real>::branch(ResidualScratch<Real>& scratch, int rows) const {
  reserve_entries(scratch.branch, entries(rows, kernels::padded(output_dim())));
  return kernels::padded_rows(scratch.branch.data(), rows, output_dim());
}

template <class Real>
void Residual<Real>::draw_kept(const BlockValues<Real>& values, int rows,
                               ResidualScratch<Real>& scratch) const {
  const int columns = output_dim(), stride = kernels::padded(columns);
  reserve_entries(scratch.kept, entries(rows, stride));
  Engine engine = step_stream::engine(values.state + dropout_state_, kStepDropout);
  const Real scale = static_cast<Real>(1 / (1 - dropout_.probability));
  for (int row = 0; row < rows; ++row) {
    Real* const kept = scratch.kept.data() + entries(row, stride);
    for (int j = 0; j < columns; ++j) kept[j] = draw_uniform(engine) < dropout_.probability ? Real(0) : scale;
    std::fill(kept + columns, kept + stride, Real(0));
  }
}

template <class Real>
void Residual<Real>::forward(const Pass<Real>& pass, const View<const Real>& inputs,
                             const BlockValues<Real>& values, LayerSignals<Real>& signals, Scratch& scratch,
                             const View<Real>& outputs) const {
  MOELAB_EXPECT(inputs.columns == output_dim() && inputs.rows == outputs.rows);
  ResidualScratch<Real>& mine = static_cast<ResidualScratch<Real>&>(scratch);
  const View<Real> branch_rows = branch(mine, inputs.rows);
  inner_->forward(pass, inputs, values, signals, *mine.inner, branch_rows);
  if (drops(pass)) {
    draw_kept(values, inputs.rows, mine);
    for (int row = 0; row < inputs.rows; ++row) {
      const Real* const x = inputs.row(row);
      const Real* const f = branch_rows.row(row);
      const Real* const kept = mine.kept.data() + entries(row, kernels::padded(inputs.columns));
      for (int j = 0; j < inputs.columns; ++j) outputs.row(row)[j] = x[j] + kept[j] * f[j];
    }
    return;
  }
  for (int row = 0; row < inputs.rows; ++row) {
    const Real* const x = inputs.row(row);
    const Real* const f = branch_rows.row(row);
    Real* const sum = outputs.row(row);
    for (int j = 0; j < inputs.columns; ++j) sum[j] = x[j] + f[j];
  }
}

template <class Real>
void Residual<Real>::backward(const Pass<Real>& pass, const View<const Real>& inputs,
                              const BlockValues<Real>& values, const LayerSignals<Real>& signals,
                              Scratch& scratch, const View<const Real>& outputs, const Real* output_gradient,
                              Real* gradient, Real* input_gradient) const {
  MOELAB_EXPECT(input_gradient != output_gradient);
  ResidualScratch<Real>& mine = static_cast<ResidualScratch<Real>&>(scratch);
  const std::size_t count = entries(inputs.rows, kernels::padded(inputs.columns));
  const Real* of_branch = output_gradient;
  if (drops(pass)) {
    reserve_entries(mine.branch_gradient, count);
    std::transform(output_gradient, output_gradient + count, mine.kept.data(), mine.branch_gradient.data(),
                   std::multiplies<Real>());
    of_branch = mine.branch_gradient.data();
  }
  inner_->backward(pass, inputs, values, signals, *mine.inner, branch(mine, outputs.rows), of_branch,
                   gradient, input_gradient);
  if (!input_gradient) return;
  kernels::add_scaled(Real(1), output_gradient, input_gradient, static_cast<int>(count));
}

template <class Real>
double Residual<Real>::added_loss(const Pass<Real>& pass, const BlockValues<Real>& values,
                                  Scratch& scratch) const {
  return inner_->added_loss(pass, values, *static_cast<ResidualScratch<Real>&>(scratch).inner);
}

template <class Real>
std::unique_ptr<Block<Real>> make_residual(std::unique_ptr<Block<Real>> block, const Dropout& dropout) {
  return std::make_unique<Residual<Real>>(std::move(block), dropout);
}

template class Residual<float>;
template class Residual<double>;
template std::unique_ptr<Block<float>> make_residual(std::unique_ptr<Block<float>>, const Dropout&);
template std::unique_ptr<Block<double>> make_residual(std::unique_ptr<Block<double>>, const Dropout&);

}  // namespace moelab
