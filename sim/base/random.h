#pragma once

/// Random streams and draws. Each purpose of a cell has its own stream with the key (root seed, seed index,
/// purpose, counter). So adding a cell, an arm or an expert changes no other draw, and comparisons are
/// paired.

#include <boost/random/mersenne_twister.hpp>
#include <boost/random/normal_distribution.hpp>
#include <boost/random/uniform_01.hpp>
#include <boost/random/uniform_int_distribution.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/base/arrays.h"

namespace moelab {

using Engine = boost::random::mt19937_64;

/// The numbers are part of the key. Never renumber them; only add.
enum class Purpose : std::uint64_t {
  problem = 1,
  train_data = 2,
  test_data = 3,
  router_init = 4,
  expert_init = 5,
  batch_order = 6,
  router_noise = 7,
  shuffles = 8,
  evaluation = 9,
  population = 10,
  starts = 11,
  projection_init = 12,
  masks = 13,
};

/// The streams of one (root seed, seed index).
struct Seeds {
  std::uint64_t root = 1;
  std::uint64_t index = 0;
  std::uint64_t shared = 0;  ///< bits 1 << purpose: every index has these streams of index 0

  /// Lets all indices share the streams of a purpose.
  void share(Purpose purpose) { shared |= std::uint64_t{1} << static_cast<std::uint64_t>(purpose); }

  /// An engine seeded with a 64-bit mix (SplitMix64 finaliser, chained) of root, index, purpose, counter.
  Engine stream(Purpose purpose, std::uint64_t counter = 0) const;
  /// The streams of layer `layer` of a model: these for layer 0, independent ones for every other layer.
  Seeds of_layer(int layer) const;
};

/// One draw of N(0, 1).
inline double draw_normal(Engine& engine) {
  return boost::random::normal_distribution<double>()(engine);
}

/// One draw of U[0, 1).
inline double draw_uniform(Engine& engine) {
  return boost::random::uniform_01<double>()(engine);
}

/// One draw of U{0, …, count − 1}.
inline int draw_index(Engine& engine, int count) {
  return boost::random::uniform_int_distribution<int>(0, count - 1)(engine);
}

/// Fills `values` with N(0, scale²).
void fill_normal(Engine& engine, double scale, double* values, std::size_t count);

template <class Array>
void fill_normal(Engine& engine, double scale, Array& values) {
  fill_normal(engine, scale, values.data(), size(values.size()));
}

/// A matrix of draws N(0, scale²), row by row.
Matrix draw_normals(Engine& engine, Eigen::Index rows, Eigen::Index columns, double scale = 1);

/// A uniformly random permutation of 0 … count − 1 (Fisher-Yates from the last place down).
std::vector<int> draw_permutation(Engine& engine, int count);

/// The same shuffle in place.
void shuffle(Engine& engine, std::vector<int>& values);

/// Moves `count` of the values, drawn without replacement, to the first places.
void draw_to_front(Engine& engine, int count, std::vector<int>& values);

/// An index with the given probabilities. If rounding leaves a rest, it is the last index of positive
/// probability.
int draw_category(Engine& engine, const Eigen::Ref<const Eigen::RowVectorXd>& probabilities);

// Randomised quasi-Monte Carlo: Sobol points with a random digital shift (Owen 1995; L'Ecuyer and Lemieux
// 2002)

/// The largest dimension with direction numbers.
constexpr int kMaximumQuasiDimension = 3667;

/// Φ⁻¹(u), the standard normal quantile, for u in (0, 1).
double normal_quantile(double u);

/// The points u_i = s_i ⊕ Δ, i = 0, 1, …, of [0, 1)^dim. s_i is the Sobol sequence from its first point 0 on,
/// Δ a uniformly random binary fraction per coordinate, and ⊕ the addition of binary digits without carry.
///
/// Each u_i is uniform, so Q_n = (1/n) Σ_{i<n} f(u_i) has no bias. Its error falls about as 1/n for smooth f,
/// and as 1/√n for independent points. The points depend on each other: estimate the error from the spread of
/// Q_n over several shifts. Use powers of two for n. Then every coordinate has exactly one point in each
/// interval [j/n, (j+1)/n).
class QuasiRandom {
 public:
  /// Draws Δ from `engine`, one word per coordinate. Throws UserError unless 1 ≤ dim ≤
  /// kMaximumQuasiDimension.
  QuasiRandom(int dim, Engine& engine);
  ~QuasiRandom();
  QuasiRandom(QuasiRandom&&) noexcept;
  QuasiRandom& operator=(QuasiRandom&&) noexcept;

  /// Starts again at i = 0 with a new Δ, as each step of a population gradient needs.
  void restart(Engine& engine);

  /// The next `count` points (count, dim), each coordinate strictly between 0 and 1.
  Matrix uniforms(int count);

  /// The next `count` points as standard normals Φ⁻¹(u) (count, dim).
  Matrix normals(int count);

 private:
  struct Sequence;
  std::unique_ptr<Sequence> sequence_;
};

}  // namespace moelab
