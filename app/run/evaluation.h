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
  /// `name` is empty for the cell's own. `train` as for Measurement. Everything must outlive the object.
  Evaluation(std::string name, const DataOptions& data, const CellOptions& cell, const Problem& problem,
             const Dataset* train);

  /// Adds the metrics of this moment by the texts of their keys; see Measurement.
  void measure(const Moment<Real>& moment, MetricValues& values);
  /// Adds what only the whole training tells of each record, after the last.
  void complete(std::vector<TraceEntry>& trace);
  /// What was not finite then; empty where all was.
  const std::string& not_finite() const { return measurement_->not_finite(); }

  /// The arrays that "save" asks for, of the moment that was measured last. Throws NotFinite.
  std::vector<SavedArray> arrays(const Moment<Real>& moment) const { return measurement_->arrays(moment); }

 private:
  void make_measurement() { measurement_.emplace(cell_, data_, problem_, train_, looked_at_); }
  bool is_attack() const { return data_.contamination.entry().is_attack(); }
  void add(const MeasuredValues& measured, MetricValues& values) const;
  /// An attack is one on the model as it is.
  void attack(const Moment<Real>& moment);

  std::string name_;
  const DataOptions& data_;
  const CellOptions& cell_;
  const Problem& problem_;
  const Dataset* train_;
  Dataset test_;
  Dataset looked_at_;  ///< `test_` contaminated
  std::optional<Measurement<Real>> measurement_;
};

}  // namespace moelab
