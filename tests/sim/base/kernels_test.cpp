#include "sim/base/kernels/kernels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "tests/sim/base/kernel_levels.h"

namespace moelab::kernels::kernels_test {
namespace {

/// Rows of scores with their softmax in long double. The bound has three parts. The exponential is good to a
/// few units in the last place. Its argument x − max is rounded once, a relative error |x − max| ε of the
/// result. The sum of up to `columns` terms and the division add the rest. Results below the smallest normal
/// number may be flushed to zero.
template <class T>
void softmax_reference(const AlignedVector<T>& scores, int rows, int columns, int stride,
                       std::vector<double>& exact, std::vector<double>& bound) {
  constexpr double kExpUlps = 8;
  exact.assign(scores.size(), 0.0);
  bound.assign(scores.size(), 0.0);
  for (int i = 0; i < rows; ++i) {
    const T* row = scores.data() + i * stride;
    const long double peak = *std::max_element(row, row + columns);
    long double total = 0;
    for (int j = 0; j < columns; ++j) total += std::exp(static_cast<long double>(row[j]) - peak);
    for (int j = 0; j < columns; ++j) {
      const long double gap = peak - static_cast<long double>(row[j]);
      const double value = static_cast<double>(std::exp(-gap) / total);
      const double relative = (kExpUlps + columns + static_cast<double>(gap)) * kEpsilon<T>;
      exact[size(i * stride + j)] = value;
      bound[size(i * stride + j)] = relative * value + static_cast<double>(std::numeric_limits<T>::min());
    }
  }
}

TEST_CASE_TEMPLATE("softmax is exact and stable, and its padding is zero", T, float, double) {
  Engine engine(3);
  for (const int columns : {1, 2, 15, 16, 17, 64, 130}) {
    for (const double scale : {0.0, 1.0, 20.0, 1e4}) {
      constexpr int kRows = 5;
      const int stride = padded(columns);
      AlignedVector<T> scores = normal_values<T>(engine, size(kRows * stride));
      for (T& score : scores) score *= static_cast<T>(scale);
      scores[0] = static_cast<T>(-scale);
      scores[size(columns - 1)] = static_cast<T>(scale);
      for (int i = 0; i < kRows; ++i) {  // garbage in the padding must not be seen
        for (int j = columns; j < stride; ++j) scores[size(i * stride + j)] = static_cast<T>(1e6);
      }
      std::vector<double> exact, bound;
      softmax_reference(scores, kRows, columns, stride, exact, bound);
      const auto run = [&](bool in_place) {
        AlignedVector<T> probabilities = in_place ? scores : AlignedVector<T>(scores.size(), T(9));
        softmax_rows(in_place ? probabilities.data() : scores.data(), probabilities.data(), kRows, columns,
                     stride);
        return probabilities;
      };
      CAPTURE(columns);
      CAPTURE(scale);
      check_levels<T>(
          "softmax_rows", [&] { return run(false); }, exact, bound);
      CHECK(same_bytes(run(false), run(true)));
      if (columns > 1) {
        AlignedVector<T> wrong = run(false);
        *std::max_element(wrong.begin(), wrong.begin() + columns) *= static_cast<T>(1.01);
        CHECK(worst_error(wrong, exact, bound) > 1.0);
      }
    }
  }
}

TEST_CASE_TEMPLATE("softmax backward, sums, dot, scaling and optimizer steps", T, float, double) {
  Engine engine(4);
  for (const int columns : {1, 15, 16, 40, 130}) {
    constexpr int kRows = 6;
    const int stride = padded(columns), entries = kRows * stride;
    AlignedVector<T> scores = normal_values<T>(engine, size(entries));
    AlignedVector<T> r(scores.size());
    softmax_rows(scores.data(), r.data(), kRows, columns, stride);
    const AlignedVector<T> g = normal_values<T>(engine, size(entries)),
                           w = normal_values<T>(engine, size(entries));
    const auto as_double = [](T value) { return static_cast<double>(value); };
    // Each result is a short expression on top of at most `entries` summed terms, each rounded once or twice.
    const double tolerance = 4 * kEpsilon<T>;
    std::vector<double> exact(g.size()), bound(g.size());

    for (int i = 0; i < kRows; ++i) {
      double mean = 0, magnitude = 0;
      for (int j = 0; j < columns; ++j) {
        const double term = as_double(r[size(i * stride + j)]) * as_double(g[size(i * stride + j)]);
        mean += term;
        magnitude += std::abs(term);
      }
      for (int j = 0; j < stride; ++j) {
        const std::size_t at = size(i * stride + j);
        exact[at] = as_double(r[at]) * (as_double(g[at]) - mean);
        bound[at] = tolerance * columns * as_double(r[at]) * (std::abs(as_double(g[at])) + magnitude);
      }
    }
    check_levels<T>(
        "softmax_backward_rows",
        [&] {
          AlignedVector<T> out(g.size());
          softmax_backward_rows(r.data(), g.data(), out.data(), kRows, columns, stride);
          return out;
        },
        exact, bound);

    std::vector<double> sums(size(stride)), sum_bound(size(stride));
    double dot_exact = 0, dot_bound = 0;
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < stride; ++j) {
        const std::size_t at = size(i * stride + j);
        sums[size(j)] += as_double(g[at]);
        sum_bound[size(j)] += tolerance * kRows * std::abs(as_double(g[at]));
        dot_exact += as_double(g[at]) * as_double(w[at]);
        dot_bound += tolerance * entries * std::abs(as_double(g[at]) * as_double(w[at]));
      }
    }
    check_levels<T>(
        "sum_rows",
        [&] {
          AlignedVector<T> out(size(stride));
          sum_rows(g.data(), kRows, columns, stride, out.data());
          return out;
        },
        sums, sum_bound);
    check_levels<T>("dot", [&] { return AlignedVector<T>{dot(g.data(), w.data(), entries)}; }, {dot_exact},
                    {dot_bound});

    const T factor = T(0.3);
    for (const bool adds : {false, true}) {
      for (std::size_t i = 0; i < g.size(); ++i) {
        exact[i] = as_double(factor) * as_double(g[i]) + (adds ? as_double(w[i]) : 0.0);
        bound[i] = tolerance * (std::abs(as_double(g[i])) + std::abs(as_double(w[i])));
      }
      check_levels<T>(
          adds ? "add_scaled" : "scale_into",
          [&] {
            AlignedVector<T> out = w;
            adds ? add_scaled(factor, g.data(), out.data(), entries)
                 : scale_into(factor, g.data(), out.data(), entries);
            return out;
          },
          exact, bound);
    }

    const AlignedVector<T> first = normal_values<T>(engine, size(entries));
    AlignedVector<T> second = normal_values<T>(engine, size(entries));
    for (T& value : second) value = std::abs(value);
    const SgdStep<T> sgd{T(0.1), T(0.9), T(0.01)};
    for (std::size_t i = 0; i < g.size(); ++i) {
      const double v = as_double(sgd.momentum) * as_double(first[i]) + as_double(g[i]) +
                       as_double(sgd.weight_decay) * as_double(w[i]);
      exact[i] = as_double(w[i]) - as_double(sgd.learning_rate) * v;
      bound[i] = tolerance *
                 (2 * std::abs(as_double(w[i])) + std::abs(as_double(first[i])) + std::abs(as_double(g[i])));
    }
    check_levels<T>(
        "sgd_step",
        [&] {
          AlignedVector<T> velocity = first, out = w;
          sgd_step(sgd, g.data(), velocity.data(), out.data(), g.size());
          return out;
        },
        exact, bound);

    for (const bool decoupled : {false, true}) {
      const AdamStep<T> adam{T(0.1), T(0.9), T(0.99), T(1e-8), T(0.01), decoupled, T(0.2), T(1.5)};
      for (std::size_t i = 0; i < g.size(); ++i) {
        const double decay = as_double(adam.weight_decay), weight = as_double(w[i]);
        const double gradient = as_double(g[i]) + (decoupled ? 0.0 : decay * weight);
        const double m = as_double(adam.beta1) * as_double(first[i]) + (1 - as_double(adam.beta1)) * gradient;
        const double v =
            as_double(adam.beta2) * as_double(second[i]) + (1 - as_double(adam.beta2)) * gradient * gradient;
        const double root = std::sqrt(v) * as_double(adam.second_moment_scale) + as_double(adam.epsilon);
        const double shrunk = decoupled ? weight * (1 - as_double(adam.learning_rate) * decay) : weight;
        exact[i] = shrunk - as_double(adam.step_size) * m / root;
        // 1 − β is rounded relative to 1, not to itself: ten times ε for β1 = 0.9, a hundred times for β2 =
        // 0.99.
        bound[i] =
            tolerance * (std::abs(weight) + 30 * (std::abs(as_double(first[i])) + std::abs(gradient)) / root);
      }
      check_levels<T>(
          decoupled ? "adamw_step" : "adam_step",
          [&] {
            AlignedVector<T> m = first, v = second, out = w;
            adam_step(adam, g.data(), m.data(), v.data(), out.data(), g.size());
            return out;
          },
          exact, bound);
    }
  }
}

TEST_CASE_TEMPLATE("idle steps are steps with a zero gradient, to the last bit", T, float, double) {
  Engine engine(7);
  const LevelGuard guard;
  for (const std::string& level : levels()) {
    limit_vector_level(level);
    for (const auto& [entries, decay] :
         {std::pair{16, 0.01}, {48, 0.01}, {64, 0.01}, {112, 0.01}, {48, 0.0}, {112, 0.0}}) {
      const AlignedVector<T> zero(size(entries));
      AlignedVector<T> v = normal_values<T>(engine, size(entries)),
                       w = normal_values<T>(engine, size(entries));
      AlignedVector<T> idle_v = v, idle_w = w;
      const T rates[] = {T(0.1), T(0.05), T(0.2)};
      SgdStep<T> step{T(0), T(0.9), static_cast<T>(decay)};
      sgd_idle_steps(step, rates, 3, idle_v.data(), idle_w.data(), size(entries));
      for (const T rate : rates) {
        step.learning_rate = rate;
        sgd_step(step, zero.data(), v.data(), w.data(), size(entries));
      }
      CHECK(same_bytes(v, idle_v));
      CHECK(same_bytes(w, idle_w));
    }
  }
}

TEST_CASE_TEMPLATE("without gradient a velocity and a moment become zero, not subnormal", T, float, double) {
  const LevelGuard guard;
  constexpr std::size_t entries = 48;
  constexpr int steps = 200;
  const T start = std::numeric_limits<T>::min() * T(1e6), half = std::numeric_limits<T>::min() / 2;
  const AlignedVector<T> zero(entries);
  for (const std::string& level : levels()) {
    limit_vector_level(level);
    AlignedVector<T> v(entries, start), idle_v = v, first = v, second = v, w(entries, T(1));
    const SgdStep<T> sgd{T(0.1), T(0.9), T(0)};
    AdamStep<T> adam;
    adam.learning_rate = adam.step_size = T(0.1);
    adam.beta1 = adam.beta2 = T(0.9);
    adam.epsilon = T(1e-8);
    adam.second_moment_scale = T(1);
    for (int i = 0; i < steps; ++i) {
      sgd_step(sgd, zero.data(), v.data(), w.data(), entries);
      adam_step(adam, zero.data(), first.data(), second.data(), w.data(), entries);
    }
    const std::vector<T> rates(steps, T(0.1));
    sgd_idle_steps(sgd, rates.data(), steps, idle_v.data(), w.data(), entries);
    for (const AlignedVector<T>* const values : {&v, &idle_v, &first, &second}) CHECK(*values == zero);
    CHECK(w == AlignedVector<T>(entries, T(1)));
    // Elsewhere subnormal numbers are what they are.
    volatile T subnormal = half;
    CHECK(subnormal * T(1) > 0);
  }
}

TEST_CASE("vector levels are named, and an unknown one is refused with the nearest name") {
  const LevelGuard guard;
  Engine engine(5);
  const AlignedVector<float> values = normal_values<float>(engine, 1600);
  std::vector<std::vector<float>> sums;
  for (const std::string& level : levels()) {
    limit_vector_level(level);
    CHECK(vector_level_name() == level);
    std::vector<float>& own = sums.emplace_back();
    for (int size = 100; size <= static_cast<int>(values.size()); size += 100)
      own.push_back(dot(values.data(), values.data(), size));
  }
  // The level is really taken: without fused multiply-add the last places of some sum differ.
  if (sums.size() > 1) CHECK(sums[0] != sums[1]);
  for (const std::string& name : vector_level_names()) {
    const std::string nearest = "did you mean '" + name + "'";
    CHECK_THROWS_WITH_AS(limit_vector_level(name + "x"), doctest::Contains(nearest.c_str()), UserError);
  }
}

TEST_CASE("the level in the environment is refused when unknown, and not missed when it is not there") {
  const char* const variable = "MOELAB_VECTOR_LEVEL";
  const char* const found = std::getenv(variable);
  const std::string before = found == nullptr ? "" : found;
  ::unsetenv(variable);
  CHECK_NOTHROW(check_vector_level());
  for (const std::string& known : vector_level_names()) {
    ::setenv(variable, known.c_str(), 1);
    CHECK_NOTHROW(check_vector_level());
  }
  ::setenv(variable, "", 1);
  CHECK_NOTHROW(check_vector_level());
  for (const char* unknown : {"avx22", "AVX2", " avx2", "0"}) {
    ::setenv(variable, unknown, 1);
    const std::string named = std::string("MOELAB_VECTOR_LEVEL: unknown vector level '") + unknown + "'";
    CHECK_THROWS_WITH_AS(check_vector_level(), doctest::Contains(named.c_str()), UserError);
  }
  if (found == nullptr) ::unsetenv(variable);
  if (found != nullptr) ::setenv(variable, before.c_str(), 1);
}

}  // namespace
}  // namespace moelab::kernels::kernels_test
