#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/base/aligned.h"
#include "sim/base/error.h"
#include "sim/base/kernels/kernels.h"
#include "sim/model/router/formula/graph.h"

namespace moelab {
namespace {

int length_of(const std::string& text, const std::string& path) {
  if (text == "d") return kInputDim;
  int length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error == std::errc() && end == text.data() + text.size() && length >= 1 && length <= 65536)
    return length;
  throw InvalidOption(path,
                      fmt::format("got \"{}\", needs \"d\" (the router's inputs) or a whole number from 1 "
                                  "to 65536",
                                  text));
}

}  // namespace

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
