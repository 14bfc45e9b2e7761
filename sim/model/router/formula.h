#pragma once

/// Formulas of routers: parsing, a graph of operations, evaluation and gradients. Each operation reads
/// results of earlier operations for a whole batch.

#include <stdexcept>
#include <string>
#include <vector>

#include "sim/base/arrays.h"
#include "sim/model/parameters.h"
#include "sim/model/router/routers.h"

namespace moelab {

// Parsing: from the text "-(norm(x)^2 - 2*dot(x, w)) / s" to a tree that knows the place of each part.

/// An error in a formula, with the index of its character (from 0).
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
  std::size_t at = 0;                    ///< its first character, or the operator's character
  double number = 0;                     ///< the value of a number
  std::string name;                      ///< the name of a name or call
  std::vector<FormulaExpression> parts;  ///< arguments or operands, from left to right
};

/// Parses a formula. Throws FormulaError.
///
/// The grammar has sums and differences of products and quotients of powers, from left to right. Powers go
/// from right to left and bind before a sign: -x^2 is -(x^2). Numbers are JSON numbers without a sign.
FormulaExpression parse_formula(const std::string& text);

/// The message of an error with its place, counted from 1: "at character 5, "+ w": …".
std::string located(const std::string& text, const FormulaError& error);

/// The length of x while d is unknown. x then combines with parameters of length "d" only, and not with a
/// number that equals d by chance.
constexpr int kInputDim = -1;

/// The axes over which a value varies: rows of the batch, experts, and its own components.
struct FormulaExtent {
  bool rows = false;
  bool experts = false;
  int length = 1;          ///< components; 1 for a number
  int columns = 0;         ///< columns of a matrix with `length` rows; else 0
  bool is_vector = false;  ///< whether it is a vector, of any length

  bool operator==(const FormulaExtent&) const = default;
};

struct FormulaNode {
  /// The operation on the results a and b. `root`: √a, with slope 0 at 0. `inverse`: 1/a, and 0 at 0.
  /// `power`: a^number. `at_least`: max(a, number); its gradient omits parts that would lower an a below the
  /// number. `product`: matrix a times vector b. `spread`: a, for every row and expert.
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
  int parameter = -1;  ///< the place of a parameter in `parameters`
  FormulaExtent extent = {};
  bool learns = false;   ///< whether it depends on parameters
  bool reads_x = false;  ///< whether it depends on x
  std::size_t at = 0;    ///< index of its character in the formula

  bool is_leaf() const { return kind <= Kind::constant; }
};

/// A parameter and its place in the router's block.
struct PlacedParameter {
  std::string name;
  FormulaParameterOptions options;
  FormulaExtent extent;
  std::size_t begin = 0;  ///< entries before it
  /// Whether it is the first vector per expert with the width of x. This one starts by the start law.
  bool leads = false;

  /// Entries of its part of the block: components side by side, (k, padded(l)), or experts side by side, (k,
  /// l, padded(E)).
  std::size_t entries(int experts) const;
  /// The place in the block of component l (row of a matrix), column k and expert e. Pass 0 for an axis that
  /// it lacks.
  std::size_t place(int experts, int l, int k, int e) const;
};

/// The path of a parameter, for example "model.router.parameters.s".
std::string formula_parameter_path(const std::string& name);
/// The extent of a parameter; a constant is a number. Throws InvalidOption.
FormulaExtent formula_extent(const std::string& name, const FormulaParameterOptions& options);

struct FormulaGraph {
  std::vector<FormulaNode> nodes;           ///< the last is the score, for every row and expert
  std::vector<PlacedParameter> parameters;  ///< in the order of the formula
  std::size_t block_size = 0;
};

/// Makes the graph of a formula and checks names and shapes. Throws InvalidOption at "model.router.score" or
/// "model.router.parameters…".
FormulaGraph make_formula_graph(const FormulaRouterOptions& options, int input_dim, int experts);

/// The names of the functions in formulas.
std::vector<std::string> formula_functions();

// Evaluation and gradients, operation by operation over all rows and experts.

/// The results of a batch and the gradients ∂L/∂result. The layout follows the parameters: (rows, components,
/// padded(E)) for results that differ between experts, else (rows, padded(components)), or (rows) for a
/// number. Padding is zero.
template <class Real>
struct FormulaScratch final : Scratch {
  explicit FormulaScratch(std::size_t nodes) : values(nodes), gradients(nodes) {}
  std::vector<AlignedVector<Real>> values, gradients;
};

/// The inputs of both passes: the batch's inputs x (n, d) and the router's block.
template <class Real>
struct FormulaInputs {
  const FormulaGraph* graph = nullptr;
  int experts = 0;
  View<const Real> x = {};
  const Real* parameters = nullptr;
};

/// Writes scores (n, padded(E)), with zero padding.
template <class Real>
void evaluate_formula(const FormulaInputs<Real>& of, FormulaScratch<Real>& scratch, Real* scores);

/// Computes ∂L/∂block and, unless null, ∂L/∂x (n, padded(d)) from ∂L/∂scores. Overwrites both.
template <class Real>
void differentiate_formula(const FormulaInputs<Real>& of, FormulaScratch<Real>& scratch, const Real* scores,
                           Real* parameters, Real* inputs);

}  // namespace moelab
