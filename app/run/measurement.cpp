#include "app/run/measurement.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "analysis/metrics/entropy.h"
#include "analysis/metrics/load.h"
#include "analysis/metrics/overlap.h"
#include "analysis/metrics/router_norms.h"
#include "analysis/metrics/silhouette.h"
#include "analysis/metrics/sparsity.h"
#include "analysis/metrics/task.h"
#include "analysis/metrics/variance.h"

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
    if (best) bayes_nmse_ = normalised_mean_squared_error(*best, test.y);
  }
}

template <class Real>
Matrix Measurement<Real>::test_outputs(Model<Real>& model, const Gating& gating) {
  std::vector<Real> outputs(static_cast<std::size_t>(test_.y.size()));
  model.predict(test_inputs_.data(), static_cast<int>(test_.y.rows()), gating, outputs.data());
  return widen(outputs, test_.y.rows(), test_.y.cols());
}

template <class Real>
Matrix Measurement<Real>::test_probabilities(Model<Real>& model, const std::vector<Real>& inputs) {
  const Eigen::Index rows = test_.x.rows() * layout_.tokens;
  std::vector<Real> probabilities(static_cast<std::size_t>(rows) * static_cast<std::size_t>(model.experts()));
  model.route(inputs.data(), static_cast<int>(test_.x.rows()), probabilities.data());
  return widen(probabilities, rows, model.experts());
}

template <class Real>
void Measurement<Real>::measure_task(Model<Real>& model, MetricValues& values) {
  std::vector<Real> fitted(static_cast<std::size_t>(train_.y.size()));
  model.predict(train_inputs_.data(), static_cast<int>(train_.y.rows()), model.train_gating(), fitted.data());
  const Matrix train_outputs = widen(fitted, train_.y.rows(), train_.y.cols());
  const Matrix soft = test_outputs(model, kSoft);
  const Matrix top1 = test_outputs(model, kTop1);
  values["train_loss"] = mean_squared_error(train_outputs, train_.y);
  values["test_loss_soft"] = mean_squared_error(soft, test_.y);
  values["test_loss_top1"] = mean_squared_error(top1, test_.y);
  values["test_loss_eval"] = mean_squared_error(test_outputs(model, model.eval_gating()), test_.y);
  set(values, "train_nmse", normalised_mean_squared_error(train_outputs, train_.y));
  set(values, "test_nmse_soft", normalised_mean_squared_error(soft, test_.y));
  set(values, "test_nmse_top1", normalised_mean_squared_error(top1, test_.y));
  set(values, "bayes_nmse", bayes_nmse_);
  values["parameter_count"] = static_cast<double>(model.parameter_count());
}

template <class Real>
void Measurement<Real>::measure_sparsity(Model<Real>& model, MetricValues& values) {
  const auto add = [&](const Matrix& probabilities, const std::string& ending) {
    for (const ClusterLabels& clusters : clusters_) {
      const ClusterRouting routing = routing_by(clusters, probabilities);
      values["cluster_entropy" + clusters.suffix + ending] += routing.cluster_entropy();
      values["effective_experts" + clusters.suffix + ending] += routing.effective_experts();
    }
  };
  const Matrix learned = test_probabilities(model, test_inputs_);
  add(learned, "");
  const ClusterRouting routing = routing_by(clusters_.front(), learned);
  values["top1_cluster_purity"] = routing.top1_cluster_purity();
  values["top1_cluster_concentration"] = routing.top1_cluster_concentration();
  // Permuting the columns of W by π is the same as handing the router x with coordinate π(j) at place j.
  std::vector<Real> permuted = test_inputs_;
  const std::size_t width = static_cast<std::size_t>(layout_.input_dim);
  for (const std::vector<int>& permutation : shuffles_) {
    for (std::size_t at = 0; at < permuted.size(); at += width) {
      for (std::size_t j = 0; j < permutation.size(); ++j) {
        permuted[at + j] = test_inputs_[at + static_cast<std::size_t>(permutation[j])];
      }
    }
    add(test_probabilities(model, permuted), "_shuffled");
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
void Measurement<Real>::measure_routing(Model<Real>& model, MetricValues& values) {
  if (!model.has_router()) return;
  if (groups_.contains("sparsity")) measure_sparsity(model, values);
  if (groups_.contains("router_norms")) {
    for (const NamedArray<Real>& array : model.arrays()) {
      if (array.name != "router_weight") continue;
      const Matrix weight = widen(array.values, array.shape[0], array.shape[1]);
      set(values, "router_norm_ratio", router_norm_ratio(weight));
      if (signal_basis_.size() > 0) {
        set(values, "router_signal_fraction", router_signal_fraction(weight, signal_basis_));
      }
    }
  }
  if (groups_.contains("routing") || groups_.contains("overlap")) {
    const Matrix probabilities = test_probabilities(model, test_inputs_);
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
    // A soft gating activates every expert, which says nothing of balance: top-1 assignments are counted
    // then.
    const Gating& gating = model.eval_gating().kind == Gating::Kind::topk ? model.eval_gating() : kTop1;
    const std::vector<std::int64_t> loads =
        model.expert_loads(test_inputs_.data(), static_cast<int>(test_.x.rows()), gating);
    set(values, "expert_load_max_violation", expert_load_max_violation(loads));
    set(values, "expert_load_std_percent", expert_load_std_percent(loads));
  }
}

template <class Real>
MetricValues Measurement<Real>::measure(Model<Real>& model) {
  MetricValues values;
  if (groups_.contains("task")) measure_task(model, values);
  measure_routing(model, values);
  if (mixture_) mixture_->add(model, values);
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
    if (model.has_router()) {
      save("test_probs", layout_.row_shape(n, model.experts()), test_probabilities(model, test_inputs_));
    }
  }
  return arrays;
}

template class Measurement<float>;
template class Measurement<double>;

}  // namespace moelab
