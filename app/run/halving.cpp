#include "app/run/halving.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "sim/base/quasi_random.h"

namespace moelab {
namespace {

/// Few digits are easy to read and to write into a scenario; more are taken where values then repeat.
constexpr int kFewDigits = 3, kAllDigits = 17;
/// After so many draws in a row that repeat others, the ranges are taken to have no further values.
constexpr int kRepeatedDraws = 1000;

std::vector<std::vector<Json>> distinct_values(const std::vector<TuneRange>& ranges, int candidates,
                                               int digits) {
  Engine engine = Seeds{kTuningRoot, 0}.stream(Purpose::starts);
  const int dimensions = static_cast<int>(ranges.size());
  QuasiRandom draws(dimensions, engine);
  Matrix shares = draws.uniforms(candidates);
  if (dimensions == 1) {
    for (int i = 0; i < candidates; ++i) shares(i, 0) = static_cast<double>(i) / std::max(1, candidates - 1);
  }
  std::vector<std::vector<Json>> values;
  std::set<std::vector<Json>> known;
  const auto add = [&](const Matrix& from, int row) {
    std::vector<Json> own;
    for (int j = 0; j < dimensions; ++j)
      own.push_back(ranges[static_cast<std::size_t>(j)].at(from(row, j), digits));
    const bool is_new = known.insert(own).second;
    if (is_new) values.push_back(std::move(own));
    return is_new;
  };
  for (int i = 0; i < candidates; ++i) add(shares, i);
  for (int repeated = 0; values.size() < static_cast<std::size_t>(candidates) && repeated < kRepeatedDraws;)
    repeated = add(draws.uniforms(1), 0) ? 0 : repeated + 1;
  return values;
}

}  // namespace

std::vector<Rung> halving_rungs(int candidates) {
  std::vector<Rung> rungs;
  for (int seeds = 1; candidates > 1; seeds *= 3) {
    rungs.push_back({candidates, seeds});
    candidates = std::max(1, candidates / 3);
  }
  return rungs;
}

int trainings_of(const std::vector<Rung>& rungs) {
  int trainings = 0, before = 0;
  for (const Rung& rung : rungs) {
    trainings += rung.candidates * (rung.seeds - before);
    before = rung.seeds;
  }
  return trainings;
}

int candidates_within(int trainings) {
  int most = 0;
  for (int candidates = 2; candidates <= trainings; ++candidates) {
    if (trainings_of(halving_rungs(candidates)) <= trainings) most = candidates;
  }
  return most;
}

std::vector<std::vector<Json>> candidate_values(const std::vector<TuneRange>& ranges, int candidates) {
  for (int digits = kFewDigits;; ++digits) {
    std::vector<std::vector<Json>> values = distinct_values(ranges, candidates, digits);
    if (values.size() == static_cast<std::size_t>(candidates) || digits == kAllDigits) return values;
  }
}

std::vector<std::size_t> best_places(const std::vector<double>& scores, int count) {
  std::vector<std::size_t> places(scores.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(), [&](std::size_t left, std::size_t right) {
    if (std::isnan(scores[left]) || std::isnan(scores[right]))
      return !std::isnan(scores[left]) && std::isnan(scores[right]);
    return scores[left] < scores[right];
  });
  places.resize(std::min(places.size(), static_cast<std::size_t>(count)));
  return places;
}

}  // namespace moelab
