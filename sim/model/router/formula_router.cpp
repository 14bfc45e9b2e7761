#include <algorithm>
#include <cmath>

#include "sim/base/error.h"
#include "sim/base/kernels/multiply.h"
#include "sim/base/numerics.h"
#include "sim/model/router/formula.h"
#include "sim/model/router/routers.h"

namespace moelab {
namespace {

template <class Real>
class FormulaRouter final : public Router<Real> {
 public:
  FormulaRouter(const FormulaRouterOptions& options, const RouterSetting& setting)
      : law_(start_law(options.init)),
        init_scale_(options.init_scale),
        experts_(setting.experts),
        input_dim_(setting.input_dim),
        score_(options.score),
        graph_(make_formula_graph(options, setting.input_dim, setting.experts)) {}

  std::size_t parameter_count() const override {
    std::size_t count = 0;
    for (const PlacedParameter& parameter : graph_.parameters) {
      for_each_entry(parameter, [&](std::size_t) { ++count; });
    }
    return count;
  }
  std::size_t block_size() const override { return graph_.block_size; }
  std::unique_ptr<Scratch> make_scratch() const override {
    return std::make_unique<FormulaScratch<Real>>(graph_.nodes.size());
  }

  void initialize(const Start& start, Real* parameters) const override {
    std::fill_n(parameters, block_size(), Real(0));
    for (std::size_t p = 0; p < graph_.parameters.size(); ++p) {
      const PlacedParameter& parameter = graph_.parameters[p];
      const bool is_number = parameter.options.shape.empty();
      if (parameter.options.start || is_number) {
        const Real value = static_cast<Real>(parameter.options.start.value_or(0));
        for_each_entry(parameter, [&](std::size_t place) { parameters[place] = value; });
      } else {
        draw(start, parameter, p, parameters);
      }
    }
    check_start(parameters);
  }

  RouterOutput<Real> forward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                             Real* scores) const override {
    evaluate_formula({&graph_, experts_, context.x, parameters}, static_cast<FormulaScratch<Real>&>(scratch),
                     scores);
    return {};
  }

  void backward(const RouterContext<Real>& context, const Real* parameters, Scratch& scratch,
                const RouterGradients<Real>& gradients) const override {
    differentiate_formula({&graph_, experts_, context.x, parameters},
                          static_cast<FormulaScratch<Real>&>(scratch), gradients.scores, gradients.parameters,
                          gradients.inputs);
  }

  std::vector<NamedArray<Real>> arrays(const Real* parameters) const override {
    std::vector<NamedArray<Real>> all;
    for (const PlacedParameter& parameter : graph_.parameters) {
      const FormulaExtent& extent = parameter.extent;
      NamedArray<Real> array{"router_formula_" + parameter.name, {}, {}};
      if (extent.experts) array.shape.push_back(experts_);
      if (extent.is_vector || extent.columns > 0) array.shape.push_back(extent.length);
      if (extent.columns > 0) array.shape.push_back(extent.columns);
      if (array.shape.empty()) array.shape.push_back(1);
      for_each_entry(parameter, [&](std::size_t place) { array.values.push_back(parameters[place]); });
      all.push_back(std::move(array));
    }
    return all;
  }

 private:
  /// Calls visit(place) in the order of experts, rows and columns.
  template <class Visit>
  void for_each_entry(const PlacedParameter& parameter, const Visit& visit) const {
    for (int e = 0; e < (parameter.extent.experts ? experts_ : 1); ++e) {
      for (int l = 0; l < parameter.extent.length; ++l) {
        for (int k = 0; k < std::max(1, parameter.extent.columns); ++k) {
          visit(parameter.place(experts_, l, k, e));
        }
      }
    }
  }

  /// Starts the first vector from the start law. Every other parameter has its own streams, one per expert.
  void draw(const Start& start, const PlacedParameter& parameter, std::size_t p, Real* parameters) const {
    const FormulaExtent& extent = parameter.extent;
    const int columns = std::max(1, extent.columns);
    std::vector<double> values(entries(extent.length, columns));
    const double width = extent.columns > 0 ? extent.columns : extent.length;
    for (int e = 0; e < (extent.experts ? experts_ : 1); ++e) {
      if (parameter.leads) {
        law_.fill(start, e, init_scale_, values);
      } else {
        const std::uint64_t counter = (std::uint64_t{p} + 1) << 32 | static_cast<std::uint64_t>(e);
        Engine engine = start.seeds.stream(Purpose::router_init, counter);
        fill_normal(engine, init_scale_ / std::sqrt(width), values.data(), values.size());
      }
      for (int l = 0; l < extent.length; ++l) {
        for (int k = 0; k < columns; ++k) {
          parameters[parameter.place(experts_, l, k, e)] =
              static_cast<Real>(values[entries(l, columns) + size(k)]);
        }
      }
    }
  }

  /// Throws InvalidOption if the start alone, whatever x is, gives a result that is not finite.
  void check_start(const Real* parameters) const {
    const std::vector<Real> row(size(input_dim_), Real(1));
    AlignedVector<Real> scores(size(kernels::padded(experts_)));
    FormulaScratch<Real> scratch(graph_.nodes.size());
    evaluate_formula({&graph_, experts_, rows_of(row.data(), 1, input_dim_), parameters}, scratch,
                     scores.data());
    const auto is_finite = [&](std::size_t i) { return all_finite<Real>(scratch.values[i]); };
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const FormulaNode& node = graph_.nodes[i];
      if (is_finite(i)) continue;
      const bool divides = node.kind == FormulaNode::Kind::divide && !graph_.nodes[size(node.b)].reads_x &&
                           is_finite(size(node.a));
      if (node.reads_x && !divides) continue;
      const FormulaError error(node.at,
                               divides ? "divides by zero at the start" : "is not finite at the start");
      throw InvalidOption("model.router.score", located(score_, error));
    }
  }

  StartLaw law_;
  double init_scale_;
  int experts_;
  int input_dim_;
  std::string score_;
  FormulaGraph graph_;
};

}  // namespace

void FormulaParameterOptions::bind(Fields& fields) {
  fields.add("shape", shape,
             "extents of a vector or of a matrix (rows, columns): \"d\", the router's inputs, or whole "
             "numbers (default: a number)");
  fields.add("shared", shared, "one for all experts, not one for each");
  fields.add("start", start, any_number(),
             "every entry's start (default: 0 of numbers, N(0, init_scale² / columns) of others)");
  fields.add("min", min, any_number(), "of a number: below it, it counts as this");
  fields.add("value", value, any_number(), "a constant in place of what is learned");
}

std::vector<Binding> FormulaParameterOptions::alternatives() {
  return {alternative(std::optional<std::string>(), [this](const std::string& extent) { shape = {extent}; }),
          alternative(std::optional<double>(), [this](double constant) { value = constant; }),
          [this](Fields& fields) { fields.object({}, [this](Fields& own) { bind(own); }); }};
}

void FormulaRouterOptions::bind(Fields& fields) {
  fields.add("trainable", trainable, "false freezes the router at its start");
  fields.required().add("score", score,
                        "γ_e(x) of x, parameters, numbers; operators + - * / ^ (also matrix * vector), "
                        "functions dot, norm, cos, exp, log, tanh, relu, abs");
  fields.add("parameters", parameters,
             "name → shape, constant or fields: \"d\" is a vector for each expert, {\"start\": 1} a number "
             "for each, 0.5 a constant");
  fields.add_name("init", init, start_law_names(), "start of the first vector for each expert");
  fields.add("init_scale", init_scale, at_least(0), "scale of the start");
}

RouterKind formula_router() {
  FormulaRouterOptions example;
  example.score = "-(norm(x)^2 - 2*dot(x, w) + norm(w)^2) / (2*s^2)";
  FormulaParameterOptions vector, number;
  vector.shape = {"d"};
  number.start = 1.0;
  number.min = 0.01;
  example.parameters = {{"w", vector}, {"s", number}};
  RouterKind kind = router_kind<FormulaRouterOptions, FormulaRouter>(
      "formula", "γ_e(x) by a formula of x and of named parameters, differentiated exactly", example);
  kind.starts_at_rows = true;
  kind.needs_train_rows = starts_at_train_rows<FormulaRouterOptions>;
  // Any number of inputs will do here, since a formula that cannot be made or started throws for all of them.
  kind.check = [](const AnyOptions& options, int experts) {
    const FormulaRouter<float> router(options.get<FormulaRouterOptions>(),
                                      {.input_dim = 4, .experts = experts});
    AlignedVector<float> parameters(router.block_size());
    router.initialize({Seeds{}}, parameters.data());
  };
  return kind;
}

}  // namespace moelab
