#pragma once

/// A formula as a list of operations on whole batches, each on results of those before it.

#include <optional>
#include <string>
#include <vector>

#include "sim/base/types.h"
#include "sim/model/router/formula/expression.h"
#include "sim/model/router/formula_router.h"

namespace moelab {

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

}  // namespace moelab
