#include "app/run/embeddings.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "analysis/geometry/principal_components.h"
#include "app/run/saved_arrays.h"
#include "plots/style.h"

namespace moelab {
namespace {

constexpr Eigen::Index kDrawnRows = 1000;

/// The experts' places by number of rows, the lower number first where they are equal.
std::vector<int> ranks(const std::vector<int>& rows_of_expert) {
  std::vector<std::size_t> order(rows_of_expert.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rows_of_expert[a] > rows_of_expert[b]; });
  std::vector<int> rank(order.size());
  for (std::size_t place = 0; place < order.size(); ++place) rank[order[place]] = static_cast<int>(place);
  return rank;
}

}  // namespace

Embedding build_embedding(const Json& description, const RunResults& results,
                          const std::filesystem::path& directory) {
  const Json where = description.value("where", Json::object());
  const std::vector<std::string> arms = description.contains("arms")
                                            ? description.at("arms").get<std::vector<std::string>>()
                                            : results.table.arms;
  Embedding embedding;
  embedding.id = description.at("id");
  embedding.title = description.value("title", results.plan.value("title", ""));
  embedding.label = "expert";
  std::size_t most_points = 0;
  double first = 0, second = 0;  // shares of variance in the plane, of the panel where they are least
  for (const std::string& arm : arms) {
    const ResultRow* const row = shown_row(results.table, arm, where);
    if (!row) continue;
    const Matrix r = read_rows(saved_file(results, directory, row->cell, "test_probs"));
    const PrincipalComponents plane =
        principal_components(read_rows(saved_file(results, directory, row->cell, "test_inputs")), 2);
    std::vector<int> expert(static_cast<std::size_t>(r.rows())), load(static_cast<std::size_t>(r.cols()), 0);
    for (Eigen::Index i = 0; i < r.rows(); ++i) {
      Eigen::Index best = 0;
      r.row(i).maxCoeff(&best);
      expert[static_cast<std::size_t>(i)] = static_cast<int>(best);
      ++load[static_cast<std::size_t>(best)];
    }
    const std::vector<int> rank = ranks(load);
    EmbeddingPanel panel{arm, {}};
    for (Eigen::Index i = 0; i < std::min(kDrawnRows, r.rows()); ++i) {
      const int chosen = expert[static_cast<std::size_t>(i)], place = rank[static_cast<std::size_t>(chosen)];
      panel.points.push_back({plane.coordinates(i, 0), plane.coordinates(i, 1), chosen,
                              place < static_cast<int>(kColours.size()) ? place : -1});
    }
    if (embedding.panels.empty() || plane.variance_share.sum() < first + second) {
      first = plane.variance_share[0];
      second = plane.variance_share[1];
    }
    most_points = std::max(most_points, panel.points.size());
    embedding.panels.push_back(std::move(panel));
  }
  if (const std::string source = results.plan.value("source", ""); !source.empty())
    embedding.caption = source + ". ";
  embedding.caption += fmt::format(
      "{} test rows of the first seed in the plane of their first two principal components ({:.0f} % and "
      "{:.0f} "
      "% of the variance), coloured by likeliest expert: in each panel the {} with most rows, grey the "
      "others.",
      most_points, 100 * first, 100 * second, kColours.size());
  if (embedding.panels.size() < arms.size()) {
    embedding.caption +=
        fmt::format(" Panels left out, no cell done: {}.", arms.size() - embedding.panels.size());
  }
  embedding.caption += builds_footnote(results);
  return embedding;
}

}  // namespace moelab
