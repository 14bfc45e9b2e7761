#include "sim/model/expert/network_bank.h"
#include "sim/model/layers.h"

namespace moelab {
namespace {

std::vector<int> layer_widths(const MlpExpertOptions& options, const ExpertSetting& setting) {
  std::vector<int> widths(size(options.depth) + 1, options.width);
  widths.front() = setting.input_dim;
  widths.back() = setting.output_dim;
  return widths;
}

/// The network of an MLP expert.
template <class Real>
class MlpNetwork {
 public:
  MlpNetwork(const MlpExpertOptions& options, const ExpertSetting& setting)
      : mlp_(layer_widths(options, setting)), init_scale_(options.init_scale) {}

  int output_stride() const { return mlp_.output_stride(); }
  std::size_t block_size() const { return mlp_.block_size(); }
  std::size_t parameter_count() const { return mlp_.parameter_count(); }
  std::size_t activation_size(int rows) const { return mlp_.activation_size(rows); }
  std::size_t scratch_size(int rows) const { return mlp_.scratch_size(rows); }
  std::vector<std::size_t> part_ends() const { return mlp_.part_ends(); }
  void initialize(int /*expert*/, Engine& engine, Real* parameters) const {
    mlp_.initialize(engine, init_scale_, parameters);
  }
  const Real* forward(int /*expert*/, const View<const Real>& x, const Real* parameters,
                      Real* activations) const {
    return mlp_.forward(x, parameters, activations);
  }
  void backward(int /*expert*/, const View<const Real>& x, const Real* parameters, const Real* activations,
                const Real* output_gradient, Real* gradient, Real* scratch, Real* input_gradient) const {
    mlp_.backward(x, parameters, activations, output_gradient, gradient, scratch, input_gradient);
  }
  std::vector<NamedArray<Real>> arrays(const Real* parameters, int experts) const {
    return layer_arrays(mlp_, parameters, "expert_", experts);
  }

 private:
  Mlp<Real> mlp_;
  double init_scale_;
};

template <class Real>
using MlpBank = NetworkBank<Real, MlpNetwork<Real>>;

}  // namespace

void MlpExpertOptions::bind(Fields& fields) {
  fields.add("depth", depth, between(1, 64), "weight matrices");
  fields.add("width", width, between(1, 1e6), "hidden units per layer");
  fields.add("init_scale", init_scale, at_least(0),
             "weights start N(0, init_scale² · 2 / in), the last N(0, … 1 / in)");
}

template <class Real>
std::unique_ptr<ExpertBank<Real>> make_mlp_bank(const MlpExpertOptions& options,
                                                const ExpertSetting& setting) {
  return std::make_unique<MlpBank<Real>>(options, setting);
}

template std::unique_ptr<ExpertBank<float>> make_mlp_bank(const MlpExpertOptions&, const ExpertSetting&);
template std::unique_ptr<ExpertBank<double>> make_mlp_bank(const MlpExpertOptions&, const ExpertSetting&);

ExpertKind mlp_expert() {
  ExpertKind kind = expert_kind<MlpExpertOptions, MlpBank>(
      "mlp", "expert_e(x) = MLP_e(x), ReLU, biases (Dikkala et al. 2023, 3.1)", {.width = 6});
  kind.depth = [](const AnyOptions& options) { return options.get<MlpExpertOptions>().depth; };
  return kind;
}

}  // namespace moelab
