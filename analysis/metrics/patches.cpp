/// What routers and experts learn of patches: directions, clusters, and the patch that the class owns (Chen
/// et al. 2022; Chowdhury et al. 2023).

#include "sim/data/patches.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "analysis/metrics/meters.h"
#include "sim/model/expert/expert.h"

namespace moelab {
namespace {

bool has_patches(const MetricSubject& of, int /*layer*/) {
  return of.problem().patch_directions() != nullptr;
}
bool has_centres(const MetricSubject& of, int layer) {
  return has_patches(of, layer) && of.problem().patch_directions()->centres.size() > 0;
}

const Need patch_data{"data.generator patches", has_patches};
const Need patch_centres{"data.law feature_noise", has_centres};
const Need own_patches{"data.law own_patch", [](const MetricSubject& of, int layer) {
                         return has_patches(of, layer) && !has_centres(of, layer);
                       }};
const Need filter_experts{"model.expert filters", [](const MetricSubject& of, int) {
                            return of.experiment().model.expert.as<FiltersExpertOptions>() != nullptr;
                          }};

/// Mean over the rows of `weight` that are not zero of the largest cosine with a column of `directions`.
template <class Value>
std::optional<double> mean_largest_cosine(const Matrix& weight, const Matrix& directions,
                                          const Value& value) {
  double sum = 0;
  int rows = 0;
  for (Eigen::Index e = 0; e < weight.rows(); ++e) {
    const double norm = weight.row(e).norm();
    if (norm == 0) continue;
    const Eigen::RowVectorXd cosines = weight.row(e) * directions / norm;
    sum += cosines.unaryExpr(value).maxCoeff();
    ++rows;
  }
  if (rows == 0) return std::nullopt;
  return sum / rows;
}

/// The largest cluster of each expert's rows, the lowest number first among equals; −1 without rows.
std::vector<int> modal_clusters(std::span<const int> serving, const std::vector<int>& labels, int experts,
                                int clusters) {
  std::vector<int> counts(size(experts) * size(clusters)), modal(size(experts), -1);
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (serving[row] >= 0) ++counts[entries(serving[row], clusters) + size(labels[row])];
  }
  for (int e = 0; e < experts; ++e) {
    const auto first = counts.begin() + static_cast<std::ptrdiff_t>(e) * clusters;
    const auto most = std::max_element(first, first + clusters);
    if (*most > 0) modal[size(e)] = static_cast<int>(most - first);
  }
  return modal;
}

template <class Real>
class PatchesMeter final : public ModelMeter<Real> {
 public:
  PatchesMeter(const NoMetricOptions& /*options*/, const MeterSetting<Real>& setting)
      : setting_(setting),
        directions_(setting.problem.patch_directions()),
        has_centres_(!unmet_need("router_on_centre", setting.subject)),
        has_filters_(!unmet_need("start_agreement", setting.subject)),
        has_own_(!unmet_need("own_patch_share", setting.subject)) {}

  void measure_layer(const TestMoment<Real>& moment, int layer, MetricValues& values) override {
    if (!directions_) return;
    const Layout& layout = setting_.data.layout();
    ModelRows<Real> rows(moment, setting_.data, setting_.seeds, layout.router_dim(), layer, nullptr);
    const Matrix weight = rows.router_weight();
    if (weight.size() > 0 && weight.cols() == directions_->signals.rows()) {
      const auto size_of = [](double cosine) { return std::abs(cosine); };
      set(values, "router_on_signal", mean_largest_cosine(weight, directions_->signals, size_of));
      const auto as_it_is = [](double cosine) { return cosine; };
      if (has_centres_)
        set(values, "router_on_centre", mean_largest_cosine(weight, directions_->centres, as_it_is));
    }
    measure_spread(rows, values);
    if (has_centres_) measure_expert_errors(rows, values);
    if (has_filters_) measure_start(moment, layer, rows, values);
    if (has_own_) measure_own_patches(rows, values);
  }

 private:
  static void measure_spread(ModelRows<Real>& rows, MetricValues& values) {
    constexpr double kLeast = 1e-30;  // smaller probabilities may have underflown
    double sum = 0;
    rows.visit([&](const RowBlock& block) {
      for (Eigen::Index i = 0; i < block.probabilities.rows(); ++i) {
        const auto r = block.probabilities.row(i);
        sum += std::log(r.maxCoeff() / std::max(r.minCoeff(), kLeast));
      }
    });
    values["score_spread"] = sum / static_cast<double>(rows.rows());
  }

  /// err_mk, the error of expert m alone on the samples of cluster k. Ties are errors.
  void measure_expert_errors(ModelRows<Real>& rows, MetricValues& values) const {
    const int tokens = setting_.data.layout().tokens;
    const Matrix& targets = setting_.data.test().y;
    const int experts = rows.experts(), clusters = static_cast<int>(directions_->centres.cols());
    Matrix sums;
    rows.visit_expert_outputs([&](Eigen::Index first, const Eigen::Ref<const Matrix>& block) {
      if (sums.size() == 0) sums = Matrix::Zero(targets.rows(), block.cols());
      for (Eigen::Index i = 0; i < block.rows(); ++i) sums.row((first + i) / tokens) += block.row(i);
    });
    const Eigen::Index stride = sums.cols() / experts;  // the outputs of an expert are padded
    const std::vector<int>& labels = setting_.data.clusters().front().labels.front();
    Matrix errors = Matrix::Zero(experts, clusters);
    Vector samples = Vector::Zero(clusters);
    for (Eigen::Index i = 0; i < targets.rows(); ++i) {
      const int k = labels[size(i * tokens)];
      const int right = targets(i, 0) > targets(i, 1) ? 0 : 1;
      ++samples[k];
      for (int e = 0; e < experts; ++e) {
        if (!(sums(i, e * stride + right) > sums(i, e * stride + 1 - right))) ++errors(e, k);
      }
    }
    std::vector<Eigen::Index> seen;  // clusters that have test samples
    for (Eigen::Index k = 0; k < clusters; ++k) {
      if (samples[k] > 0) seen.push_back(k);
    }
    double best = 0, others = 0;
    for (int e = 0; e < experts; ++e) {
      const Eigen::RowVectorXd shares = errors.row(e)(seen).array() / samples(seen).transpose().array();
      best += shares.minCoeff();
      if (seen.size() > 1)
        others += (shares.sum() - shares.minCoeff()) / (static_cast<double>(seen.size()) - 1);
    }
    values["expert_best_error"] = best / experts;
    if (seen.size() > 1) values["expert_other_error"] = others / experts;
  }

  /// The cluster that the start of each expert predicts: argmax_k max_j v_k·w_j, with −w_j for the filters of
  /// the second of two outputs.
  std::vector<int> predicted_clusters(const TestMoment<Real>& moment, int layer, int experts) const {
    const Network<Real>& network = *moment.model.network;
    // A later phase and a group of the last record do not see the start, so the start is drawn again. Without
    // training rows a router may start elsewhere, but experts do not read them.
    const Model<Real> start(moment.model.network, {setting_.seeds});
    const std::string name = "expert_weight" + network.layer_ending(layer);
    const auto& options = *setting_.experiment.model.expert.template as<FiltersExpertOptions>();
    for (const NamedArray<Real>& array : network.arrays(start.parameters)) {
      if (array.name != name) continue;
      const Matrix weights = widen(array.values, experts * array.shape[1], array.shape[2]);
      const Matrix products = weights * directions_->signals;
      std::vector<int> predicted;
      for (int e = 0; e < experts; ++e) {
        Matrix own = products.middleRows(e * array.shape[1], array.shape[1]);
        if (array.shape[1] > options.filters) own.bottomRows(options.filters) *= -1;
        Eigen::Index filter = 0, cluster = 0;
        own.maxCoeff(&filter, &cluster);
        predicted.push_back(static_cast<int>(cluster));
      }
      return predicted;
    }
    return {};
  }

  void measure_start(const TestMoment<Real>& moment, int layer, ModelRows<Real>& rows, MetricValues& values) {
    const auto [place, is_new] = predicted_.try_emplace(layer);
    std::vector<int>& predicted = place->second;
    if (is_new) predicted = predicted_clusters(moment, layer, rows.experts());
    if (predicted.empty()) return;
    const std::vector<int> modal =
        modal_clusters(rows.serving(), setting_.data.clusters().front().labels.front(), rows.experts(),
                       static_cast<int>(directions_->centres.cols()));
    double agree = 0, served = 0;
    for (std::size_t e = 0; e < modal.size(); ++e) {
      if (modal[e] < 0) continue;
      ++served;
      agree += modal[e] == predicted[e] ? 1 : 0;
    }
    if (served > 0) values["start_agreement"] = agree / served;
  }

  void measure_own_patches(ModelRows<Real>& rows, MetricValues& values) const {
    const std::span<const unsigned char> selected = rows.selected();
    const std::vector<int>& labels = setting_.data.clusters().front().labels.front();
    const int experts = rows.experts();
    Matrix taken = Matrix::Zero(2, experts);
    double own[2] = {0, 0}, others = 0, dropped = 0;
    for (std::size_t row = 0; row < labels.size(); ++row) {
      const unsigned char* const of_row = selected.data() + row * size(experts);
      if (labels[row] > 1) {
        ++others;
        if (std::all_of(of_row, of_row + experts, [](unsigned char is_selected) { return is_selected == 0; }))
          ++dropped;
        continue;
      }
      ++own[labels[row]];
      for (int e = 0; e < experts; ++e) taken(labels[row], e) += of_row[e] ? 1 : 0;
    }
    if (own[0] > 0 && own[1] > 0)
      values["own_patch_share"] = (taken.row(0).maxCoeff() / own[0] + taken.row(1).maxCoeff() / own[1]) / 2;
    if (others > 0) values["irrelevant_dropped"] = dropped / others;
  }

  MeterSetting<Real> setting_;
  const PatchDirections* directions_;
  bool has_centres_, has_filters_, has_own_;
  std::map<int, std::vector<int>> predicted_;  // clusters of the start, by layer
};

}  // namespace

MetricGroup patches_metrics() {
  MetricGroup group = model_metrics<NoMetricOptions, PatchesMeter>(
      "patches",
      "what router rows θ_m and single experts learn of patches (Chen et al. 2022; Chowdhury et al. 2023); "
      "uses serving for start_agreement, selected for own patches, probabilities for score_spread",
      {metric("router_on_centre", false, "mean over experts of max_k cos(θ_m, c_k)",
              "cosine of router rows and centres", "centres", {&needs::router_weight, &patch_centres},
              "the router is zero"),
       metric("router_on_signal", false, "mean over experts of max_k |cos(θ_m, v_k)|",
              "cosine of router rows and signals", "signals", {&needs::router_weight}, "the router is zero"),
       metric("score_spread", false, "mean over rows of ln r_max − ln r_min, of scores under softmax",
              "spread of scores", "spread of scores"),
       metric("expert_best_error", false,
              "mean over experts m of min_k err_mk, the error of m alone on the test samples of cluster k",
              "error of an expert on its best cluster", "best cluster", {&patch_centres}),
       metric("expert_other_error", false,
              "mean over experts m of the mean of err_mk over the other clusters",
              "error of an expert on other clusters", "other clusters", {&patch_centres}),
       metric(
           "start_agreement", false,
           "share of experts with rows whose largest cluster is argmax_k max_j v_k·w_mj at the start of the "
           "training",
           "experts that serve the cluster of their start", "start decides",
           {&needs::own_data, &patch_centres, &filter_experts}),
       metric("own_patch_share", false,
              "mean over classes of the largest share, over experts, of the class's own patches that an "
              "expert takes",
              "own patches taken", "own patches taken", {&own_patches}),
       metric("irrelevant_dropped", false, "share of the other patches that no expert takes",
              "other patches dropped", "other patches dropped", {&own_patches})});
  group.by_default = false;
  group.of_layers = true;
  group.needs = {&needs::router, &needs::model, &patch_data};
  set_larger_is_better(group, {"own_patch_share", "irrelevant_dropped"});
  return group;
}

}  // namespace moelab
