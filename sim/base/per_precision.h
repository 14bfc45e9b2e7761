#pragma once

/// Functions that exist for either precision of training: what tables of parts hold.

#include <memory>
#include <type_traits>

#include "sim/base/one_of.h"

namespace moelab {

/// Signature<float>* and Signature<double>*; both null where there is no such function.
template <template <class Real> class Signature>
struct PerPrecision {
  Signature<float>* in_float = nullptr;
  Signature<double>* in_double = nullptr;

  explicit operator bool() const { return in_float != nullptr; }
  template <class Real>
  Signature<Real>* of() const {
    if constexpr (std::is_same_v<Real, float>) {
      return in_float;
    } else {
      return in_double;
    }
  }
};

/// A Made<Real> from the options of its kind and what else it is made from, as the Part that it is.
template <class Part, class Options, class Made, class... Setting>
std::unique_ptr<Part> make_from(const AnyOptions& options, Setting... setting) {
  return std::make_unique<Made>(options.get<Options>(), setting...);
}

}  // namespace moelab
