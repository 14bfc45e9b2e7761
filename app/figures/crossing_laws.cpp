#include "app/figures/crossing_laws.h"

#include <fmt/format.h>

#include "analysis/stats/power_law.h"

namespace moelab {
namespace {

constexpr const char* kNotPositive = "no law of values that are not positive";

/// The values of a text at the crossings (n).
Vector values_at(const std::string& text, const std::vector<const CrossingColumn*>& found,
                 const CrossingSearch& search, const ResultTable& table) {
  const PlottedValue value(text, table);
  Vector values(static_cast<Eigen::Index>(found.size()));
  for (std::size_t i = 0; i < found.size(); ++i)
    values(static_cast<Eigen::Index>(i)) =
        value_of_column(value, *found[i], search, *found[i]->estimate).value_or(0);
  return values;
}

std::string power_law_text(const std::vector<std::string>& paths,
                           const std::vector<const CrossingColumn*>& found, const CrossingSearch& search,
                           const ResultTable& table, const DisplayNames& names) {
  const Vector y = values_at(search.path, found, search, table);
  Matrix x(y.size(), static_cast<Eigen::Index>(paths.size()));
  for (std::size_t j = 0; j < paths.size(); ++j)
    x.col(static_cast<Eigen::Index>(j)) = values_at(paths[j], found, search, table);
  if ((x.array() <= 0).any() || (y.array() <= 0).any()) return kNotPositive;
  const std::optional<PowerLaw> law = fit_power_law(x, y);
  if (!law) return fmt::format("too few crossings ({}) for a power law", found.size());
  std::vector<std::string> powers;
  for (std::size_t j = 0; j < paths.size(); ++j)
    powers.push_back(fmt::format("{}^{:.2f} [{:.2f}, {:.2f}]", names.axis(paths[j]), law->exponents[j],
                                 law->intervals[j].low, law->intervals[j].high));
  return fmt::format(
      "{} = {:.3g} · {} by least squares of logarithms over {} crossings, standard deviation {:.2f}",
      names.axis(search.path), law->constant, fmt::join(powers, " · "), found.size(), law->deviation);
}

std::string laws_text(const std::vector<std::string>& laws, const std::vector<const CrossingColumn*>& found,
                      const CrossingSearch& search, const ResultTable& table, const DisplayNames& names) {
  const Vector y = values_at(search.path, found, search, table);
  std::vector<std::string> parts;
  for (const std::string& law : laws) {
    const Vector x = values_at(law, found, search, table);
    if ((x.array() <= 0).any() || (y.array() <= 0).any()) return kNotPositive;
    const std::optional<Proportion> fit = fit_proportion(x, y);
    if (!fit) return fmt::format("too few crossings ({}) for a law", found.size());
    parts.push_back(fmt::format("{:.2f} about {:.3g} · {}", fit->deviation, fit->constant, names.axis(law)));
  }
  return fmt::format("standard deviation of its logarithm {}", fmt::join(parts, ", "));
}

}  // namespace

std::optional<double> value_of_column(const PlottedValue& text, const CrossingColumn& column,
                                      const CrossingSearch& search, double crossing) {
  ResultRow row;
  row.point = column.at;
  row.point.emplace_back(search.path, SweepValue(crossing));
  const std::optional<Interval> value = text.of(row, {});
  return value ? std::optional(value->low) : std::nullopt;
}

std::string crossing_laws(const Json& figure, const std::vector<const CrossingColumn*>& found,
                          const CrossingSearch& search, const ResultTable& table, const DisplayNames& names) {
  std::vector<std::string> sentences;
  if (figure.contains("power_law"))
    sentences.push_back(power_law_text(figure.at("power_law"), found, search, table, names));
  if (figure.contains("laws")) sentences.push_back(laws_text(figure.at("laws"), found, search, table, names));
  return fmt::format("{}", fmt::join(sentences, "; "));
}

}  // namespace moelab
