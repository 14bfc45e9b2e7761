#include "app/run/problem_numbers.h"

#include <cmath>

#include "sim/data/dictionary.h"
#include "sim/data/gaussian_mixture.h"
#include "sim/data/image_clusters.h"
#include "sim/data/subspace_mixture.h"
#include "sim/data/synthetic_language.h"
#include "sim/data/token_topics.h"
#include "sim/data/tokenized_mixture.h"

namespace moelab {

double problem_numbers(const DataOptions& data, const Layout& layout) {
  const double outputs = layout.output_dim, width = layout.input_dim;
  if (const auto* const mixture = data.as<GaussianMixtureOptions>()) {
    const double dim = mixture->dim;
    const bool is_linear = mixture->target.as<gaussian_mixture::LinearTarget>() != nullptr;
    // Means, deviations, targets, the weights with their sums; a rotation with the factors that it is made
    // of.
    return clusters_of(*mixture) * (2 * dim + outputs * (is_linear ? dim : 1) + 2) +
           (mixture->rotate ? 3 * width * width : 0);
  }
  if (const auto* const subspaces = data.as<SubspaceMixtureOptions>())
    return subspaces->clusters * width * (subspaces->rank + outputs);
  if (const auto* const tokens = data.as<TokenizedMixtureOptions>())
    return tokens->clusters * width * (1 + outputs);
  if (const auto* const topics = data.as<TokenTopicsOptions>())
    return static_cast<double>(topics->topics) * topics->clusters_per_topic * width * (1 + outputs);
  if (const auto* const language = data.as<SyntheticLanguageOptions>())
    return language->domains * std::pow(language->vocabulary, language->order + 1);
  if (const auto* const atoms = data.as<DictionaryOptions>())
    return atoms->atoms * (width + outputs * (width + 1));
  if (const auto* const images = data.as<ImageClustersOptions>())
    return images->classes * (outputs * images->vector_dim + layout.image.size());
  return 0;
}

}  // namespace moelab
