#include "sim/data/byte_pairs.h"

#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "sim/base/contract.h"

namespace moelab {
namespace {

/// Ordered as pairs are by their first id, then by their second.
using PairKey = std::uint32_t;

PairKey key_of(int first, int second) {
  return static_cast<PairKey>(first) << 16 | static_cast<PairKey>(second);
}

/// Where a pair stands.
struct PairPlaces {
  int count = 0;
  std::vector<int> places;  ///< of its first token, ascending, some where it no longer stands
};

/// What a merge says of the tokens x beside its places: of few tokens, many times.
class BesideMerge {
 public:
  void add(int token, int count) { entry(token).count += count; }
  void add_place(int token, int place) {
    PairPlaces& known = entry(token);
    ++known.count;
    known.places.push_back(place);
  }
  /// Calls take(token, places) for all, and forgets them.
  template <class Take>
  void empty_into(const Take& take) {
    for (const int token : touched_) {
      PairPlaces& known = of_token_[static_cast<std::size_t>(token)];
      if (known.count != 0) take(token, known);
      known.count = 0;
      known.places.clear();
    }
    touched_.clear();
  }

 private:
  PairPlaces& entry(int token) {
    const std::size_t at = static_cast<std::size_t>(token);
    if (at >= of_token_.size()) of_token_.resize(at + 1);
    if (of_token_[at].count == 0) touched_.push_back(token);
    return of_token_[at];
  }

  std::vector<PairPlaces> of_token_;
  std::vector<int> touched_;
};

/// Texts whose tokens are merged in place. The places of pairs are kept, so that a merge costs what it
/// changes.
class MergedTexts {
 public:
  using IsKept = std::function<bool(PairKey pair, int count)>;

  /// Keeps the pairs of which `is_kept` says so when they come about.
  MergedTexts(std::span<const std::string_view> texts, IsKept is_kept) : is_kept_(std::move(is_kept)) {
    const std::size_t all =
        std::accumulate(texts.begin(), texts.end(), std::size_t{0},
                        [](std::size_t sum, std::string_view text) { return sum + text.size(); });
    MOELAB_EXPECT(all <= std::size_t{std::numeric_limits<int>::max()});
    bytes_.reserve(all);
    for (const std::string_view text : texts) {
      const int first = static_cast<int>(bytes_.size()), size = static_cast<int>(text.size());
      first_.push_back(text.empty() ? kNone : first);
      for (int i = 0; i < size; ++i) {
        bytes_.push_back({static_cast<unsigned char>(text[static_cast<std::size_t>(i)]),
                          i > 0 ? first + i - 1 : kNone, i + 1 < size ? first + i + 1 : kNone});
      }
    }
    for (int place = 0; place < static_cast<int>(all); ++place) {
      const Byte& here = at(place);
      if (here.next == kNone) continue;
      PairPlaces& known = pairs_[key_of(here.token, at(here.next).token)];
      ++known.count;
      known.places.push_back(place);
    }
    std::erase_if(pairs_, [&](const auto& pair) { return !is_kept_(pair.first, pair.second.count); });
  }

  /// Of pairs that are kept. Those of a new pair only fall from then on, since a merge makes pairs with its
  /// own token alone.
  const std::unordered_map<PairKey, PairPlaces>& pairs() const { return pairs_; }

  /// Makes the places of a pair that is kept tokens `merged`, which there are none of yet, and calls
  /// made(pair) for all pairs with them that are kept.
  template <class Made>
  void merge(const BytePair& pair, int merged, const Made& made) {
    auto node = pairs_.extract(key_of(pair.first, pair.second));
    if (node.empty()) return;
    for (const int place : node.mapped().places) {
      const int second = at(place).next;
      if (at(place).token == pair.first && second != kNone && at(second).token == pair.second)
        merge_at(place, second, pair, merged);
    }
    lost_before_.empty_into([&](int x, const PairPlaces& lost) { lose(key_of(x, pair.first), lost.count); });
    lost_after_.empty_into([&](int x, const PairPlaces& lost) { lose(key_of(pair.second, x), lost.count); });
    const auto keep = [&](PairKey made_pair, PairPlaces& places) {
      if (!is_kept_(made_pair, places.count)) return;
      pairs_.emplace(made_pair, places);
      made(made_pair, places.count);
    };
    made_before_.empty_into([&](int x, PairPlaces& places) { keep(key_of(x, merged), places); });
    made_after_.empty_into([&](int x, PairPlaces& places) { keep(key_of(merged, x), places); });
  }

  std::vector<std::vector<TokenId>> tokens() const {
    std::vector<std::vector<TokenId>> all;
    for (const int first : first_) {
      std::vector<TokenId>& text = all.emplace_back();
      for (int place = first; place != kNone; place = at(place).next)
        text.push_back(static_cast<TokenId>(at(place).token));
    }
    return all;
  }

 private:
  static constexpr int kNone = -1;
  struct Byte {
    int token;  ///< that begins here; kNone where the byte belongs to the token before
    int previous, next;
  };

  Byte& at(int place) { return bytes_[static_cast<std::size_t>(place)]; }
  const Byte& at(int place) const { return bytes_[static_cast<std::size_t>(place)]; }

  void merge_at(int place, int second, const BytePair& pair, int merged) {
    const int before = at(place).previous, after = at(second).next;
    if (before != kNone) {
      const int x = at(before).token;
      // What stands before may have been merged just now.
      if (x == merged)
        made_after_.add(pair.first, -1);
      else
        lost_before_.add(x, 1);
      made_before_.add_place(x, before);
    }
    if (after != kNone) {
      const int x = at(after).token;
      lost_after_.add(x, 1);
      made_after_.add_place(x, place);
      at(after).previous = place;
    }
    at(place).token = merged;
    at(place).next = after;
    at(second).token = kNone;
  }

  void lose(PairKey pair, int count) {
    const auto known = pairs_.find(pair);
    if (known != pairs_.end()) known->second.count -= count;
  }

  IsKept is_kept_;
  std::vector<Byte> bytes_;
  std::vector<int> first_;  ///< place of each text
  std::unordered_map<PairKey, PairPlaces> pairs_;
  // Of pairs (x, first), (second, x), (x, merged) and (merged, x), by x.
  BesideMerge lost_before_, lost_after_, made_before_, made_after_;
};

}  // namespace

std::vector<BytePair> learn_byte_pairs(std::span<const std::string_view> texts, int vocabulary) {
  MOELAB_EXPECT(vocabulary <= kMostTokens);
  MergedTexts merged(texts, [](PairKey /*pair*/, int count) { return count > 1; });
  using Candidate = std::pair<int, PairKey>;
  const auto is_later = [](const Candidate& a, const Candidate& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  };
  // Counts that were right when they came in: the greatest that still is right is the greatest of all.
  std::priority_queue<Candidate, std::vector<Candidate>, decltype(is_later)> candidates(is_later);
  for (const auto& [pair, places] : merged.pairs()) candidates.emplace(places.count, pair);
  std::vector<BytePair> merges;
  while (!candidates.empty() && kByteTokens + static_cast<int>(merges.size()) < vocabulary) {
    const auto [count, pair] = candidates.top();
    candidates.pop();
    const auto known = merged.pairs().find(pair);
    if (known == merged.pairs().end()) continue;
    if (known->second.count != count) {
      if (known->second.count > 1) candidates.emplace(known->second.count, pair);
      continue;
    }
    merges.push_back({static_cast<TokenId>(pair >> 16), static_cast<TokenId>(pair & 0xffff)});
    merged.merge(merges.back(), kByteTokens + static_cast<int>(merges.size()) - 1,
                 [&](PairKey made, int places) { candidates.emplace(places, made); });
  }
  return merges;
}

std::vector<std::vector<TokenId>> encode_byte_pairs(std::span<const std::string_view> texts,
                                                    std::span<const BytePair> merges) {
  if (merges.empty()) {
    std::vector<std::vector<TokenId>> all;
    for (const std::string_view text : texts) {
      std::vector<TokenId>& tokens = all.emplace_back();
      for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    }
    return all;
  }
  std::unordered_set<PairKey> to_merge;
  for (const BytePair& pair : merges) to_merge.insert(key_of(pair.first, pair.second));
  MergedTexts merged(texts, [&](PairKey pair, int /*count*/) { return to_merge.contains(pair); });
  for (std::size_t m = 0; m < merges.size(); ++m)
    merged.merge(merges[m], kByteTokens + static_cast<int>(m), [](PairKey, int) {});
  return merged.tokens();
}

std::vector<int> lengths_of_tokens(std::span<const BytePair> merges) {
  std::vector<int> lengths(kByteTokens, 1);
  for (const BytePair& pair : merges) lengths.push_back(lengths[pair.first] + lengths[pair.second]);
  return lengths;
}

}  // namespace moelab
