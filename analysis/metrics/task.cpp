#include "analysis/metrics/task.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "analysis/metrics/meters.h"
#include "sim/base/error.h"
#include "sim/base/numerics.h"
#include "sim/data/synthetic_language.h"

namespace moelab {
namespace {

void require_equal_shapes(const Eigen::Ref<const Matrix>& outputs, const Eigen::Ref<const Matrix>& targets) {
  if (outputs.rows() != targets.rows() || outputs.cols() != targets.cols())
    throw InvalidOption("outputs",
                        fmt::format("shape ({}, {}) differs from the targets' ({}, {})", outputs.rows(),
                                    outputs.cols(), targets.rows(), targets.cols()));
  if (targets.size() == 0)
    throw InvalidOption("targets", "empty; a loss needs at least one row and one output");
}

template <class Real>
class TaskMeter final : public ModelMeter<Real> {
 public:
  TaskMeter(const NoMetricOptions& /*options*/, const MeterSetting<Real>& setting) : data_(setting.data) {
    const Dataset& test = data_.test();
    bytes_ = setting.problem.bytes_of(test.y);
    targets_ = static_cast<double>((test.y.array() >= 0).count());
    const bool is_next_token = data_.has_ids() && !unmet_need("bayes_loss", setting.subject);
    if (const std::optional<LanguageLosses> known =
            is_next_token ? setting.problem.language_losses(test) : std::nullopt) {
      bayes_ = {{"bayes_loss", known->bayes},
                {"oracle_domain_loss", known->oracle_domain},
                {"bigram_loss", known->bigram},
                {"unigram_loss", known->unigram}};
    }
    const std::optional<Matrix> best = setting.problem.bayes_prediction(test.x);
    if (!best) return;
    const MatrixView f = data_.target_rows(*best), y = data_.target_rows(test.y);
    if (data_.class_targets()) bayes_["bayes_accuracy"] = accuracy(f, y);
    if (!data_.cross_entropy()) set(bayes_, "bayes_nmse", normalised_mean_squared_error(f, y));
  }

  void measure(const TestMoment<Real>& moment, MetricValues& values) override {
    const Network<Real>& network = *moment.model.network;
    if (data_.has_ids()) return measure_ids(moment, values);
    if (data_.has_train()) {
      add("train", "", data_.train_outputs(moment, network.train_gating()), data_.train().y, values);
      if (!data_.cross_entropy()) {
        set(values, "train_nmse_top1", data_.train_nmse(moment, network.top1_gating()));
      }
      values["parameter_count"] = static_cast<double>(network.parameter_count());
    }
    const Matrix& targets = data_.test().y;
    add("test", "_soft", data_.test_outputs(moment, network.soft_gating()), targets, values);
    add("test", "_top1", data_.test_outputs(moment, network.top1_gating()), targets, values);
    add("test", "_eval", moment.pass.outputs(), targets, values);
    values.insert(bayes_.begin(), bayes_.end());
  }

 private:
  void measure_ids(const TestMoment<Real>& moment, MetricValues& values) const {
    const Network<Real>& network = *moment.model.network;
    if (data_.has_train()) {
      values["train_loss"] = data_.train_loss(moment, network.train_gating());
      values["parameter_count"] = static_cast<double>(network.parameter_count());
    }
    values["test_loss_soft"] = data_.test_loss(moment, network.soft_gating());
    values["test_loss_top1"] = data_.test_loss(moment, network.top1_gating());
    const double loss = moment.pass.loss();
    values["test_loss_eval"] = loss;
    values["test_perplexity"] = std::exp(loss);
    if (bytes_) values["test_bits_per_byte"] = loss * targets_ / std::numbers::ln2 / *bytes_;
    values.insert(bayes_.begin(), bayes_.end());
  }

  /// Adds loss, nmse and accuracy of outputs on a set. The names are "test_loss_soft", … for "test", "_soft".
  void add(const std::string& set_name, const std::string& ending, const Matrix& outputs,
           const Matrix& targets, MetricValues& values) const {
    const MatrixView f = data_.target_rows(outputs), y = data_.target_rows(targets);
    values[set_name + "_loss" + ending] = data_.task_loss(outputs, targets);
    if (!data_.cross_entropy() && ending != "_eval") {
      set(values, set_name + "_nmse" + ending, normalised_mean_squared_error(f, y));
    }
    if (data_.class_targets()) values[set_name + "_accuracy" + ending] = accuracy(f, y);
  }

  const MeasuredData<Real>& data_;
  MetricValues bayes_;           ///< losses of the data's own conditional mean or law
  std::optional<double> bytes_;  ///< bytes of text that the test set's targets stand for
  double targets_ = 0;           ///< ids: tokens of the test set that have a target
};

const Need replaced_rows{"data.contamination replaced", [](const MetricSubject& of, int) {
                           return of.data().contamination.chosen() == "replaced";
                         }};

template <class Real>
class ReplacedMeter final : public ModelMeter<Real> {
 public:
  ReplacedMeter(const NoMetricOptions& /*options*/, const MeterSetting<Real>& setting)
      : data_(setting.data), applies_(!unmet_need("test_loss_kept", setting.subject)) {
    if (!applies_) return;
    // Only the seeds decide which rows are replaced. Rows of ones show them, since a replacement of scale 0
    // is a row of zeros.
    const Layout& layout = data_.layout();
    Matrix inputs = Matrix::Ones(data_.samples(), layout.sample_dim());
    contaminate(setting.subject.data().contamination, layout, setting.seeds, inputs);
    const Eigen::Index width = layout.target_per_token ? layout.input_dim : inputs.cols();
    const MatrixView rows(inputs.data(), inputs.size() / width, width);
    for (Eigen::Index i = 0; i < rows.rows(); ++i) {
      if ((rows.row(i).array() == 1).all()) kept_.push_back(i);
    }
  }

  void measure(const TestMoment<Real>& moment, MetricValues& values) override {
    if (!applies_ || kept_.empty()) return;
    const Matrix outputs = moment.pass.outputs();
    values["test_loss_kept"] = data_.task_loss(kept_of(outputs), kept_of(data_.test().y));
  }

 private:
  Matrix kept_of(const Matrix& all) const { return data_.target_rows(all)(kept_, Eigen::all); }

  const MeasuredData<Real>& data_;
  bool applies_;
  std::vector<Eigen::Index> kept_;  ///< rows of targets
};

const Need swapped_tokens{"data.contamination swapped", [](const MetricSubject& of, int) {
                            return of.data().contamination.chosen() == "swapped";
                          }};

template <class Real>
class SwappedMeter final : public ModelMeter<Real> {
 public:
  SwappedMeter(const NoMetricOptions& /*options*/, const MeterSetting<Real>& setting) {
    if (unmet_need("test_loss_unswapped", setting.subject)) return;
    const MeasuredData<Real>& data = setting.data;
    // Only the seeds decide which tokens are swapped: zeros show them.
    const Matrix& targets = data.test().y;
    Matrix x = Matrix::Zero(targets.rows(), targets.cols()), y = x;
    contaminate(setting.subject.data().contamination, data.layout(), setting.seeds, x, y);
    const bool is_masked = task_loss_kind(setting.experiment.loss.task).masks_tokens;
    const Matrix& moved = is_masked ? x : y;
    is_kept_.reserve(size(targets.size()));
    for (Eigen::Index i = 0; i < targets.size(); ++i)
      if (targets.data()[i] >= 0) is_kept_.push_back(moved.data()[i] == 0);
  }

  void measure(const TestMoment<Real>& moment, MetricValues& values) override {
    const auto kept = std::count(is_kept_.begin(), is_kept_.end(), true);
    if (kept == 0) return;
    const std::vector<double>& losses = moment.pass.token_losses();
    double sum = 0;
    for (std::size_t i = 0; i < losses.size(); ++i) sum += is_kept_[i] ? losses[i] : 0;
    values["test_loss_unswapped"] = sum / static_cast<double>(kept);
  }

 private:
  std::vector<bool> is_kept_;  ///< of tokens with a target; empty where the metric does not apply
};

template <class Real>
class FloorMeter final : public ModelMeter<Real> {
 public:
  FloorMeter(const NoMetricOptions& /*options*/, const MeterSetting<Real>& setting) {
    if (unmet_need("excess_loss", setting.subject)) return;
    if (const std::optional<LanguageLosses> known = setting.problem.language_losses(setting.data.test()))
      floor_ = known->bayes;
  }

  void measure(const TestMoment<Real>& moment, MetricValues& values) override {
    if (floor_) values["excess_loss"] = moment.pass.loss() - *floor_;
  }

 private:
  std::optional<double> floor_;  ///< the Bayes loss; empty where the metric does not apply
};

/// The language of the test set if it has facts; else null.
const SyntheticLanguageOptions* language_with_facts(const DataOptions& data) {
  const auto* const language = data.as<SyntheticLanguageOptions>();
  return language && language->facts ? language : nullptr;
}

const Need facts{"data.facts, none swapped, and the next token as the task",
                 [](const MetricSubject& of, int) {
                   return language_with_facts(of.data()) && of.data().contamination.chosen() != "swapped" &&
                          !task_loss_kind(of.experiment().loss.task).masks_tokens;
                 }};

template <class Real>
class FactsMeter final : public ModelMeter<Real> {
 public:
  FactsMeter(const NoMetricOptions& /*options*/, const MeterSetting<Real>& setting) {
    if (unmet_need("fact_loss", setting.subject)) return;
    const int chained = language_with_facts(setting.subject.data())->chained();
    const Matrix& ids = setting.data.test().x;
    follows_key_.reserve(size(ids.size()));
    for (Eigen::Index i = 0; i < ids.size(); ++i) follows_key_.push_back(ids.data()[i] >= chained);
  }

  void measure(const TestMoment<Real>& moment, MetricValues& values) override {
    const auto count = std::count(follows_key_.begin(), follows_key_.end(), true);
    const auto others = static_cast<std::ptrdiff_t>(follows_key_.size()) - count;
    if (follows_key_.empty()) return;
    const std::vector<double>& losses = moment.pass.token_losses();
    double of_facts = 0, elsewhere = 0;
    for (std::size_t i = 0; i < losses.size(); ++i) (follows_key_[i] ? of_facts : elsewhere) += losses[i];
    if (count > 0) values["fact_loss"] = of_facts / static_cast<double>(count);
    if (others > 0) values["test_loss_elsewhere"] = elsewhere / static_cast<double>(others);
  }

 private:
  std::vector<bool> follows_key_;  ///< of targets; empty where the metrics do not apply
};

}  // namespace

double mean_squared_error(const Eigen::Ref<const Matrix>& outputs, const Eigen::Ref<const Matrix>& targets) {
  require_equal_shapes(outputs, targets);
  return (outputs - targets).squaredNorm() / static_cast<double>(targets.size());
}

double label_variance(const Eigen::Ref<const Matrix>& targets) {
  if (targets.size() == 0)
    throw InvalidOption("targets", "empty; a variance needs at least one row and one output");
  // Measured from the first row: a constant output gives exactly zero.
  const Eigen::RowVectorXd origin = targets.row(0);
  const Eigen::RowVectorXd mean = (targets.rowwise() - origin).colwise().mean();
  return ((targets.rowwise() - origin).rowwise() - mean).squaredNorm() / static_cast<double>(targets.size());
}

std::optional<double> normalised_mean_squared_error(const Eigen::Ref<const Matrix>& outputs,
                                                    const Eigen::Ref<const Matrix>& targets) {
  const double loss = mean_squared_error(outputs, targets);
  const double variance = label_variance(targets);
  if (variance == 0) return std::nullopt;
  return loss / variance;
}

double mean_cross_entropy(const Eigen::Ref<const Matrix>& outputs, const Eigen::Ref<const Matrix>& targets) {
  require_equal_shapes(outputs, targets);
  return -log_softmax(outputs).cwiseProduct(targets).sum() / static_cast<double>(targets.rows());
}

Matrix cross_entropy_gradients(const Eigen::Ref<const Matrix>& outputs,
                               const Eigen::Ref<const Matrix>& targets) {
  require_equal_shapes(outputs, targets);
  const Vector masses = targets.rowwise().sum();
  return masses.asDiagonal() * softmax(outputs) - Matrix(targets);
}

double accuracy(const Eigen::Ref<const Matrix>& outputs, const Eigen::Ref<const Matrix>& targets) {
  require_equal_shapes(outputs, targets);
  Eigen::Index right = 0;
  for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
    Eigen::Index given = 0, wanted = 0;
    outputs.row(i).maxCoeff(&given);
    targets.row(i).maxCoeff(&wanted);
    if (given == wanted) ++right;
  }
  return static_cast<double>(right) / static_cast<double>(outputs.rows());
}

MetricGroup task_metrics() {
  MetricGroup group = model_metrics<NoMetricOptions, TaskMeter>(
      "task",
      "losses on training and test data, and parameter counts. Losses average over rows and outputs. "
      "Cross-entropy averages over rows, in nats. _soft uses probabilities. _top1 uses the largest "
      "probability plus selection bias. _eval uses what gating.eval selects",
      {metric("train_loss", true, "loss.task on the training set, gating as in training", "training loss",
              "training", {&needs::own_data}),
       metric("test_loss_soft", true, "loss.task on the test set, every expert weighted by r(x)",
              "test loss (soft)", "test, soft"),
       metric("test_loss_top1", true, "loss.task on the test set, the argmax expert alone",
              "test loss (top-1)", "test, top-1"),
       metric("test_loss_eval", true, "loss.task on the test set under gating.eval",
              "test loss (evaluation gating)", "test, evaluation"),
       metric("train_nmse", true, "train_loss ÷ variance of the training labels (1 trivial, 0 perfect)",
              "training loss ÷ label variance", "training", {&needs::own_data, &needs::squared_error}),
       metric("train_nmse_top1", true,
              "train_loss of the argmax expert alone ÷ variance of the training labels; compare "
              "test_nmse_top1 with it",
              "training loss ÷ label variance (top-1)", "training, top-1",
              {&needs::own_data, &needs::squared_error}),
       metric("test_nmse_soft", true, "test_loss_soft ÷ variance of the test labels",
              "test loss ÷ label variance (soft)", "test, soft", {&needs::squared_error}),
       metric("test_nmse_top1", true, "test_loss_top1 ÷ variance of the test labels",
              "test loss ÷ label variance (top-1)", "test, top-1", {&needs::squared_error}),
       metric("bayes_nmse", true,
              "loss of E[y | x] on the test set ÷ variance of the test labels: the mixture's own floor",
              "Bayes loss ÷ label variance", "Bayes floor", {&needs::squared_error, &needs::best_prediction}),
       metric("train_accuracy", false,
              "targets that are classes: share of training rows with the largest output right",
              "accuracy on training data", "training", {&needs::own_data, &needs::classes}),
       metric("test_accuracy_soft", false,
              "share of test rows whose largest output is right, every expert weighted by r(x)",
              "accuracy (soft)", "test, soft", {&needs::classes}),
       metric("test_accuracy_top1", false,
              "share of test rows whose largest output of the argmax expert is right", "accuracy (top-1)",
              "test, top-1", {&needs::classes}),
       metric("test_accuracy_eval", false,
              "share of test rows whose largest output under gating.eval is right",
              "accuracy (evaluation gating)", "test, evaluation", {&needs::classes}),
       metric(
           "bayes_accuracy", false,
           "share of test rows whose largest entry of E[y | x] is right: what no model surpasses on average",
           "accuracy of E[y | x]", "Bayes", {&needs::classes, &needs::best_prediction}),
       metric("test_perplexity", true, "exp(test_loss_eval), of ids of tokens", "perplexity", "perplexity",
              {&needs::token_ids}),
       metric("test_bits_per_byte", true,
              "test_loss_eval in bits, over all tokens of the test set, ÷ bytes of text that they stand for",
              "bits a byte", "bits a byte", {&needs::text}),
       metric("bayes_loss", true,
              "loss of P(next token | all before) on the test set, nats a token: the floor of every model",
              "Bayes loss (nats a token)", "Bayes floor", {&needs::known_language, &needs::causal_routing}),
       metric("oracle_domain_loss", true,
              "mean of −log P(next token | all before, domain of every token) on the test set, nats a token",
              "loss given the domains (nats a token)", "oracle of domains",
              {&needs::known_language, &needs::causal_routing}),
       metric("bigram_loss", true, "mean of −log P(next token | last token) on the test set, nats a token",
              "bigram loss (nats a token)", "bigram", {&needs::known_language, &needs::causal_routing}),
       metric("unigram_loss", true,
              "mean of −log P(next token) from token frequencies alone on the test set, nats a token",
              "unigram loss (nats a token)", "unigram", {&needs::known_language, &needs::causal_routing}),
       metric("parameter_count", true, "trained and frozen parameters of the whole model", "parameters",
              "parameters", {&needs::own_data})});
  group.needs = {&needs::model};
  set_larger_is_better(group, {"train_accuracy", "test_accuracy_soft", "test_accuracy_top1",
                               "test_accuracy_eval", "bayes_accuracy"});
  return group;
}

MetricGroup replaced_metrics() {
  MetricGroup group = model_metrics<NoMetricOptions, ReplacedMeter>(
      "replaced", "what replaced rows do to the others; uses what gating.eval selects",
      {metric("test_loss_kept", true,
              "test_loss_eval over targets without replaced inputs: routers that look at a batch or a "
              "sequence carry harm from row to row",
              "test loss of rows that were kept", "kept rows")});
  group.by_default = false;
  group.needs = {&needs::model, &replaced_rows};
  return group;
}

MetricGroup swapped_metrics() {
  MetricGroup group = model_metrics<NoMetricOptions, SwappedMeter>(
      "swapped", "what swapped tokens do to the others; uses what gating.eval selects",
      {metric("test_loss_unswapped", true, "test_loss_eval over the tokens that were not swapped",
              "test loss of tokens that were kept (nats a token)", "kept tokens")});
  group.by_default = false;
  group.needs = {&needs::model, &swapped_tokens};
  return group;
}

MetricGroup floor_metrics() {
  MetricGroup group = model_metrics<NoMetricOptions, FloorMeter>(
      "floor",
      "what is left to gain where the lowest possible loss is known. It uses what gating.eval selects",
      {metric("excess_loss", false, "test_loss_eval − bayes_loss, nats a token",
              "loss above the Bayes loss (nats a token)", "above the floor")});
  group.by_default = false;
  group.needs = {&needs::model, &needs::known_language, &needs::causal_routing};
  return group;
}

MetricGroup facts_metrics() {
  MetricGroup group = model_metrics<NoMetricOptions, FactsMeter>(
      "facts",
      "what the model knows by heart, and how well it predicts the rest. It uses what gating.eval selects",
      {metric("fact_loss", true, "test_loss_eval over the values of keys, nats a value",
              "loss of facts (nats a value)", "facts"),
       metric("test_loss_elsewhere", true, "test_loss_eval over all other tokens, nats a token",
              "loss elsewhere (nats a token)", "elsewhere")});
  group.by_default = false;
  group.needs = {&needs::model, &facts};
  return group;
}

MetricGroup fit_metrics() {
  MetricGroup group = metric_group(
      "fit", "how a least-squares fit (optimizer lbfgs) ended, at its last step; uses no routing",
      {metric("fit_converged", false,
              "1 when the gradient is below √L / n (start \"best\": when L p / (1000 n) at most is left to "
              "gain), else 0",
              "share of fits that converged", "converged"),
       metric("fit_evaluations", true, "evaluations of loss and gradient, all starts together",
              "evaluations of loss and gradient", "evaluations"),
       metric("fit_starts", true, "starts that were made", "starts", "starts"),
       metric("fit_minima", true, "distinct minima met by the starts on their samples", "distinct minima",
              "minima", {&needs::best_start}),
       metric("fit_near_minima", true,
              "polished minima whose loss exceeds the least by at most L p / (20 n), with the least itself: "
              "the data cannot separate them",
              "near minima", "near minima", {&needs::best_start}),
       metric("fit_near_diameter", false,
              "between near minima, the largest distance from an expert (a, b) of one to the nearest of the "
              "other",
              "distance of near minima", "diameter", {&needs::best_start}),
       metric("fit_best_found", false, "starts of a search that ended in the best basin",
              "starts in the best basin", "found", {&needs::search_start}),
       metric("fit_settled", false,
              "1 when a search stopped because its two best basins were found repeatedly, else 0",
              "share of searches that settled", "settled", {&needs::search_start}),
       metric("fit_oracle_gap", false,
              "loss minus the best loss from near the truth, over the latter (log-likelihood: reversed, "
              "nats); above 0: the search missed a better fit",
              "gap to the oracle-started fit", "oracle gap", {&needs::oracle_start}),
       metric("fit_worse_than_oracle", false, "1 when fit_oracle_gap is above 1e-6, else 0",
              "share of fits worse than the oracle-started one", "worse than oracle",
              {&needs::oracle_start})});
  group.by_default = false;
  group.needs = {&needs::own_data, &needs::least_squares};
  return group;
}

MetricGroup likelihood_metrics() {
  MetricGroup group = metric_group(
      "likelihood",
      "a fit of Gaussian experts by maximum likelihood (train.optimizer.likelihood) against the mixture that "
      "drew the data, at its last step. Group voronoi defines the cells. It uses no routing",
      {metric("likelihood_gain", false,
              "mean log-likelihood of the training set under the fit less that under the truth, nats",
              "log-likelihood above the truth's (nats)", "likelihood gain"),
       metric("gaussian_voronoi_loss", true,
              "D of Gaussian experts; powers by fits in a cell: one 1; two 4 (g, b) and 2 (a, variance); "
              "three 6 and 3",
              "Voronoi loss of Gaussian experts", "Voronoi loss"),
       metric("variance_error_exact", true,
              "variance of fits alone in their cell, root of the weighted mean square",
              "error of the variance, one fit", "variance, one fit"),
       metric("variance_error_over", true,
              "variance of fits that share a cell, root of the weighted mean square",
              "error of the variance, several fits", "variance, several fits")});
  group.by_default = false;
  group.needs = {&needs::own_data, &needs::likelihood_fit};
  return group;
}

}  // namespace moelab
