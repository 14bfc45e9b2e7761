#include "sim/base/error.h"
#include "sim/model/expert/constant_expert.h"
#include "sim/model/expert/expert.h"
#include "sim/model/expert/linear_expert.h"
#include "sim/model/expert/mlp_expert.h"
#include "sim/model/expert/ridge_experts.h"

namespace moelab {
namespace {

struct Entry {
  Kind kind;
  std::unique_ptr<ExpertBank<float>> (*make_float)(const Json&, int, int, int);
  std::unique_ptr<ExpertBank<double>> (*make_double)(const Json&, int, int, int);
};

/// The table of experts: adding one is a new file and a line here.
const std::vector<Entry>& entries() {
  static const std::vector<Entry> table = {
      {constant_expert_kind(), make_constant_bank<float>, make_constant_bank<double>},
      {linear_expert_kind(), make_linear_bank<float>, make_linear_bank<double>},
      {mlp_expert_kind(), make_mlp_bank<float>, make_mlp_bank<double>},
      {polynomial_expert_kind(), make_polynomial_bank<float>, make_polynomial_bank<double>},
      {relu_expert_kind(), make_relu_bank<float>, make_relu_bank<double>},
  };
  return table;
}

const Entry& find(const Json& spec) {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) {
    if (spec.at("kind") == entry.kind.name) return entry;
    names.push_back(entry.kind.name);
  }
  throw UserError("model.expert.kind", unknown_name("expert", spec.at("kind").get<std::string>(), names));
}

}  // namespace

std::vector<Kind> expert_kinds() {
  std::vector<Kind> kinds;
  for (const Entry& entry : entries()) kinds.push_back(entry.kind);
  return kinds;
}

int expert_depth(const Json& spec) {
  return spec.value("depth", 1);
}

template <>
std::unique_ptr<ExpertBank<float>> make_expert_bank<float>(const Json& spec, int input_dim, int output_dim,
                                                           int experts) {
  return find(spec).make_float(spec, input_dim, output_dim, experts);
}
template <>
std::unique_ptr<ExpertBank<double>> make_expert_bank<double>(const Json& spec, int input_dim, int output_dim,
                                                             int experts) {
  return find(spec).make_double(spec, input_dim, output_dim, experts);
}

}  // namespace moelab
