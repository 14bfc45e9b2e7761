#pragma once

/// Builds the figures of tests.

#include <filesystem>
#include <variant>

#include "app/run/figures.h"
#include "app/scenario/schema.h"

namespace moelab {

/// Sets members of the head to these fields of a plan.json, for a table that is made by hand.
inline void set_head(RunResults& results, const Json& plan) {
  PlanHead head;
  head.title = plan.value("title", results.head.title);
  head.source = plan.value("source", results.head.source);
  head.document = plan.value("scenario", results.head.document);
  head.written_claims = plan.value("claims", results.head.written_claims);
  head.written_figures = plan.value("figures", results.head.written_figures);
  head.decided = results.head.decided;
  const Json sweep =
      head.document.is_object() ? head.document.value("sweep", Json::object()) : Json::object();
  for (const auto& [path, values] : sweep.items()) {
    if (path != "zip") head.sweep_paths.push_back(path);
    if (path == "zip")
      for (const auto& zipped : values.items()) head.sweep_paths.push_back(zipped.key());
  }
  head.read_document();
  results.head = head;
}

/// The figure of this description, whose kind builds a `Built`.
template <class Built>
Built built_figure(const Json& description, const RunResults& results,
                   const std::filesystem::path& directory = ".") {
  return std::get<Built>(
      build_figure(read_options<FigureOptions>(description), figure_source(results, directory)));
}

}  // namespace moelab
