#pragma once

/// Test data of its own for a trained model.

#include <optional>
#include <string>

#include "app/run/measurement.h"

namespace moelab {

/// The cell's own test data, or those of one of "evaluations".
template <class Real>
class Evaluation {
 public:
  /// `prefix` is empty for the cell's own. `train` as for Measurement. Everything must outlive the object.
  Evaluation(std::string prefix, const DataOptions& data, const CellOptions& cell, const Problem& problem,
             const Dataset* train);

  /// Adds the metrics of this moment, each name after the prefix and a dot; see Measurement.
  void measure(const Moment<Real>& moment, MetricValues& values);
  /// What was not finite then; empty where all was.
  const std::string& not_finite() const { return measurement_->not_finite(); }

  /// The arrays that "save" asks for, of the moment that was measured last. Throws NotFinite.
  std::vector<SavedArray> arrays(const Moment<Real>& moment) const { return measurement_->arrays(moment); }

 private:
  void make_measurement() { measurement_.emplace(cell_, problem_, train_, looked_at_); }
  /// An attack is one on the model as it is.
  void attack(const Moment<Real>& moment);

  std::string prefix_;
  ContaminationOptions contamination_;
  const CellOptions& cell_;
  const Problem& problem_;
  const Dataset* train_;
  Dataset test_;
  Dataset looked_at_;  ///< `test_` contaminated
  std::optional<Measurement<Real>> measurement_;
};

}  // namespace moelab
