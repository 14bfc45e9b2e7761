#include <fmt/format.h>

#include "app/commands/documents.h"
#include "app/report/markdown.h"

namespace moelab {

std::string theorem_catalogue(const std::vector<const Check*>& checks,
                              const std::vector<CheckFinding>& findings) {
  std::string text =
      "# Theorem checks\n\n"
      "Made by `moelab docs` from the table of checks. `moelab check ID` runs one, or all whose names begin "
      "so: it prints what is predicted and measured, with an error bound, and its exit status is 1 when a "
      "verdict is not the expected one. A statement that is wrong as printed stands here twice, `as_printed` "
      "(expected to fail) and `corrected`.\n";
  std::string source;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const Check& check = *checks[i];
    // Sources are "Dikkala et al. 2023, Lemma 1": the work, then the place in it.
    const std::string work = check.source.substr(0, check.source.find(','));
    if (work != source) text += fmt::format("\n## {}\n", work);
    source = work;
    text += fmt::format("\n### {}\n\n{}.\n\n> {}\n\nExpected: {}.\n", check.id, check.source,
                        markdown_text(check.statement), to_string(check.expected));
    if (!findings[i].hypotheses.empty()) text += "\nHypotheses:\n\n";
    for (const Hypothesis& hypothesis : findings[i].hypotheses)
      text += fmt::format("- {}{}\n", markdown_text(hypothesis.text), hypothesis.met ? "" : " (not met)");
  }
  return text;
}

}  // namespace moelab
