#include "sim/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace moelab {
namespace {

/// Longer names are not misspelled names of ours.
constexpr std::size_t kLongestName = 100;

/// Up to kMostListed names are all listed. Of more names, kListed are.
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

/// In lower case, because names differ in more than capitals. Letters outside ASCII stay.
std::string lower_cased(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return lower;
}

/// The `count` names nearest to `given`, the nearest first. Equally near names keep their order.
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

/// Names of other programs and papers (first), and the name of ours that means the same (second). The first
/// entry whose name is allowed is used.
constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {
    {"accuracy", "test_accuracy_top1"},
    {"acc", "test_accuracy_top1"},
    {"ari", "top1_cluster_ari"},
    {"ari", "layer_ari"},
    {"aux_loss", "aux"},
    {"balance", "expert_load_max_violation"},
    {"balance", "load"},
    {"batch", "batch_size"},
    {"bs", "batch_size"},
    {"d_model", "dim"},
    {"dead", "dead_experts"},
    {"dead", "load"},
    {"dimension", "dim"},
    {"entropy", "routing_entropy"},
    {"error", "test_nmse_top1"},
    {"features", "dim"},
    {"gate", "router"},
    {"hidden", "width"},
    {"hidden_dim", "width"},
    {"hidden_size", "width"},
    {"iterations", "steps"},
    {"layer_count", "layers"},
    {"learning_rate", "lr"},
    {"load", "expert_load_max_violation"},
    {"loss", "test_loss_top1"},
    {"mse", "test_loss_top1"},
    {"n_experts", "experts"},
    {"nmi", "top1_cluster_nmi"},
    {"nmse", "test_nmse_top1"},
    {"num_experts", "experts"},
    {"optim", "optimizer"},
    {"perplexity", "test_perplexity"},
    {"ppl", "test_perplexity"},
    {"purity", "top1_cluster_purity"},
    {"repetitions", "seeds"},
    {"repeats", "seeds"},
    {"samples", "train_samples"},
    {"scheduler", "schedule"},
    {"seed", "seeds"},
    {"temp", "temperature"},
    {"temp", "tau"},
    {"temperature", "tau"},
    {"top_k", "topk"},
    {"top_k", "k"},
    {"trials", "seeds"},
    {"wd", "weight_decay"},
};

/// Whether `name` is `end`, or ends in it after a dot or an underscore.
bool ends_in(std::string_view name, std::string_view end, std::string_view marks = "._") {
  if (name == end) return true;
  return name.size() > end.size() && name.ends_with(end) &&
         marks.find(name[name.size() - end.size() - 1]) != std::string_view::npos;
}

/// The allowed name with the same meaning as `given`, as itself or at the end of a dotted path.
std::string synonym(std::string_view given, const std::vector<std::string>& allowed) {
  for (const auto& [other, ours] : kSynonyms)
    if (given == other)
      for (const std::string& name : allowed)
        if (ends_in(name, ours, ".")) return name;
  return {};
}

/// The shortest allowed name that ends in `given`.
std::string name_with_end(std::string_view given, const std::vector<std::string>& allowed) {
  constexpr std::size_t kLeastLetters = 2;
  std::string shortest;
  if (given.size() < kLeastLetters) return shortest;
  for (const std::string& name : allowed)
    if (ends_in(lower_cased(name), given) && (shortest.empty() || name.size() < shortest.size()))
      shortest = name;
  return shortest;
}

/// The shortest allowed name that goes on after `given` and an underscore: test_loss_soft for test_loss.
std::string name_with_begin(const std::string& given, const std::vector<std::string>& allowed) {
  std::string shortest;
  for (const std::string& name : allowed)
    if (name.starts_with(given + "_") && (shortest.empty() || name.size() < shortest.size())) shortest = name;
  return shortest;
}

unsigned byte_at(std::string_view text, std::size_t place) {
  return static_cast<unsigned char>(text[place]);
}

/// Bytes of the UTF-8 character that begins with this byte, or 0.
std::size_t bytes_announced(unsigned first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if (first >= 0xE0 && first <= 0xEF) return 3;
  return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

struct Utf8Character {
  unsigned code = 0;
  std::size_t bytes = 0;  ///< 0 for no character
};

/// The character at `place`. Longer forms than the shortest, surrogates and codes beyond U+10FFFF are none.
Utf8Character character_at(std::string_view text, std::size_t place) {
  constexpr unsigned kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned first = byte_at(text, place);
  const std::size_t bytes = bytes_announced(first);
  if (bytes == 0 || bytes > text.size() - place) return {};
  if (bytes == 1) return {first, 1};
  unsigned code = first & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const unsigned next = byte_at(text, place + i);
    if ((next & 0xC0U) != 0x80U) return {};
    code = code << 6 | (next & 0x3FU);
  }
  if (code < kLeast[bytes] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {code, bytes};
}

/// First and last code of what visible_text writes out. Embeddings, overrides and isolates reverse the
/// letters that follow. XML has no U+FFFE and no U+FFFF.
constexpr std::pair<unsigned, unsigned> kInvisible[] = {
    {0x00, 0x08},      // C0 before the tab
    {0x0B, 0x1F},      // C0 after the line feed
    {0x7F, 0x9F},      // delete and C1
    {0x2028, 0x202E},  // line and paragraph separators, embeddings, overrides
    {0x2066, 0x2069},  // isolates
    {0xFFFE, 0xFFFF},  // noncharacters
};

bool is_invisible(unsigned code) {
  return std::any_of(std::begin(kInvisible), std::end(kInvisible),
                     [&](const auto& range) { return code >= range.first && code <= range.second; });
}

}  // namespace

std::string nearest_name(std::string_view given, const std::vector<std::string>& allowed) {
  if (given.size() > kLongestName) return {};
  std::string nearest;
  const std::string start = lower_cased(given);
  // A slip of a letter or two (one in five) is likelier than another word with the same meaning or end.
  const auto is_slip = [&](std::size_t distance) { return distance <= (start.size() + 2) / 5; };
  std::size_t nearest_distance = given.size() / 2 + 1;
  for (const std::string& name : allowed) {
    const std::size_t distance = edit_distance(start, lower_cased(name));
    if (distance < nearest_distance) {
      nearest = name;
      nearest_distance = distance;
    }
  }
  if (nearest_distance > 1)
    if (const std::string longer = name_with_begin(start, allowed); !longer.empty()) return longer;
  if (!nearest.empty() && is_slip(nearest_distance)) return nearest;
  for (const std::string& other : {synonym(start, allowed), name_with_end(start, allowed)})
    if (!other.empty()) return other;
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

std::string visible_text(std::string_view text) {
  std::string visible;
  visible.reserve(text.size());
  for (std::size_t place = 0; place < text.size();) {
    const Utf8Character character = character_at(text, place);
    if (character.bytes == 0) {
      fmt::format_to(std::back_inserter(visible), "\\x{:02x}", byte_at(text, place));
    } else if (is_invisible(character.code)) {
      fmt::format_to(std::back_inserter(visible), "\\u{:04x}", character.code);
    } else {
      visible.append(text.substr(place, character.bytes));
    }
    place += std::max<std::size_t>(character.bytes, 1);
  }
  return visible;
}

std::string visible_line(std::string_view text) {
  std::string line = visible_text(text);
  std::replace_if(
      line.begin(), line.end(), [](char letter) { return letter == '\n' || letter == '\t'; }, ' ');
  return line;
}

std::size_t unfinished_bytes(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(text.size(), 3); ++back) {
    const std::size_t place = text.size() - back;
    if (!begins_character(text[place])) continue;
    return bytes_announced(byte_at(text, place)) > back ? back : 0;
  }
  return 0;
}

std::size_t first_byte_outside_utf8(std::string_view text) {
  std::size_t place = 0;
  while (place < text.size()) {
    const std::size_t bytes = character_at(text, place).bytes;
    if (bytes == 0) break;
    place += bytes;
  }
  return place;
}

}  // namespace moelab
