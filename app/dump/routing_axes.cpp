#include "app/dump/routing_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "sim/base/error.h"

namespace moelab {
namespace {

const char* axis_name(char letter) {
  switch (letter) {
    case 'L':
      return "layers";
    case 'N':
      return "steps";
    case 'B':
      return "sequences";
    case 'S':
      return "positions";
    case 'T':
      return "tokens";
    case 'E':
      return "experts";
    default:
      return "choices";
  }
}

bool fits(std::string_view axes, const std::vector<std::int64_t>& shape, const AxesSetting& setting) {
  std::map<char, std::int64_t> size_of;
  std::int64_t rows = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    size_of[axes[i]] = shape[i];
    if (std::string_view("NBST").find(axes[i]) != std::string_view::npos) rows *= shape[i];
  }
  if (size_of.contains('E') && setting.experts > 0 && size_of['E'] != setting.experts) return false;
  if (size_of.contains('K') && setting.top_k > 0 && size_of['K'] != setting.top_k) return false;
  if (size_of.contains('K') && setting.experts > 0 && size_of['K'] > setting.experts) return false;
  if (size_of.contains('L')) {
    if (setting.is_entry) return false;
    const std::int64_t layers = size_of['L'];
    if (!setting.layers.empty() && layers != static_cast<std::int64_t>(setting.layers.size())) return false;
    if (setting.all_layers && layers != *setting.all_layers &&
        layers != static_cast<std::int64_t>(setting.moe_layers))
      return false;
  } else if (!setting.is_entry && setting.layers.size() > 1) {
    return false;
  }
  if (setting.rows > 0 && rows != setting.rows) return false;
  for (const std::vector<std::int64_t>& side : setting.sides) {
    const std::int64_t first = side[0], second = side[1];
    if (size_of.contains('S') && size_of.contains('B')) {
      // What stands beside is (B, S).
      const std::int64_t sequences = size_of['B'] * (size_of.contains('N') ? size_of['N'] : 1);
      if (size_of['S'] != second || (size_of['B'] != first && sequences != first)) return false;
    } else if (rows != first * second) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string axes_text(std::string_view axes) {
  std::vector<std::string> names;
  for (const char letter : axes) names.emplace_back(axis_name(letter));
  return fmt::format("{} ({})", axes, fmt::join(names, ", "));
}

std::string axes_of(const NpyReader& array, const AxesSetting& setting, const std::string& producer_axes,
                    std::vector<std::string>& checks) {
  const std::vector<std::int64_t>& shape = array.shape();
  const std::size_t dimensions = shape.size();
  std::string given = setting.axes.empty() ? producer_axes : setting.axes;
  if (!given.empty()) {
    if (setting.is_entry && given.find('L') != std::string::npos && dimensions + 1 == given.size())
      std::erase(given, 'L');
    if (setting.width == 'E' && setting.axes.find('K') != std::string::npos)
      throw UserError("--axes", fmt::format("got '{}'; {} holds a value for each expert, so it has an axis E "
                                            "and no K (choices)",
                                            setting.axes, array.place()));
    if (setting.width == 'E') std::replace(given.begin(), given.end(), 'K', 'E');
    if (setting.width == 'K' && setting.is_beside_scores) std::replace(given.begin(), given.end(), 'E', 'K');
    const std::size_t positions = given.find('S'), sequences = given.find('B');
    const std::size_t joined = std::min(positions, sequences);
    const bool is_joined =
        dimensions + 1 == given.size() && positions != std::string::npos && sequences != std::string::npos &&
        std::max(positions, sequences) - joined == 1 &&
        (setting.sides.empty() || setting.sides[0][0] * setting.sides[0][1] == shape[joined] ||
         given.back() != 'K');
    if (is_joined) return given;
    if (setting.width == 'K' && dimensions + 1 == given.size() && given.ends_with('K')) given.pop_back();
    if (setting.width == 'E' && given.find('E') == std::string::npos)
      throw UserError("--axes", fmt::format("got '{}', needs an E: {} holds a value for each expert", given,
                                            array.place()));
    if (setting.width == 'K' && given.find('E') != std::string::npos)
      throw UserError("--axes", fmt::format("got '{}'; ids have an axis K (choices), and no E", given));
    if (given.size() != dimensions)
      array.refuse(fmt::format("has shape {}, and --axes {} is for {}", shape_text(shape), given,
                               counted(given.size(), "dimension")));
    return given;
  }
  if (setting.width == 'E' && dimensions == 2) {
    const bool is_turned =
        (setting.experts > 0 && shape[1] != setting.experts && shape[0] == setting.experts) ||
        (setting.experts == 0 && setting.rows > 0 && shape[0] != setting.rows && shape[1] == setting.rows);
    if (is_turned)
      checks.push_back(
          fmt::format("{} has shape {}: read as ET (experts, tokens)", array.place(), shape_text(shape)));
    if (!is_turned && !setting.is_entry && setting.layers.size() > 1)
      array.refuse(fmt::format("has shape {}, one layer, but --layers is {}; needs --axes", shape_text(shape),
                               fmt::format("{}", fmt::join(setting.layers, ","))));
    return is_turned ? "ET" : "TE";
  }
  if (setting.width == 'K' && dimensions == 1) return "T";
  if (setting.width == 'K' && dimensions == 2 && setting.rows > 0 && shape[0] != setting.rows &&
      shape[0] * shape[1] == setting.rows)
    return "BS";
  if (setting.width == 'K' && dimensions == 2 && (setting.layers.size() < 2 || setting.is_entry)) return "TK";
  static const std::map<std::pair<char, std::size_t>, std::vector<const char*>> candidates = {
      {{'E', 3}, {"LTE", "TLE", "BSE", "SBE", "LET"}},
      {{'E', 4}, {"LBSE", "BSLE", "BLSE", "LSBE", "NLTE", "NBSE"}},
      {{'K', 2}, {"TK", "TL", "LT"}},
      {{'K', 3}, {"LTK", "TLK", "TKL", "BSK", "SBK", "LBS"}},
      {{'K', 4}, {"LBSK", "BSLK", "BLSK", "LSBK", "NLTK", "BSKL"}}};
  const auto known = candidates.find({setting.width, dimensions});
  const char* const needed = setting.width == 'E' ? "(n, E), or (n, s, E) for sequences" : "(T, K)";
  if (known == candidates.end()) {
    const std::string more =
        dimensions < 3 ? "" : fmt::format("; --axes names other dimensions, such as LBS{}", setting.width);
    array.refuse(fmt::format("has shape {}, needs {}{}", shape_text(shape), needed, more));
  }
  // Arrays beside that begin with the same two dimensions settle them.
  const auto begins_alike = [&](const std::vector<std::int64_t>& side) {
    return dimensions == 3 && side[0] == shape[0] && side[1] == shape[1];
  };
  const std::string by_sequence = std::string("BS") + setting.width;
  if (std::any_of(setting.sides.begin(), setting.sides.end(), begins_alike) &&
      fits(by_sequence, shape, setting))
    return by_sequence;
  std::vector<std::string> readings;
  for (const char* const candidate : known->second) {
    if (fits(candidate, shape, setting)) readings.emplace_back(candidate);
  }
  if (readings.size() == 1) {
    if (readings.front() != "BSE" || setting.is_entry || !setting.is_plain)
      checks.push_back(fmt::format("{} has shape {}: only {} fits what else was given", array.place(),
                                   shape_text(shape), axes_text(readings.front())));
    return readings.front();
  }
  std::vector<std::string> shown;
  for (const std::string& reading : readings) shown.push_back(axes_text(reading));
  if (readings.empty()) {
    for (const char* const candidate : known->second) {
      if (!setting.is_entry || std::string_view(candidate).find('L') == std::string_view::npos)
        shown.push_back(axes_text(candidate));
    }
    array.refuse(fmt::format("has shape {}, which fits none of {} with the other arrays given; needs --axes",
                             shape_text(shape), fmt::join(shown, ", ")));
  }
  array.refuse(
      fmt::format("has shape {}, which can be {}; needs --axes, or a mask, --model or labels that "
                  "leave one reading",
                  shape_text(shape), fmt::join(shown, ", ")));
}

OrderedArray ordered(NpyReader array, std::string axes, const AxesSetting& setting) {
  const std::size_t positions_at = axes.find('S'), sequences_at = axes.find('B');
  if (axes.size() == array.shape().size() + 1) {
    // Sequences and positions are one dimension. What stands beside tells their sizes.
    if (setting.sides.empty()) {
      const std::size_t first = std::min(positions_at, sequences_at);
      axes.replace(first, 2, "T");
    } else {
      const std::size_t at = std::min(positions_at, sequences_at);
      std::vector<std::int64_t> shape = array.shape();
      if (setting.sides[0][0] * setting.sides[0][1] != shape[at])
        array.refuse(fmt::format("has shape {}, but the shape {} of the arrays given with it has {} entries",
                                 shape_text(shape), shape_text(setting.sides[0]),
                                 setting.sides[0][0] * setting.sides[0][1]));
      shape[at] = setting.sides[0][setting.is_side_turned ? 1 : 0];
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                   setting.sides[0][setting.is_side_turned ? 0 : 1]);
      if (array.is_fortran()) {
        std::vector<std::size_t> same(array.shape().size());
        std::iota(same.begin(), same.end(), std::size_t{0});
        array = array.transposed(same);
      }
      array = array.reshaped(std::move(shape));
    }
  }
  std::vector<std::size_t> order(axes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return kCanonicalAxes.find(axes[left]) < kCanonicalAxes.find(axes[right]);
  });
  const std::size_t layers_at = axes.find('L');
  const bool is_stack = layers_at != std::string::npos;
  // A stack whose other axes are in order is cut where it lies.
  std::vector<std::size_t> rest = order;
  std::erase(rest, layers_at);
  const bool is_cut = is_stack && !array.is_fortran() && std::is_sorted(rest.begin(), rest.end());
  const bool is_moved = !std::is_sorted(order.begin(), order.end());
  if (!is_cut && (is_moved || (array.is_fortran() && (is_stack || axes.find('N') != std::string::npos)))) {
    array = array.transposed(order);
    std::string moved;
    for (const std::size_t place : order) moved += axes[place];
    axes = moved;
  }
  std::map<char, std::int64_t> size_of;
  for (std::size_t i = 0; i < axes.size(); ++i) size_of[axes[i]] = array.shape()[i];
  const auto of = [&](char letter) { return size_of.contains(letter) ? size_of[letter] : 1; };
  OrderedArray made;
  made.is_stack = is_stack;
  Frame& frame = made.frame;
  frame.rows = of('N') * of('B') * of('S') * of('T');
  frame.is_position_first =
      positions_at != std::string::npos && sequences_at != std::string::npos && positions_at < sequences_at;
  frame.is_side_turned = setting.is_side_turned;
  if (size_of.contains('S')) {
    frame.sequences = of('N') * of('B') * of('T');
    frame.positions = of('S');
  } else if (!setting.sides.empty() && setting.sides[0][0] * setting.sides[0][1] == frame.rows) {
    frame.sequences = setting.sides[0][0];
    frame.positions = setting.sides[0][1];
  }
  const std::int64_t width = size_of.contains('E') ? of('E') : of('K');
  std::vector<std::int64_t> shape = {frame.rows, width};
  if (size_of.contains('S')) shape = {frame.sequences, frame.positions, width};
  if (!is_stack) {
    made.layers.push_back(shape == array.shape() ? array : array.reshaped(std::move(shape)));
    return made;
  }
  for (std::int64_t layer = 0; layer < of('L'); ++layer) {
    made.layers.push_back(
        array.slice(axes.find('L'), layer, shape, fmt::format("{}[{}]", array.name(), layer)));
  }
  return made;
}

}  // namespace moelab
