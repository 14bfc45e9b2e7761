"use strict";
// Paints the figures of a report from their data (data_json and page_json of plots/). Each panel has a layout in
// points from its lower left corner: frame, ticks and texts. Nothing is laid out here.
(() => {
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
  // Numbers at the pointer: results are rounded, places are exact, as in tables and files (32768).
  const short = (v) => v === 0 ? "0" : Math.abs(v) >= 1e5 || Math.abs(v) < 1e-3 ? v.toExponential(2).replace(/\.?0+e/, "e") : String(+v.toPrecision(4));
  const exact = (v) => v === 0 ? "0" : Math.abs(v) >= 1e7 || Math.abs(v) < 1e-4 ? v.toExponential(2).replace(/\.?0+e/, "e") : String(+v.toPrecision(7));
  const within = (v, range) => !range || (v >= range[0] && v <= range[1]);
  const usable = (v, log) => v !== null && Number.isFinite(v) && (!log || v > 0);
  // Black is the colour of the page's ink, which is white on a dark page.
  const inkOf = (colour) => colour === "" || colour === "000000" ? "var(--ink)" : "#" + colour;

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

  // An empty page with the maps from data to its points.
  const pageOf = (layout, box, label) => {
    const frame = layout.panels[0], height = layout.height;
    const share = (axis, v) => {
      const t = axis.log ? Math.log10 : (value) => value;
      return (t(v) - t(axis.low)) / (t(axis.high) - t(axis.low));
    };
    const canvas = svg("svg", { viewBox: `0 0 ${layout.width} ${height}`, role: "img", "aria-label": label }, box);
    return {
      layout, canvas, height, left: frame.left, right: frame.left + frame.width, base: height - frame.bottom, top: height - frame.bottom - frame.height,
      x: (v) => frame.left + frame.width * share(layout.x, v),
      y: (v) => height - frame.bottom - frame.height * share(layout.y, v),
      // The pointer's place in points.
      at(event) {
        const area = canvas.getBoundingClientRect(), factor = layout.width / area.width;
        return [(event.clientX - area.left) * factor, (event.clientY - area.top) * factor];
      },
    };
  };
  const write = (parent, text, x, y, size, anchor, others = {}) =>
    svg("text", { x, y, dy: ".35em", "font-size": size, "text-anchor": anchor, ...others }, parent, text);
  const paintTexts = (page) => {
    for (const text of page.layout.panels[0].texts) {
      if (text.role === "panel") continue;  // the page names its panels
      const y = page.height - text.y;
      write(page.canvas, text.text, text.x, y, text.size, text.centred ? "middle" : "start",
        { transform: `rotate(${-text.rotation} ${text.x} ${y})` });
    }
  };
  const paintTicks = (page, size, length) => {
    for (const [place, label] of page.layout.x.ticks) {
      const x = page.x(place);
      if (length) svg("path", { d: `M${x} ${page.base}v${label ? length : length / 2}`, stroke: "var(--soft)", "stroke-width": .5 }, page.canvas);
      if (page.layout.x.upright) write(page.canvas, label, x, page.base + 4, size, "end", { transform: `rotate(-90 ${x} ${page.base + 4})` });
      else write(page.canvas, label, x, page.base + 7, size, "middle");
    }
    for (const [place, label] of page.layout.y.ticks) {
      const y = page.y(place);
      if (length) svg("path", { d: `M${page.left} ${y}h${label ? -length : -length / 2}`, stroke: "var(--soft)", "stroke-width": .5 }, page.canvas);
      write(page.canvas, label, page.left - 4, y, size, "end");
    }
  };

  let frames = 0;
  const paintLines = (data, panel, box, name) => {
    const hidden = new Set(), tip = tipOf(box), page = pageOf(panel.layout, box, data.title), canvas = page.canvas;
    const legend = html("div", "legend", box), clip = `frame${++frames}`, named = data.x_categories.length > 0;
    const colourOf = (s) => s.look === "reference" ? "var(--soft)" : inkOf(data.styles[s.name].colour);
    const dashOf = (s) => data.styles[s.name].dash.map((length) => length / 2).join(" ");
    for (const [place] of page.layout.y.ticks)
      svg("path", { d: `M${page.left} ${page.y(place)}H${page.right}`, stroke: "var(--line)", "stroke-width": .4 }, canvas);
    svg("path", { d: `M${page.left} ${page.top}V${page.base}H${page.right}`, fill: "none", stroke: "var(--soft)", "stroke-width": .6 }, canvas);
    paintTicks(page, 7, 2);
    paintTexts(page);
    const frame = svg("clipPath", { id: clip }, canvas);
    svg("rect", { x: page.left - 2, y: page.top - 2, width: page.right - page.left + 4, height: page.base - page.top + 4 }, frame);
    const marks = svg("g", { "clip-path": `url(#${clip})` }, canvas);
    let targets = [];
    const paint = () => {
      marks.replaceChildren();
      targets = [];
      for (const s of panel.series) {
        if (hidden.has(s)) continue;
        const colour = colourOf(s), isReference = s.look === "reference", isJoined = s.look !== "marks";
        const points = s.points.filter((p) => usable(p.x, data.x_log) && within(p.x, data.x_range) && usable(p.mean, data.y_log));
        const path = (of, value) => "M" + of.map((p) => `${page.x(p.x)} ${page.y(value(p))}`).join("L");
        // On a logarithmic axis a band that reaches zero ends at the frame.
        const lowest = (p) => usable(p.low, data.y_log) ? page.y(p.low) : page.base;
        const band = isReference ? [] : points.filter((p) => p.low !== null && usable(p.high, data.y_log));
        if (band.length > 1 && isJoined) {
          const down = band.map((p) => `${page.x(p.x)} ${lowest(p)}`).reverse().join("L");
          svg("path", { d: `${path(band, (p) => p.high)}L${down}Z`, fill: colour, opacity: .18 }, marks);
        } else {
          for (const p of band) svg("path", { d: `M${page.x(p.x)} ${lowest(p)}V${page.y(p.high)}`, stroke: colour, "stroke-width": .8, opacity: .6 }, marks);
        }
        const seeds = Math.max(0, ...points.map((p) => p.seeds.length));
        for (let k = 0; k < seeds && s.seed_lines; ++k) {
          const line = points.filter((p) => usable(p.seeds[k] ?? null, data.y_log));
          if (line.length > 1) svg("path", { d: path(line, (p) => p.seeds[k]), fill: "none", stroke: colour, "stroke-width": .4, opacity: .6 }, marks);
        }
        if (points.length > 1 && isJoined)
          svg("path", { d: path(points, (p) => p.mean), fill: "none", stroke: colour, "stroke-width": isReference ? 1 : 1.3, "stroke-dasharray": dashOf(s) }, marks);
        for (const p of points) {
          if (!isReference) svg("circle", { cx: page.x(p.x), cy: page.y(p.mean), r: 1.7, fill: p.censored ? "var(--card)" : colour, stroke: colour, "stroke-width": .6 }, marks);
          if (named && isReference) continue;  // it runs from edge to edge
          if (!within(p.mean, data.y_range)) continue;
          const interval = p.low === null || p.high === null ? "" : ` [${short(p.low)}, ${short(p.high)}]`;
          targets.push({ x: page.x(p.x), y: page.y(p.mean), text: `${name ? name + "\n" : ""}${s.name}\n${data.x_label} ${named ? data.x_categories[p.x] : exact(p.x)}\n${short(p.mean)}${interval}` });
        }
      }
    };
    for (const s of panel.series) {
      const button = html("button", "", legend);
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      html("i", "", button).style.background = colourOf(s);
      button.append(s.name);
      button.addEventListener("click", () => {
        hidden.has(s) ? hidden.delete(s) : hidden.add(s);
        button.setAttribute("aria-pressed", String(!hidden.has(s)));
        paint();
      });
    }
    canvas.addEventListener("pointermove", (event) => {
      const [px, py] = page.at(event);
      let best = null, distance = 12;
      for (const t of targets) { const d = Math.hypot(t.x - px, t.y - py); if (d < distance) { best = t; distance = d; } }
      best ? tip.show(event, best.text) : tip.hide();
    });
    canvas.addEventListener("pointerleave", () => tip.hide());
    paint();
  };

  const paintPanels = (data, box) => {
    const several = data.panels.length > 1;
    for (const panel of data.panels) {
      const part = html("div", "", box);
      if (several) html("p", "soft", part, panel.name);
      part.style.position = "relative";
      paintLines(data, panel, part, several ? panel.name : "");
    }
  };

  // The colour at a place of a palette of equidistant colours.
  const paletteColour = (palette, share) => {
    const at = Math.max(0, Math.min(1, share)) * (palette.length - 1), first = Math.min(Math.floor(at), palette.length - 2);
    const part = (colour, i) => parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16);
    return `rgb(${[0, 1, 2].map((i) => Math.round(part(palette[first], i) + (at - first) * (part(palette[first + 1], i) - part(palette[first], i)))).join(", ")})`;
  };

  const paintScale = (page) => {
    const scale = page.layout.scale, high = page.base - page.top, steps = 33;
    const part = svg("svg", { x: scale.left, y: 0, width: page.layout.width - scale.left, height: page.height, role: "img", "aria-label": "colour scale" }, page.canvas);
    for (let i = 0; i < steps; ++i)
      svg("rect", { x: 0, y: page.base - (i + 1) * high / steps, width: scale.width, height: high / steps + .2, fill: paletteColour(scale.palette, (i + .5) / steps) }, part);
    for (const [value, label] of scale.ticks)
      write(part, label, scale.width + 3, page.base - (value - scale.low) / (scale.high - scale.low) * high, 7, "start");
  };

  const paintHeatMap = (data, box) => {
    const tip = tipOf(box), columns = data.x_names.length;
    let pointed = false;
    for (const panel of data.panels) {
      if (data.panels.length > 1) html("p", "soft", box, panel.name);
      const layout = panel.layout, scale = layout.scale, texts = layout.cells[0] ?? [];
      const page = pageOf(layout, box, `${data.title}: ${panel.name}`);
      const colourOf = (value) => value === null ? "#d9d9d9" : paletteColour(scale.palette, (value - scale.low) / (scale.high - scale.low));
      const inkAt = (value) => (value - data.low) / (data.high - data.low || 1) >= .6 ? "#000" : "#fff";
      if (!layout.has_intervals && panel.intervals.some((interval) => interval)) pointed = true;
      const told = (at) => `${panel.censored[at] ? ">" : ""}${short(shown[at])}${panel.intervals[at] ? ` [${short(panel.intervals[at][0])}, ${short(panel.intervals[at][1])}]` : ""}`;
      let shown = panel.values;
      const width = (page.right - page.left) / columns, height = (page.base - page.top) / data.y_names.length, tiles = [], inks = [];
      const note = html("pre", "", box);
      note.hidden = true;
      panel.values.forEach((value, at) => {
        const column = at % columns, row = Math.floor(at / columns), x = page.x(column), y = page.y(row);
        const tile = svg("rect", { x: x - width / 2, y: y - height / 2, width, height, fill: colourOf(value), "shape-rendering": "crispEdges" }, page.canvas);
        tiles.push(tile);
        tile.addEventListener("pointermove", (event) => tip.show(event, `${data.x_label} ${data.x_names[column]}\n${data.y_label} ${data.y_names[row]}\n${data.value_label ? data.value_label + " " : ""}${shown[at] === null ? "none" : told(at)}`));
        tile.addEventListener("pointerleave", () => tip.hide());
        if (panel.row_notes[row]) {
          tile.style.cursor = "pointer";
          tile.addEventListener("click", () => { note.textContent = panel.row_notes[row]; note.hidden = false; });
        }
        if (!texts.length) return;
        const style = `fill:${texts[at].bright ? "#000" : "#fff"};pointer-events:none`;
        inks.push(write(page.canvas, texts[at].number, x, y - layout.number_rise * height, layout.number_size, "middle", { style }));
        if (texts[at].interval) write(page.canvas, texts[at].interval, x, y - layout.interval_rise * height, layout.interval_size, "middle", { style });
      });
      if (panel.frames.length > 1) {
        const slider = html("input", "data", box), at = html("span", "soft data", box);
        Object.assign(slider, { type: "range", min: 0, max: panel.frames.length - 1, value: panel.frames.length - 1 });
        slider.setAttribute("aria-label", "recorded step");
        at.textContent = " " + panel.frames[panel.frames.length - 1].name;
        slider.addEventListener("input", () => {
          const frame = panel.frames[slider.value];
          shown = frame.values;
          tiles.forEach((tile, place) => {
            tile.setAttribute("fill", colourOf(shown[place]));
            if (!inks[place]) return;
            inks[place].textContent = frame.numbers[place];
            inks[place].style.fill = inkAt(shown[place]);
          });
          at.textContent = " " + frame.name;
        });
      }
      box.append(note);
      paintTicks(page, 7, 0);
      paintTexts(page);
      paintScale(page);
    }
    if (pointed) html("p", "soft", box, "The intervals are shown at the pointer.");
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

  // The factor by which the rows of a router fit into the box at all steps.
  const stretchOf = (frames, [xLow, xHigh, yLow, yHigh]) => {
    let stretch = Infinity;
    for (const frame of frames) for (const [x, y] of frame.scores) {
      if (x) stretch = Math.min(stretch, Math.max((x > 0 ? xHigh : xLow) / x, 0));
      if (y) stretch = Math.min(stretch, Math.max((y > 0 ? yHigh : yLow) / y, 0));
    }
    return Number.isFinite(stretch) ? .8 * stretch : 0;
  };

  const paintPlane = (data, box) => {
    const tip = tipOf(box);
    for (const panel of data.panels) {
      if (data.panels.length > 1) html("p", "soft", box, panel.name);
      const page = pageOf(panel.layout, box, `${data.title}: ${panel.name}`), canvas = page.canvas, { x: xAxis, y: yAxis } = panel.layout;
      const area = [xAxis.low, xAxis.high, yAxis.low, yAxis.high];
      const regions = svg("g", {}, canvas), stretch = stretchOf(panel.frames, area);
      const points = panel.points.map(([x, y]) => svg("circle", { cx: page.x(x), cy: page.y(y), r: 1 }, canvas));
      const arrows = svg("g", {}, canvas);
      for (const [x, y] of panel.means)
        svg("path", { d: `M${page.x(x) - 1.5} ${page.y(y) - 1.5}l3 3m0 -3l-3 3`, stroke: "var(--ink)", "stroke-width": .7, fill: "none" }, canvas);
      svg("rect", { x: page.left, y: page.top, width: page.right - page.left, height: page.base - page.top, fill: "none", stroke: "var(--soft)", "stroke-width": .6 }, canvas);
      paintTexts(page);
      let frame;
      const show = (place) => {
        frame = panel.frames[place];
        regions.replaceChildren();
        arrows.replaceChildren();
        points.forEach((point, i) => point.setAttribute("fill", "#" + data.colours[frame.labels[i]]));
        frame.scores.forEach(([x, y], label) => {
          const region = regionOf(frame.scores, label, area), fill = "#" + data.colours[label];
          if (region.length > 2) svg("polygon", { points: region.map((p) => `${page.x(p[0])},${page.y(p[1])}`).join(" "), fill, opacity: .28 }, regions);
          if (data.colours[label] === data.grey || stretch === 0) return;
          svg("line", { x1: page.x(0), y1: page.y(0), x2: page.x(stretch * x), y2: page.y(stretch * y), stroke: "var(--ink)", "stroke-width": .6 }, arrows);
          svg("circle", { cx: page.x(stretch * x), cy: page.y(stretch * y), r: 1.8, fill, stroke: "var(--ink)", "stroke-width": .6 }, arrows);
        });
      };
      const last = panel.frames.length - 1;
      show(last);
      if (last > 0) {
        const slider = html("input", "data", box), at = html("span", "soft data", box);
        Object.assign(slider, { type: "range", min: 0, max: last, value: last });
        slider.setAttribute("aria-label", "recorded step");
        const move = () => { show(slider.value); at.textContent = " " + frame.name; };
        slider.addEventListener("input", move);
        move();
      }
      canvas.addEventListener("pointermove", (event) => {
        const [px, py] = page.at(event);
        if (px < page.left || px > page.right || py < page.top || py > page.base) return tip.hide();
        const x = area[0] + (px - page.left) / (page.right - page.left) * (area[1] - area[0]);
        const y = area[3] - (py - page.top) / (page.base - page.top) * (area[3] - area[2]);
        const near = panel.points.findIndex((p) => Math.hypot(page.x(p[0]) - px, page.y(p[1]) - py) < 2);
        const values = frame.scores.map((s) => s[0] * x + s[1] * y + s[2]);
        if (near >= 0) tip.show(event, `test row ${near}\n${data.label} ${frame.labels[near]}`);
        else if (values.length > 0) tip.show(event, `${data.label} ${values.indexOf(Math.max(...values))}`);
        else tip.hide();
      });
      canvas.addEventListener("pointerleave", () => tip.hide());
    }
    const legend = html("div", "legend soft", box);
    Object.assign(legend.style, { columnGap: ".9rem", fontSize: ".8rem" });
    for (const { name, style } of data.legend) {
      if (style.marker === "o") {
        const entry = html("span", "", legend);
        html("i", "", entry).style.background = inkOf(style.colour);
        entry.append(name);
      } else {
        html("span", "", legend, `${style.marker ? "×" : "—"} ${name}`);
      }
    }
  };

  for (const box of document.querySelectorAll("figure")) {
    if (!box.querySelector("script")) continue;
    const data = JSON.parse(box.querySelector("script").textContent);
    const place = html("div", "");
    box.insertBefore(place, box.querySelector("figcaption"));
    ({ lines: paintPanels, heat_map: paintHeatMap, embedding: paintPlane })[data.kind](data, place);
    // The tip is placed within the figure, whose border box it is measured by.
    place.style.position = "relative";
  }
})();
