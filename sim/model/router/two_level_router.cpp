#include <algorithm>
#include <cmath>

#include "sim/base/kernels/multiply.h"
#include "sim/data/mixing_measure.h"
#include "sim/model/router/routers.h"

namespace moelab {
namespace {

/// The streams of the rows of U. They differ from the experts' streams.
constexpr std::uint64_t kGroupStreams = std::uint64_t{1} << 32;

template <class Real>
struct TwoLevelScratch final : Scratch {
  AlignedVector<Real> group_scores;  // U x, then p(g), (n, padded(G)); ∂L/∂(U x) in the backward pass
  AlignedVector<Real> group_delta;
  AlignedVector<Real> within;        // p(e | g) (n, padded(E))
  AlignedVector<Real> within_delta;  // ∂L/∂(W x)
};

/// values ← softmax(values). Returns log Σ exp of the former values.
template <class Real>
Real softmax_in_place(Real* values, int count) {
  const Real largest = *std::max_element(values, values + count);
  Real sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i] = std::exp(values[i] - largest);
  for (int i = 0; i < count; ++i) values[i] /= sum;
  return largest + std::log(sum);
}

/// The two-level router. Parameters [W^T (d, padded(E)) | U^T (d, padded(G))]; with biases each part has one
/// more row.
template <class Real>
class TwoLevelRouter final : public Router<Real> {
 public:
  TwoLevelRouter(const TwoLevelRouterOptions& options, const RouterSetting& setting)
      : init_scale_(options.init_scale),
        groups_(std::min(options.groups, setting.experts)),
        has_bias_(options.bias),
        input_dim_(setting.input_dim),
        experts_(setting.experts) {}

  std::size_t parameter_count() const override { return entries(block_rows(), experts_ + groups_); }
  std::size_t block_size() const override { return groups_begin() + entries(block_rows(), group_stride()); }
  std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<TwoLevelScratch<Real>>(); }

  void initialize(const Start& start, Real* parameters) const override {
    std::fill_n(parameters, block_size(), Real(0));
    const double deviation = init_scale_ / std::sqrt(static_cast<double>(input_dim_));
    draw_columns(start, deviation, within(parameters));
    draw_columns(start, deviation, groups(parameters), kGroupStreams);
  }

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                             Real* scores) const override {
    auto& own = static_cast<TwoLevelScratch<Real>&>(scratch);
    const int rows = context.x.rows;
    reserve_entries(own.group_scores, entries(rows, group_stride()));
    reserve_entries(own.within, entries(rows, stride()));
    kernels::multiply(context.x, groups(parameters),
                      kernels::padded_rows(own.group_scores.data(), rows, groups_),
                      {.bias = has_bias_ ? bias_of(groups(parameters)) : nullptr});
    kernels::multiply(context.x, within(parameters), kernels::padded_rows(scores, rows, experts_),
                      {.bias = has_bias_ ? bias_of(within(parameters)) : nullptr});
    for (int i = 0; i < rows; ++i) {
      Real* const group = own.group_scores.data() + entries(i, group_stride());
      Real* const score = scores + entries(i, stride());
      Real* const share = own.within.data() + entries(i, stride());
      std::copy_n(score, stride(), share);
      for (int g = 0; g < groups_; ++g) {
        const int first = first_of(g), count = first_of(g + 1) - first;
        const Real shift = group[g] - softmax_in_place(share + first, count);
        for (int e = first; e < first + count; ++e) score[e] += shift;
      }
      const Real total = softmax_in_place(group, groups_);
      for (int e = 0; e < experts_; ++e) score[e] -= total;
    }
    return {};
  }

  void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                const RouterGradients<Real>& gradients) const override {
    auto& own = static_cast<TwoLevelScratch<Real>&>(scratch);
    const int rows = context.x.rows;
    reserve_entries(own.group_delta, entries(rows, group_stride()));
    reserve_entries(own.within_delta, entries(rows, stride()));
    for (int i = 0; i < rows; ++i) row_gradient(gradients.scores + entries(i, stride()), i, own);
    const View<const Real> of_within =
        kernels::padded_rows<const Real>(own.within_delta.data(), rows, experts_);
    const View<const Real> of_groups =
        kernels::padded_rows<const Real>(own.group_delta.data(), rows, groups_);
    kernels::multiply(context.x.transposed(), of_within, within(gradients.parameters));
    kernels::multiply(context.x.transposed(), of_groups, groups(gradients.parameters));
    if (has_bias_) {
      kernels::sum_rows(own.within_delta.data(), rows, experts_, stride(),
                        bias_of(within(gradients.parameters)));
      kernels::sum_rows(own.group_delta.data(), rows, groups_, group_stride(),
                        bias_of(groups(gradients.parameters)));
    }
    if (!gradients.inputs) return;
    const View<Real> of_inputs = kernels::padded_rows(gradients.inputs, rows, input_dim_);
    kernels::multiply(of_within, within(parameters).transposed(), of_inputs);
    kernels::multiply(of_groups, groups(parameters).transposed(), of_inputs, {.accumulate = true});
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    const auto rows = [&](const std::string& name, const View<const Real>& columns) {
      return NamedArray<Real>{name, {columns.columns, input_dim_}, values_of(columns.transposed())};
    };
    std::vector<NamedArray<Real>> all = {rows("router_group_weight", groups(parameters)),
                                         rows("router_within_weight", within(parameters))};
    const auto add_bias = [&](const char* name, const View<const Real>& columns) {
      const Real* const values = bias_of(columns);
      all.push_back({name, {columns.columns}, {values, values + columns.columns}});
    };
    if (has_bias_) add_bias("router_group_bias", groups(parameters));
    if (has_bias_) add_bias("router_within_bias", within(parameters));
    return all;
  }

 private:
  int stride() const { return kernels::padded(experts_); }
  int group_stride() const { return kernels::padded(groups_); }
  int block_rows() const { return input_dim_ + (has_bias_ ? 1 : 0); }
  std::size_t groups_begin() const { return entries(block_rows(), stride()); }
  int first_of(int group) const { return first_of_group(group, groups_, experts_); }
  template <class Value>
  View<Value> within(Value* block) const {
    return {block, input_dim_, experts_, stride()};
  }
  template <class Value>
  View<Value> groups(Value* block) const {
    return {block + groups_begin(), input_dim_, groups_, group_stride()};
  }
  /// The biases: the row after a level's last row.
  template <class Value>
  static Value* bias_of(const View<Value>& level) {
    return level.row(level.rows);
  }

  /// ∂L/∂(w_e x) = D_e − p(e | g) D_g and ∂L/∂(u_g x) = D_g − p(g) Σ D, where D_g is the sum of D over group
  /// g.
  void row_gradient(const Real* upstream, int row, TwoLevelScratch<Real>& own) const {
    const Real* const share = own.within.data() + entries(row, stride());
    const Real* const group = own.group_scores.data() + entries(row, group_stride());
    Real* const of_within = own.within_delta.data() + entries(row, stride());
    Real* const of_groups = own.group_delta.data() + entries(row, group_stride());
    std::fill_n(of_within, stride(), Real(0));
    std::fill_n(of_groups, group_stride(), Real(0));
    Real total = 0;
    for (int g = 0; g < groups_; ++g) {
      Real sum = 0;
      for (int e = first_of(g); e < first_of(g + 1); ++e) sum += upstream[e];
      for (int e = first_of(g); e < first_of(g + 1); ++e) of_within[e] = upstream[e] - share[e] * sum;
      of_groups[g] = sum;
      total += sum;
    }
    for (int g = 0; g < groups_; ++g) of_groups[g] -= group[g] * total;
  }

  double init_scale_;
  int groups_;
  bool has_bias_;
  int input_dim_;
  int experts_;
};

}  // namespace

void TwoLevelRouterOptions::bind(Fields& fields) {
  fields.add("trainable", trainable, "false freezes the router at its start");
  fields.add("init_scale", init_scale, at_least(0), "rows of both levels start N(0, init_scale² I / d)");
  fields.add("groups", groups, between(1, 65536),
             "G: expert e is in group ⌊e G / E⌋; more than E count as E");
  fields.add("bias", bias, "adds biases to both levels, started at zero");
}

RouterKind two_level_router() {
  RouterKind kind = router_kind<TwoLevelRouterOptions, TwoLevelRouter>(
      "two_level",
      "γ_e(x) = log softmax(U x)_g + log softmax(W_g x)_e with the group g of e. A hierarchy of two linear "
      "gates (Jordan, Jacobs 1994)");
  kind.starts_at_rows = true;
  return kind;
}

}  // namespace moelab
