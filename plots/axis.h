#pragma once

/// Ranges and tick marks of one axis.

#include <string>
#include <utility>
#include <vector>

namespace moelab {

struct Axis {
  bool logarithmic = false;
  double low = 0, high = 1;
  std::vector<std::pair<double, std::string>> ticks;  ///< place and label; empty for a minor tick
  bool upright = false;                               ///< labels stand, since they are longer than their room
};

/// The label of a tick: "0.05", "2560"; on a logarithmic axis far powers of ten are "10⁻⁵".
std::string tick_label(double value, bool logarithmic);

/// An axis that shows all `values` (those above 0 on a logarithmic one) with a small margin.
Axis fit_axis(const std::vector<double>& values, bool logarithmic);

/// An axis with ticks at the given places, which are the values of a sweep; that of fit_axis where one of
/// them is a long number, such as one that was searched.
Axis fit_axis_at(std::vector<double> places, bool logarithmic);

/// An axis from `low` to `high` > `low`, with ticks at round steps between them.
Axis axis_between(double low, double high);

/// Leaves out labels that would run into another on an axis of `width` points: the last one stays, and of
/// ticks that are evenly apart every so many from there, of others the first, too.
void keep_labels_apart(Axis& axis, double width);

/// Leaves out labels, all but every so many, where those that stand have less than a line each. `room`: from
/// one tick to the next, in points.
void thin_upright_labels(Axis& axis, double room);

/// The gnuplot lines that set the axis `name` ('x' or 'y'): scale, range and ticks, with or without labels.
std::string axis_script(char name, const Axis& axis, bool with_labels = true);

}  // namespace moelab
