#include "app/run/measurement.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "analysis/metrics/entropy.h"
#include "analysis/metrics/fluctuation.h"
#include "analysis/metrics/load.h"
#include "analysis/metrics/overlap.h"
#include "analysis/metrics/router_norms.h"
#include "analysis/metrics/silhouette.h"
#include "analysis/metrics/similarity.h"
#include "analysis/metrics/sparsity.h"
#include "analysis/metrics/task.h"
#include "analysis/metrics/variance.h"
#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

template <class Real>
std::vector<Real> cast(const Eigen::Ref<const Matrix>& values) {
  std::vector<Real> result(static_cast<std::size_t>(values.size()));
  Eigen::Map<MatrixOf<Real>>(result.data(), values.rows(), values.cols()) = values.cast<Real>();
  return result;
}

template <class Real>
Matrix widen(const std::vector<Real>& values, Eigen::Index rows, Eigen::Index columns) {
  return Eigen::Map<const MatrixOf<Real>>(values.data(), rows, columns).template cast<double>();
}

void set(MetricValues& values, const std::string& name, const std::optional<double>& value) {
  if (value) values[name] = *value;
}

/// The place of each sample's set of labels in the order of first appearance.
std::vector<int> labels_of_sets(const std::vector<int>& labels, std::size_t parts) {
  std::map<std::vector<int>, int> place;
  std::vector<int> sets;
  for (std::size_t at = 0; at < labels.size(); at += parts) {
    std::vector<int> set(labels.begin() + static_cast<std::ptrdiff_t>(at),
                         labels.begin() + static_cast<std::ptrdiff_t>(at + parts));
    std::sort(set.begin(), set.end());
    sets.push_back(place.try_emplace(std::move(set), static_cast<int>(place.size())).first->second);
  }
  return sets;
}

ClusterRouting routing_by(const ClusterLabels& clusters, const Matrix& probabilities) {
  ClusterRouting routing(probabilities.cols());
  for (const std::vector<int>& labels : clusters.labels) routing.add(probabilities, labels);
  return routing;
}

const Gating kSoft{};
const Gating kTop1{Gating::Kind::top1};

/// How names of metrics and arrays of a layer end where there are several.
template <class Real>
std::string layer_ending(const Model<Real>& model, int layer) {
  return model.layers() > 1 ? "_layer" + std::to_string(layer) : "";
}

}  // namespace

std::vector<ClusterLabels> cluster_labels(const Layout& layout, const std::vector<int>& labels) {
  if (layout.sequences || layout.labels == 1) return {{"", {labels}}};
  const std::size_t parts = static_cast<std::size_t>(layout.labels);
  const std::size_t rows = labels.size() / parts;
  ClusterLabels each{"_per_atom", {}};
  for (std::size_t part = 0; part < parts; ++part) {
    std::vector<int>& column = each.labels.emplace_back();
    for (std::size_t row = 0; row < rows; ++row) column.push_back(labels[row * parts + part]);
  }
  return {{"", {labels_of_sets(labels, parts)}}, std::move(each), {"_overall", {std::vector<int>(rows, 0)}}};
}

template <class Real>
Measurement<Real>::Measurement(const Json& config, const Seeds& seeds, const Problem& problem,
                               const Dataset& train, const Dataset& test)
    : layout_(problem.layout()),
      train_(train),
      test_(test),
      clusters_(cluster_labels(layout_, test.cluster)),
      cross_entropy_(config.at("loss").at("task") == "cross_entropy"),
      class_targets_(layout_.class_targets || cross_entropy_),
      losses_(config.at("loss")),
      signal_basis_(problem.signal_basis()),
      train_inputs_(cast<Real>(train.x)),
      test_inputs_(cast<Real>(test.x)) {
  for (const Json& group : config.at("metrics")) {
    groups_.insert(group.at("kind"));
    if (group.at("kind") == "sparsity") {
      for (int s = 0; s < group.at("shuffles").get<int>(); ++s) {
        Engine engine = seeds.stream(Purpose::shuffles, static_cast<std::uint64_t>(s));
        shuffles_.push_back(draw_permutation(engine, layout_.router_dim()));
      }
    }
  }
  for (const Json& group : config.at("metrics")) {
    if (group.at("kind") != "overlap") continue;
    neighbours_ = group.at("neighbours");
    query_rows_ = group.at("rows");
  }
  if (groups_.contains("voronoi")) mixture_.emplace(config, problem);
  for (const Json& name : config.at("save")) saved_.insert(name);
  if (groups_.contains("task")) {
    const std::optional<Matrix> best = problem.bayes_prediction(test.x);
    if (best && class_targets_) bayes_["bayes_accuracy"] = accuracy(target_rows(*best), target_rows(test.y));
    if (best && !cross_entropy_) {
      set(bayes_, "bayes_nmse", normalised_mean_squared_error(target_rows(*best), target_rows(test.y)));
    }
  }
}

template <class Real>
Matrix Measurement<Real>::test_outputs(Model<Real>& model, const Gating& gating) {
  std::vector<Real> outputs(static_cast<std::size_t>(test_.y.size()));
  model.predict(test_inputs_.data(), static_cast<int>(test_.y.rows()), gating, outputs.data());
  return widen(outputs, test_.y.rows(), test_.y.cols());
}

template <class Real>
Matrix Measurement<Real>::test_probabilities(Model<Real>& model, int layer,
                                             std::span<const int> permutation) {
  const Eigen::Index rows = test_.x.rows() * layout_.tokens;
  std::vector<Real> probabilities(static_cast<std::size_t>(rows) * static_cast<std::size_t>(model.experts()));
  model.route(test_inputs_.data(), static_cast<int>(test_.x.rows()), probabilities.data(), layer,
              permutation);
  return widen(probabilities, rows, model.experts());
}

template <class Real>
std::vector<std::int64_t> Measurement<Real>::test_loads(Model<Real>& model, int layer) {
  // A soft gating activates every expert, which says nothing of balance: top-1 assignments are counted then.
  const Gating& gating = model.eval_gating().kind == Gating::Kind::soft ? kTop1 : model.eval_gating();
  return model.expert_loads(test_inputs_.data(), static_cast<int>(test_.x.rows()), gating, layer);
}

template <class Real>
void Measurement<Real>::measure_layer_loads(Model<Real>& model, MetricValues& values) {
  Vector deviations(model.layers());
  for (int layer = 0; layer < model.layers(); ++layer) {
    const std::optional<double> of_layer = expert_load_std_percent(test_loads(model, layer));
    if (!of_layer) return;
    deviations[layer] = *of_layer;
  }
  const double mean = deviations.mean();
  values["expert_load_std_percent_mean"] = mean;
  values["expert_load_std_percent_spread"] = std::sqrt((deviations.array() - mean).square().mean());
}

template <class Real>
MatrixView Measurement<Real>::target_rows(const Matrix& values) const {
  return {values.data(), values.size() / layout_.output_dim, layout_.output_dim};
}

template <class Real>
void Measurement<Real>::add_fit(const std::string& set_name, const std::string& ending, const Matrix& outputs,
                                const Matrix& targets, MetricValues& values) const {
  const MatrixView f = target_rows(outputs), y = target_rows(targets);
  values[set_name + "_loss" + ending] = cross_entropy_ ? mean_cross_entropy(f, y) : mean_squared_error(f, y);
  if (!cross_entropy_ && ending != "_eval") {
    set(values, set_name + "_nmse" + ending, normalised_mean_squared_error(f, y));
  }
  if (class_targets_) values[set_name + "_accuracy" + ending] = accuracy(f, y);
}

template <class Real>
void Measurement<Real>::measure_task(Model<Real>& model, MetricValues& values) {
  if (train_.y.size() > 0) {
    std::vector<Real> fitted(static_cast<std::size_t>(train_.y.size()));
    model.predict(train_inputs_.data(), static_cast<int>(train_.y.rows()), model.train_gating(),
                  fitted.data());
    add_fit("train", "", widen(fitted, train_.y.rows(), train_.y.cols()), train_.y, values);
    values["parameter_count"] = static_cast<double>(model.parameter_count());
  }
  add_fit("test", "_soft", test_outputs(model, kSoft), test_.y, values);
  add_fit("test", "_top1", test_outputs(model, kTop1), test_.y, values);
  add_fit("test", "_eval", test_outputs(model, model.eval_gating()), test_.y, values);
  values.insert(bayes_.begin(), bayes_.end());
}

template <class Real>
void Measurement<Real>::measure_sparsity(Model<Real>& model, int layer, MetricValues& values) {
  const auto add = [&](const Matrix& probabilities, const std::string& ending) {
    for (const ClusterLabels& clusters : clusters_) {
      const ClusterRouting routing = routing_by(clusters, probabilities);
      values["cluster_entropy" + clusters.suffix + ending] += routing.cluster_entropy();
      values["effective_experts" + clusters.suffix + ending] += routing.effective_experts();
    }
  };
  const Matrix learned = test_probabilities(model, layer);
  add(learned, "");
  const ClusterRouting routing = routing_by(clusters_.front(), learned);
  values["top1_cluster_purity"] = routing.top1_cluster_purity();
  values["top1_cluster_concentration"] = routing.top1_cluster_concentration();
  values["top1_cluster_ari"] = adjusted_rand_index(routing.top1_table());
  values["top1_cluster_nmi"] = normalized_mutual_information(routing.top1_table());
  for (const std::vector<int>& permutation : shuffles_) {
    add(test_probabilities(model, layer, permutation), "_shuffled");
  }
  for (const ClusterLabels& clusters : clusters_) {
    for (const char* name : {"cluster_entropy", "effective_experts"}) {
      values[name + clusters.suffix + "_shuffled"] /= static_cast<double>(shuffles_.size());
    }
  }
}

template <class Real>
void Measurement<Real>::measure_overlap(const Matrix& probabilities, MetricValues& values) {
  const MatrixView rows(test_.x.data(), probabilities.rows(), layout_.input_dim);
  const std::vector<int> experts = top1_assignment(probabilities);
  const QueryPoints queries = first_points(rows, experts, query_rows_);
  NearestNeighbours neighbours(queries, neighbours_);
  Silhouette silhouettes(queries, static_cast<int>(probabilities.cols()));
  visit_distances(queries, rows, experts, [&](const Matrix& block, std::span<const int> block_experts) {
    neighbours.add(block, block_experts);
    silhouettes.add(block, block_experts);
  });
  const auto add_mean = [&](const std::string& name, const std::vector<double>& of_rows) {
    if (of_rows.empty()) return;
    values[name] = std::accumulate(of_rows.begin(), of_rows.end(), 0.0) / static_cast<double>(of_rows.size());
  };
  add_mean("expert_overlap", neighbours.other_expert_shares());
  add_mean("silhouette", silhouettes.coefficients());
}

template <class Real>
void Measurement<Real>::measure_router_norms(const Model<Real>& model, int layer, MetricValues& values) {
  for (const NamedArray<Real>& array : model.arrays()) {
    if (array.name != "router_weight" + layer_ending(model, layer)) continue;
    const Matrix weight = widen(array.values, array.shape[0], array.shape[1]);
    set(values, "router_norm_ratio", router_norm_ratio(weight));
    if (signal_basis_.size() > 0) {
      set(values, "router_signal_fraction", router_signal_fraction(weight, signal_basis_));
    }
  }
}

template <class Real>
MetricValues Measurement<Real>::measure_layer(Model<Real>& model, int layer) {
  MetricValues values;
  if (groups_.contains("sparsity")) measure_sparsity(model, layer, values);
  if (groups_.contains("router_norms")) measure_router_norms(model, layer, values);
  if (groups_.contains("routing") || groups_.contains("overlap")) {
    const Matrix probabilities = test_probabilities(model, layer);
    if (groups_.contains("overlap")) measure_overlap(probabilities, values);
    if (groups_.contains("routing")) {
      ScoreVariance variance;
      variance.add(probabilities);
      values["routing_entropy"] = routing_entropy(probabilities);
      values["routing_variance_eq42"] = variance.routing_variance_eq42();
      values["score_variance"] = variance.score_variance();
      values["score_row_variance"] = variance.score_row_variance();
    }
  }
  if (groups_.contains("load")) {
    const std::vector<std::int64_t> loads = test_loads(model, layer);
    set(values, "expert_load_max_violation", expert_load_max_violation(loads));
    set(values, "expert_load_std_percent", expert_load_std_percent(loads));
  }
  if (groups_.contains("layers") && layer > 0) {
    const std::vector<int> before = top1_assignment(test_probabilities(model, layer - 1));
    const std::vector<int> here = top1_assignment(test_probabilities(model, layer));
    values["router_instability"] = router_instability(before, here);
    values["assignment_change_share"] = assignment_change_share(before, here);
  }
  if (groups_.contains("auxiliary_losses")) measure_auxiliary_losses(model, layer, values);
  if (groups_.contains("expert_outputs")) measure_expert_outputs(model, layer, values);
  return values;
}

template <class Real>
void Measurement<Real>::measure_auxiliary_losses(Model<Real>& model, int layer, MetricValues& values) {
  const double rows = static_cast<double>(test_.x.rows() * layout_.tokens);
  AuxiliaryValues means{};
  model.visit_blocks(test_inputs_.data(), static_cast<int>(test_.x.rows()), model.train_gating(), [&](int) {
    const AuxiliaryValues block = model.auxiliary_values(layer);
    const double share = model.layer(layer).routing().rows / rows;
    for (std::size_t t = 0; t < kAuxiliaryTerms; ++t) means[t] += share * block[t];
  });
  for (std::size_t t = 0; t < kAuxiliaryTerms; ++t) {
    const AuxiliaryTerm term = static_cast<AuxiliaryTerm>(t);
    values[auxiliary_loss_name(term) + "_loss"] = means[t];
    values[auxiliary_loss_name(term) + "_loss_weighted"] = losses_.coefficient(term) * means[t];
  }
}

template <class Real>
void Measurement<Real>::measure_expert_outputs(Model<Real>& model, int layer, MetricValues& values) {
  const int experts = model.experts();
  if (experts < 2) return;
  const Eigen::Index rows = test_.x.rows() * layout_.tokens;
  // Where a layer's output is the model's, a row has an error of its own to be corrected by the experts.
  const bool has_signal = model.layers() == 1 && layout_.target_dim() == layout_.tokens * layout_.output_dim;
  Matrix errors;
  if (has_signal) {
    const Matrix outputs = test_outputs(model, model.train_gating());
    const MatrixView f = target_rows(outputs), y = target_rows(test_.y);
    errors = cross_entropy_ ? cross_entropy_gradients(f, y) : Matrix(2 * (f - y));
  }
  double similarity = 0, signal = 0;
  model.visit_blocks(test_inputs_.data(), static_cast<int>(test_.x.rows()), kSoft, [&](int first_row) {
    const MoeLayer<Real>& routed = model.layer(layer);
    const Eigen::Map<const MatrixOf<Real>> outputs(model.pair_outputs(layer), routed.routing().rows,
                                                   experts * routed.output_stride());
    const Matrix block = outputs.template cast<double>();
    similarity += expert_output_similarities(block, experts).sum();
    if (has_signal) {
      signal += task_signal_variances(block, experts, errors.middleRows(first_row, block.rows())).sum();
    }
  });
  values["expert_output_similarity"] = similarity / static_cast<double>(rows);
  if (has_signal) values["task_signal_variance"] = signal / static_cast<double>(rows);
}

template <class Real>
MetricValues Measurement<Real>::measure(Model<Real>& model) {
  MetricValues values;
  if (groups_.contains("task")) measure_task(model, values);
  if (mixture_) mixture_->add(model, values);
  if (!model.has_router()) return values;
  if (groups_.contains("layer_loads")) measure_layer_loads(model, values);
  for (int layer = 0; layer < model.layers(); ++layer) {
    for (const auto& [name, value] : measure_layer(model, layer)) {
      values[name + layer_ending(model, layer)] = value;
    }
  }
  return values;
}

template <class Real>
std::vector<SavedArray> Measurement<Real>::arrays(Model<Real>& model) {
  std::vector<SavedArray> arrays;
  if (saved_.contains("weights")) {
    for (NamedArray<Real>& array : model.arrays()) {
      arrays.push_back({array.name, array.shape, {array.values.begin(), array.values.end()}, {}});
    }
  }
  if (saved_.contains("routing")) {
    const std::int64_t n = test_.x.rows();
    const auto save = [&](const std::string& name, std::vector<std::int64_t> shape, const Matrix& values) {
      arrays.push_back({name, std::move(shape), {values.data(), values.data() + values.size()}, {}});
    };
    save("test_inputs", layout_.input_shape(n), test_.x);
    save("test_targets", layout_.target_shape(n), test_.y);
    arrays.push_back(
        {"test_labels", layout_.label_shape(n), {}, {test_.cluster.begin(), test_.cluster.end()}});
    save("test_outputs_soft", layout_.target_shape(n), test_outputs(model, kSoft));
    save("test_outputs_top1", layout_.target_shape(n), test_outputs(model, kTop1));
    for (int layer = 0; layer < model.layers() && model.has_router(); ++layer) {
      save("test_probs" + layer_ending(model, layer), layout_.row_shape(n, model.experts()),
           test_probabilities(model, layer));
    }
  }
  return arrays;
}

template class Measurement<float>;
template class Measurement<double>;

}  // namespace moelab
