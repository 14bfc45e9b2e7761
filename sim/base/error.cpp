#include "sim/base/error.h"

#include <algorithm>
#include <numeric>

namespace moelab {
namespace {

/// Longer names are not misspellings of ours.
constexpr std::size_t kLongestName = 100;

/// Names are all listed up to the first number, otherwise as many as the second says.
constexpr std::size_t kMostListed = 40, kListed = 10;

/// Damerau-Levenshtein distance (optimal string alignment): insertions, deletions, substitutions and
/// swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substituted});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

/// In small letters, since names differ by more than capitals; letters beyond ASCII stay.
std::string lower_cased(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return lower;
}

/// The `count` names nearest to `given`, nearest first and otherwise in their order.
std::vector<std::string> nearest_names(std::string_view given, const std::vector<std::string>& allowed,
                                       std::size_t count) {
  std::vector<std::string> names = allowed;
  const std::string start = lower_cased(given.substr(0, kLongestName));
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return edit_distance(start, lower_cased(a)) < edit_distance(start, lower_cased(b));
  });
  names.resize(count);
  return names;
}

}  // namespace

std::string nearest_name(std::string_view given, const std::vector<std::string>& allowed) {
  if (given.size() > kLongestName) return {};
  std::string nearest;
  const std::string start = lower_cased(given);
  std::size_t nearest_distance = given.size() / 2 + 1;
  for (const std::string& name : allowed) {
    const std::size_t distance = edit_distance(start, lower_cased(name));
    if (distance < nearest_distance) {
      nearest = name;
      nearest_distance = distance;
    }
  }
  return nearest;
}

std::string unknown_name(std::string_view what, std::string_view given,
                         const std::vector<std::string>& allowed) {
  const bool is_long = given.size() > kLongestName;
  std::string message = "unknown " + std::string(what) + " '" +
                        (is_long ? std::to_string(given.size()) + " bytes long" : std::string(given)) + "'";
  const std::string nearest = nearest_name(given, allowed);
  message += nearest.empty() ? "; allowed: " : "; did you mean '" + nearest + "'? Allowed: ";
  if (allowed.empty()) message += "none";
  const bool is_cut = allowed.size() > kMostListed;
  const std::vector<std::string> listed = is_cut ? nearest_names(given, allowed, kListed) : allowed;
  for (std::size_t i = 0; i < listed.size(); ++i) message += (i == 0 ? "" : ", ") + listed[i];
  if (is_cut) message += ", … (" + std::to_string(allowed.size()) + " in all)";
  return message;
}

}  // namespace moelab
