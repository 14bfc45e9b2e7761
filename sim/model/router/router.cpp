#include "sim/model/router/router.h"

#include <cmath>
#include <string>

#include "sim/base/error.h"
#include "sim/model/parameters.h"

// To add a router, write a new file that defines <name>_router() and add a line here.
// clang-format off
#define MOELAB_ROUTERS(entry)       \
  entry(linear_router)              \
  entry(mlp_router)                 \
  entry(cnn_router)                 \
  entry(adaptive_clustering_router) \
  entry(stable_router)              \
  entry(cosine_router)              \
  entry(perturbed_cosine_router)    \
  entry(similarity_aware_router)    \
  entry(attention_aware_router)     \
  entry(sequence_mean_router)       \
  entry(squared_distance_router)    \
  entry(nearest_centroid_router)    \
  entry(two_level_router)           \
  entry(formula_router)             \
  entry(hash_router)                \
  entry(random_router)              \
  entry(oracle_router)
// clang-format on

// To add a start law, write a new file that defines <name>_start_law() and add a line here.
// clang-format off
#define MOELAB_START_LAWS(entry) \
  entry(normal)                  \
  entry(train_samples)
// clang-format on

namespace moelab {

MOELAB_TABLE(RouterAxis, MOELAB_ROUTERS)

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

StartLaw normal_start_law() {
  return {"normal", "N(0, init_scale² I / d)", false, fill_normal};
}

StartLaw train_samples_start_law() {
  return {"train_samples", "init_scale times the first E training samples", true, fill_train_samples};
}

}  // namespace moelab
