#include "sim/base/random.h"

#include <numeric>
#include <utility>

namespace moelab {
namespace {

/// SplitMix64's finaliser (Steele, Lea, Flood 2014): a bijection whose every output bit depends on every
/// input bit.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace

Engine Seeds::stream(Purpose purpose, std::uint64_t counter) const {
  const std::uint64_t own = (shared >> static_cast<std::uint64_t>(purpose) & 1) != 0 ? 0 : index;
  std::uint64_t key = mix(root);
  for (const std::uint64_t part : {own, static_cast<std::uint64_t>(purpose), counter}) key = mix(key ^ part);
  return Engine(key);
}

Seeds Seeds::of_layer(int layer) const {
  constexpr std::uint64_t kLayers = 0x6c6179657273u;  // keeps these roots apart from mix(root) alone
  if (layer == 0) return *this;
  return {mix(mix(root) ^ (kLayers + static_cast<std::uint64_t>(layer))), index, shared};
}

void fill_normal(Engine& engine, double scale, double* values, std::size_t count) {
  boost::random::normal_distribution<double> normal;
  for (std::size_t i = 0; i < count; ++i) values[i] = scale * normal(engine);
}

Matrix draw_normals(Engine& engine, Eigen::Index rows, Eigen::Index columns, double scale) {
  Matrix values(rows, columns);
  fill_normal(engine, scale, values.data(), static_cast<std::size_t>(values.size()));
  return values;
}

void shuffle(Engine& engine, std::vector<int>& values) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[static_cast<std::size_t>(draw_index(engine, static_cast<int>(i)))]);
  }
}

std::vector<int> draw_permutation(Engine& engine, int count) {
  std::vector<int> permutation(static_cast<std::size_t>(count));
  std::iota(permutation.begin(), permutation.end(), 0);
  shuffle(engine, permutation);
  return permutation;
}

}  // namespace moelab
