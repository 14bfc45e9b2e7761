#pragma once

/// Choices inside a generator's options: its targets, its covariance, its law of inputs.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/one_of.h"

namespace moelab {

/// Axes whose entries have no more than their options derive from this; they add table() and kNoun.
struct PlainAxis {
  using Entry = KindEntry;
  static constexpr const char* kTag = "kind";
};

template <class Options>
KindEntry plain_kind(std::string name, std::string help) {
  return {std::move(name), std::move(help), Options{}, Options{}};
}

/// An entry of a generator's table of targets.
struct TargetKind : KindEntry {
  std::function<int(const AnyOptions&)> outputs;  ///< o
};

/// What the axes of targets derive from; they add table().
struct TargetAxis {
  using Entry = TargetKind;
  static constexpr const char* kTag = "kind";
  static constexpr const char* kNoun = "target";
};

/// A target whose member `outputs` is o.
template <class Options>
TargetKind target_kind(std::string name, std::string help, int Options::*outputs) {
  return {plain_kind<Options>(std::move(name), std::move(help)),
          [outputs](const AnyOptions& options) { return options.get<Options>().*outputs; }};
}

/// o of the chosen target.
template <class Axis>
int outputs_of(const OneOf<Axis>& target) {
  return target.entry().outputs(target.options());
}

/// The field of a target with o outputs.
inline void bind_outputs(Fields& fields, int& dim) {
  fields.add("dim", dim, between(1, 1e4), "outputs o");
}

}  // namespace moelab
