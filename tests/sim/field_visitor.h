#pragma once

/// Fields looked at one by one.

#include "sim/base/options.h"

namespace moelab {

/// Does nothing with any field: visitors that want some of them derive from it.
class FieldVisitor : public Fields {
 public:
  void boolean(const About&, bool&) override {}
  void whole(const About&, const Range&, std::int64_t&) override {}
  void real(const About&, const Range&, double&) override {}
  void text(const About&, std::string&) override {}
  void choice(const About&, std::span<const std::string>, int&) override {}
  void any_value(const About&, AnyValue&) override {}
  void object(const About&, const Binding&) override {}
  void one_of(const About&, KindChoice&) override {}
  void list(const About&, int, Elements&) override {}
  void map(const About&, Elements&) override {}
  void either(const About&, std::span<const Binding>) override {}
};

}  // namespace moelab
