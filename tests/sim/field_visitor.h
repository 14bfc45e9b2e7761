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
  void wholes(const About&, const Range&, int, std::vector<std::int64_t>&) override {}
  void reals(const About&, const Range&, int, std::vector<double>&) override {}
  void real_or_reals(const About&, const Range&, std::vector<double>&) override {}
  void rows(const About&, std::vector<std::vector<double>>&) override {}
  void per_group(const About&, const Range&, PerGroup&) override {}
  void object(const About&, const Binding&) override {}
  void one_of(const About&, KindChoice&) override {}
  void texts(const About&, std::vector<std::string>&) override {}
  void named(const About&, NamedChoices&) override {}
};

}  // namespace moelab
