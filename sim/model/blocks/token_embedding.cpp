#include <algorithm>
#include <cmath>

#include "sim/base/kernels/multiply.h"
#include "sim/model/blocks/dense.h"

namespace moelab {
namespace {

struct EmbeddingScratch final : Scratch {
  std::vector<int> touched;  ///< ids that the last backward pass wrote
};

template <class Real>
NamedArray<Real> table_array(const std::string& name, const View<const Real>& table) {
  NamedArray<Real> array{name, {table.rows, table.columns}, {}};
  for (int i = 0; i < table.rows; ++i)
    array.values.insert(array.values.end(), table.row(i), table.row(i) + table.columns);
  return array;
}

/// The token embedding. Parameters [E (V + masks, padded(d)) | P (places, padded(d))], with zero padding.
template <class Real>
class TokenEmbedding final : public Block<Real> {
 public:
  explicit TokenEmbedding(const EmbeddingSetting& setting)
      : vocabulary_(setting.vocabulary + setting.masks),
        dim_(setting.dim),
        places_(setting.places),
        tied_(setting.tied ? setting.vocabulary : 0),
        stride_(kernels::padded(setting.dim)) {}

  int output_dim() const override { return dim_; }
  std::size_t parameter_count() const override { return entries(vocabulary_ + places_, dim_); }
  std::size_t block_size() const override { return entries(vocabulary_ + places_, stride_); }
  std::vector<ParameterGroup> groups() const override { return {{.end = block_size()}}; }
  void initialize(const Start& start, Real* parameters) const override {
    std::fill_n(parameters, block_size(), Real(0));
    Engine engine = start.seeds.stream(Purpose::projection_init);
    for (int id = 0; id < vocabulary_; ++id) {
      Real* const row = parameters + entries(id, stride_);
      for (int j = 0; j < dim_; ++j) row[j] = static_cast<Real>(draw_normal(engine));
    }
  }
  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    std::vector<NamedArray<Real>> all;
    all.push_back(table_array<Real>("embedding_token", kernels::padded_rows(parameters, vocabulary_, dim_)));
    if (places_ > 0) {
      all.push_back(table_array<Real>("embedding_position",
                                      kernels::padded_rows(place_row(parameters, 0), places_, dim_)));
    }
    return all;
  }
  std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<EmbeddingScratch>(); }

  void forward(const Pass<Real>& pass, const View<const Real>& inputs, const BlockValues<Real>& values,
               LayerSignals<Real>& /*signals*/, Scratch& /*scratch*/,
               const View<Real>& outputs) const override {
    MOELAB_EXPECT(inputs.columns == 1 && outputs.row_stride == stride_);
    MOELAB_EXPECT(places_ == 0 || pass.tokens <= places_);
    for (int row = 0; row < inputs.rows; ++row) {
      std::copy_n(values.parameters + entries(id_of(inputs, row), stride_), stride_, outputs.row(row));
      if (places_ > 0)
        kernels::add_scaled(Real(1), place_row(values.parameters, row % pass.tokens), outputs.row(row),
                            stride_);
    }
  }

  void backward(const Pass<Real>& pass, const View<const Real>& inputs, const BlockValues<Real>& /*values*/,
                const LayerSignals<Real>& /*signals*/, Scratch& scratch, const View<const Real>& /*outputs*/,
                const Real* output_gradient, Real* gradient, Real* input_gradient) const override {
    MOELAB_EXPECT(!input_gradient);
    std::vector<int>& touched = static_cast<EmbeddingScratch&>(scratch).touched;
    // Clear only these ids: a workspace's gradient starts at zero, and nothing else writes to other ids.
    for (const int id : touched) std::fill_n(gradient + entries(id, stride_), stride_, Real(0));
    touched.clear();
    std::fill_n(place_row(gradient, 0), entries(places_, stride_), Real(0));
    for (int row = 0; row < inputs.rows; ++row) {
      const Real* const delta = output_gradient + entries(row, stride_);
      const int id = id_of(inputs, row);
      kernels::add_scaled(Real(1), delta, gradient + entries(id, stride_), stride_);
      if (id >= tied_) touched.push_back(id);
      if (places_ > 0) kernels::add_scaled(Real(1), delta, place_row(gradient, row % pass.tokens), stride_);
    }
  }

 private:
  int id_of(const View<const Real>& inputs, int row) const {
    const int id = static_cast<int>(*inputs.row(row));
    MOELAB_EXPECT(id >= 0 && id < vocabulary_);
    return id;
  }
  template <class T>
  T* place_row(T* parameters, int place) const {
    return parameters + entries(vocabulary_ + place, stride_);
  }

  int vocabulary_;  ///< size of the vocabulary with masks
  int dim_;
  int places_;
  int tied_;  ///< rows of E whose gradient the read-out writes first
  int stride_;
};

template <class Real>
struct TiedScratch final : Scratch {
  AlignedVector<Real> scaled;  ///< x / √d (n, padded(d)), padding zero
};

template <class Real>
class TiedReadout final : public Block<Real> {
 public:
  TiedReadout(int vocabulary, int dim)
      : vocabulary_(vocabulary),
        dim_(dim),
        scale_(static_cast<Real>(1 / std::sqrt(static_cast<double>(dim)))) {}

  int output_dim() const override { return vocabulary_; }
  std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<TiedScratch<Real>>(); }

  void forward(const Pass<Real>& /*pass*/, const View<const Real>& inputs, const BlockValues<Real>& values,
               LayerSignals<Real>& /*signals*/, Scratch& scratch, const View<Real>& outputs) const override {
    const View<Real> scaled = scaled_rows(scratch, inputs.rows);
    for (int row = 0; row < inputs.rows; ++row) {
      Real* const end = std::transform(inputs.row(row), inputs.row(row) + dim_, scaled.row(row),
                                       [this](Real value) { return scale_ * value; });
      std::fill(end, scaled.row(row) + scaled.row_stride, Real(0));
    }
    kernels::multiply(scaled, table(values.parameters).transposed(), outputs);
  }

  void backward(const Pass<Real>& /*pass*/, const View<const Real>& inputs, const BlockValues<Real>& values,
                const LayerSignals<Real>& /*signals*/, Scratch& scratch, const View<const Real>& /*outputs*/,
                const Real* output_gradient, Real* gradient, Real* input_gradient) const override {
    const View<const Real> delta = kernels::padded_rows(output_gradient, inputs.rows, vocabulary_);
    kernels::multiply(delta.transposed(), scaled_rows(scratch, inputs.rows), table(gradient));
    if (!input_gradient) return;
    kernels::multiply(delta, table(values.parameters),
                      kernels::padded_rows(input_gradient, inputs.rows, dim_));
    const std::size_t count = entries(inputs.rows, kernels::padded(dim_));
    kernels::scale_into(scale_, input_gradient, input_gradient, static_cast<int>(count));
  }

 private:
  template <class T>
  View<T> table(T* parameters) const {
    return kernels::padded_rows(parameters, vocabulary_, dim_);
  }
  View<Real> scaled_rows(Scratch& scratch, int rows) const {
    AlignedVector<Real>& scaled = static_cast<TiedScratch<Real>&>(scratch).scaled;
    reserve_entries(scaled, entries(rows, kernels::padded(dim_)));
    return kernels::padded_rows(scaled.data(), rows, dim_);
  }

  int vocabulary_;
  int dim_;
  Real scale_;
};

}  // namespace

template <class Real>
std::unique_ptr<Block<Real>> make_token_embedding(const EmbeddingSetting& setting) {
  return std::make_unique<TokenEmbedding<Real>>(setting);
}

template <class Real>
std::unique_ptr<Block<Real>> make_tied_readout(int vocabulary, int dim) {
  return std::make_unique<TiedReadout<Real>>(vocabulary, dim);
}

template std::unique_ptr<Block<float>> make_token_embedding(const EmbeddingSetting&);
template std::unique_ptr<Block<double>> make_token_embedding(const EmbeddingSetting&);
template std::unique_ptr<Block<float>> make_tied_readout(int, int);
template std::unique_ptr<Block<double>> make_tied_readout(int, int);

}  // namespace moelab
