#include "sim/data/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/base/error.h"

// To add a generator, define <name>_generator() in a new file and add a line here.
// clang-format off
#define MOELAB_GENERATORS(entry)      \
  entry(gaussian_mixture_generator)   \
  entry(subspace_mixture_generator)   \
  entry(tokenized_mixture_generator)  \
  entry(token_topics_generator)       \
  entry(dictionary_generator)         \
  entry(image_clusters_generator)     \
  entry(moe_regression_generator)     \
  entry(synthetic_language_generator) \
  entry(patches_generator)            \
  entry(text_generator)               \
  entry(file_generator)               \
  entry(task_pool_generator)          \
  entry(single_index_generator)
// clang-format on

namespace moelab {

MOELAB_TABLE(GeneratorAxis, MOELAB_GENERATORS)

void DataOptions::bind(Fields& fields) {
  OneOf<GeneratorAxis>::bind(fields);
  fields.add("train_samples", train_samples, between(1, 1e9),
             "number of training samples (sample gradients)");
  fields.add("test_samples", test_samples, between(2, 1e9), "number of test samples");
  fields.add("independent", independent,
             "a separate training set for every train_samples (rates need it), instead of nested ones");
  fields.add("contamination", contamination, "what is done to the test inputs");
}

void check(const DataOptions& options) {
  if (options.chosen().empty()) throw InvalidOption("data.generator", "missing; no generator is chosen");
  if (options.entry().check) options.entry().check(options);
  if (!options.independent) return;
  const std::string path = "data.independent";
  if (!options.train_samples) throw InvalidOption(path, "got true, needs data.train_samples");
  if (!files_of(options).empty())
    throw InvalidOption(path, "got true, but samples come from files, which hold one training set");
}

std::vector<std::pair<std::string, std::string>> files_of(const DataOptions& options) {
  const GeneratorKind& generator = options.entry();
  if (!generator.files) return {};
  return generator.files(options.options());
}

std::unique_ptr<Problem> draw_problem(const DataOptions& options, const Seeds& seeds) {
  if (options.chosen().empty()) throw InvalidOption("data.generator", "missing; no generator is chosen");
  return options.entry().draw(options, seeds);
}

std::vector<std::vector<int>> subsets_of(int count, int members, std::size_t most) {
  std::vector<std::vector<int>> sets;
  std::vector<int> set(size(members));
  std::iota(set.begin(), set.end(), 0);
  for (;;) {
    if (sets.size() == most) return {};
    sets.push_back(set);
    // The last place that can still move up moves, and the places after it follow.
    int place = members - 1;
    while (place >= 0 && set[size(place)] == count - members + place) --place;
    if (place < 0) return sets;
    std::iota(set.begin() + place, set.end(), set[size(place)] + 1);
  }
}

std::uint64_t train_stream(const DataOptions& options) {
  return options.independent ? static_cast<std::uint64_t>(options.train_samples.value_or(0)) : 0;
}

Dataset draw_set(const Problem& problem, const Seeds& seeds, Purpose purpose, int count,
                 std::uint64_t stream) {
  Engine engine = seeds.stream(purpose, stream);
  return problem.draw(engine, {purpose, 0, count});
}

template <class Real>
void mask_tokens(const TokenMasks& masks, Engine& engine, int samples, int tokens, Real* x, Real* y) {
  const int masked = std::max(1, static_cast<int>(std::lround(masks.share * tokens)));
  std::vector<int> places(size(tokens));
  for (int sample = 0; sample < samples; ++sample, x += tokens, y += tokens) {
    std::fill_n(y, tokens, static_cast<Real>(kNoTarget));
    std::iota(places.begin(), places.end(), 0);
    draw_to_front(engine, masked, places);
    for (int i = 0; i < masked; ++i) {
      const int place = places[size(i)];
      y[place] = std::exchange(x[place], static_cast<Real>(masks.mask));
    }
  }
}

void mask_tokens(const TokenMasks& masks, const Seeds& seeds, Purpose set, int tokens, Dataset& data) {
  const std::uint64_t purpose = static_cast<std::uint64_t>(set);
  Seeds own = seeds;
  if ((seeds.shared >> purpose & 1) != 0) own.share(Purpose::masks);
  // Training uses the streams from 0 on.
  Engine engine = own.stream(Purpose::masks, std::numeric_limits<std::uint64_t>::max() - purpose);
  mask_tokens(masks, engine, static_cast<int>(data.x.rows()), tokens, data.x.data(), data.y.data());
}

template void mask_tokens(const TokenMasks&, Engine&, int, int, float*, float*);
template void mask_tokens(const TokenMasks&, Engine&, int, int, double*, double*);

}  // namespace moelab
