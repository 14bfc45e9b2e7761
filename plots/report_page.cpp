#include "plots/report_page.h"

namespace moelab {

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
