#include "plots/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "analysis/stats/claims.h"
#include "plots/painters/page_files.h"
#include "plots/texts.h"

namespace moelab {
namespace {

/// Text as the data of an address.
std::string percent_encoded(const std::string& text) {
  std::string encoded;
  for (const char letter : text) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
        std::string(" -_.,:;=/()*").find(letter) != std::string::npos) {
      encoded += letter;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(letter));
    }
  }
  return encoded;
}

/// A link that saves a table which the page itself holds.
std::string data_link(const std::string& name, const std::string& text, const std::string& csv) {
  return fmt::format("<a download=\"{}.csv\" href=\"data:text/csv;charset=utf-8,{}\">{}</a>", html_text(name),
                     percent_encoded(csv), html_text(text));
}

/// A text of a figure with its math.
std::string shown_text(const std::string& text) {
  return html_text(fixed_spaces(math_text(text)));
}

std::string verdict_html(const std::string& verdict) {
  return fmt::format("<span class=\"verdict {}\">{}</span>", html_text(verdict.substr(0, verdict.find(' '))),
                     html_text(verdict));
}

struct ExplainedWord {
  const char* word;
  const char* meaning;
};

constexpr std::array kVerdictWords = {
    ExplainedWord{"reproduced",
                  "The 95 % interval of the paired difference lies on the claimed side at every "
                  "point that is judged."},
    ExplainedWord{"refuted",
                  "Clearly on the other side at some point: so does an interval that is widened for "
                  "the number of points (Bonferroni)."},
    ExplainedWord{"equivalent", "The interval lies within the smallest effect that the claim says matters."},
    ExplainedWord{"inconclusive", "The interval holds both sides, or pairs are too few or incomplete."},
    ExplainedWord{"excluded", "The paper's own numbers rule out this reading of its sentence."},
    ExplainedWord{"uninformative",
                  "Both sides are no better than the mean of the labels, so the point decides "
                  "nothing."}};
constexpr ExplainedWord kLabelVariance = {
    "label variance",
    "Of a loss divided by the label variance, 0 is perfect and 1 no better than the "
    "mean of the labels."};

/// A word that opens.
std::string word_html(const ExplainedWord& word, const std::string& css_class) {
  return fmt::format("<details class=\"word {}\"><summary>{}</summary><span>{}</span></details>", css_class,
                     word.word, html_text(word.meaning));
}

std::string opening_verdict(const std::string& verdict) {
  for (const ExplainedWord& word : kVerdictWords)
    if (verdict == word.word) return word_html(word, "verdict " + verdict);
  return verdict_html(verdict);
}

std::string claim_html(const ReportedClaim& claim) {
  std::string html = fmt::format(
      "<div class=\"claim\"><div>{} <b>{}</b>{}</div><p>{}{}</p>", opening_verdict(claim.verdict),
      html_text(claim.id),
      claim.origin.empty() ? "" : fmt::format(" <span class=\"soft\">{}</span>", html_text(claim.origin)),
      html_text(claim.text),
      claim.source.empty() ? "" : " <span class=\"soft\">(" + html_text(claim.source) + ")</span>");
  if (!claim.reported.empty())
    html += fmt::format("<p class=\"soft\">the paper: {}</p>", html_text(claim.reported));
  if (!claim.statement.empty())
    html += fmt::format("<p class=\"soft\">judged: {}</p>", html_text(claim.statement));
  if (claim.seeds_to_decide)
    html += fmt::format("<p class=\"soft\">about {} seeds would decide</p>", *claim.seeds_to_decide);
  Table table = {{"at", "left", "right", "difference or ratio, 95 %", "verdict"}};
  for (const ReportedPoint& point : claim.points) {
    table.rows.push_back({point.at, point.left, point.right, point.estimate,
                          point.verdict + (point.note.empty() ? "" : ": " + point.note)});
  }
  if (!claim.terms.empty()) html += html_table(claim.terms);
  html += html_table(table, "points");
  return html + "</div>\n";
}

/// Every claim of every run; verdicts come first, where a narrow page shows them.
std::string claims_html(const std::vector<ReportedRun>& runs) {
  std::string html =
      "<div "
      "class=\"scroll\"><table><tr><th>verdict</th><th>claim</th><th>whose</th><th>run</th><th>source</th>"
      "</tr>";
  for (std::size_t place = 0; place < runs.size(); ++place) {
    for (const ReportedClaim& claim : runs[place].claims) {
      html += fmt::format(
          "<tr><td>{}</td><td>{}</td><td>{}</td><td><a href=\"#run{}\">{}</a></td><td>{}</td></tr>",
          verdict_html(claim.verdict), html_text(claim.id), html_text(claim.origin), place,
          html_text(runs[place].name), html_text(claim.source));
    }
  }
  return html + "</table></div>\n";
}

/// What was run, where it is from, how long it took, how it came out.
std::string run_head_html(const ReportedRun& run) {
  std::vector<std::string> parts = {run.name};
  if (!run.source.empty()) parts.push_back(run.source);
  parts.push_back(run.state);
  if (!run.builds_note.empty()) parts.push_back(run.builds_note);
  parts.push_back(fmt::format("{:.0f} s of computation", run.seconds));
  if (!run.claims.empty()) parts.push_back("claims: " + verdict_counts(run.claims));
  std::string html = fmt::format("<p class=\"soft\">{}<span class=\"data\"> · {}</span></p>\n",
                                 html_text(fmt::format("{}", fmt::join(parts, " · "))),
                                 data_link(run.name, "every cell as CSV", run.cells_csv));
  if (!run.command.empty()) html += "<pre>" + html_text(run.command) + "</pre>\n";
  return html;
}

/// A long table is folded.
std::string summary_html(const ReportedRun& run) {
  constexpr std::size_t kRows = 12;
  if (run.summary.empty()) return "";
  const bool names_variance = run.summary.caption.find(kLabelVariance.word) != std::string::npos;
  return fmt::format("<details{}><summary><b>{}</b></summary>{}{}</details>\n",
                     run.summary.rows.size() <= kRows ? " open" : "", html_text(run.summary.caption),
                     names_variance ? word_html(kLabelVariance, "soft") : "", html_table(run.summary));
}

std::string run_html(const ReportedRun& run, std::size_t place, bool is_alone) {
  std::string html = "<section>";
  if (!is_alone) {
    html +=
        fmt::format("<h2 id=\"run{}\">{}</h2>", place, html_text(run.title.empty() ? run.name : run.title));
  }
  // The answer first.
  if (run.forest) html += "<div class=\"answer\">" + figure_html(*run.forest) + "</div>\n";
  html += run_head_html(run) + summary_html(run);
  std::vector<Table> tables = run.rates;
  if (!run.crossings.empty()) tables.insert(tables.begin(), run.crossings);
  for (const Table& table : tables)
    html += fmt::format("<details open><summary><b>{}</b></summary>{}</details>\n", html_text(table.caption),
                        html_table(table));
  if (!run.figures.empty()) {
    html += "<h3>Figures</h3><div class=\"figures\">";
    for (const ReportedFigure& figure : run.figures) html += figure_html(figure);
    html += "</div>";
  }
  if (!run.claims.empty()) html += "<h3>Claims</h3>";
  for (const ReportedClaim& claim : run.claims) html += claim_html(claim);
  if (!run.unfinished.empty()) html += "<h3>Cells that diverged or failed</h3>" + html_table(run.unfinished);
  if (!run.notes.empty()) {
    html += "<h3>How the hyper-parameters were chosen</h3><ul>";
    for (const std::string& note : run.notes) html += "<li>" + html_text(note) + "</li>";
    html += "</ul>";
  }
  html += "<details><summary>Provenance</summary>";
  Table table = {{"what", ""}};
  for (const auto& [what, value] : run.provenance) table.rows.push_back({what, value});
  html += html_table(table) + "</details><details><summary>Scenario</summary><pre>" +
          html_text(run.scenario) + "</pre></details></section>\n";
  return html;
}

std::string checks_html(const std::vector<ReportedCheck>& checks) {
  Table table = {{"check", "statement", "predicted", "measured", "± at most", "verdict"}};
  for (const ReportedCheck& check : checks) {
    table.rows.push_back({check.id, check.statement, check.predicted, check.measured, check.error_bound,
                          check.verdict + (check.expected ? "" : ", not as expected")});
  }
  return "<section><h2 id=\"checks\">Theorem checks</h2>" + html_table(table, "points checks") +
         "</section>\n";
}

}  // namespace

std::string figure_html(const ReportedFigure& figure) {
  const Drawing& drawing = figure.drawing;
  if (!figure.failure.empty())
    return fmt::format("<figure><p class=\"figure-title\">{}</p><p class=\"soft\">{}</p></figure>\n",
                       shown_text(drawing.title), html_text(figure.failure));
  std::string shown = drawing.html;
  if (shown.empty()) {
    shown = figure.svg.empty() ? "<p class=\"soft\">Not drawn; moelab plot draws it.</p>"
                               : fmt::format("<img alt=\"{}\" src=\"data:image/svg+xml,{}\">",
                                             html_text(drawing.title), percent_encoded(figure.svg));
  }
  // A picture has its title and caption in it.
  const bool is_picture = drawing.html.empty() && !figure.svg.empty();
  const std::string csv = drawing.note.empty() ? data_link(drawing.id, "CSV", drawing.csv) : "";
  return fmt::format(
      "<figure>{}{}<figcaption>{} <span class=\"data\">{}</span></figcaption></figure>\n",
      is_picture ? "" : fmt::format("<p class=\"figure-title\">{}</p>", shown_text(drawing.title)), shown,
      shown_text((is_picture ? "" : drawing.caption) + drawing.note), csv);
}

std::string page_html(const std::string& title, const std::string& program, const std::string& body) {
  return fmt::format(
             "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
             "<meta name=\"viewport\" content=\"width=device-width, "
             "initial-scale=1\"><title>{0}</title><style>{1}</style></head>\n"
             "<body><h1>{0}</h1><p class=\"soft\">{2}</p>\n",
             html_text(title), kPageStyle, html_text(program)) +
         body + "<script>" + kPageScript + "</script></body></html>\n";
}

std::string verdict_counts(const std::vector<ReportedClaim>& claims) {
  std::vector<std::string> verdicts;
  for (const ReportedClaim& claim : claims) verdicts.push_back(claim.verdict);
  return verdict_counts(verdicts);
}

std::string report_html(const Report& report) {
  std::string html;
  if (report.runs.size() > 1) {
    html += "<nav><ol>";
    for (std::size_t i = 0; i < report.runs.size(); ++i) {
      const ReportedRun& run = report.runs[i];
      html += fmt::format("<li><a href=\"#run{}\">{}</a></li>", i,
                          html_text(run.title.empty() ? run.name : run.title));
    }
    html += "</ol></nav>\n";
    std::vector<ReportedClaim> claims;
    for (const ReportedRun& run : report.runs)
      claims.insert(claims.end(), run.claims.begin(), run.claims.end());
    html += fmt::format("<details open><summary>Every claim: {}</summary>{}</details>\n",
                        verdict_counts(claims), claims_html(report.runs));
  }
  for (std::size_t i = 0; i < report.runs.size(); ++i)
    html += run_html(report.runs[i], i, report.runs.size() == 1);
  if (!report.checks.empty()) html += checks_html(report.checks);
  return page_html(report.title, report.program, html);
}

}  // namespace moelab
