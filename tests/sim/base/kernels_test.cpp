#include "sim/base/kernels/kernels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "sim/base/aligned.h"
#include "sim/base/error.h"
#include "sim/base/random.h"

namespace moelab::kernels {
namespace {

template <class T>
constexpr double kEpsilon = static_cast<double>(std::numeric_limits<T>::epsilon());

std::size_t size(int value) {
  return static_cast<std::size_t>(value);
}

/// Restores the level that the test found.
class LevelGuard {
 public:
  ~LevelGuard() { limit_vector_level(found_); }

 private:
  std::string found_ = vector_level_name();
};

/// The levels of this machine, lowest first; says so when some cannot be tried.
const std::vector<std::string>& levels() {
  static const std::vector<std::string> available = [] {
    const LevelGuard guard;
    std::vector<std::string> names;
    for (const char* name : {"sse", "avx2", "avx512"}) {
      limit_vector_level(name);
      if (vector_level_name() == name) {
        names.push_back(name);
      } else {
        MESSAGE("this processor has no " << name << ": that level is not tested here");
      }
    }
    return names;
  }();
  return available;
}

template <class T>
AlignedVector<T> normal_values(Engine& engine, std::size_t count) {
  AlignedVector<T> values(count);
  for (T& value : values) value = static_cast<T>(draw_normal(engine));
  return values;
}

template <class T>
bool same_bytes(const AlignedVector<T>& left, const AlignedVector<T>& right) {
  return left.size() == right.size() && std::memcmp(left.data(), right.data(), left.size() * sizeof(T)) == 0;
}

/// The largest |value − exact| / bound; a NaN counts as infinite.
template <class T>
double worst_error(const AlignedVector<T>& values, const std::vector<double>& exact,
                   const std::vector<double>& bound) {
  double worst = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double error = std::abs(static_cast<double>(values[i]) - exact[i]);
    if (!(error <= bound[i])) worst = std::max(worst, bound[i] > 0 ? error / bound[i] : INFINITY);
    if (std::isnan(error)) worst = INFINITY;
  }
  return worst;
}

/// Runs a kernel at every level: within the bound of the exact result at each, and the levels with fused
/// multiply-add equal to the last bit.
template <class T>
void check_levels(const std::string& kernel, const std::function<AlignedVector<T>()>& run,
                  const std::vector<double>& exact, const std::vector<double>& bound) {
  const LevelGuard guard;
  AlignedVector<T> fused;
  for (const std::string& level : levels()) {
    CAPTURE(kernel);
    CAPTURE(level);
    limit_vector_level(level);
    const AlignedVector<T> values = run();
    CHECK(worst_error(values, exact, bound) <= 1.0);
    if (level == "sse") continue;
    if (!fused.empty()) CHECK(same_bytes(values, fused));
    fused = values;
  }
}

/// One product in all 36 variants: A and B as they are or transposed, every start, every finish.
template <class T>
class ProductCase {
 public:
  ProductCase(Engine& engine, int m, int n, int k)
      : m_(m),
        n_(n),
        k_(k),
        stride_(padded(n)),
        a_(normal_values<T>(engine, size(m * k))),
        b_(normal_values<T>(engine, size(k * n))),
        c_(normal_values<T>(engine, size(m * stride_))),
        bias_(normal_values<T>(engine, size(stride_))),
        mask_(normal_values<T>(engine, size(m * stride_))) {
    for (int i = 0; i < m; ++i) {
      mask_[size(i * stride_)] = 0;  // ≤ 0 is masked, zero included
      for (int j = n; j < stride_; ++j) c_[size(i * stride_ + j)] = 0;
    }
    for (int j = n; j < stride_; ++j) bias_[size(j)] = 0;
    a_turned_.resize(a_.size());
    for (int i = 0; i < m; ++i) {
      for (int p = 0; p < k; ++p) a_turned_[size(p * m + i)] = a_[size(i * k + p)];
    }
    b_turned_.resize(b_.size());
    b_padded_.resize(size(k * stride_));
    for (int p = 0; p < k; ++p) {
      for (int j = 0; j < n; ++j) {
        b_turned_[size(j * k + p)] = b_padded_[size(p * stride_ + j)] = b_[size(p * n + j)];
      }
    }
    sums_.resize(c_.size());
    magnitudes_.resize(c_.size());
    for (int i = 0; i < m; ++i) {
      for (int p = 0; p < k; ++p) {
        for (int j = 0; j < n; ++j) {
          const double term =
              static_cast<double>(a_[size(i * k + p)]) * static_cast<double>(b_[size(p * n + j)]);
          sums_[size(i * stride_ + j)] += term;
          magnitudes_[size(i * stride_ + j)] += std::abs(term);
        }
      }
    }
  }

  /// The results of all variants, one after another. The row stride of C is wider than needed; what lies
  /// between the rows must stay.
  AlignedVector<T> run() const {
    AlignedVector<T> results;
    const int wide = stride_ + kPadding;
    for_each_variant([&](bool a_transposed, bool b_transposed, Start start, Finish finish) {
      constexpr T kUntouched = T(-77);
      AlignedVector<T> c(size(m_ * wide), kUntouched), mask(c.size());
      for (int i = 0; i < m_; ++i) {
        std::copy_n(c_.data() + i * stride_, stride_, c.data() + i * wide);
        std::copy_n(mask_.data() + i * stride_, stride_, mask.data() + i * wide);
      }
      Product<T> product;
      product.m = m_;
      product.n = n_;
      product.k = k_;
      product.a = a_transposed ? a_turned_.data() : a_.data();
      product.a_row = a_transposed ? 1 : k_;
      product.a_column = a_transposed ? m_ : 1;
      product.b = b_transposed ? b_turned_.data() : b_padded_.data();
      product.b_row = b_transposed ? k_ : stride_;
      product.b_transposed = b_transposed;
      product.c = c.data();
      product.c_row = wide;
      product.start = start;
      product.bias = bias_.data();
      product.finish = finish;
      product.mask = mask.data();
      multiply(product);
      for (int i = 0; i < m_; ++i) {
        const T* row = c.data() + i * wide;
        results.insert(results.end(), row, row + stride_);
        for (int j = stride_; j < wide; ++j) {
          if (row[j] != kUntouched) results.back() = std::numeric_limits<T>::quiet_NaN();
        }
      }
    });
    return results;
  }

  /// The exact results, and (k + 2) ε Σ|terms|: the classical bound of a sum of k rounded products in any
  /// order (Higham 2002, section 3.1), with the start as one more term. The sums here are in double, hence
  /// the factor 2 for T = double.
  void reference(std::vector<double>& exact, std::vector<double>& bound) const {
    for_each_variant([&](bool, bool, Start start, Finish finish) {
      for (std::size_t i = 0; i < c_.size(); ++i) {
        const bool accumulates = start == Start::accumulate;
        const double initial =
            start == Start::zero ? 0.0 : static_cast<double>(accumulates ? c_[i] : bias_[i % size(stride_)]);
        double value = sums_[i] + initial;
        if (finish == Finish::relu) value = std::max(value, 0.0);
        const bool masked = finish == Finish::relu_mask && mask_[i] <= 0;
        exact.push_back(masked ? 0.0 : value);
        bound.push_back(masked ? 0.0 : 2 * (k_ + 2) * kEpsilon<T> * (magnitudes_[i] + std::abs(initial)));
      }
    });
  }

 private:
  template <class Visit>
  static void for_each_variant(const Visit& visit) {
    for (const bool a : {false, true}) {
      for (const bool b : {false, true}) {
        for (const Start start : {Start::zero, Start::accumulate, Start::bias}) {
          for (const Finish finish : {Finish::none, Finish::relu, Finish::relu_mask})
            visit(a, b, start, finish);
        }
      }
    }
  }

  int m_, n_, k_, stride_;
  AlignedVector<T> a_, b_, c_, bias_, mask_, a_turned_, b_turned_, b_padded_;
  std::vector<double> sums_, magnitudes_;
};

TEST_CASE_TEMPLATE("products agree with the double loop, at every vector level", T, float, double) {
  Engine engine(1);
  const std::vector<int> lengths = {1, 2, 3, 7, 8, 9, 24, 96, 130};
  for (const int m : lengths) {
    for (const int n : lengths) {
      for (const int k : lengths) {
        const ProductCase<T> product(engine, m, n, k);
        std::vector<double> exact, bound;
        product.reference(exact, bound);
        const std::string name =
            "multiply " + std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k);
        check_levels<T>(
            name, [&] { return product.run(); }, exact, bound);
      }
    }
  }
}

TEST_CASE("the bound on products notices a wrong entry") {
  Engine engine(2);
  const ProductCase<double> product(engine, 7, 9, 24);
  std::vector<double> exact, bound;
  product.reference(exact, bound);
  AlignedVector<double> values = product.run();
  values[3] += 1e-12;
  CHECK(worst_error(values, exact, bound) > 1.0);
}

/// Rows of scores with their softmax in long double. The bound: the exponential is good to a few units in the
/// last place, its argument x − max is rounded once (a relative error |x − max| ε of the result), and the sum
/// of up to `columns` terms and the division add the rest. Results below the smallest normal number may be
/// flushed to zero.
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
    for (const int entries : {16, 48, 64, 112}) {
      const AlignedVector<T> zero(size(entries));
      AlignedVector<T> v = normal_values<T>(engine, size(entries)),
                       w = normal_values<T>(engine, size(entries));
      AlignedVector<T> idle_v = v, idle_w = w;
      const T rates[] = {T(0.1), T(0.05), T(0.2)};
      SgdStep<T> step{T(0), T(0.9), T(0.01)};
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

TEST_CASE("vector levels are named, and an unknown one is refused with the nearest name") {
  const LevelGuard guard;
  Engine engine(5);
  const AlignedVector<float> values = normal_values<float>(engine, 1600);
  std::vector<float> sums;
  for (const std::string& level : levels()) {
    limit_vector_level(level);
    CHECK(vector_level_name() == level);
    sums.push_back(dot(values.data(), values.data(), static_cast<int>(values.size())));
  }
  // The level is really taken: without fused multiply-add the last places differ.
  if (sums.size() > 1) CHECK(sums[0] != sums[1]);
  CHECK_THROWS_WITH_AS(limit_vector_level("avx22"), doctest::Contains("avx2"), UserError);
}

}  // namespace
}  // namespace moelab::kernels
