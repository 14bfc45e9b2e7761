/// Metrics of tasks in sequence (train.rounds): what the model keeps of the tasks that it has seen.
///
/// L_n(t) is the test loss of task n after round t under gating.eval. Round τ has task n_τ and goes to expert
/// m_τ. For linear tasks w_n and linear experts w^m, e_τ(t) = ‖w^{m_τ} − w_{n_τ}‖² after round t is exact. It
/// does not depend on the router (Li et al. 2025).

#include <memory>
#include <numeric>

#include "analysis/metrics/agreement.h"
#include "analysis/metrics/meters.h"
#include "sim/data/task_pool.h"

namespace moelab {
namespace {

const Need rounds{"train.rounds, and test data that are no attack", [](const MetricSubject& of, int) {
                    return of.experiment().train.rounds && !of.data().contamination.entry().is_attack();
                  }};
const Need linear_tasks{
    "data.generator task_pool and linear experts without bias", [](const MetricSubject& of, int) {
      const ModelOptions& model = of.experiment().model;
      const auto* const linear = model.expert.as<LinearExpertOptions>();
      return of.data().as<TaskPoolOptions>() && of.network().has_router() && linear && !linear->bias;
    }};
const Need task_signals{"data.generator task_pool with signals, and a router that is linear in x",
                        [](const MetricSubject& of, int layer) {
                          const auto* const pool = of.data().as<TaskPoolOptions>();
                          return pool && pool->signal != TaskPoolOptions::Signal::none &&
                                 needs::router_weight.is_met(of, layer);
                        }};
const Need termination{"model.gating.train sequence_top1 with termination", [](const MetricSubject& of, int) {
                         const auto* const own =
                             of.experiment().model.gating.train.as<SequenceTop1GatingOptions>();
                         return of.network().has_router() && own && own->termination;
                       }};

/// Sums over rounds of a value that each round's task had right after the round.
struct RoundSums {
  double after = 0;  ///< Σ_τ value(τ)
  double last = 0;   ///< value of the last round
  std::int64_t count = 0;

  void add(double value) {
    after += value;
    last = value;
    ++count;
  }
};

/// The entries of an array of the model (experts, …), a row for each expert; empty if there is none.
template <class Real>
Matrix rows_of_experts(const TestMoment<Real>& moment, const std::string& name) {
  const Network<Real>& network = *moment.model.network;
  for (const NamedArray<Real>& array : network.arrays(moment.model.parameters)) {
    if (array.name != name + network.layer_ending(0)) continue;
    const Eigen::Index experts = array.shape.front();
    return widen(array.values, experts, static_cast<Eigen::Index>(array.values.size()) / experts);
  }
  return {};
}

template <class Real>
class ContinualMeter final : public ModelMeter<Real> {
 public:
  ContinualMeter(const NoMetricOptions& /*options*/, const MeterSetting<Real>& setting) {
    if (unmet_need("tasks_seen", setting.subject)) return;
    const std::size_t tasks = size(setting.problem.clusters());
    sets_.resize(tasks);
    const Dataset& test = setting.data.test();
    const int labels = setting.data.layout().labels;
    std::vector<std::vector<Eigen::Index>> rows(tasks);
    for (Eigen::Index i = 0; i < test.x.rows(); ++i) rows[size(test.cluster[size(i * labels)])].push_back(i);
    for (std::size_t n = 0; n < tasks; ++n) {
      sets_[n] = {test.x(rows[n], Eigen::all), test.y(rows[n], Eigen::all), {}};
      for (const Eigen::Index row : rows[n])
        sets_[n].cluster.insert(sets_[n].cluster.end(), test.cluster.begin() + row * labels,
                                test.cluster.begin() + (row + 1) * labels);
      data_.push_back(std::make_unique<MeasuredData<Real>>(setting.data.layout(), setting.experiment.loss,
                                                           none_, sets_[n]));
    }
    first_.resize(tasks);
    of_task_.resize(tasks, 0);
    if (setting.problem.task_pool()) pool_ = *setting.problem.task_pool();
    is_linear_ = !unmet_need("expert_forgetting", setting.subject);
    has_signals_ = !unmet_need("routing_consistency", setting.subject);
    terminates_ = !unmet_need("settled_share", setting.subject);
  }

  void after_round(const TestMoment<Real>& moment, const FinishedRound& round) override {
    const std::size_t task = size(round.task);
    if (task >= sets_.size()) return;  // an evaluation on data of fewer tasks
    const auto experts = static_cast<Eigen::Index>(moment.model.network->experts());
    const auto tasks = static_cast<Eigen::Index>(sets_.size());
    if (total_.size() == 0) total_ = recent_ = Matrix::Zero(tasks, experts);
    ++total_(round.task, round.expert);
    ++recent_(round.task, round.expert);
    last_task_ = round.task;
    last_expert_ = round.expert;
    ++of_task_[task];
    if (has_samples(task)) {
      const double loss = loss_of(moment, task);
      losses_.add(loss);
      if (!first_[task]) first_[task] = loss;
      last_measured_ = task;
    }
    if (is_linear_)
      errors_.add(distance(rows_of_experts(moment, "expert_weight_1"), round.task, round.expert));
  }

  void measure(const TestMoment<Real>& moment, MetricValues& values) override {
    if (sets_.empty()) return;
    values["tasks_seen"] =
        static_cast<double>(std::count_if(of_task_.begin(), of_task_.end(), [](auto n) { return n > 0; }));
    if (total_.size() == 0) return;
    if (losses_.count > 0) measure_losses(moment, values);
    if (is_linear_) measure_errors(rows_of_experts(moment, "expert_weight_1"), values);
    if (has_signals_) measure_sets(rows_of_experts(moment, "router_weight"), values);
    if (terminates_) measure_settled(moment, values);
    recent_.setZero();
  }

 private:
  /// A small test set may have no sample of a rare task. Rounds of this task then have no loss.
  bool has_samples(std::size_t task) const { return sets_[task].x.rows() > 0; }
  double loss_of(const TestMoment<Real>& moment, std::size_t task) const {
    return data_[task]->test_loss(moment, moment.model.network->eval_gating());
  }
  double distance(const Matrix& experts, Eigen::Index task, Eigen::Index expert) const {
    return (experts.row(expert) - pool_.weights.row(task)).squaredNorm();
  }

  /// `now` is Σ_τ value(t) over all rounds, and `of_last` the value(t) of the last round.
  static void add_forgetting(const std::string& prefix, const RoundSums& sums, double now, double of_last,
                             MetricValues& values) {
    values[prefix + "generalisation_error"] = now / static_cast<double>(sums.count);
    if (sums.count < 2) return;
    const double change = now - of_last - (sums.after - sums.last);
    values[prefix + "forgetting"] = change / static_cast<double>(sums.count - 1);
  }

  void measure_losses(const TestMoment<Real>& moment, MetricValues& values) {
    double now = 0, of_last = 0, gain = 0, others = 0;
    for (std::size_t n = 0; n < sets_.size(); ++n) {
      if (of_task_[n] == 0 || !has_samples(n)) continue;
      const double loss = loss_of(moment, n);
      now += static_cast<double>(of_task_[n]) * loss;
      if (last_measured_ == n) {
        of_last = loss;
        continue;
      }
      gain += *first_[n] - loss;
      ++others;
    }
    add_forgetting("", losses_, now, of_last, values);
    if (others > 0) values["backward_transfer"] = gain / others;
  }

  void measure_errors(const Matrix& experts, MetricValues& values) const {
    double now = 0;
    for (Eigen::Index n = 0; n < total_.rows(); ++n) {
      for (Eigen::Index m = 0; m < total_.cols(); ++m)
        if (total_(n, m) > 0) now += total_(n, m) * distance(experts, n, m);
    }
    add_forgetting("expert_", errors_, now, distance(experts, last_task_, last_expert_), values);
  }

  /// The experts of a set prefer one group of tasks: argmax_n θ_m·v_n lies in it. An expert with equal scores
  /// prefers none and is alone in its set.
  std::vector<int> sets_of(const Matrix& router) const {
    const Matrix scores = router * pool_.signals.transpose();
    std::vector<int> sets;
    for (Eigen::Index m = 0; m < scores.rows(); ++m) {
      Eigen::Index best = 0;
      const bool is_equal = scores.row(m).maxCoeff(&best) == scores.row(m).minCoeff() && scores.cols() > 1;
      sets.push_back(is_equal ? static_cast<int>(scores.cols() + m) : pool_.groups[size(best)]);
    }
    return sets;
  }

  void measure_sets(const Matrix& router, MetricValues& values) const {
    const double rounds_since = recent_.sum();
    if (rounds_since == 0) return;
    const std::vector<int> sets = sets_of(router);
    const int groups = *std::max_element(pool_.groups.begin(), pool_.groups.end()) + 1;
    const int labels = *std::max_element(sets.begin(), sets.end()) + 1;
    Matrix by_set = Matrix::Zero(groups, labels);
    for (Eigen::Index n = 0; n < recent_.rows(); ++n) {
      for (Eigen::Index m = 0; m < recent_.cols(); ++m)
        by_set(pool_.groups[size(n)], sets[size(m)]) += recent_(n, m);
    }
    const Vector of_expert = recent_.colwise().sum().transpose();
    values["routing_consistency"] = by_set.rowwise().maxCoeff().sum() / rounds_since;
    ContingencyTable table(0, labels);
    for (Eigen::Index g = 0; g < by_set.rows(); ++g) {
      if (by_set.row(g).sum() == 0) continue;
      table.conservativeResize(table.rows() + 1, labels);
      table.row(table.rows() - 1) = by_set.row(g).cast<std::int64_t>();
    }
    set(values, "routing_information", normalized_mutual_information(table));
    set(values, "set_dispersion", dispersion(of_expert, sets));
  }

  /// Pearson's χ² of equal loads within each set, divided by its degrees of freedom.
  static std::optional<double> dispersion(const Vector& loads, const std::vector<int>& sets) {
    double sum = 0, freedom = 0;
    for (Eigen::Index m = 0; m < loads.size(); ++m) {
      double total = 0, members = 0;
      for (Eigen::Index other = 0; other < loads.size(); ++other) {
        if (sets[size(other)] != sets[size(m)]) continue;
        total += loads[other];
        ++members;
      }
      if (total == 0) continue;
      const double mean = total / members;
      sum += (loads[m] - mean) * (loads[m] - mean) / mean;
      freedom += 1 - 1 / members;
    }
    if (freedom < 0.5) return std::nullopt;
    return sum / freedom;
  }

  void measure_settled(const TestMoment<Real>& moment, MetricValues& values) const {
    const double* state = moment.model.state.values.data();
    for (const StateArray& array : moment.model.network->state_arrays()) {
      const std::int64_t count = array.size();
      if (array.name.starts_with("settled")) {
        values["settled_share"] = std::accumulate(state, state + count, 0.0) / static_cast<double>(count);
        return;
      }
      state += count;
    }
  }

  Dataset none_;
  std::vector<Dataset> sets_;  ///< the test samples of each task; empty if the metrics do not apply
  std::vector<std::unique_ptr<MeasuredData<Real>>> data_;
  TaskPool pool_;
  bool is_linear_ = false, has_signals_ = false, terminates_ = false;
  std::vector<std::int64_t> of_task_;         ///< rounds of each task
  std::vector<std::optional<double>> first_;  ///< loss of each task after its first round
  RoundSums losses_, errors_;
  Matrix total_, recent_;  ///< rounds by task and expert: all, and since the last record
  int last_task_ = 0, last_expert_ = 0;
  std::size_t last_measured_ = 0;  ///< the last round's task that has test samples
};

}  // namespace

MetricGroup continual_metrics() {
  MetricGroup group = model_metrics<NoMetricOptions, ContinualMeter>(
      "continual",
      "tasks in sequence (train.rounds): what is kept of the tasks seen so far; losses under gating.eval, "
      "expert_ for the expert that computed a round",
      {metric("tasks_seen", false, "tasks that had a round so far", "tasks seen", "tasks"),
       metric("generalisation_error", true, "mean over rounds so far of the test loss of the round's task",
              "test loss of tasks seen", "tasks seen"),
       metric(
           "forgetting", false,
           "mean over rounds before the last of the test loss of the round's task less its value right after "
           "the round",
           "forgetting", "forgetting"),
       metric(
           "backward_transfer", false,
           "mean over tasks seen, but the last, of the test loss after the task's first round less its value "
           "now",
           "backward transfer", "backward transfer"),
       metric(
           "expert_generalisation_error", true,
           "mean over rounds so far of ‖w − w_n‖², w of the expert that computed the round, w_n of its task",
           "error of the round's expert", "error of experts", {&linear_tasks}),
       metric("expert_forgetting", false,
              "mean over rounds before the last of ‖w − w_n‖² less its value right after the round",
              "forgetting of the round's expert", "forgetting of experts", {&linear_tasks}),
       metric("routing_consistency", false,
              "since the last record: share of rounds that went to the most usual set of experts of the "
              "task's group; sets by argmax_n θ_e·v_n",
              "consistency of routing", "consistency", {&task_signals}),
       metric(
           "routing_information", false,
           "since the last record: normalised mutual information of the task's group and the expert's set; 0 "
           "for one set",
           "information of routing", "information", {&task_signals}),
       metric("set_dispersion", false,
              "since the last record: χ² of equal loads within sets of experts, over its degrees of freedom; "
              "1: uniform choice within sets",
              "dispersion within sets", "dispersion", {&task_signals}, "needs a set of several experts"),
       metric("settled_share", false, "share of experts that have set the flag of the termination",
              "settled experts", "settled", {&termination})});
  group.by_default = false;
  group.needs = {&needs::model, &rounds};
  set_larger_is_better(group, {"backward_transfer", "routing_consistency", "routing_information"});
  return group;
}

}  // namespace moelab
