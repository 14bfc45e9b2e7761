#include "plots/report.h"

#include <fmt/format.h>

#include <cctype>

#include "plots/report_page.h"
#include "sim/base/json.h"

namespace moelab {
namespace {

std::string escaped(const std::string& text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

/// JSON for a <script> element, which no "<" within can end.
std::string script_json(const Json& json) {
  std::string text;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

Json number(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

Json figure_json(const Figure& figure) {
  Json series = Json::array();
  for (const FigureSeries& line : figure.series) {
    Json points = Json::array();
    for (const FigurePoint& point : line.points) {
      Json seeds = Json::array();
      for (const std::optional<double>& seed : point.seeds) seeds.push_back(number(seed));
      points.push_back({{"x", point.x},
                        {"mean", number(point.mean)},
                        {"low", number(point.low)},
                        {"high", number(point.high)},
                        {"seeds", std::move(seeds)}});
    }
    series.push_back({{"name", line.name}, {"reference", line.reference}, {"points", std::move(points)}});
  }
  return {{"title", figure.title},      {"xLabel", figure.x_label}, {"yLabel", figure.y_label},
          {"xLog", figure.x_log},       {"yLog", figure.y_log},     {"xNames", figure.x_categories},
          {"series", std::move(series)}};
}

Json heat_map_json(const HeatMap& map) {
  Json panels = Json::array();
  for (const HeatMapPanel& panel : map.panels) {
    Json values = Json::array();
    for (const std::optional<double>& value : panel.values) values.push_back(number(value));
    panels.push_back({{"name", panel.name}, {"values", std::move(values)}});
  }
  return {{"title", map.title},    {"xLabel", map.x_label},      {"yLabel", map.y_label},
          {"xNames", map.x_names}, {"yNames", map.y_names},      {"low", map.low},
          {"high", map.high},      {"panels", std::move(panels)}};
}

std::string figure_html(const std::string& title, const std::string& caption, const Json& data) {
  return fmt::format(
      "<figure><p class=\"figure-title\">{}</p><script type=\"application/json\">{}</script>"
      "<figcaption>{}</figcaption></figure>\n",
      escaped(title), script_json(data), escaped(caption));
}

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

std::string picture_html(const ReportedPicture& picture) {
  const std::string image = picture.svg.empty()
                                ? "<p class=\"soft\">Not drawn; moelab plot draws it.</p>"
                                : fmt::format("<img alt=\"{}\" src=\"data:image/svg+xml,{}\">",
                                              escaped(picture.title), percent_encoded(picture.svg));
  return fmt::format("<figure><p class=\"figure-title\">{}</p>{}<figcaption>{}</figcaption></figure>\n",
                     escaped(picture.title), image, escaped(picture.caption));
}

std::string table_html(const ReportedTable& table) {
  std::string html = "<div class=\"scroll\"><table>";
  for (std::size_t row = 0; row < table.size(); ++row) {
    const char* const tag = row == 0 ? "th" : "td";
    html += "<tr>";
    for (const std::string& entry : table[row]) html += fmt::format("<{0}>{1}</{0}>", tag, escaped(entry));
    html += "</tr>";
  }
  return html + "</table></div>\n";
}

std::string verdict_html(const std::string& verdict) {
  return fmt::format("<span class=\"verdict {}\">{}</span>", escaped(verdict.substr(0, verdict.find(' '))),
                     escaped(verdict));
}

std::string claim_html(const ReportedClaim& claim) {
  std::string html =
      fmt::format("<div class=\"claim\"><p>{} <b>{}</b></p><p>{}{}</p>", verdict_html(claim.verdict),
                  escaped(claim.id), escaped(claim.text),
                  claim.source.empty() ? "" : " <span class=\"soft\">(" + escaped(claim.source) + ")</span>");
  if (!claim.reported.empty())
    html += fmt::format("<p class=\"soft\">the paper: {}</p>", escaped(claim.reported));
  ReportedTable table = {{"at", "left", "right", "difference or ratio, 95 %", "verdict"}};
  for (const ReportedPoint& point : claim.points) {
    table.push_back({point.at, point.left, point.right, point.estimate,
                     point.verdict + (point.note.empty() ? "" : ": " + point.note)});
  }
  return html + table_html(table) + "</div>\n";
}

/// Every claim of every run; verdicts come first, where a narrow page shows them.
std::string claims_html(const std::vector<ReportedRun>& runs) {
  std::string html =
      "<div class=\"scroll\"><table><tr><th>verdict</th><th>claim</th><th>run</th><th>source</th></tr>";
  for (const ReportedRun& run : runs) {
    for (const ReportedClaim& claim : run.claims) {
      html +=
          fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>", verdict_html(claim.verdict),
                      escaped(claim.id), escaped(run.name), escaped(claim.source));
    }
  }
  return html + "</table></div>\n";
}

std::string run_html(const ReportedRun& run, std::size_t place) {
  std::string html = fmt::format("<section><h2 id=\"run{}\">{}</h2><p class=\"soft\">{}{}{}</p>\n", place,
                                 escaped(run.title.empty() ? run.name : run.title), escaped(run.source),
                                 run.source.empty() ? "" : " · ", escaped(run.state));
  if (run.summary.size() > 1)
    html += "<h3>" + escaped(run.summary_caption) + "</h3>" + table_html(run.summary);
  if (!run.figures.empty() || !run.heat_maps.empty() || !run.pictures.empty()) {
    html += "<h3>Figures</h3><div class=\"figures\">";
    for (const Figure& figure : run.figures)
      html += figure_html(figure.title, figure.caption, figure_json(figure));
    for (const HeatMap& map : run.heat_maps) html += figure_html(map.title, map.caption, heat_map_json(map));
    for (const ReportedPicture& picture : run.pictures) html += picture_html(picture);
    html += "</div>";
  }
  if (!run.claims.empty()) html += "<h3>Claims</h3>";
  for (const ReportedClaim& claim : run.claims) html += claim_html(claim);
  if (run.unfinished.size() > 1)
    html += "<h3>Cells that diverged or failed</h3>" + table_html(run.unfinished);
  if (!run.notes.empty()) {
    html += "<h3>How the hyper-parameters were chosen</h3><ul>";
    for (const std::string& note : run.notes) html += "<li>" + escaped(note) + "</li>";
    html += "</ul>";
  }
  html += "<details><summary>Provenance</summary>";
  ReportedTable table = {{"what", ""}};
  for (const auto& [what, value] : run.provenance) table.push_back({what, value});
  html += table_html(table) + "</details><details><summary>Scenario</summary><pre>" + escaped(run.scenario) +
          "</pre></details></section>\n";
  return html;
}

std::string checks_html(const std::vector<ReportedCheck>& checks) {
  ReportedTable table = {{"check", "predicted", "measured", "± at most", "verdict", ""}};
  for (const ReportedCheck& check : checks) {
    table.push_back({check.id, check.predicted, check.measured, check.error_bound, check.verdict,
                     check.expected ? "" : "not as expected"});
  }
  return "<section><h2 id=\"checks\">Theorem checks</h2>" + table_html(table) + "</section>\n";
}

}  // namespace

std::string report_html(const Report& report) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\"><title>{0}</title><style>{1}</style></head>\n"
      "<body><h1>{0}</h1><p class=\"soft\">{2}</p>\n",
      escaped(report.title), kReportStyle, escaped(report.program));
  if (report.runs.size() > 1) {
    html += "<nav><ol>";
    for (std::size_t i = 0; i < report.runs.size(); ++i) {
      const ReportedRun& run = report.runs[i];
      html += fmt::format("<li><a href=\"#run{}\">{}</a></li>", i,
                          escaped(run.title.empty() ? run.name : run.title));
    }
    html += "</ol></nav>\n";
    html += "<details open><summary>Every claim</summary>" + claims_html(report.runs) + "</details>\n";
  }
  for (std::size_t i = 0; i < report.runs.size(); ++i) html += run_html(report.runs[i], i);
  if (!report.checks.empty()) html += checks_html(report.checks);
  return html + "<script>" + kReportScript + "</script></body></html>\n";
}

}  // namespace moelab
