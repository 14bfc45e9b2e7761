#include "sim/model/blocks/residual.h"

#include "sim/base/kernels/multiply.h"
#include "sim/model/blocks/dense.h"

namespace moelab {

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
void Residual<Real>::forward(const Pass<Real>& pass, const View<const Real>& inputs,
                             const BlockValues<Real>& values, LayerSignals<Real>& signals, Scratch& scratch,
                             const View<Real>& outputs) const {
  MOELAB_EXPECT(inputs.columns == output_dim() && inputs.rows == outputs.rows);
  ResidualScratch<Real>& mine = static_cast<ResidualScratch<Real>&>(scratch);
  const View<Real> branch_rows = branch(mine, inputs.rows);
  inner_->forward(pass, inputs, values, signals, *mine.inner, branch_rows);
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
  inner_->backward(pass, inputs, values, signals, *mine.inner, branch(mine, outputs.rows), output_gradient,
                   gradient, input_gradient);
  if (!input_gradient) return;
  const std::size_t count = entries(inputs.rows, kernels::padded(inputs.columns));
  kernels::add_scaled(Real(1), output_gradient, input_gradient, static_cast<int>(count));
}

template <class Real>
double Residual<Real>::added_loss(const Pass<Real>& pass, const BlockValues<Real>& values,
                                  Scratch& scratch) const {
  return inner_->added_loss(pass, values, *static_cast<ResidualScratch<Real>&>(scratch).inner);
}

template <class Real>
std::unique_ptr<Block<Real>> make_residual(std::unique_ptr<Block<Real>> block) {
  return std::make_unique<Residual<Real>>(std::move(block));
}

template class Residual<float>;
template class Residual<double>;
template std::unique_ptr<Block<float>> make_residual(std::unique_ptr<Block<float>>);
template std::unique_ptr<Block<double>> make_residual(std::unique_ptr<Block<double>>);

}  // namespace moelab
