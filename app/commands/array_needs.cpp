#include "app/commands/array_needs.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/metrics/metric_groups.h"

namespace moelab {
namespace {

bool is_given(const Need& need, const ArrayFiles& arrays, int top_k) {
  if (&need == &needs::labels) return arrays.labels.has_value();
  if (&need == &needs::inputs) return arrays.inputs.has_value();
  if (&need == &needs::space) return arrays.space() != nullptr;
  if (&need == &needs::router_weight || &need == &needs::router_columns) return arrays.router.has_value();
  if (&need == &needs::expert_outputs) return arrays.expert_outputs.has_value();
  if (&need == &needs::several_experts) return arrays.experts > 1;
  if (&need == &needs::sets || &need == &needs::sets_of_k) return top_k > 1;
  if (&need == &needs::probabilities_before) return arrays.previous_probs.has_value();
  if (&need == &needs::step_before || &need == &needs::layer_before || &need == &needs::last_step)
    return arrays.previous_probs || arrays.previous_assignments;
  return true;  // probabilities
}

}  // namespace

void skip_not_given(const ArrayFiles& arrays, int top_k, ArrayAnalysis& analysis) {
  for (const std::string& name : metric_names()) {
    const std::vector<const Need*> all = needs_of(name);
    if (std::any_of(all.begin(), all.end(), [](const Need* need) { return !need->argument; })) continue;
    std::vector<std::string> missing;
    for (const Need* const need : all) {
      if (!is_given(*need, arrays, top_k)) missing.emplace_back(need->argument);
    }
    if (!missing.empty()) analysis.skipped[name] = fmt::format("needs {}", fmt::join(missing, ", "));
  }
}

}  // namespace moelab
