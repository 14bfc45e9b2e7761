#include "sim/base/kernels/multiply.h"

#include "tests/sim/base/kernel_levels.h"

namespace moelab::kernels::multiply_test {
namespace {

/// What lies around a view, and must stay.
constexpr double kUntouched = -77;

/// A normal matrix in the middle of an array whose other entries belong to nobody: a row before it, one after
/// it, and `gap` entries behind each of its rows. `width` entries of a row are its own, zero from `columns`
/// on.
template <class T>
struct Held {
  Held(Engine& engine, int row_count, int column_count, int width, int gap)
      : rows(row_count),
        columns(column_count),
        stride(width + gap),
        values(entries(row_count + 2, width + gap), static_cast<T>(kUntouched)) {
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < width; ++j) {
        view().row(i)[j] = j < columns ? static_cast<T>(draw_normal(engine)) : T(0);
      }
    }
  }
  View<T> view() { return {values.data() + stride, rows, columns, stride}; }

  int rows, columns;
  std::ptrdiff_t stride;
  AlignedVector<T> values;
};
template <class T>
Held<T> held(Engine& engine, int rows, int columns, int gap = 0) {
  return {engine, rows, columns, columns, gap};
}
template <class T>
Held<T> held_padded(Engine& engine, int rows, int columns, int gap = 0) {
  return {engine, rows, columns, padded(columns), gap};
}

/// A product and its extras as a plain loop sees them.
template <class T>
struct Form {
  std::string name;
  View<const T> a, b;
  Extras<T> extras = {};
  std::ptrdiff_t mask_stride = 0;
};

/// Exact entries of C from those before, and (k + 2) ε Σ|terms| for each: the classical bound of a sum of k
/// rounded products in any order (Higham 2002, section 3.1), with the start as one more term. The sums here
/// are in double, hence the factor 2 for T = double.
template <class T>
void loop(const Form<T>& form, const View<const T>& before, std::vector<double>& exact,
          std::vector<double>& bound) {
  for (int i = 0; i < before.rows; ++i) {
    for (int j = 0; j < before.columns; ++j) {
      double sum = 0, magnitude = 0;
      if (form.extras.accumulate) sum = static_cast<double>(before(i, j));
      if (form.extras.bias) sum = static_cast<double>(form.extras.bias[j]);
      magnitude = std::abs(sum);
      for (int p = 0; p < form.a.columns; ++p) {
        const double term = static_cast<double>(form.a(i, p)) * static_cast<double>(form.b(p, j));
        sum += term;
        magnitude += std::abs(term);
      }
      if (form.extras.relu) sum = std::max(sum, 0.0);
      const bool masked = form.extras.relu_mask && form.extras.relu_mask[i * form.mask_stride + j] <= 0;
      exact.push_back(masked ? 0.0 : sum);
      bound.push_back(masked ? 0.0 : 2 * (form.a.columns + 2) * kEpsilon<T> * magnitude);
    }
  }
}

/// The entries of C after the product; NaN at the end where it wrote outside of C's rows and their padding.
template <class T>
AlignedVector<T> product_of(const Form<T>& form, const Held<T>& c) {
  Held<T> result = c;
  multiply(form.a, form.b, result.view(), form.extras);
  AlignedVector<T> entries_of_c;
  for (int i = 0; i < c.rows; ++i) {
    entries_of_c.insert(entries_of_c.end(), result.view().row(i), result.view().row(i) + c.columns);
  }
  const std::ptrdiff_t width = padded(c.columns);
  for (std::size_t place = 0; place < result.values.size(); ++place) {
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(place) / c.stride - 1;
    const bool inside = row >= 0 && row < c.rows && static_cast<std::ptrdiff_t>(place) % c.stride < width;
    if (!inside && result.values[place] != static_cast<T>(kUntouched)) {
      entries_of_c.back() = std::numeric_limits<T>::quiet_NaN();
    }
  }
  return entries_of_c;
}

/// Every way to hold A (m, k) and B (k, n), and every extra.
template <class T>
void check_forms(Engine& engine, int m, int n, int k) {
  constexpr int kGap = 3;
  Held<T> a = held<T>(engine, m, k), a_apart = held<T>(engine, m, k, kGap);
  Held<T> a_turned = held<T>(engine, k, m), a_wide = held<T>(engine, m, k + 2 * kGap);
  Held<T> b = held_padded<T>(engine, k, n), b_apart = held_padded<T>(engine, k, n, kGap);
  Held<T> b_turned = held<T>(engine, n, k), b_turned_padded = held_padded<T>(engine, n, k);
  Held<T> b_tall = held_padded<T>(engine, k + kGap, n);
  Held<T> c = held_padded<T>(engine, m, n, kPadding), mask = held_padded<T>(engine, m, n, kPadding);
  for (int i = 0; i < m; ++i) mask.view()(i, 0) = 0;  // ≤ 0 is masked, zero included
  Held<T> bias = held_padded<T>(engine, 1, n);

  const std::pair<std::string, View<const T>> lefts[] = {
      {"A", a.view()},
      {"A, rows apart", a_apart.view()},
      {"A, turned", a_turned.view().transposed()},
      {"A, columns of a wider", a_wide.view().middle_columns(kGap, k)}};
  const std::pair<std::string, View<const T>> rights[] = {
      {"B", b.view()},
      {"B, rows apart", b_apart.view()},
      {"B, turned", b_turned.view().transposed()},
      {"B, padded and turned", b_turned_padded.view().transposed()},
      {"B, rows of a taller", b_tall.view().middle_rows(kGap, k)}};
  const T* const of_bias = bias.view().data;
  const T* const of_mask = mask.view().data;
  const std::pair<std::string, Extras<T>> extras[] = {
      {"", {}},
      {"accumulate", {.accumulate = true}},
      {"bias", {.bias = of_bias}},
      {"relu", {.relu = true}},
      {"bias, relu", {.bias = of_bias, .relu = true}},
      {"mask", {.relu_mask = of_mask}},
      {"accumulate, relu", {.accumulate = true, .relu = true}},
      {"accumulate, mask", {.accumulate = true, .relu_mask = of_mask}},
      {"bias, mask", {.bias = of_bias, .relu_mask = of_mask}},
  };
  for (const auto& [left, a_view] : lefts) {
    for (const auto& [right, b_view] : rights) {
      for (const auto& [extra, chosen] : extras) {
        const Form<T> form{left + "; " + right + "; " + extra, a_view, b_view, chosen, c.stride};
        std::vector<double> exact, bound;
        loop<T>(form, c.view(), exact, bound);
        check_levels<T>(
            form.name, [&] { return product_of(form, c); }, exact, bound);
      }
    }
  }
}

TEST_CASE_TEMPLATE("products of views agree with the plain loop, in every form and at every vector level", T,
                   float, double) {
  Engine engine(1);
  for (const int m : {1, 5}) {
    for (const int n : {1, 3, 16, 21}) {
      for (const int k : {1, 2, 17}) {
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(k);
        check_forms<T>(engine, m, n, k);
      }
    }
  }
}

TEST_CASE("a product worked out by hand") {
  // (1 2; 3 4) (5 6; 7 8) = (19 22; 43 50)
  const AlignedVector<double> x = {1, 2, 3, 4};
  AlignedVector<double> weights(2 * kPadding), scores(2 * kPadding);
  const View<double> w = padded_rows(weights.data(), 2, 2), y = padded_rows(scores.data(), 2, 2);
  w(0, 0) = 5;
  w(0, 1) = 6;
  w(1, 0) = 7;
  w(1, 1) = 8;
  multiply(rows_of(x.data(), 2, 2), w, y);
  CHECK(y(0, 0) == 19);
  CHECK(y(0, 1) == 22);
  CHECK(y(1, 0) == 43);
  CHECK(y(1, 1) == 50);
  multiply(rows_of(x.data(), 2, 2).transposed(), w.transposed(), y, {.accumulate = true});
  CHECK(y(0, 0) == 19 + 1 * 5 + 3 * 6);
  CHECK(y(0, 1) == 22 + 1 * 7 + 3 * 8);
  CHECK(y(1, 0) == 43 + 2 * 5 + 4 * 6);
  CHECK(y(1, 1) == 50 + 2 * 7 + 4 * 8);
}

TEST_CASE("the bound on products of views notices a wrong entry and a write beside C") {
  Engine engine(2);
  Held<double> a = held<double>(engine, 4, 9), b = held_padded<double>(engine, 9, 5);
  Held<double> c = held_padded<double>(engine, 4, 5, 1);
  const Form<double> form{"", a.view(), b.view()};
  std::vector<double> exact, bound;
  loop<double>(form, c.view(), exact, bound);
  AlignedVector<double> values = product_of(form, c);
  CHECK(worst_error(values, exact, bound) <= 1.0);
  values[3] += 1e-12;
  CHECK(worst_error(values, exact, bound) > 1.0);
  c.values.back() = 0;
  CHECK(std::isnan(product_of(form, c).back()));
}

}  // namespace
}  // namespace moelab::kernels::multiply_test
