#include "sim/model/schema.h"

#include "sim/loss/auxiliary_losses.h"
#include "sim/loss/loss.h"
#include "sim/model/attention_block.h"
#include "sim/model/expert/expert.h"
#include "sim/model/gating.h"
#include "sim/model/router/router.h"
#include "sim/train/least_squares.h"

namespace moelab {
namespace {

/// A number for both groups or one for each.
Shape per_group(const Shape& number) {
  return Shape::either({number, Shape::object({{"expert", number, "experts (and dense models)"},
                                               {"router", number, "router"}})});
}

}  // namespace

const Shape& model_shape() {
  static const Shape shape = Shape::object({
      {"kind", Shape::choice({"moe", "dense"}), "a mixture of experts, or one network without a router",
       "moe"},
      {"match", Shape::choice({"expert", "moe"}),
       "dense models: the parameter count to match, of one expert or of the whole mixture that the other "
       "fields "
       "describe; the dense network has one more layer than an expert and the nearest width",
       kOptional},
      {"depth", Shape::count(1, 64),
       "dense models: weight matrices, where not one more than an expert has; at depth 1 there is no width "
       "to "
       "match",
       kOptional},
      {"reads", Shape::choice({"tokens", "sequence"}),
       "dense models on sequences: one token at a time, outputs added, or the whole sequence as one row",
       "tokens"},
      {"layers", Shape::count(1, 64),
       "layers L of the mixture; from two on h ← h + MoE(h) from layer to layer and a linear read-out", 1},
      {"attention", attention_shape(),
       "multi-head self-attention over the tokens of a sequence before each layer, learning at the experts' "
       "rate",
       kOptional},
      {"experts", Shape::count(1, 65536), "number of experts E"},
      {"router", Shape::variant(router_kinds()), "scores γ(x) in R^E"},
      {"expert", Shape::variant(expert_kinds()), "a bank of E equal networks"},
      {"gating",
       Shape::object(
           {{"train", Shape::variant(gating_kinds()), "gates in training", "soft"},
            {"eval", Shape::variant(gating_kinds()), "gates of test_loss_eval", "top1"},
            {"balance_rate", Shape::real_at_least(0),
             "loss-free balancing: topk and top1 select by r_e + b_e, and a training step moves b_e "
             "by this against the sign of the expert's load error",
             kOptional}}),
       "how scores become gates", Json::object()},
  });
  return shape;
}

const Shape& loss_shape() {
  static const Shape shape = [] {
    std::vector<Field> fields = {{"task", Shape::choice(task_loss_names()),
                                  "task loss: summed over outputs, averaged over rows", "mse"}};
    for (Field& field : auxiliary_loss_fields()) fields.push_back(std::move(field));
    return Shape::object(std::move(fields));
  }();
  return shape;
}

const Shape& train_shape() {
  static const Shape shape = Shape::object({
      {"gradient", Shape::choice({"sample", "population"}),
       "gradients of mini-batches of the training set, or of the expectation over the population", "sample"},
      {"points", Shape::count(1, 1e8), "population gradients: samples of a rule (default 4096)", kOptional},
      {"rule", Shape::choice({"monte_carlo", "quasi_monte_carlo"}),
       "population gradients: independent samples, or images of Sobol points under a random digital shift, "
       "for "
       "generators that map uniform variables (default monte_carlo)",
       kOptional},
      {"redraw", Shape::boolean(),
       "population gradients: a new rule at every step; false keeps the first, for stationarity checks "
       "(default "
       "true)",
       kOptional},
      {"optimizer", Shape::variant(optimizer_kinds()), "update rule", "sgd"},
      {"lr", per_group(Shape::real_at_least(0)), "learning rate, one or per group", kOptional},
      {"start", Shape::variant(start_kinds()), "lbfgs: where a fit begins (default cold)", kOptional},
      {"weight_decay", per_group(Shape::real_at_least(0)),
       "weight decay, one or per group: added to the gradient, or decoupled with adamw", 0.0},
      {"schedule", Shape::variant(schedule_kinds()), "learning-rate schedule", "constant"},
      {"batch_size", Shape::count(1, 1e7), "samples of a mini-batch (sample gradients)", kOptional},
      {"steps", Shape::count(1, 1e12), "optimizer steps (give steps or epochs)", kOptional},
      {"epochs", Shape::count(1, 1e9), "passes over the training set (give steps or epochs)", kOptional},
      {"record_every", Shape::count(1, 1e12), "steps between recorded metrics (default: a tenth of the run)",
       kOptional},
      {"precision", Shape::choice({"float", "double"}), "number type of training", "float"},
  });
  return shape;
}

}  // namespace moelab
