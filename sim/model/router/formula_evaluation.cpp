#include <algorithm>

#include "sim/base/kernels/multiply.h"
#include "sim/model/router/formula.h"
#include "sim/model/router/formula_lines.h"

namespace moelab {
namespace {

using Node = FormulaNode;
using Extent = FormulaExtent;

/// Entries of a result in its own array.
std::size_t entries_of(const Extent& extent, int rows, int experts) {
  const int width = extent.experts     ? extent.length * kernels::padded(experts)
                    : extent.is_vector ? kernels::padded(extent.length)
                                       : 1;
  return entries(extent.rows ? rows : 1, width);
}

/// The extent of a dot product or matrix product before its sum.
Extent extent_of_terms(const Extent& out, int length) {
  return {out.rows, out.experts, length, 0, true};
}

/// Whether a result varies over rows and not over experts, as the kernels need for the left factor.
bool is_of_rows(const Extent& extent) {
  return extent.rows && !extent.experts && extent.is_vector;
}
bool is_of_experts(const Extent& extent) {
  return extent.experts && !extent.rows && extent.is_vector;
}

template <class Real>
class FormulaPass {
 public:
  FormulaPass(const FormulaInputs<Real>& of, FormulaScratch<Real>& scratch) : of_(of), scratch_(scratch) {}

  void forward(Real* scores) {
    for (std::size_t i = 0; i < nodes().size(); ++i) {
      const Node& node = nodes()[i];
      if (node.kind == Node::Kind::input || node.kind == Node::Kind::parameter) continue;
      reserve_entries(scratch_.values[i], entries_of(node.extent, of_.x.rows, of_.experts));
      compute(node, scratch_.values[i].data());
    }
    std::copy_n(scratch_.values.back().data(), entries(of_.x.rows, stride()), scores);
  }

  void backward(const Real* scores, Real* parameters, Real* inputs) {
    parameters_ = parameters;
    inputs_ = inputs;
    std::fill_n(parameters, of_.graph->block_size, Real(0));
    if (inputs) std::fill_n(inputs, entries(of_.x.rows, kernels::padded(of_.x.columns)), Real(0));
    for (std::size_t i = 0; i + 1 < nodes().size(); ++i) {
      const Node& node = nodes()[i];
      if (node.is_leaf() || !is_wanted(node)) continue;
      const std::size_t count = entries_of(node.extent, of_.x.rows, of_.experts);
      reserve_entries(scratch_.gradients[i], count);
      std::fill_n(scratch_.gradients[i].data(), count, Real(0));
    }
    for (std::size_t i = nodes().size(); i-- > 0;) {
      const Node& node = nodes()[i];
      if (node.is_leaf() || !is_wanted(node)) continue;
      const bool is_last = i + 1 == nodes().size();
      pull(node, value(static_cast<int>(i)),
           strided<const Real>(is_last ? scores : scratch_.gradients[i].data(), node.extent, of_.experts));
    }
  }

 private:
  using Out = Strided<Real>;
  using In = Strided<const Real>;

  const std::vector<Node>& nodes() const { return of_.graph->nodes; }
  int stride() const { return kernels::padded(of_.experts); }
  bool is_wanted(const Node& node) const { return node.learns || (node.reads_x && inputs_); }
  Lines lines(const Extent& extent) const { return {extent, of_.x.rows, of_.experts}; }

  In value(int i) const {
    const Node& node = nodes()[size(i)];
    if (node.kind == Node::Kind::input) return {of_.x.data, of_.x.row_stride, 1, 0, 0};
    if (node.kind == Node::Kind::parameter) {
      return strided(of_.parameters + of_.graph->parameters[size(node.parameter)].begin, node.extent,
                     of_.experts);
    }
    return strided<const Real>(scratch_.values[size(i)].data(), node.extent, of_.experts);
  }
  Out gradient(int i) const {
    const Node& node = nodes()[size(i)];
    if (node.kind == Node::Kind::input) return strided(inputs_, node.extent, of_.experts);
    if (node.kind == Node::Kind::parameter) {
      return strided(parameters_ + of_.graph->parameters[size(node.parameter)].begin, node.extent,
                     of_.experts);
    }
    return strided(scratch_.gradients[size(i)].data(), node.extent, of_.experts);
  }

  /// Views for the kernels: (n, length) of rows, (length, E) of experts.
  template <class T>
  View<T> row_view(const Strided<T>& of, const Extent& extent) const {
    return {of.data, of_.x.rows, extent.length, of.row};
  }
  template <class T>
  View<T> expert_view(const Strided<T>& of, const Extent& extent) const {
    return {of.data, extent.length, of_.experts, of.component};
  }
  template <class T>
  View<T> score_view(const Strided<T>& of) const {
    return {of.data, of_.x.rows, of_.experts, of.row};
  }
  /// The matrix of a product with rows: (columns, length), or (columns, length · padded(E)); and the product.
  template <class T>
  View<T> matrix_view(const Strided<T>& of, const Extent& extent) const {
    const int width = extent.experts ? extent.length * stride() : extent.length;
    return {of.data, extent.columns, width, of.column};
  }
  template <class T>
  View<T> image_view(const Strided<T>& of, const Extent& matrix) const {
    const int width = matrix.experts ? matrix.length * stride() : matrix.length;
    return {of.data, of_.x.rows, width, of.row};
  }

  void compute(const Node& node, Real* place) {
    if (node.kind == Node::Kind::constant) {
      *place = static_cast<Real>(node.number);
      return;
    }
    const Out out = strided(place, node.extent, of_.experts);
    const In a = value(node.a);
    const In b = node.b >= 0 ? value(node.b) : a;
    if (node.kind == Node::Kind::dot) return compute_dot(node, a, b, out);
    if (node.kind == Node::Kind::product) return compute_product(node, a, b, out);
    apply_operation<Real>(node.kind, static_cast<Real>(node.number),
                          [&](const auto& f) { map_lines(lines(node.extent), a, b, out, f); });
  }

  void compute_dot(const Node& node, const In& a, const In& b, const Out& out) {
    const Extent &left = nodes()[size(node.a)].extent, &right = nodes()[size(node.b)].extent;
    if (is_of_rows(left) && is_of_experts(right)) {
      return kernels::multiply(row_view(a, left), expert_view(b, right), score_view(out));
    }
    if (is_of_experts(left) && is_of_rows(right)) {
      return kernels::multiply(row_view(b, right), expert_view(a, left), score_view(out));
    }
    std::fill_n(out.data, entries_of(node.extent, of_.x.rows, of_.experts), Real(0));
    add_lines<true>(lines(extent_of_terms(node.extent, left.length)), a, b, b, out,
                    [](Real u, Real v, Real) { return u * v; });
  }

  void compute_product(const Node& node, const In& matrix, const In& vector, const Out& out) {
    const Extent& of = nodes()[size(node.a)].extent;
    if (is_of_rows(nodes()[size(node.b)].extent)) {
      return kernels::multiply(row_view(vector, {true, false, of.columns, 0, true}), matrix_view(matrix, of),
                               image_view(out, of));
    }
    std::fill_n(out.data, entries_of(node.extent, of_.x.rows, of_.experts), Real(0));
    for (int k = 0; k < of.columns; ++k) {
      const In factor = vector.component_at(k);
      add_lines<true>(lines(node.extent), matrix.column_at(k), factor, factor, out,
                      [](Real u, Real v, Real) { return u * v; });
    }
  }

  /// Adds ∂L/∂node to the gradients of its operands.
  void pull(const Node& node, const In& out, const In& g) {
    const In a = value(node.a);
    const In b = node.b >= 0 ? value(node.b) : out;
    if (node.kind == Node::Kind::product) return pull_product(node, a, b, g);
    if (node.kind == Node::Kind::dot) {
      pull_dot(node, node.a, node.b, b, g);
      return pull_dot(node, node.b, node.a, a, g);
    }
    pull_operation<Real>(node.kind, static_cast<Real>(node.number), [&](bool is_second, const auto& f) {
      const int part = is_second ? node.b : node.a;
      if (is_wanted(nodes()[size(part)])) add_lines(lines(node.extent), g, a, b, gradient(part), f);
    });
  }

  /// ∂L/∂part += g · other.
  void pull_dot(const Node& node, int part, int other, const In& factor, const In& g) {
    if (!is_wanted(nodes()[size(part)])) return;
    const Extent &of = nodes()[size(part)].extent, &with = nodes()[size(other)].extent;
    const Out to = gradient(part);
    if (is_of_rows(of) && is_of_experts(with)) {
      return kernels::multiply(score_view(g), expert_view(factor, with).transposed(), row_view(to, of),
                               {.accumulate = true});
    }
    if (is_of_experts(of) && is_of_rows(with)) {
      return kernels::multiply(row_view(factor, with).transposed(), score_view(g), expert_view(to, of),
                               {.accumulate = true});
    }
    add_lines<true>(lines(extent_of_terms(node.extent, of.length)), g, factor, factor, to,
                    [](Real d, Real v, Real) { return d * v; });
  }

  void pull_product(const Node& node, const In& matrix, const In& vector, const In& g) {
    const Extent &of = nodes()[size(node.a)].extent, &with = nodes()[size(node.b)].extent;
    const bool to_matrix = is_wanted(nodes()[size(node.a)]), to_vector = is_wanted(nodes()[size(node.b)]);
    if (is_of_rows(with)) {
      const View<const Real> delta = image_view(g, of);
      if (to_matrix) {
        kernels::multiply(row_view(vector, with).transposed(), delta, matrix_view(gradient(node.a), of),
                          {.accumulate = true});
      }
      if (to_vector) {
        kernels::multiply(delta, matrix_view(matrix, of).transposed(), row_view(gradient(node.b), with),
                          {.accumulate = true});
      }
      return;
    }
    const auto times = [](Real d, Real v, Real) { return d * v; };
    for (int k = 0; k < of.columns; ++k) {
      const In factor = vector.component_at(k), column = matrix.column_at(k);
      if (to_matrix) add_lines(lines(node.extent), g, factor, factor, gradient(node.a).column_at(k), times);
      if (to_vector)
        add_lines(lines(node.extent), g, column, column, gradient(node.b).component_at(k), times);
    }
  }

  const FormulaInputs<Real>& of_;
  FormulaScratch<Real>& scratch_;
  Real* parameters_ = nullptr;
  Real* inputs_ = nullptr;
};

}  // namespace

template <class Real>
void evaluate_formula(const FormulaInputs<Real>& of, FormulaScratch<Real>& scratch, Real* scores) {
  FormulaPass<Real>(of, scratch).forward(scores);
}

template <class Real>
void differentiate_formula(const FormulaInputs<Real>& of, FormulaScratch<Real>& scratch, const Real* scores,
                           Real* parameters, Real* inputs) {
  FormulaPass<Real>(of, scratch).backward(scores, parameters, inputs);
}

template void evaluate_formula(const FormulaInputs<float>&, FormulaScratch<float>&, float*);
template void evaluate_formula(const FormulaInputs<double>&, FormulaScratch<double>&, double*);
template void differentiate_formula(const FormulaInputs<float>&, FormulaScratch<float>&, const float*, float*,
                                    float*);
template void differentiate_formula(const FormulaInputs<double>&, FormulaScratch<double>&, const double*,
                                    double*, double*);

}  // namespace moelab
