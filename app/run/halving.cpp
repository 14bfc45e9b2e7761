#include "app/run/halving.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "sim/base/quasi_random.h"

namespace moelab {

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
  Engine engine = Seeds{kTuningRoot, 0}.stream(Purpose::starts);
  const int dimensions = static_cast<int>(ranges.size());
  Matrix shares = QuasiRandom(dimensions, engine).uniforms(candidates);
  if (dimensions == 1) {
    for (int i = 0; i < candidates; ++i) shares(i, 0) = static_cast<double>(i) / std::max(1, candidates - 1);
  }
  std::vector<std::vector<Json>> values;
  for (int i = 0; i < candidates; ++i) {
    std::vector<Json>& own = values.emplace_back();
    for (int j = 0; j < dimensions; ++j) own.push_back(ranges[static_cast<std::size_t>(j)].at(shares(i, j)));
  }
  return values;
}

std::vector<std::size_t> best_places(const std::vector<double>& scores, int count) {
  std::vector<std::size_t> places(scores.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  const auto rank = [&](std::size_t place) {
    return std::isfinite(scores[place]) ? scores[place] : std::numeric_limits<double>::infinity();
  };
  std::stable_sort(places.begin(), places.end(),
                   [&](std::size_t left, std::size_t right) { return rank(left) < rank(right); });
  places.resize(std::min(places.size(), static_cast<std::size_t>(count)));
  return places;
}

}  // namespace moelab
