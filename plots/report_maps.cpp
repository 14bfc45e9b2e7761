#include "plots/report_page.h"

namespace moelab {

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

}  // namespace moelab
