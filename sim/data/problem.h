#pragma once

/// The axis of data: a generator draws a Problem (means, subspaces, teachers); a Problem draws Datasets.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/random.h"
#include "sim/base/schema.h"
#include "sim/base/types.h"
#include "sim/data/layout.h"
#include "sim/data/mixing_measure.h"

namespace moelab {

struct Dataset {
  Matrix x;                  ///< (n, d) inputs, or (n, s·d): the tokens of a sequence one after another
  Matrix y;                  ///< (n, o) targets, or (n, s·o)
  std::vector<int> cluster;  ///< (n · labels) latent components of each sample
};

/// Samples first … first + count − 1 of the set that `purpose` names (train_data, test_data, population).
struct SampleRange {
  Purpose purpose = Purpose::train_data;
  int first = 0;
  int count = 0;
};

/// One drawn world: fixed parameters from which any number of samples come.
class Problem {
 public:
  virtual ~Problem() = default;
  virtual Layout layout() const = 0;
  virtual int clusters() const = 0;  ///< k
  /// The samples of the range, from an engine that has drawn those before it: sets drawn in pieces equal sets
  /// drawn at once, and the first m of n samples do not depend on n.
  virtual Dataset draw(Engine& engine, const SampleRange& range) const = 0;
  /// Independent uniform variables from which one sample can be computed; 0 where the generator offers no
  /// such map.
  virtual int uniforms_per_sample() const { return 0; }
  /// Samples of the same law as functions of uniforms in (0, 1), (n, uniforms_per_sample()): what turns a
  /// quasi-random rule for the unit cube into one for the population.
  virtual Dataset map_uniforms(const Matrix& /*uniforms*/) const { return {}; }
  /// An orthonormal basis (d, s) of the subspace on which the target depends; empty when unknown.
  virtual Matrix signal_basis() const { return {}; }
  /// E[y | x], the predictor of least squared error, (n, o); none where it has no closed form.
  virtual std::optional<Matrix> bayes_prediction(const Matrix& /*x*/) const { return std::nullopt; }
  /// The mixing measure of which E[y | x] is the regression function; null where there is none.
  virtual const MixingMeasure* true_measure() const { return nullptr; }
};

/// The shape of a scenario's `data`: a variant on "generator".
const Shape& data_shape();

/// What a resolved `data` object has to satisfy beyond its fields one by one (a rank below the width, files
/// that are whole), before anything is drawn. Throws UserError at "data.<field>".
void check_data(const Json& data);

/// The fields of a resolved `data` object that name files from which samples are read; none where all are
/// drawn.
std::vector<std::string> file_fields(const Json& data);

/// The generators whose rows lead with an image (Layout::image).
std::vector<std::string> image_generators();

/// The kinds of data.target whose targets are classes, of the generator of a resolved `data` object.
std::vector<std::string> class_target_kinds(const Json& data);

/// Draws the problem that a resolved `data` object describes. Throws UserError when it cannot be drawn
/// (a c-separation that is not reached).
std::unique_ptr<Problem> draw_problem(const Json& data, const Seeds& seeds);

/// The first `count` samples of a set.
Dataset draw_set(const Problem& problem, const Seeds& seeds, Purpose purpose, int count);

}  // namespace moelab
