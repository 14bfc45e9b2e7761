#include "sim/model/router/hash_router.h"

#include "sim/base/kernels/multiply.h"
#include "sim/model/router/row_draws.h"

namespace moelab {
namespace {

template <class Real>
struct HashScratch final : Scratch {
  AlignedVector<Real> products;  // (n, padded(bits))
};

/// The projection is kept transposed, (d, padded(bits)).
template <class Real>
class HashRouter final : public Router<Real> {
 public:
  HashRouter(const HashRouterOptions& options, const RouterSetting& setting)
      : bits_(options.of == HashRouterOptions::Of::projection ? options.bits : 0),
        scale_(static_cast<Real>(options.scale)),
        layer_(static_cast<std::uint64_t>(setting.layer)),
        input_dim_(setting.input_dim),
        experts_(setting.experts),
        stride_(kernels::padded(setting.experts)) {}

  std::size_t parameter_count() const override { return 0; }
  std::size_t block_size() const override { return entries(input_dim_, kernels::padded(bits_)); }
  std::size_t frozen_size() const override { return block_size(); }
  std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<HashScratch<Real>>(); }

  void initialize(const Start& start, Real* parameters) const override {
    std::fill_n(parameters, block_size(), Real(0));
    for (int b = 0; b < bits_; ++b) {
      Engine engine = start.seeds.stream(Purpose::router_init, static_cast<std::uint64_t>(b));
      for (int j = 0; j < input_dim_; ++j) {
        projection(parameters)(j, b) = static_cast<Real>(draw_normal(engine));
      }
    }
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    if (bits_ == 0) return {};
    NamedArray<Real> rows{"router_projection", {bits_, input_dim_}, {}};
    for (int b = 0; b < bits_; ++b) {
      for (int j = 0; j < input_dim_; ++j) rows.values.push_back(projection(parameters)(j, b));
    }
    return {std::move(rows)};
  }

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                             Real* scores) const override {
    auto& own = static_cast<HashScratch<Real>&>(scratch);
    const int rows = context.x.rows;
    if (bits_ > 0) {
      reserve_entries(own.products, entries(rows, kernels::padded(bits_)));
      kernels::multiply(context.x, projection(parameters),
                        kernels::padded_rows(own.products.data(), rows, bits_));
    }
    const View<const Real> tokens = identity_rows(context);
    for (int i = 0; i < rows; ++i) {
      const std::uint64_t hash = bits_ > 0 ? mixed_bits(signs_of(own, i)) : row_hash(tokens, i, layer_);
      const int named = static_cast<int>(hash % static_cast<std::uint64_t>(experts_));
      name_expert(named, scale_, hash, experts_, scores + entries(i, stride_));
    }
    return {};
  }

  void backward(const RouterContext<Real>& context, const Real* /*parameters*/, Scratch& /*scratch*/,
                const RouterGradients<Real>& gradients) const override {
    std::fill_n(gradients.parameters, block_size(), Real(0));
    clear_input_gradient(context, gradients);
  }

 private:
  template <class Value>
  View<Value> projection(Value* block) const {
    return {block, input_dim_, bits_, kernels::padded(bits_)};
  }
  std::uint64_t signs_of(const HashScratch<Real>& own, int row) const {
    const Real* const products = own.products.data() + entries(row, kernels::padded(bits_));
    std::uint64_t signs = 0;
    for (int b = 0; b < bits_; ++b) signs = 2 * signs + (products[b] > 0 ? 1 : 0);
    return signs;
  }

  int bits_;  // 0: of the token
  Real scale_;
  std::uint64_t layer_;
  int input_dim_;
  int experts_;
  int stride_;
};

}  // namespace

void HashRouterOptions::bind(Fields& fields) {
  fields.add("of", of, {"token", "projection"},
             "of the token's row of the model's inputs, or of the signs of fixed random projections");
  fields.add("bits", bits, between(1, 62), "projections");
  fields.add("scale", scale, at_least(0),
             "score of the row's expert; the others are just below 0, in an order that is hashed");
}

RouterKind hash_router() {
  RouterKind kind = router_kind<HashRouterOptions, HashRouter>(
      "hash",
      "γ_e(x) = scale for the expert that a hash of x names, else 0; nothing is learned (Roller et al. "
      "2021)",
      {.scale = 2.0});
  return kind;
}

}  // namespace moelab
