#include "sim/model/router/formula.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "sim/base/arrays.h"
#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"

namespace moelab {
namespace {

/// Largest nesting depth of brackets and signs.
constexpr int kDeepest = 200;
/// Largest number of numbers, names, operators and calls. A chain of operators without brackets makes a tree
/// as deep as it is long, and later passes walk the tree recursively.
constexpr int kMostParts = 1000;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// A recursive-descent parser with one function per level of precedence.
class FormulaParser {
 public:
  explicit FormulaParser(const std::string& text) : text_(text) {}

  FormulaExpression whole() {
    FormulaExpression expression = sum();
    if (at_ == text_.size()) return expression;
    throw FormulaError(at_, text_[at_] == ')' ? "a ')' without its '('" : "needs an operator or the end");
  }

 private:
  using Kind = FormulaExpression::Kind;

  /// The next character that is not blank; '\0' at the end.
  char next() {
    while (at_ < text_.size() && std::strchr(" \t\n\r", text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  FormulaExpression part(Kind kind, std::size_t at) {
    if (++parts_ > kMostParts)
      throw FormulaError(at, fmt::format("needs at most {} numbers, names and operators", kMostParts));
    return {kind, at, 0, {}, {}};
  }
  FormulaExpression joined(Kind kind, std::size_t at, FormulaExpression left, FormulaExpression right) {
    FormulaExpression expression = part(kind, at);
    expression.parts.push_back(std::move(left));
    expression.parts.push_back(std::move(right));
    return expression;
  }

  FormulaExpression sum() {
    FormulaExpression left = product();
    for (char sign = next(); sign == '+' || sign == '-'; sign = next()) {
      const std::size_t at = at_++;
      left = joined(sign == '+' ? Kind::add : Kind::subtract, at, std::move(left), product());
    }
    return left;
  }

  FormulaExpression product() {
    FormulaExpression left = factor();
    for (char sign = next(); sign == '*' || sign == '/'; sign = next()) {
      const std::size_t at = at_++;
      left = joined(sign == '*' ? Kind::multiply : Kind::divide, at, std::move(left), factor());
    }
    return left;
  }

  FormulaExpression factor() {
    if (++depth_ > kDeepest) throw FormulaError(at_, fmt::format("needs at most {} levels", kDeepest));
    FormulaExpression expression = next() == '-' ? negated() : power();
    --depth_;
    return expression;
  }
  FormulaExpression negated() {
    FormulaExpression expression = part(Kind::negate, at_++);
    expression.parts.push_back(factor());
    return expression;
  }

  FormulaExpression power() {
    FormulaExpression base = atom();
    if (next() != '^') return base;
    const std::size_t at = at_++;
    return joined(Kind::power, at, std::move(base), factor());
  }

  FormulaExpression atom() {
    const char first = next();
    const std::size_t begin = at_;
    if (first == '(') {
      ++at_;
      FormulaExpression inside = sum();
      close(begin);
      return inside;
    }
    if (is_digit(first) || first == '.') return number();
    if (!is_letter(first)) {
      throw FormulaError(begin, begin == text_.size() ? "ends where a number, a name or '(' is needed"
                                                      : "needs a number, a name or '('");
    }
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    FormulaExpression expression = part(Kind::name, begin);
    expression.name = text_.substr(begin, at_ - begin);
    if (next() != '(') return expression;
    expression.kind = Kind::call;
    const std::size_t bracket = at_++;
    expression.parts.push_back(sum());
    while (next() == ',') {
      ++at_;
      expression.parts.push_back(sum());
    }
    close(bracket);
    return expression;
  }

  FormulaExpression number() {
    FormulaExpression expression = part(Kind::number, at_);
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), expression.number);
    if (error != std::errc() || !std::isfinite(expression.number)) {
      throw FormulaError(at_, "needs a finite number");
    }
    at_ += static_cast<std::size_t>(end - begin);
    return expression;
  }

  /// Reads the ')' that matches the '(' at `open`.
  void close(std::size_t open) {
    if (next() == ')') {
      ++at_;
    } else if (at_ == text_.size()) {
      throw FormulaError(open, "a '(' without its ')'");
    } else {
      throw FormulaError(at_, "needs an operator, ',' or ')'");
    }
  }

  const std::string& text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int parts_ = 0;
};

using Node = FormulaNode;
using Extent = FormulaExtent;

/// Functions of one argument, applied to each component.
struct NamedFunction {
  const char* name;
  Node::Kind kind;
};
constexpr NamedFunction kFunctions[] = {{"exp", Node::Kind::exp},
                                        {"log", Node::Kind::log},
                                        {"tanh", Node::Kind::tanh},
                                        {"relu", Node::Kind::relu},
                                        {"abs", Node::Kind::abs}};

std::string length_text(int length) {
  return length == kInputDim ? "d" : std::to_string(length);
}

/// A description for messages, such as "a vector of 3".
std::string described(const Extent& extent) {
  if (extent.columns != 0) {
    return fmt::format("a matrix of {} by {}", length_text(extent.length), length_text(extent.columns));
  }
  return extent.is_vector ? "a vector of " + length_text(extent.length) : "a number";
}

/// Adds the parts of a formula to its graph. Equal results share one node.
class GraphMaker {
 public:
  GraphMaker(const FormulaRouterOptions& options, int input_dim, int experts)
      : options_(options), input_dim_(input_dim), experts_(experts) {}

  FormulaGraph make() {
    std::vector<std::string> taken = formula_functions();
    taken.push_back("x");
    for (const auto& [name, own] : options_.parameters) {
      if (std::find(taken.begin(), taken.end(), name) != taken.end()) {
        throw InvalidOption(formula_parameter_path(name), "has the name of what formulas have anyway");
      }
      formula_extent(name, own);  // checks the parameter even if the formula does not use it
    }
    const int score = add(parse_formula(options_.score));
    const Extent extent = graph_.nodes[size(score)].extent;
    if (extent.is_vector || extent.columns != 0)
      throw FormulaError(0, "the score is " + described(extent) + ", needs a number");
    for (const auto& [name, own] : options_.parameters) {
      if (std::find(used_.begin(), used_.end(), name) != used_.end()) continue;
      throw InvalidOption(formula_parameter_path(name), "given, but the score does not use it");
    }
    if (!extent.experts) throw FormulaError(0, "the score is the same for all experts");
    keep_needed(extent.rows ? score : push(Node::Kind::spread, 0, {true, true}, score));
    place();
    return std::move(graph_);
  }

 private:
  /// Removes nodes that the score does not need. The score becomes the last node.
  void keep_needed(int score) {
    std::vector<int> places(graph_.nodes.size(), -1);
    places[size(score)] = 0;
    for (int i = score; i >= 0; --i) {
      const Node& node = graph_.nodes[size(i)];
      for (const int part : {node.a, node.b}) {
        if (places[size(i)] == 0 && part >= 0) places[size(part)] = 0;
      }
    }
    std::vector<Node> needed;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i] < 0) continue;
      Node node = graph_.nodes[i];
      if (node.a >= 0) node.a = places[size(node.a)];
      if (node.b >= 0) node.b = places[size(node.b)];
      places[i] = static_cast<int>(needed.size());
      needed.push_back(node);
    }
    graph_.nodes = std::move(needed);
  }
  /// Replaces kInputDim by the length of x, and sets the places of the parameters.
  void place() {
    const auto know = [&](Extent& extent) {
      if (extent.length == kInputDim) extent.length = input_dim_;
      if (extent.columns == kInputDim) extent.columns = input_dim_;
    };
    for (Node& node : graph_.nodes) know(node.extent);
    for (PlacedParameter& parameter : graph_.parameters) {
      know(parameter.extent);
      parameter.begin = graph_.block_size;
      graph_.block_size += parameter.entries(experts_);
    }
  }
  const Extent& extent(int node) const { return graph_.nodes[size(node)].extent; }

  int push(Node node) {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& other = graph_.nodes[i];
      if (other.kind == node.kind && other.a == node.a && other.b == node.b && other.number == node.number &&
          other.parameter == node.parameter && other.extent == node.extent) {
        return static_cast<int>(i);
      }
    }
    for (const int part : {node.a, node.b}) {
      if (part < 0) continue;
      node.learns = node.learns || graph_.nodes[size(part)].learns;
      node.reads_x = node.reads_x || graph_.nodes[size(part)].reads_x;
    }
    graph_.nodes.push_back(node);
    return static_cast<int>(graph_.nodes.size()) - 1;
  }
  int push(Node::Kind kind, std::size_t at, Extent extent, int a, int b = -1, double number = 0) {
    return push({kind, a, b, number, -1, extent, false, false, at});
  }
  int constant(double number, std::size_t at) {
    return push({Node::Kind::constant, -1, -1, number, -1, {}, false, false, at});
  }

  /// An extent with rows and experts of either operand. The caller sets the components.
  static Extent widest(const Extent& a, const Extent& b) {
    return {a.rows || b.rows, a.experts || b.experts};
  }

  /// The extent of a componentwise operation. A number combines with any extent.
  int componentwise(Node::Kind kind, std::size_t at, int a, int b) {
    const Extent &left = extent(a), &right = extent(b);
    if (left.columns != 0 || right.columns != 0) {
      throw FormulaError(at, "a matrix can only be multiplied by a vector, from the left");
    }
    if (left.is_vector && right.is_vector && left.length != right.length) {
      throw FormulaError(at, fmt::format("{} meets {}", described(left), described(right)));
    }
    Extent of = widest(left, right);
    of.is_vector = left.is_vector || right.is_vector;
    of.length = left.is_vector ? left.length : right.length;
    return push(kind, at, of, a, b);
  }
  int unary(Node::Kind kind, std::size_t at, int a, double number = 0) {
    if (extent(a).columns != 0) throw FormulaError(at, "needs a number or a vector, got a matrix");
    return push(kind, at, extent(a), a, -1, number);
  }
  int negated(std::size_t at, int a) {
    const Node& node = graph_.nodes[size(a)];
    if (node.kind == Node::Kind::constant) return constant(-node.number, at);
    return unary(Node::Kind::negate, at, a);
  }
  /// Adds a product or quotient. A sign in front of a moves to b if b does not vary over rows, because a
  /// batch has many rows.
  int scaled(Node::Kind kind, std::size_t at, int a, int b) {
    const Node& left = graph_.nodes[size(a)];
    if (left.kind != Node::Kind::negate || extent(b).rows || extent(b).columns != 0) {
      return componentwise(kind, at, a, b);
    }
    const int inside = left.a;
    return componentwise(kind, at, inside, negated(at, b));
  }
  int dot(std::size_t at, int a, int b) {
    const Extent &left = extent(a), &right = extent(b);
    if (!left.is_vector || !right.is_vector || left.length != right.length) {
      throw FormulaError(at, fmt::format("needs two vectors of one length, got {} and {}", described(left),
                                         described(right)));
    }
    return push(Node::Kind::dot, at, widest(left, right), a, b);
  }
  int norm(std::size_t at, int a) { return unary(Node::Kind::root, at, dot(at, a, a)); }

  int add(const FormulaExpression& expression) {
    using Kind = FormulaExpression::Kind;
    const std::size_t at = expression.at;
    switch (expression.kind) {
      case Kind::number:
        return constant(expression.number, at);
      case Kind::name:
        return named(expression);
      case Kind::call:
        return call(expression);
      case Kind::negate:
        return negated(at, add(expression.parts[0]));
      case Kind::power:
        return power(expression);
      default:
        break;
    }
    const int a = add(expression.parts[0]);
    const int b = add(expression.parts[1]);
    if (expression.kind == Kind::add) return componentwise(Node::Kind::add, at, a, b);
    if (expression.kind == Kind::subtract) return componentwise(Node::Kind::subtract, at, a, b);
    if (expression.kind == Kind::divide) return scaled(Node::Kind::divide, at, a, b);
    if (extent(a).columns == 0) return scaled(Node::Kind::multiply, at, a, b);
    if (!extent(b).is_vector || extent(a).columns != extent(b).length) {
      throw FormulaError(at, fmt::format("{} needs a vector of {}, got {}", described(extent(a)),
                                         length_text(extent(a).columns), described(extent(b))));
    }
    Extent of = widest(extent(a), extent(b));
    of.length = extent(a).length;
    of.is_vector = true;
    return push(Node::Kind::product, at, of, a, b);
  }
  int named(const FormulaExpression& expression) {
    const std::string& name = expression.name;
    if (name == "x") {
      const Extent rows{true, false, kInputDim, 0, true};
      return push({Node::Kind::input, -1, -1, 0, -1, rows, false, true, expression.at});
    }
    std::vector<std::string> allowed = {"x"};
    for (const auto& [own_name, own] : options_.parameters) {
      if (own_name == name) return parameter(name, own, expression.at);
      allowed.push_back(own_name);
    }
    throw FormulaError(expression.at, unknown_name("name", name, allowed));
  }
  int parameter(const std::string& name, const FormulaParameterOptions& own, std::size_t at) {
    used_.push_back(name);
    if (own.value) return constant(*own.value, at);
    std::size_t place = 0;
    while (place < graph_.parameters.size() && graph_.parameters[place].name != name) ++place;
    if (place == graph_.parameters.size()) {
      PlacedParameter placed{name, own, formula_extent(name, own)};
      const Extent& of = placed.extent;
      placed.leads = of.experts && of.is_vector && of.length == kInputDim &&
                     std::none_of(graph_.parameters.begin(), graph_.parameters.end(),
                                  [](const PlacedParameter& other) { return other.leads; });
      graph_.parameters.push_back(std::move(placed));
    }
    const int leaf = push({Node::Kind::parameter, -1, -1, 0, static_cast<int>(place),
                           graph_.parameters[place].extent, true, false, at});
    return own.min ? unary(Node::Kind::at_least, at, leaf, *own.min) : leaf;
  }
  int call(const FormulaExpression& expression) {
    const std::size_t at = expression.at;
    const std::vector<std::string> functions = formula_functions();
    if (std::find(functions.begin(), functions.end(), expression.name) == functions.end()) {
      throw FormulaError(at, unknown_name("function", expression.name, functions));
    }
    const std::size_t needed = expression.name == "dot" || expression.name == "cos" ? 2 : 1;
    if (expression.parts.size() != needed) {
      throw FormulaError(at, fmt::format("{} needs {} argument(s), got {}", expression.name, needed,
                                         expression.parts.size()));
    }
    const int a = add(expression.parts[0]);
    if (expression.name == "norm") {
      if (!extent(a).is_vector) throw FormulaError(at, "norm needs a vector, got " + described(extent(a)));
      return norm(at, a);
    }
    for (const NamedFunction& function : kFunctions) {
      if (expression.name == function.name) return unary(function.kind, at, a);
    }
    const int b = add(expression.parts[1]);
    const int product = dot(at, a, b);
    if (expression.name == "dot") return product;
    const int left = unary(Node::Kind::inverse, at, norm(at, a));
    const int right = unary(Node::Kind::inverse, at, norm(at, b));
    return componentwise(Node::Kind::multiply, at, componentwise(Node::Kind::multiply, at, product, left),
                         right);
  }

  int power(const FormulaExpression& expression) {
    const int base = add(expression.parts[0]);
    const int exponent = add(expression.parts[1]);
    const Node& node = graph_.nodes[size(exponent)];
    if (node.kind != Node::Kind::constant) {
      throw FormulaError(expression.parts[1].at, "an exponent needs to be a number or a constant");
    }
    const Node& of = graph_.nodes[size(base)];
    if (node.number == 2 && of.kind == Node::Kind::root) return of.a;  // ‖a‖² needs no root
    return unary(Node::Kind::power, expression.at, base, node.number);
  }

  const FormulaRouterOptions& options_;
  int input_dim_;
  int experts_;
  FormulaGraph graph_;
  std::vector<std::string> used_;
};

int length_of(const std::string& text, const std::string& path) {
  if (text == "d") return kInputDim;
  int length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error == std::errc() && end == text.data() + text.size() && length >= 1 && length <= 65536)
    return length;
  throw InvalidOption(
      path,
      fmt::format("got \"{}\", needs \"d\" (the router's inputs) or a whole number from 1 to 65536", text));
}

}  // namespace

FormulaExpression parse_formula(const std::string& text) {
  return FormulaParser(text).whole();
}

std::string located(const std::string& text, const FormulaError& error) {
  constexpr std::size_t kShown = 12;
  if (error.at() >= text.size()) return fmt::format("at the end: {}", error.what());
  const std::size_t place = 1 + count_characters(std::string_view(text).substr(0, error.at()));
  std::size_t end = std::min(text.size(), error.at() + kShown);
  while (end < text.size() && !begins_character(text[end])) ++end;
  return fmt::format("at character {}, \"{}{}\": {}", place, text.substr(error.at(), end - error.at()),
                     end < text.size() ? "…" : "", error.what());
}

std::vector<std::string> formula_functions() {
  std::vector<std::string> names = {"dot", "norm", "cos"};
  for (const NamedFunction& function : kFunctions) names.emplace_back(function.name);
  return names;
}

FormulaGraph make_formula_graph(const FormulaRouterOptions& options, int input_dim, int experts) {
  try {
    return GraphMaker(options, input_dim, experts).make();
  } catch (const FormulaError& error) {
    throw InvalidOption("model.router.score", located(options.score, error));
  }
}

std::string formula_parameter_path(const std::string& name) {
  return "model.router.parameters." + name;
}

FormulaExtent formula_extent(const std::string& name, const FormulaParameterOptions& options) {
  const std::string path = formula_parameter_path(name);
  if (options.value) {
    const bool is_more = options.start || options.min || options.shared || !options.shape.empty();
    if (is_more) throw InvalidOption(path + ".value", "given, and so are fields of what is learned");
    return {};
  }
  FormulaExtent extent{false, !options.shared, 1, 0};
  if (options.shape.size() > 2) {
    throw InvalidOption(path + ".shape",
                        fmt::format("got {} extents, needs at most 2", options.shape.size()));
  }
  if (options.min && !options.shape.empty()) {
    throw InvalidOption(path + ".min", "given, but the parameter is not a number");
  }
  if (options.min && options.start.value_or(0) < *options.min) {
    throw InvalidOption(path + ".start", fmt::format("got {}, needs at least min = {}",
                                                     options.start.value_or(0), *options.min));
  }
  if (!options.shape.empty()) {
    extent.length = length_of(options.shape[0], path + ".shape");
    extent.is_vector = options.shape.size() == 1;
  }
  if (options.shape.size() == 2) extent.columns = length_of(options.shape[1], path + ".shape");
  return extent;
}

std::size_t PlacedParameter::entries(int experts) const {
  const std::size_t width = extent.experts ? moelab::entries(extent.length, kernels::padded(experts))
                                           : size(kernels::padded(extent.length));
  return size(std::max(1, extent.columns)) * width;
}

std::size_t PlacedParameter::place(int experts, int l, int k, int e) const {
  if (!extent.experts) return begin + moelab::entries(k, kernels::padded(extent.length)) + size(l);
  return begin + moelab::entries(k * extent.length + l, kernels::padded(experts)) + size(e);
}

}  // namespace moelab
