#include "plots/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "plots/page.h"

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

std::string figure_html(const ReportedFigure& figure) {
  const Drawing& drawing = figure.drawing;
  if (!figure.failure.empty())
    return fmt::format("<figure><p class=\"figure-title\">{}</p><p class=\"soft\">{}</p></figure>\n",
                       html_text(drawing.title), html_text(figure.failure));
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
      is_picture ? "" : fmt::format("<p class=\"figure-title\">{}</p>", html_text(drawing.title)), shown,
      html_text((is_picture ? "" : drawing.caption) + drawing.note), csv);
}

/// A narrow page breaks the rows of class "points" into lines, each with the name of its column.
std::string table_html(const ReportedTable& table, const std::string& css_class = "") {
  std::string html = fmt::format("<div class=\"scroll\"><table class=\"{}\"><tr>", css_class);
  for (const std::string& head : table.front()) html += fmt::format("<th>{}</th>", html_text(head));
  for (std::size_t row = 1; row < table.size(); ++row) {
    html += "</tr><tr>";
    for (std::size_t column = 0; column < table[row].size(); ++column) {
      html += fmt::format("<td data-of=\"{}\">{}</td>", html_text(table.front()[column]),
                          html_text(table[row][column]));
    }
  }
  return html + "</tr></table></div>\n";
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
    ExplainedWord{"uninformative",
                  "Both sides are no better than the mean of the labels, so the point decides "
                  "nothing."}};
constexpr ExplainedWord kNmse = {"nmse",
                                 "Loss divided by the label variance: 0 is perfect, 1 no better than the "
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
  ReportedTable table = {{"at", "left", "right", "difference or ratio, 95 %", "verdict"}};
  for (const ReportedPoint& point : claim.points) {
    table.push_back({point.at, point.left, point.right, point.estimate,
                     point.verdict + (point.note.empty() ? "" : ": " + point.note)});
  }
  if (claim.terms.size() > 1) html += table_html(claim.terms);
  html += table_html(table, "points");
  if (claim.figure) html += figure_html(*claim.figure);
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
  constexpr std::size_t kRows = 13;
  if (run.summary.size() < 2) return "";
  const bool names_nmse = run.summary_caption.find(kNmse.word) != std::string::npos;
  return fmt::format("<details{}><summary><b>{}</b></summary>{}{}</details>\n",
                     run.summary.size() <= kRows ? " open" : "", html_text(run.summary_caption),
                     names_nmse ? word_html(kNmse, "soft") : "", table_html(run.summary));
}

std::string run_html(const ReportedRun& run, std::size_t place, bool is_alone) {
  std::string html = "<section>";
  if (!is_alone) {
    html +=
        fmt::format("<h2 id=\"run{}\">{}</h2>", place, html_text(run.title.empty() ? run.name : run.title));
  }
  html += run_head_html(run) + summary_html(run);
  if (!run.crossings.empty()) {
    html += fmt::format("<details open><summary><b>{}</b></summary>{}</details>\n",
                        html_text(run.crossings_caption), table_html(run.crossings));
  }
  for (const auto& [caption, table] : run.rates) {
    html += fmt::format("<details open><summary><b>{}</b></summary>{}</details>\n", html_text(caption),
                        table_html(table));
  }
  if (!run.figures.empty()) {
    html += "<h3>Figures</h3><div class=\"figures\">";
    for (const ReportedFigure& figure : run.figures) html += figure_html(figure);
    html += "</div>";
  }
  if (!run.claims.empty()) html += "<h3>Claims</h3>";
  for (const ReportedClaim& claim : run.claims) html += claim_html(claim);
  if (run.unfinished.size() > 1)
    html += "<h3>Cells that diverged or failed</h3>" + table_html(run.unfinished);
  if (!run.notes.empty()) {
    html += "<h3>How the hyper-parameters were chosen</h3><ul>";
    for (const std::string& note : run.notes) html += "<li>" + html_text(note) + "</li>";
    html += "</ul>";
  }
  html += "<details><summary>Provenance</summary>";
  ReportedTable table = {{"what", ""}};
  for (const auto& [what, value] : run.provenance) table.push_back({what, value});
  html += table_html(table) + "</details><details><summary>Scenario</summary><pre>" +
          html_text(run.scenario) + "</pre></details></section>\n";
  return html;
}

std::string checks_html(const std::vector<ReportedCheck>& checks) {
  ReportedTable table = {{"check", "statement", "predicted", "measured", "± at most", "verdict"}};
  for (const ReportedCheck& check : checks) {
    table.push_back({check.id, check.statement, check.predicted, check.measured, check.error_bound,
                     check.verdict + (check.expected ? "" : ", not as expected")});
  }
  return "<section><h2 id=\"checks\">Theorem checks</h2>" + table_html(table, "points checks") +
         "</section>\n";
}

}  // namespace

std::string verdict_counts(const std::vector<ReportedClaim>& claims) {
  std::vector<std::string> parts;
  for (const char* verdict : {"reproduced", "refuted", "equivalent", "inconclusive"}) {
    const auto count = std::count_if(claims.begin(), claims.end(),
                                     [&](const ReportedClaim& claim) { return claim.verdict == verdict; });
    if (count > 0) parts.push_back(fmt::format("{} {}", count, verdict));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string report_html(const Report& report) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\"><title>{0}</title><style>{1}</style></head>\n"
      "<body><h1>{0}</h1><p class=\"soft\">{2}</p>\n",
      html_text(report.title), kReportStyle, html_text(report.program));
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
  return html + "<script>" + kReportScript + kMapScript + kReportScriptEnd + "</script></body></html>\n";
}

const char* const kMapScript = R"js(
  // Light to blue; where a scale has both signs, orange over white at 0 to blue.
  const colourOf = (value, low, high) => {
    if (value === null) return ["#999", 0];
    const reach = Math.max(-low, high), signed = low < 0 && high > 0;
    const share = Math.max(-1, Math.min(1, signed ? value / reach : (value - low) / (high - low || 1)));
    const [from, to] = share < 0 ? [[255, 255, 255], [179, 88, 6]] : [signed ? [255, 255, 255] : [247, 251, 255], [8, 48, 107]];
    return [`rgb(${from.map((c, i) => Math.round(c + (to[i] - c) * Math.abs(share))).join(", ")})`, Math.abs(share)];
  };

  // A number of so many digits; what rounds to 0 on the scale has too many for any tile.
  const numberIn = (value, digits, reach) => value === null ? "" : Math.abs(value) < 1e-3 * reach ? value === 0 ? "0" : "~0" : exact(+value.toPrecision(digits));

  // How many digits the numbers of a panel have, 0 where not all fit, and the texts of its intervals, null where
  // those do not fit or there are none.
  const writtenIn = (data, panel, cell) => {
    const reach = Math.max(Math.abs(data.low), Math.abs(data.high)), shown = panel.values.map((v, at) => [v, at]).filter(([v]) => v !== null);
    let digits = cell > 12 ? data.digits : 0;
    while (digits && shown.some(([v, at]) => 6.6 * (numberIn(v, digits, reach).length + (panel.censored[at] ? 1 : 0)) > cell - 2)) digits = digits > 2 ? digits - 1 : 0;
    const given = shown.filter(([, at]) => panel.intervals[at]);
    if (!digits || cell < 30 || given.length === 0) return { digits, intervals: null };
    const even = given.every(([v, at]) => Math.abs(panel.intervals[at][0] + panel.intervals[at][1] - 2 * v) <= 1e-6 * (panel.intervals[at][1] - panel.intervals[at][0]));
    const text = ([from, to]) => even ? "±" + exact(+((to - from) / 2).toPrecision(1)) : `${numberIn(from, digits, reach)}–${numberIn(to, digits, reach)}`;
    const intervals = panel.intervals.map((interval) => interval ? text(interval) : "");
    return { digits, intervals: intervals.every((each) => 4.8 * each.length <= cell - 2) ? intervals : null };
  };

  // The colours from low to high, with both ends.
  const drawScale = (data, box) => {
    const canvas = svg("svg", { viewBox: `0 0 ${W} 38`, role: "img", "aria-label": "colour scale" }, box);
    const steps = 48, width = Math.min(240, W - left - right), from = left + (W - left - right - width) / 2;
    for (let i = 0; i < steps; ++i)
      svg("rect", { x: from + i * width / steps, y: 2, width: width / steps + .5, height: 10, fill: colourOf(data.low + (i + .5) / steps * (data.high - data.low), data.low, data.high)[0] }, canvas);
    svg("text", { x: from - 5, y: 11, "text-anchor": "end" }, canvas, short(data.low));
    svg("text", { x: from + width + 5, y: 11 }, canvas, short(data.high));
    svg("text", { x: from + width / 2, y: 28, "text-anchor": "middle" }, canvas, data.valueLabel);
  };

  const drawHeatMap = (data, box) => {
    const tip = tipOf(box);
    const columns = data.xNames.length, rows = data.yNames.length;
    const cell = Math.min(46, (W - left - right) / columns);
    let pointed = false;
    for (const panel of data.panels) {
      if (data.panels.length > 1) html("p", "soft", box, panel.name);
      const height = rows * cell + bottom + top;
      const canvas = svg("svg", { viewBox: `0 0 ${W} ${height}`, role: "img", "aria-label": `${data.title}: ${panel.name}` }, box);
      // Numbers stand in the tiles, with intervals below, where all of them have the room.
      const { digits, intervals } = writtenIn(data, panel, cell);
      if (!intervals && panel.intervals.some((interval) => interval)) pointed = true;
      const interval = (of, at) => of.intervals[at] ? ` [${short(of.intervals[at][0])}, ${short(of.intervals[at][1])}]` : "";
      const over = (of, at) => of.censored[at] ? ">" : "";
      let shownValues = panel.values;
      const tiles = [], inks = [], reach = Math.max(Math.abs(data.low), Math.abs(data.high));
      const inkOf = (value, share) => ({ text: numberIn(value, digits, reach), fill: share > .5 ? "#fff" : "#111" });
      panel.values.forEach((value, at) => {
        const column = at % columns, row = Math.floor(at / columns);
        const [fill, share] = colourOf(value, data.low, data.high);
        const xAt = left + column * cell, yAt = top + (rows - 1 - row) * cell;
        const tile = svg("rect", { x: xAt, y: yAt, width: cell - (cell > 12 ? 1 : 0), height: cell - (cell > 12 ? 1 : 0), fill, "shape-rendering": "crispEdges" }, canvas);
        tiles.push(tile);
        tile.addEventListener("pointermove", (event) => tip.show(event, `${data.xLabel} ${data.xNames[column]}\n${data.yLabel} ${data.yNames[row]}\n${data.valueLabel ? data.valueLabel + " " : ""}${shownValues[at] === null ? "none" : over(panel, at) + short(shownValues[at])}${interval(panel, at)}`));
        if (panel.rowNotes[row]) {
          tile.style.cursor = "pointer";
          tile.addEventListener("click", () => { note.textContent = panel.rowNotes[row]; note.hidden = false; });
        }
        tile.addEventListener("pointerleave", () => tip.hide());
        if (!digits) return;
        const { text, fill: ink } = inkOf(value, share);
        inks.push(svg("text", { x: xAt + cell / 2, y: yAt + cell / 2 + (intervals ? 0 : 4), "text-anchor": "middle", style: `fill:${ink};pointer-events:none` }, canvas, over(panel, at) + text));
        if (intervals && value !== null) svg("text", { x: xAt + cell / 2, y: yAt + cell / 2 + 12, "text-anchor": "middle", style: `fill:${ink};font-size:8px;pointer-events:none` }, canvas, intervals[at]);
      });
      if (panel.frames.length > 1) {
        const slider = html("input", "data", box), at = html("span", "soft data", box);
        Object.assign(slider, { type: "range", min: 0, max: panel.frames.length - 1, value: panel.frames.length - 1 });
        slider.setAttribute("aria-label", "recorded step");
        at.textContent = " " + panel.frameNames[panel.frames.length - 1];
        slider.addEventListener("input", () => {
          shownValues = panel.frames[slider.value];
          tiles.forEach((tile, place) => {
            const [fill, share] = colourOf(shownValues[place], data.low, data.high);
            tile.setAttribute("fill", fill);
            if (!inks[place]) return;
            const ink = inkOf(shownValues[place], share);
            inks[place].textContent = ink.text;
            inks[place].style.fill = ink.fill;
          });
          at.textContent = " " + panel.frameNames[slider.value];
        });
      }
      const note = html("pre", "", box);
      note.hidden = true;
      // Names that would lie on each other are left out.
      const longest = Math.max(...data.xNames.map((name) => name.length));
      const shown = (i, room) => i % Math.ceil(room / cell) === 0;
      data.xNames.forEach((name, i) => shown(i, 7 * longest + 6) && svg("text", { x: left + (i + .5) * cell, y: top + rows * cell + 14, "text-anchor": "middle" }, canvas, name));
      data.yNames.forEach((name, i) => shown(i, 14) && svg("text", { x: left - 5, y: top + (rows - .5 - i) * cell + 4, "text-anchor": "end" }, canvas, name));
      svg("text", { x: left + columns * cell / 2, y: top + rows * cell + 32, "text-anchor": "middle" }, canvas, data.xLabel);
      svg("text", { x: 12, y: top + rows * cell / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${top + rows * cell / 2})` }, canvas, data.yLabel);
    }
    if (pointed) html("p", "soft", box, "The intervals are shown at the pointer.");
    drawScale(data, box);
  };

  // The convex part of a box in which the score of a label is the largest; of equal scores the first has it.
  const regionOf = (scores, label, box) => {
    const own = scores[label];
    let region = [[box[0], box[2]], [box[1], box[2]], [box[1], box[3]], [box[0], box[3]]];
    scores.forEach((other, place) => {
      const [a, b, c] = own.map((value, i) => value - other[i]);
      if (place === label || region.length === 0) return;
      if (a === 0 && b === 0 && c === 0) { if (place < label) region = []; return; }
      const lead = (p) => a * p[0] + b * p[1] + c, kept = [];
      region.forEach((p, i) => {
        const q = region[(i + 1) % region.length], from = lead(p), to = lead(q);
        if (from >= 0) kept.push(p);
        if (from * to < 0) kept.push(p.map((v, k) => v + (q[k] - v) * from / (from - to)));
      });
      region = kept;
    });
    return region;
  };

  // How far the rows of a router may be stretched at all steps before a head leaves the box.
  const stretchOf = (frames, [xLow, xHigh, yLow, yHigh]) => {
    let stretch = Infinity;
    for (const frame of frames) for (const [x, y] of frame.scores) {
      if (x) stretch = Math.min(stretch, Math.max((x > 0 ? xHigh : xLow) / x, 0));
      if (y) stretch = Math.min(stretch, Math.max((y > 0 ? yHigh : yLow) / y, 0));
    }
    return Number.isFinite(stretch) ? .8 * stretch : 0;
  };

  const drawPlane = (data, box) => {
    const tip = tipOf(box), grey = "#b8b8b8", side = Math.min(W - 40, 400), edge = 28;
    const colourAt = (label) => colours[data.colours[label]] ?? grey;
    const xAt = (v) => edge + (v - data.box[0]) / (data.box[1] - data.box[0]) * side;
    const yAt = (v) => top + (data.box[3] - v) / (data.box[3] - data.box[2]) * side;
    for (const panel of data.panels) {
      if (data.panels.length > 1) html("p", "soft", box, panel.name);
      const canvas = svg("svg", { viewBox: `0 0 ${W} ${side + top + 30}`, role: "img", "aria-label": `${data.title}: ${panel.name}` }, box);
      const regions = svg("g", {}, canvas), stretch = stretchOf(panel.frames, data.box);
      const points = panel.points.map(([x, y]) => svg("circle", { cx: xAt(x), cy: yAt(y), r: 2 }, canvas));
      const arrows = svg("g", {}, canvas);
      for (const [x, y] of panel.means)
        svg("path", { d: `M${xAt(x) - 3} ${yAt(y) - 3}l6 6m0 -6l-6 6`, stroke: "var(--ink)", "stroke-width": 1.3, fill: "none" }, canvas);
      svg("rect", { x: edge, y: top, width: side, height: side, fill: "none", stroke: "var(--soft)" }, canvas);
      svg("text", { x: edge + side / 2, y: top + side + 18, "text-anchor": "middle" }, canvas, data.xLabel);
      svg("text", { x: 14, y: top + side / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${top + side / 2})` }, canvas, data.yLabel);
      let frame;
      const show = (place) => {
        frame = panel.frames[place];
        regions.replaceChildren();
        arrows.replaceChildren();
        points.forEach((point, i) => point.setAttribute("fill", colourAt(frame.labels[i])));
        frame.scores.forEach(([x, y], label) => {
          const region = regionOf(frame.scores, label, data.box), fill = colourAt(label);
          if (region.length > 2) svg("polygon", { points: region.map((p) => `${xAt(p[0])},${yAt(p[1])}`).join(" "), fill, opacity: .28 }, regions);
          if (fill === grey || stretch === 0) return;
          svg("line", { x1: xAt(0), y1: yAt(0), x2: xAt(stretch * x), y2: yAt(stretch * y), stroke: "var(--ink)" }, arrows);
          svg("circle", { cx: xAt(stretch * x), cy: yAt(stretch * y), r: 3.5, fill, stroke: "var(--ink)" }, arrows);
        });
      };
      const last = panel.frames.length - 1;
      if (last > 0) {
        const slider = html("input", "data", box), at = html("span", "soft data", box);
        Object.assign(slider, { type: "range", min: 0, max: last, value: last });
        slider.setAttribute("aria-label", "recorded step");
        const move = () => { show(slider.value); at.textContent = " " + frame.name; };
        slider.addEventListener("input", move);
        move();
      } else {
        show(0);
      }
      canvas.addEventListener("pointermove", (event) => {
        const area = canvas.getBoundingClientRect(), factor = W / area.width;
        const px = (event.clientX - area.left) * factor, py = (event.clientY - area.top) * factor;
        const x = data.box[0] + (px - edge) / side * (data.box[1] - data.box[0]);
        const y = data.box[3] - (py - top) / side * (data.box[3] - data.box[2]);
        if (!within(x, data.box) || !within(y, data.box.slice(2))) return tip.hide();
        const near = panel.points.findIndex((p) => Math.hypot(xAt(p[0]) - px, yAt(p[1]) - py) < 4);
        const values = frame.scores.map((s) => s[0] * x + s[1] * y + s[2]);
        if (near >= 0) tip.show(event, `test row ${near}\n${data.label} ${frame.labels[near]}`);
        else if (values.length > 0) tip.show(event, `${data.label} ${values.indexOf(Math.max(...values))}`);
        else tip.hide();
      });
      canvas.addEventListener("pointerleave", () => tip.hide());
    }
    const legend = html("div", "legend soft", box);
    Object.assign(legend.style, { columnGap: ".9rem", fontSize: ".8rem" });
    const entry = (colour, text) => { const name = html("span", "", legend); html("i", "", name).style.background = colour; name.append(text); };
    const named = data.colours.map((_, label) => label).filter((label) => colourAt(label) !== grey);
    for (const label of named.sort((a, b) => data.colours[a] - data.colours[b])) entry(colourAt(label), `${data.label} ${label}`);
    if (named.length < data.colours.length) entry(grey, `another ${data.label}`);
    if (data.panels.some((panel) => panel.means.length > 0)) html("span", "", legend, `× ${data.meanName}`);
    if (data.panels.some((panel) => panel.frames[0].scores.length > 0)) html("span", "", legend, `— ${data.arrowName}`);
  };
)js";

const char* const kReportStyle = R"css(
:root { color-scheme: light dark; --ink: #1c1e21; --soft: #5c6670; --line: #d8dde2; --paper: #ffffff; --card: #f6f8fa;
  --good: #11703c; --bad: #b3261e; --open: #7a5b00; --accent: #0060a8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --soft: #a3acb5; --line: #3a4047; --paper: #16181b;
  --card: #1f2327; --good: #5fd38d; --bad: #ff8a80; --open: #e3c15a; --accent: #6cb6ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { font-size: 1.3rem; margin-top: 2.5rem; border-top: 1px solid var(--line); padding-top: 1rem; }
h3 { font-size: 1.05rem; margin: 1.5rem 0 .5rem; }
a { color: var(--accent); } .soft { color: var(--soft); }
nav ol { padding-left: 1.2rem; columns: 20rem; column-gap: 2.5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { white-space: nowrap; text-align: left; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.checks td { white-space: normal; }
.claim { border: 1px solid var(--line); border-radius: 6px; background: var(--card); padding: .6rem .8rem; margin: .6rem 0; }
.claim p { margin: .2rem 0; }
.verdict { font-weight: 600; } .verdict::before { content: ""; display: inline-block; width: .6em; height: .6em; margin-right: .4em; border-radius: 50%; background: currentColor; }
.reproduced, .holds { color: var(--good); } .refuted, .fails { color: var(--bad); } .equivalent { color: var(--accent); } .inconclusive, .uninformative { color: var(--open); }
.word, .word summary { display: inline; margin: 0; } .word summary { list-style: none; text-decoration: underline dotted; } .word summary::-webkit-details-marker { display: none; }
.word span { display: block; color: var(--soft); font-weight: 400; font-size: .9rem; } .claim figure { margin-top: .6rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); gap: 1rem; }
figure { margin: 0; max-width: 40rem; min-width: 0; border: 1px solid var(--line); border-radius: 6px; padding: .6rem; background: var(--card); position: relative; break-inside: avoid; }
figure svg { display: block; width: 100%; height: auto; touch-action: pan-y; }
figure text { fill: var(--ink); font: 11px system-ui, "DejaVu Sans", sans-serif; }
figure img { display: block; width: 100%; background: #fff; border-radius: 4px; }
figcaption { font-size: .85rem; color: var(--soft); } .figure-title { font-weight: 600; color: var(--ink); margin: 0 0 .3rem; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem; margin: .4rem 0; }
.legend button { text-align: left; font: inherit; font-size: .8rem; color: var(--ink); background: none; border: 1px solid var(--line); border-radius: 4px; padding: .1rem .5rem; cursor: pointer; }
.legend button[aria-pressed="false"] { opacity: .4; text-decoration: line-through; }
.legend i { display: inline-block; width: 1.1em; height: .25em; margin-right: .4em; vertical-align: middle; }
.tip { position: absolute; pointer-events: none; background: var(--paper); border: 1px solid var(--line); border-radius: 4px; padding: .2rem .5rem; font-size: .8rem; white-space: pre; box-shadow: 0 1px 4px #0004; }
details { margin: .6rem 0; } summary { cursor: pointer; } pre { overflow-x: auto; font-size: .8rem; background: var(--card); padding: .6rem; border-radius: 6px; }
@media (max-width: 40rem) { .points tr:first-child { display: none; } .points tr, .points td { display: block; white-space: normal; }
  .points tr { border-bottom: 1px solid var(--line); padding: .3rem 0; } .points td { border: 0; padding: 0; }
  .points td:empty { display: none; } .points td::before { content: attr(data-of) ": "; color: var(--soft); } }
@media print { :root { color-scheme: light; --ink: #000; --soft: #444; --line: #bbb; --paper: #fff; --card: #fff; --good: #11703c;
  --bad: #b3261e; --open: #7a5b00; --accent: #000; } .tip, details:not([open]):not(.word), .data { display: none; } summary { list-style: none; } body { max-width: none; padding: 0; font-size: 10.5pt; }
  section + section h2 { break-before: page; } h3, figure p.soft, .figure-title { break-after: avoid; } .claim { break-inside: avoid; } .scroll { overflow: visible; }
  th, td { white-space: normal; } pre { white-space: pre-wrap; } }
)css";

const char* const kReportScript = R"js(
"use strict";
(() => {
  const colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7a7a7a"];
  const dashes = ["", "6 3", "2 2", "7 2 2 2"];
  // Narrow pages get narrow figures, so that letters keep their size.
  const room = document.querySelector("figure")?.clientWidth ?? 480;
  const W = Math.max(260, Math.min(620, room - 20)), H = 300, left = 58, right = 12, top = 10, bottom = 44;
  const svg = (name, attributes, parent, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.appendChild(node);
    return node;
  };
  const html = (name, className, parent, text) => {
    const node = document.createElement(name);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    if (parent) parent.appendChild(node);
    return node;
  };
  const short = (v) => v === 0 ? "0" : Math.abs(v) >= 1e5 || Math.abs(v) < 1e-3 ? v.toExponential(2).replace(/\.?0+e/, "e") : String(+v.toPrecision(4));
  // Places, which tables and files have to the last digit: 32768.
  const exact = (v) => v === 0 ? "0" : Math.abs(v) >= 1e7 || Math.abs(v) < 1e-4 ? v.toExponential(2).replace(/\.?0+e/, "e") : String(+v.toPrecision(7));
  const within = (v, range) => !range || (v >= range[0] && v <= range[1]);
  const usable = (v, log) => v !== null && Number.isFinite(v) && (!log || v > 0);

  // A scale from data to pixels with its ticks.
  // Few places, such as those of a sweep, are the ticks themselves, but not long numbers, which were measured.
  const scaleOf = (values, log, from, to, pad, places = []) => {
    let low = Math.min(...values), high = Math.max(...values);
    if (!values.length) { low = log ? 1 : 0; high = log ? 10 : 1; }
    const t = log ? Math.log10 : (v) => v;
    let a = t(low), b = t(high);
    if (a === b) { a -= .5; b += .5; }
    const margin = pad * (b - a);
    a -= margin; b += margin;
    const place = (v) => from + (t(v) - a) / (b - a) * (to - from);
    const ticks = [];
    if (places.length > 0 && places.length <= 10 && places.every((v) => exact(v).length <= 7)) {
      let free = -Infinity;
      for (const v of [...places].sort((p, q) => p - q)) {
        const half = 4 * exact(v).length + 4;
        if (place(v) - half < free) continue;
        ticks.push(v);
        free = place(v) + half;
      }
    } else if (log) {
      const wide = b - a > 2.5;
      for (let e = Math.floor(a); e <= Math.ceil(b); ++e)
        for (const m of wide ? [1] : [1, 2, 5]) { const v = m * 10 ** e; if (t(v) >= a && t(v) <= b) ticks.push(v); }
    } else {
      const raw = (b - a) / 5, power = 10 ** Math.floor(Math.log10(raw));
      const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
      for (let v = Math.ceil(a / step) * step; v <= b + 1e-9 * step; v += step) ticks.push(Math.abs(v) < 1e-12 * step ? 0 : v);
    }
    return { place, ticks };
  };

  const tipOf = (box) => {
    const tip = html("div", "tip", box);
    tip.hidden = true;
    return {
      show(event, text) {
        tip.textContent = text;
        tip.hidden = false;
        const area = box.getBoundingClientRect();
        const x = Math.min(event.clientX - area.left + 12, area.width - tip.offsetWidth - 4);
        tip.style.left = Math.max(4, x) + "px";
        tip.style.top = event.clientY - area.top + 14 + "px";
      },
      hide() { tip.hidden = true; },
    };
  };

  let frames = 0;
  const drawLines = (data, box) => {
    const hidden = new Set();
    // Names that have no room beside each other stand upright.
    const named = data.xNames.length > 0, longest = Math.max(0, ...data.xNames.map((name) => Math.min(name.length, 30)));
    const upright = named && 6.2 * longest > (W - left - right) / data.xNames.length;
    const base = H - 44, tall = upright ? base + 30 + 6 * longest : H;
    const canvas = svg("svg", { viewBox: `0 0 ${W} ${tall}`, role: "img", "aria-label": data.title }, box);
    const legend = html("div", "legend", box);
    const tip = tipOf(box);
    const clip = `frame${++frames}`;
    let targets = [];
    const place = data.series.map((s) => data.order.indexOf(s.name));
    const styleOf = (index) => data.series[index].reference ? ["#888", "4 3"] : [colours[place[index] % colours.length], dashes[place[index] % dashes.length]];
    const draw = () => {
      canvas.replaceChildren();
      targets = [];
      const shown = data.series.map((s, i) => [s, i]).filter(([s, i]) => !hidden.has(i));
      const xs = [], ys = [];
      for (const [s] of shown) for (const p of s.points) {
        if (!usable(p.x, data.xLog) || !within(p.x, data.xRange)) continue;
        for (const v of s.reference ? [p.mean] : [p.mean, p.low, p.high, ...(p.seeds.length < 10 ? p.seeds : [])]) if (usable(v, data.yLog)) { xs.push(p.x); ys.push(v); }
      }
      if (data.yRange) ys.splice(0, ys.length, ...data.yRange);
      if (named) xs.splice(0, xs.length, -.5, data.xNames.length - .5);
      const x = scaleOf(xs, data.xLog, left, W - right, named ? 0 : .03, named ? [] : [...new Set(xs)]), y = scaleOf(ys, data.yLog, base, top, .05);
      const xTicks = named ? data.xNames.map((_, i) => i) : x.ticks;
      const nameOf = (name) => name.length > 30 ? name.slice(0, 29) + "…" : name;
      for (const v of y.ticks) {
        svg("line", { x1: left, x2: W - right, y1: y.place(v), y2: y.place(v), stroke: "var(--line)" }, canvas);
        svg("text", { x: left - 5, y: y.place(v) + 4, "text-anchor": "end" }, canvas, exact(v));
      }
      for (const v of xTicks) {
        const text = named ? nameOf(data.xNames[v]) : exact(v), at = x.place(v);
        if (upright) svg("text", { x: at + 4, y: base + 6, "text-anchor": "end", transform: `rotate(-90 ${at + 4} ${base + 6})` }, canvas, text);
        else svg("text", { x: at, y: base + 15, "text-anchor": "middle" }, canvas, text);
      }
      svg("path", { d: `M${left} ${top}V${base}H${W - right}`, fill: "none", stroke: "var(--soft)" }, canvas);
      svg("text", { x: (left + W - right) / 2, y: tall - 8, "text-anchor": "middle" }, canvas, data.xLabel);
      svg("text", { x: 12, y: (top + base) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(top + base) / 2})` }, canvas, data.yLabel);
      // What ranges leave out ends at the frame.
      const frame = svg("clipPath", { id: clip }, canvas);
      svg("rect", { x: left - 4, y: top - 4, width: W - right - left + 8, height: base - top + 8 }, frame);
      const marks = svg("g", { "clip-path": `url(#${clip})` }, canvas);
      for (const [s, i] of shown) {
        const [colour, dash] = styleOf(i);
        const points = s.points.filter((p) => usable(p.x, data.xLog) && within(p.x, data.xRange) && usable(p.mean, data.yLog));
        // On a logarithmic axis a band that reaches zero ends at the frame.
        const lowest = (p) => usable(p.low, data.yLog) ? y.place(p.low) : base;
        const band = points.filter((p) => p.low !== null && usable(p.high, data.yLog));
        if (band.length > 1 && !s.reference && s.joined) {
          const up = band.map((p) => `${x.place(p.x)} ${y.place(p.high)}`), down = band.map((p) => `${x.place(p.x)} ${lowest(p)}`).reverse();
          svg("path", { d: `M${up.concat(down).join("L")}Z`, fill: colour, opacity: .15 }, marks);
        } else if (!s.reference) {
          for (const p of band) svg("path", { d: `M${x.place(p.x)} ${lowest(p)}V${y.place(p.high)}`, stroke: colour, opacity: .5 }, marks);
        }
        const seeds = Math.max(0, ...points.map((p) => p.seeds.length));
        for (let k = 0; k < seeds && seeds < 10 && !s.reference; ++k) {
          const line = points.filter((p) => usable(p.seeds[k] ?? null, data.yLog));
          if (line.length > 1) svg("path", { d: "M" + line.map((p) => `${x.place(p.x)} ${y.place(p.seeds[k])}`).join("L"), fill: "none", stroke: colour, "stroke-width": .6, opacity: .6 }, marks);
        }
        if (points.length > 1 && s.joined) svg("path", { d: "M" + points.map((p) => `${x.place(p.x)} ${y.place(p.mean)}`).join("L"), fill: "none", stroke: colour, "stroke-width": 2, "stroke-dasharray": dash }, marks);
        for (const p of points) {
          if (!s.reference) svg("circle", { cx: x.place(p.x), cy: y.place(p.mean), r: 3, fill: p.censored ? "var(--card)" : colour, stroke: colour }, marks);
          const interval = p.low === null || p.high === null ? "" : ` [${short(p.low)}, ${short(p.high)}]`;
          if (named && s.reference) continue;  // it runs from edge to edge
          if (!within(p.mean, data.yRange)) continue;
          targets.push({ x: x.place(p.x), y: y.place(p.mean), text: `${data.panel ? data.panel + "\n" : ""}${s.name}\n${data.xLabel} ${named ? data.xNames[p.x] : exact(p.x)}\n${short(p.mean)}${interval}` });
        }
      }
    };
    data.series.forEach((s, i) => {
      const button = html("button", "", legend);
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      html("i", "", button).style.background = styleOf(i)[0];
      button.append(s.name);
      button.addEventListener("click", () => {
        hidden.has(i) ? hidden.delete(i) : hidden.add(i);
        button.setAttribute("aria-pressed", String(!hidden.has(i)));
        draw();
      });
    });
    canvas.addEventListener("pointermove", (event) => {
      const area = canvas.getBoundingClientRect(), factor = W / area.width;
      const px = (event.clientX - area.left) * factor, py = (event.clientY - area.top) * factor;
      let best = null, distance = 30;
      for (const t of targets) { const d = Math.hypot(t.x - px, t.y - py); if (d < distance) { best = t; distance = d; } }
      best ? tip.show(event, best.text) : tip.hide();
    });
    canvas.addEventListener("pointerleave", () => tip.hide());
    draw();
  };

  const drawPanels = (data, box) => {
    const order = [...new Set(data.panels.flatMap((p) => p.series).filter((s) => !s.reference).map((s) => s.name))];
    for (const panel of data.panels) {
      const several = data.panels.length > 1, part = html("div", "", box);
      if (several) html("p", "soft", part, panel.name);
      part.style.position = "relative";
      drawLines({ ...data, order, series: panel.series, panel: several ? panel.name : "" }, part);
    }
  };
)js";

const char* const kReportScriptEnd = R"js(
  for (const box of document.querySelectorAll("figure")) {
    if (!box.querySelector("script")) continue;
    const data = JSON.parse(box.querySelector("script").textContent);
    const place = html("div", "");
    box.insertBefore(place, box.querySelector("figcaption"));
    ({ lines: drawPanels, heatMap: drawHeatMap, plane: drawPlane })[data.draw](data, place);
    // The tip is placed within the figure, whose border box it is measured by.
    place.style.position = "relative";
  }
})();
)js";

}  // namespace moelab
