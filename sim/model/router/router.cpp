#include "sim/model/router/router.h"

#include <cmath>
#include <string>

#include "sim/base/error.h"
#include "sim/model/parameters.h"

// To add a router, write a new file that defines <name>_router() and add a line here.
// clang-format off
#define MOELAB_ROUTERS(entry) \
  entry(linear)               \
  entry(mlp)                  \
  entry(cnn)                  \
  entry(adaptive_clustering)  \
  entry(stable)               \
  entry(cosine)               \
  entry(perturbed_cosine)     \
  entry(similarity_aware)     \
  entry(attention_aware)      \
  entry(sequence_mean)        \
  entry(squared_distance)     \
  entry(nearest_centroid)     \
  entry(two_level)            \
  entry(formula)              \
  entry(hash)                 \
  entry(random)               \
  entry(oracle)
// clang-format on

// To add a start law, write a new file that defines <name>_start_law() and add a line here.
// clang-format off
#define MOELAB_START_LAWS(entry) \
  entry(normal)                  \
  entry(train_samples)
// clang-format on

namespace moelab {

#define MOELAB_DECLARE(name) RouterKind name##_router();
MOELAB_ROUTERS(MOELAB_DECLARE)
#undef MOELAB_DECLARE

const std::vector<RouterKind>& RouterAxis::table() {
#define MOELAB_ENTRY(name) name##_router(),
  static const std::vector<RouterKind> own = {MOELAB_ROUTERS(MOELAB_ENTRY)};
#undef MOELAB_ENTRY
  return Extended<RouterAxis>::table_or(own);
}

bool is_trainable(const RouterOptions& options) {
  return options.entry().trainable(options.options());
}

#define MOELAB_DECLARE(name) StartLaw name##_start_law();
MOELAB_START_LAWS(MOELAB_DECLARE)
#undef MOELAB_DECLARE

const std::vector<StartLaw>& start_laws() {
#define MOELAB_ENTRY(name) name##_start_law(),
  static const std::vector<StartLaw> table = {MOELAB_START_LAWS(MOELAB_ENTRY)};
#undef MOELAB_ENTRY
  return table;
}

std::vector<std::string> start_law_names() {
  return names_of(start_laws());
}

const StartLaw& start_law(const std::string& name) {
  for (const StartLaw& law : start_laws()) {
    if (law.name == name) return law;
  }
  throw InvalidOption("model.router.init", unknown_name("init", name, start_law_names()));
}

namespace {

/// Start law "normal": w_e ~ N(0, init_scale² I / d), with one stream per row.
void fill_normal(const Start& start, int expert, double init_scale, std::span<double> row) {
  Engine engine = start.seeds.stream(Purpose::router_init, static_cast<std::uint64_t>(expert));
  const double deviation = init_scale / std::sqrt(static_cast<double>(row.size()));
  for (double& entry : row) entry = deviation * draw_normal(engine);
}

}  // namespace

StartLaw normal_start_law() {
  return {"normal", "N(0, init_scale² I / d)", false, fill_normal};
}

namespace {

/// Start law at training rows: w_e ← init_scale x_e, x_e row e of the training set (Dikkala et al. 2023,
/// Theorem 2), for the router of the first layer. Without such rows, for example in later layers, the law is
/// `normal`.
void fill_train_samples(const Start& start, int expert, double init_scale, std::span<double> row) {
  if (!start.train_rows) return start_law("normal").fill(start, expert, init_scale, row);
  const Matrix& rows = *start.train_rows;
  MOELAB_EXPECT(expert < rows.rows() && static_cast<Eigen::Index>(row.size()) <= rows.cols());
  for (std::size_t j = 0; j < row.size(); ++j) {
    row[j] = init_scale * rows(expert, static_cast<Eigen::Index>(j));
  }
}

}  // namespace

StartLaw train_samples_start_law() {
  return {"train_samples", "init_scale times the first E training samples", true, fill_train_samples};
}

}  // namespace moelab
