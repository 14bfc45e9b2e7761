#pragma once

/// The inner loops over the scores of recorded routers. They are compiled like the loops of kernels.h. Rows
/// have `columns` entries and no padding. Scores are finite or −∞. Each row has a finite score.

#include <cstddef>

namespace moelab::kernels {

/// What a row of values looks like. If a value is NaN or infinite, only is_finite has a meaning.
struct RowSummary {
  double least = 0, largest = 0, sum = 0;
  int above_zero = 0;  ///< values above 0
  bool is_finite = true;
};
void summarize_rows(const double* values, int rows, int columns, RowSummary* summaries);

/// probabilities[i] = softmax(scores[i]) and entropies[i] = its entropy in nats: ln Σ_e exp(s_e − m) −
/// Σ_e r_e (s_e − m) with the largest score m. A score of −∞ has the probability 0.
void softmax_entropies(const double* scores, int rows, int columns, double* probabilities, double* entropies);

/// The k largest values of each row in descending order, found (rows, k), and the one after them, next
/// (rows). Among equal values the lower index comes first. −1 stands where only −∞ is left.
void find_largest_of_rows(const double* values, int rows, int columns, int k, int* found, int* next);

}  // namespace moelab::kernels
