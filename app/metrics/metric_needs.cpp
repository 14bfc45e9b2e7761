#include "app/metrics/metric_needs.h"

#include <algorithm>

#include "sim/model/measure_places.h"
#include "sim/train/least_squares.h"

namespace moelab {
namespace {

const ModelOptions& model_of(const MetricSubject& subject) {
  return subject.experiment().model;
}

bool always(const MetricSubject& /*subject*/, int /*layer*/) {
  return true;
}

/// Attacks make test sets of their own at every step.
bool has_same_rows(const MetricSubject& subject, int /*layer*/) {
  return !subject.data().contamination.entry().is_attack();
}

bool has_router_weight(const MetricSubject& subject, int layer) {
  const Network<float>& network = subject.network();
  if (!network.has_router()) return false;
  const std::string name = "router_weight" + network.layer_ending(layer);
  const std::vector<NamedArray<float>> arrays =
      network.arrays(AlignedVector<float>(network.parameter_size()));
  return std::any_of(arrays.begin(), arrays.end(),
                     [&](const NamedArray<float>& array) { return array.name == name; });
}

bool may_leave_rows(const MetricSubject& subject, const GatingRule& rule) {
  const GatingKind& kind = rule.entry();
  return kind.may_leave_rows && kind.may_leave_rows(rule.options(), subject.network().experts());
}

bool selects_sets(const MetricSubject& subject, int /*layer*/) {
  const GatingRule& rule = model_of(subject).gating.eval;
  const GatingKind& kind = rule.entry();
  const bool is_single =
      kind.most_experts && kind.most_experts(rule.options()) == 1 && !may_leave_rows(subject, rule);
  return !is_single && !subject.network().eval_gating().activates_all();
}

bool leaves_unserved(const MetricSubject& subject, int /*layer*/) {
  return may_leave_rows(subject, model_of(subject).gating.eval) ||
         subject.network().eval_gating().couples_rows();
}

bool has_parts(const MetricSubject& subject, int /*layer*/) {
  const Layout layout = subject.problem().layout();
  return !layout.sequences && layout.labels > 1;
}

bool has_model_output(const MetricSubject& subject, int /*layer*/) {
  const Layout layout = subject.problem().layout();
  return model_of(subject).kind != ModelOptions::Kind::transformer && subject.network().layers() == 1 &&
         layout.target_dim() == layout.tokens * layout.output_dim;
}

bool has_token_ids(const MetricSubject& subject, int /*layer*/) {
  return subject.data().entry().token_ids;
}

/// Ids are names, not places in a space.
bool has_space(const MetricSubject& subject, int layer) {
  return !has_token_ids(subject, layer);
}

bool knows_language(const MetricSubject& subject, int /*layer*/) {
  const Problem& problem = subject.problem();
  if (problem.layout().vocabulary == 0 || task_loss_kind(subject.experiment().loss.task).masks_tokens ||
      subject.data().contamination.entry().change_ids)
    return false;
  const Matrix ids = Matrix::Zero(1, problem.layout().tokens);
  return problem
      .language_losses({ids, ids, std::vector<int>(static_cast<std::size_t>(problem.layout().labels))})
      .has_value();
}

/// What has seen later tokens can be below any floor.
bool routes_causally(const MetricSubject& subject, int /*layer*/) {
  const ModelOptions& model = model_of(subject);
  const auto sees_later = [](const auto& rule) {
    const auto looks_ahead = rule.entry().looks_ahead;
    const std::string where = looks_ahead ? looks_ahead(rule.options()) : "";
    return !where.empty() && !where.ends_with(" in training");
  };
  return mixtures_of(model) == 0 || !(sees_later(model.router) || sees_later(model.gating.eval));
}

bool has_best_prediction(const MetricSubject& subject, int /*layer*/) {
  const Problem& problem = subject.problem();
  return problem.bayes_prediction(Matrix::Zero(1, problem.layout().sample_dim())).has_value();
}

bool has_true_measure(const MetricSubject& subject, int /*layer*/) {
  const MixingMeasure* const truth = subject.problem().true_measure();
  const ModelOptions& model = model_of(subject);
  if (!truth || model.kind != ModelOptions::Kind::moe || model.layers != 1) return false;
  const std::optional<MixtureForm> form = mixture_form(model);
  return form && is_same_family(*form, truth->form) && has_gate_bias(model);
}

bool has_record_before(const MetricSubject& subject, int layer) {
  return has_same_rows(subject, layer) && subject.is_recorded_again();
}

constexpr const char* kRecordBefore =
    "a recorded step before, of the same phase and on the same rows: no attack";
constexpr const char* kPrevious = "--previous-probs, --previous-logits or --previous-assignments";

}  // namespace

const Problem& MetricSubject::problem() const {
  if (!problem_) {
    drawn_ = draw_problem(data_, seeds_);
    problem_ = drawn_.get();
  }
  return *problem_;
}

const Network<float>& MetricSubject::network() const {
  if (!network_) network_ = std::make_unique<Network<float>>(experiment_.model, problem().layout());
  return *network_;
}

bool MetricSubject::class_targets() const {
  const Layout layout = problem().layout();
  return layout.class_targets ||
         (task_loss_kind(experiment_.loss.task).needs_classes && layout.vocabulary == 0);
}

namespace needs {

const Need router{"a model with a router",
                  [](const MetricSubject& of, int) { return mixtures_of(model_of(of)) > 0; },
                  "--probs or --logits"};
const Need model{"a model", always};
const Need several_experts{"two experts or more",
                           [](const MetricSubject& of, int) {
                             return mixtures_of(model_of(of)) > 0 && routed_experts(model_of(of)) > 1;
                           },
                           "two experts or more"};
const Need router_weight{"a router that is linear in x", has_router_weight, "--router"};
const Need router_columns{"a router", always, "--router"};
const Need mixed_tokens{"a router that mixes tokens",
                        [](const MetricSubject& of, int) { return model_of(of).router.entry().leaves_base; }};
const Need sets{"a gating.eval that selects more than one expert, but not every one", selects_sets,
                "--top-k above 1"};
const Need sets_of_k{"sets of experts", always, "--top-k above 1"};
const Need unserved_rows{"a gating.eval that may leave rows without an expert", leaves_unserved};
const Need layer_before{"a layer before it", [](const MetricSubject&, int layer) { return layer > 0; },
                        kPrevious};
const Need model_output{"one layer, and a target for each row that its experts see", has_model_output};

const Need own_data{"the cell's own data", [](const MetricSubject& of, int) { return of.is_own(); }};
const Need labels{"labels", always, "--labels"};
const Need parts{"data of several labels to a sample", has_parts, nullptr};
const Need inputs{"inputs", always, "--inputs"};
const Need space{"inputs that are no ids of tokens", has_space, "--embeddings or --inputs"};
const Need signal_subspace{"data whose target depends on a known subspace", [](const MetricSubject& of, int) {
                             return of.problem().signal_basis().size() > 0;
                           }};
const Need squared_error{
    "a loss.task other than cross_entropy and masked_tokens",
    [](const MetricSubject& of, int) { return !task_loss_kind(of.experiment().loss.task).needs_classes; }};
const Need classes{"targets that are classes",
                   [](const MetricSubject& of, int) { return of.class_targets(); }};
const Need best_prediction{"data with a known E[y | x]", has_best_prediction};
const Need token_ids{"data of ids of tokens", has_token_ids};
const Need text{"data of text", [](const MetricSubject& of, int) {
                  return has_token_ids(of, 0) && of.problem().bytes_of(Matrix::Zero(1, 1)).has_value();
                }};
const Need known_language{"data of ids whose law is known, none swapped, and the next token as the task",
                          knows_language};
const Need causal_routing{"a router and a gating.eval that look at no later token", routes_causally};
const Need true_measure{"data of moe_regression, and a model of their form", has_true_measure};
const Need shared_experts{"model.shared_experts above 0",
                          [](const MetricSubject& of, int) { return model_of(of).shared_experts > 0; }};

const Need step_before{kRecordBefore, has_record_before, kPrevious};
const Need probabilities_before{kRecordBefore, has_record_before, "--previous-probs or --previous-logits"};
const Need last_step{"the same rows at every step: no attack", has_same_rows, kPrevious};
const Need population_gradient{"train.gradient population", [](const MetricSubject& of, int) {
                                 return of.experiment().train.gradient == TrainOptions::Gradient::population;
                               }};
const Need least_squares{
    "optimizer lbfgs", [](const MetricSubject& of, int) { return is_least_squares(of.experiment().train); }};
const Need best_start{"train.start best", [](const MetricSubject& of, int) {
                        const std::optional<FitStart>& start = of.experiment().train.start;
                        return start && start->as<BestStartOptions>();
                      }};
const Need likelihood_fit{
    "train.optimizer.likelihood and data.law mixture", [](const MetricSubject& of, int) {
      const LeastSquaresOptions* const fit = of.experiment().train.optimizer.as<LeastSquaresOptions>();
      const MixingMeasure* const truth = of.problem().true_measure();
      return fit && fit->likelihood && truth && truth->variance.size() > 0 && truth->form == MixtureForm{};
    }};
const Need until{"train.until",
                 [](const MetricSubject& of, int) { return of.experiment().train.until.has_value(); }};

const Need expert_outputs{"experts", always, "--expert-outputs"};

}  // namespace needs

}  // namespace moelab
