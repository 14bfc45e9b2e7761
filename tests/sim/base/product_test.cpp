#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/sim/base/kernel_levels.h"

namespace moelab::kernels::product_test {
namespace {

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

}  // namespace
}  // namespace moelab::kernels::product_test
