#pragma once

/// A formula as a list of operations on whole batches, each on results of those before it.

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/model/parameters.h"
#include "sim/model/router/routers.h"

namespace moelab {

// Formulas as text: from "-(norm(x)^2 - 2*dot(x, w)) / s" to a tree that knows where each part stands.

/// What is wrong with a formula, and at which of its characters (from 0).
class FormulaError : public std::invalid_argument {
 public:
  FormulaError(std::size_t at, const std::string& message) : std::invalid_argument(message), at_(at) {}
  std::size_t at() const { return at_; }

 private:
  std::size_t at_;
};

/// A part of a formula.
struct FormulaExpression {
  enum class Kind { number, name, call, negate, add, subtract, multiply, divide, power };
  Kind kind = Kind::number;
  std::size_t at = 0;                    ///< its first character; of an operator the operator's
  double number = 0;                     ///< of a number
  std::string name;                      ///< of a name or a call
  std::vector<FormulaExpression> parts;  ///< arguments or operands, from left to right
};

/// Sums and differences of products and quotients of powers, from left to right; powers from right to left
/// and before a sign: -x^2 is -(x^2). Numbers are those of JSON, without a sign. Throws FormulaError.
FormulaExpression parse_formula(const std::string& text);

/// "at character 5, "+ w": …": the message of an error with its place, counted from 1.
std::string located(const std::string& text, const FormulaError& error);

/// The length of x before it is known: x goes with what has "d" components, not with as many by chance.
constexpr int kInputDim = -1;

/// What a value varies over: rows of the batch, experts, and its own components.
struct FormulaExtent {
  bool rows = false;
  bool experts = false;
  int length = 1;          ///< components; 1 of a number
  int columns = 0;         ///< of a matrix of `length` rows; else 0
  bool is_vector = false;  ///< of however many components

  bool operator==(const FormulaExtent&) const = default;
};

struct FormulaNode {
  /// What it is of the results a and b. `root`: √a with slope 0 at 0; `inverse`: 1/a, 0 at 0; `power`:
  /// a^number; `at_least`: max(a, number), whose gradient leaves out what would lower an a below; `product`:
  /// matrix a times vector b; `spread`: a, for every row and expert.
  enum class Kind {
    input,
    parameter,
    constant,
    negate,
    exp,
    log,
    tanh,
    relu,
    abs,
    root,
    inverse,
    power,
    at_least,
    spread,
    add,
    subtract,
    multiply,
    divide,
    dot,
    product
  };
  Kind kind = Kind::constant;
  int a = -1, b = -1;
  double number = 0;
  int parameter = -1;  ///< of a parameter, its place in `parameters`
  FormulaExtent extent = {};
  bool learns = false;   ///< whether it depends on parameters,
  bool reads_x = false;  ///< and on x
  std::size_t at = 0;    ///< character of the formula

  bool is_leaf() const { return kind <= Kind::constant; }
};

/// A parameter where it lies in the router's block.
struct PlacedParameter {
  std::string name;
  FormulaParameterOptions options;
  FormulaExtent extent;
  std::size_t begin = 0;  ///< entries before it
  /// Whether it is the first vector for each expert that is as wide as x: it starts by the start law.
  bool leads = false;

  /// Entries of its part of the block: components side by side, (k, padded(l)), or experts, (k, l,
  /// padded(E)).
  std::size_t entries(int experts) const;
  /// The place in the block of component l (row of a matrix), column k and expert e; 0 for what it has not.
  std::size_t place(int experts, int l, int k, int e) const;
};

/// "model.router.parameters.s".
std::string formula_parameter_path(const std::string& name);
/// What a parameter varies over; a constant is a number. Throws InvalidOption.
FormulaExtent formula_extent(const std::string& name, const FormulaParameterOptions& options);

struct FormulaGraph {
  std::vector<FormulaNode> nodes;           ///< the last is the score, for every row and expert
  std::vector<PlacedParameter> parameters;  ///< in the order of the formula
  std::size_t block_size = 0;
};

/// Checks names and shapes. Throws InvalidOption at "model.router.score" or "model.router.parameters…".
FormulaGraph make_formula_graph(const FormulaRouterOptions& options, int input_dim, int experts);

/// The functions of formulas.
std::vector<std::string> formula_functions();

// A formula's scores of a batch, and their gradients, operation by operation over all rows and experts.

/// The results of a batch and ∂L/∂ each. Results lie as parameters do: (rows, components, padded(E)) where
/// they differ between experts, else (rows, padded(components)), or (rows) of a number. Padding is zero.
template <class Real>
struct FormulaScratch final : Scratch {
  explicit FormulaScratch(std::size_t nodes) : values(nodes), gradients(nodes) {}
  std::vector<AlignedVector<Real>> values, gradients;
};

/// What both passes read: the batch's inputs x (n, d) and the router's block.
template <class Real>
struct FormulaInputs {
  const FormulaGraph* graph = nullptr;
  int experts = 0;
  View<const Real> x = {};
  const Real* parameters = nullptr;
};

/// scores (n, padded(E)), padding zero.
template <class Real>
void evaluate_formula(const FormulaInputs<Real>& of, FormulaScratch<Real>& scratch, Real* scores);

/// From ∂L/∂scores that of the block and, unless null, of x (n, padded(d)); both are overwritten.
template <class Real>
void differentiate_formula(const FormulaInputs<Real>& of, FormulaScratch<Real>& scratch, const Real* scores,
                           Real* parameters, Real* inputs);

}  // namespace moelab
