#pragma once

/// Values of swept paths.

#include <concepts>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace moelab {

/// A value as a scenario writes it: a number, a name, or whatever else a field may be set to.
class SweepValue {
 public:
  /// `text` as it was written; `canonical` is a text that equal values share (1 and 1.0); `number` where the
  /// value is one.
  SweepValue(std::string text, std::string canonical, std::optional<double> number)
      : text_(std::move(text)), canonical_(std::move(canonical)), number_(number) {}
  template <class Number>
  requires(std::integral<Number> || std::floating_point<Number>) SweepValue(Number number)
      : SweepValue(of_number(static_cast<double>(number))) {}
  SweepValue(const std::string& name) : SweepValue(of_name(name)) {}
  SweepValue(const char* name) : SweepValue(std::string(name)) {}

  const std::string& text() const { return text_; }
  const std::string& canonical() const { return canonical_; }
  const std::optional<double>& number() const { return number_; }
  bool operator==(const SweepValue& other) const { return canonical_ == other.canonical_; }

 private:
  static SweepValue of_number(double number);
  static SweepValue of_name(const std::string& name);

  std::string text_, canonical_;
  std::optional<double> number_;
};

/// Coordinates in a sweep: swept path → value, in sweep order.
using SweepPoint = std::vector<std::pair<std::string, SweepValue>>;

/// The value of a path at a point; null where it has none.
const SweepValue* coordinate_of(const SweepPoint& point, const std::string& path);

/// Whether `point` has every coordinate of `wanted`.
bool has_coordinates(const SweepPoint& point, const SweepPoint& wanted);

/// "data.train_samples = 640, model.experts = 32"; empty for no coordinates.
std::string point_text(const SweepPoint& point);

}  // namespace moelab
