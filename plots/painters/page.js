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
    tip.setAttribute("role", "status");  // a screen reader says what the keyboard points at
    return {
      /// At a place of a page, in points.
      showAt(page, x, y, text) {
        const area = page.canvas.getBoundingClientRect(), factor = area.width / page.layout.width;
        this.show({ clientX: area.left + x * factor, clientY: area.top + y * factor }, text);
      },
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
  // The keyboard points: arrows go through places, Escape leaves them.
  const onKeys = (page, go, leave) => {
    page.canvas.setAttribute("tabindex", "0");
    page.canvas.setAttribute("role", "application");
    page.canvas.setAttribute("aria-roledescription", "figure, arrow keys read its values");
    page.canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (event.key === "Escape") leave();
      if (!step) return;
      event.preventDefault();
      go(...step);
    });
    page.canvas.addEventListener("blur", leave);
  };

  // The marks of print: circle, square, triangles, diamond, pentagon and cross, as paths.
  const markPath = (marker, x, y, r) => {
    const corners = (points) => "M" + points.map(([dx, dy]) => `${(x + r * dx).toFixed(2)} ${(y + r * dy).toFixed(2)}`).join("L") + "Z";
    const around = (count, turn) => corners([...Array(count).keys()].map((i) => {
      const angle = 2 * Math.PI * i / count + turn;
      return [1.25 * Math.sin(angle), -1.25 * Math.cos(angle)];
    }));
    if (marker === "s") return corners([[-.9, -.9], [.9, -.9], [.9, .9], [-.9, .9]]);
    if (marker === "^") return around(3, 0);
    if (marker === "v") return around(3, Math.PI);
    if (marker === "D") return around(4, 0);
    if (marker === "p") return around(5, 0);
    if (marker === "x") return `M${x - r} ${y - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}`;
    return `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
  };
  const paintMark = (parent, style, colour, x, y, isOpen) => style.marker &&
    svg("path", { d: markPath(style.marker, x, y, 1.7), fill: isOpen || !style.filled ? "var(--card)" : colour, stroke: colour, "stroke-width": style.marker === "x" ? 1 : .6, "pointer-events": "none" }, parent);
  const dashesOf = (style) => (style.dash ?? []).map((length) => length / 2).join(" ");
  // A sample of a line in the legend.
  const paintSample = (parent, style, colour) => {
    const sample = svg("svg", { viewBox: "0 0 20 6", width: 30, height: 9, "aria-hidden": "true" }, parent);
    if (style.dash) svg("path", { d: "M0 3H20", stroke: colour, "stroke-width": 1.3, "stroke-dasharray": dashesOf(style) }, sample);
    paintMark(sample, style, colour, 10, 3, false);
  };

  // One slider moves all maps of a run: the others go to the same step, or as far.
  const sliders = [];
  const addSlider = (box, names, show) => {
    const slider = html("input", "data", box), at = html("span", "soft data", box), last = names.length - 1;
    Object.assign(slider, { type: "range", min: 0, max: last, value: last });
    slider.setAttribute("aria-label", "recorded step");
    const move = () => {
      show(Number(slider.value));
      at.textContent = " " + names[slider.value];
      slider.setAttribute("aria-valuetext", names[slider.value]);
    };
    const own = { slider, names, last, move, run: box.closest("section") };
    sliders.push(own);
    slider.addEventListener("input", () => {
      move();
      for (const other of sliders) {
        if (other === own || other.run !== own.run) continue;
        const same = other.names.indexOf(names[slider.value]);
        other.slider.value = same >= 0 ? same : Math.round(slider.value / (last || 1) * other.last);
        other.move();
      }
    });
    move();
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
    const styleOf = (s) => data.styles[s.name], dashOf = (s) => dashesOf(styleOf(s));
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
          for (const p of band) svg("path", { d: `M${page.x(p.x)} ${lowest(p)}V${page.y(p.high)}`, stroke: colour, "stroke-width": .8, opacity: .9 }, marks);
        }
        const seeds = Math.max(0, ...points.map((p) => p.seeds.length));
        for (let k = 0; k < seeds && s.seed_lines; ++k) {
          const line = points.filter((p) => usable(p.seeds[k] ?? null, data.y_log));
          if (line.length > 1) svg("path", { d: path(line, (p) => p.seeds[k]), fill: "none", stroke: colour, "stroke-width": .4, opacity: .6 }, marks);
        }
        if (points.length > 1 && isJoined)
          svg("path", { d: path(points, (p) => p.mean), fill: "none", stroke: colour, "stroke-width": isReference ? 1 : 1.3, "stroke-dasharray": dashOf(s) }, marks);
        for (const p of points) {
          if (!isReference) {
            paintMark(marks, styleOf(s), colour, page.x(p.x), page.y(p.mean), p.censored);
            svg("circle", { cx: page.x(p.x), cy: page.y(p.mean), r: 3, fill: "transparent" }, marks);  // what a finger hits
          }
          if (named && isReference) continue;  // it runs from edge to edge
          if (!within(p.mean, data.y_range)) continue;
          const interval = p.low === null || p.high === null ? "" : ` [${short(p.low)}, ${short(p.high)}]`;
          targets.push({ x: page.x(p.x), y: page.y(p.mean), name: s.name, value: `${short(p.mean)}${interval}`, at: `${data.x_label} ${named ? data.x_categories[p.x] : exact(p.x)}` });
        }
      }
    };
    for (const s of panel.series) {
      const button = html("button", "", legend);
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      paintSample(button, styleOf(s), colourOf(s));
      button.append(s.name);
      button.addEventListener("click", () => {
        hidden.has(s) ? hidden.delete(s) : hidden.add(s);
        button.setAttribute("aria-pressed", String(!hidden.has(s)));
        paint();
      });
    }
    const cross = svg("path", { stroke: "var(--soft)", "stroke-width": .5, "stroke-dasharray": "2 2", "pointer-events": "none" }, canvas);
    let current = null;
    const leave = () => { current = null; cross.setAttribute("d", ""); tip.hide(); };
    // The nearest mark first, then the others at its place.
    const show = (best, event) => {
      current = best;
      cross.setAttribute("d", `M${best.x} ${page.top}V${page.base}M${page.left} ${best.y}H${page.right}`);
      const others = targets.filter((t) => t !== best && Math.abs(t.x - best.x) < .05).map((t) => `\n${t.name}: ${t.value}`).join("");
      const text = `${name ? name + "\n" : ""}${best.name}\n${best.at}\n${best.value}${others}`;
      event ? tip.show(event, text) : tip.showAt(page, best.x, best.y, text);
    };
    canvas.addEventListener("pointermove", (event) => {
      const [px, py] = page.at(event);
      const isOutside = px < page.left - 6 || px > page.right + 6 || py < page.top - 6 || py > page.base + 6;
      if (isOutside || targets.length === 0) return leave();
      const near = Math.min(...targets.map((t) => Math.abs(t.x - px)));
      const column = targets.filter((t) => Math.abs(t.x - px) < near + .05);
      show(column.reduce((best, t) => Math.abs(t.y - py) < Math.abs(best.y - py) ? t : best), event);
    });
    canvas.addEventListener("pointerleave", leave);
    onKeys(page, (across, up) => {
      if (targets.length === 0) return;
      const places = [...new Set(targets.map((t) => t.x))].sort((a, b) => a - b);
      if (!current) return show(targets.find((t) => t.x === places[0]));
      const at = Math.max(0, Math.min(places.length - 1, places.indexOf(current.x) + across));
      const column = targets.filter((t) => t.x === places[at]).sort((a, b) => b.y - a.y);
      const own = column.findIndex((t) => t.name === current.name);
      show(column[Math.max(0, Math.min(column.length - 1, (own < 0 ? 0 : own) + up))]);
    }, leave);
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
      // Black or white, whichever is easier to read.
      const inkAt = (value) => {
        const [red, green, blue] = (colourOf(value).match(/\d+/g) ?? [217, 217, 217]).map((part) => (part / 255) ** 2.2);
        return .2126 * red + .7152 * green + .0722 * blue > .18 ? "#000" : "#fff";
      };
      if (!layout.has_intervals && panel.intervals.some((interval) => interval)) pointed = true;
      const told = (at) => `${panel.censored[at] ? ">" : ""}${short(shown[at])}${panel.intervals[at] ? ` [${short(panel.intervals[at][0])}, ${short(panel.intervals[at][1])}]` : ""}`;
      const textAt = (at) => `${data.x_label} ${data.x_names[at % columns]}\n${data.y_label} ${data.y_names[Math.floor(at / columns)]}\n${data.value_label ? data.value_label + " " : ""}${shown[at] === null ? "none" : told(at)}`;
      let shown = panel.values;
      const width = (page.right - page.left) / columns, height = (page.base - page.top) / data.y_names.length, tiles = [], inks = [];
      const note = html("pre", "", box);
      note.hidden = true;
      panel.values.forEach((value, at) => {
        const column = at % columns, row = Math.floor(at / columns), x = page.x(column), y = page.y(row);
        const tile = svg("rect", { x: x - width / 2, y: y - height / 2, width, height, fill: colourOf(value), "shape-rendering": "crispEdges" }, page.canvas);
        tiles.push(tile);
        tile.addEventListener("pointermove", (event) => tip.show(event, textAt(at)));
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
        addSlider(box, panel.frames.map((frame) => frame.name), (place) => {
          const frame = panel.frames[place];
          shown = frame.values;
          tiles.forEach((tile, cell) => {
            tile.setAttribute("fill", colourOf(shown[cell]));
            if (!inks[cell]) return;
            inks[cell].textContent = frame.numbers[cell];
            inks[cell].style.fill = inkAt(shown[cell]);
          });
        });
      }
      let cell = -1;
      const ring = svg("path", { fill: "none", stroke: "var(--accent)", "stroke-width": 1.5, "pointer-events": "none" }, page.canvas);
      onKeys(page, (across, up) => {
        const rows = data.y_names.length;
        const column = cell < 0 ? 0 : Math.max(0, Math.min(columns - 1, cell % columns + across));
        const row = cell < 0 ? 0 : Math.max(0, Math.min(rows - 1, Math.floor(cell / columns) + up));
        cell = row * columns + column;
        const x = page.x(column), y = page.y(row);
        ring.setAttribute("d", `M${x - width / 2} ${y - height / 2}h${width}v${height}h${-width}Z`);
        tip.showAt(page, x, y, textAt(cell));
      }, () => { cell = -1; ring.setAttribute("d", ""); tip.hide(); });
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
      const points = panel.points.map(() => svg("path", {}, canvas));
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
        points.forEach((point, i) => {
          const label = frame.labels[i], [x, y] = panel.points[i];
          point.setAttribute("fill", "#" + data.colours[label]);
          point.setAttribute("d", markPath(data.markers[label], page.x(x), page.y(y), 1));
        });
        frame.scores.forEach(([x, y], label) => {
          const region = regionOf(frame.scores, label, area), fill = "#" + data.colours[label];
          if (region.length > 2) svg("polygon", { points: region.map((p) => `${page.x(p[0])},${page.y(p[1])}`).join(" "), fill, opacity: data.shares[label] }, regions);
          if (data.colours[label] === data.grey || stretch === 0) return;
          svg("line", { x1: page.x(0), y1: page.y(0), x2: page.x(stretch * x), y2: page.y(stretch * y), stroke: "var(--ink)", "stroke-width": .6 }, arrows);
          svg("path", { d: markPath(data.markers[label], page.x(stretch * x), page.y(stretch * y), 1.8), fill, stroke: "var(--ink)", "stroke-width": .6 }, arrows);
        });
      };
      const last = panel.frames.length - 1;
      show(last);
      if (last > 0) addSlider(box, panel.frames.map((step) => step.name), show);
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
      const entry = html("span", "", legend);
      paintSample(entry, style, inkOf(style.colour));
      entry.append(name);
    }
  };

  const paintForest = (data, box) => {
    const tip = tipOf(box), layout = data.layout, height = layout.height, targets = [];
    const canvas = svg("svg", { viewBox: `0 0 ${layout.width} ${height}`, "aria-label": data.title }, box);
    data.panels.forEach((panel, place) => {
      const frame = layout.panels[place], axis = frame.x, base = height - frame.bottom, top = base - frame.height;
      const t = axis.log ? Math.log10 : (value) => value;
      const x = (v) => frame.left + frame.width * (t(v) - t(axis.low)) / (t(axis.high) - t(axis.low));
      const y = (row) => base - frame.height * row / frame.y.high;
      for (const [value, label] of axis.ticks) {
        if (!label) continue;
        svg("path", { d: `M${x(value)} ${top}V${base}`, stroke: "var(--line)", "stroke-width": .4 }, canvas);
        write(canvas, label, x(value), base + 7, 7, "middle");
      }
      svg("path", { d: `M${frame.left} ${base}h${frame.width}`, stroke: "var(--soft)", "stroke-width": .6 }, canvas);
      svg("path", { d: `M${x(panel.no_effect)} ${top}V${base}`, stroke: "var(--soft)", "stroke-width": .8, "stroke-dasharray": "2 1.5" }, canvas);
      for (const text of frame.texts) write(canvas, text.text, text.x, height - text.y, text.size, text.centred ? "middle" : "start");
      data.marks[place].forEach((mark, i) => {
        const style = data.styles[mark.verdict], colour = inkOf(style.colour === "555555" ? "" : style.colour), at = y(mark.place), row = panel.rows[i];
        for (const limit of mark.limits) svg("path", { d: `M${x(limit)} ${at - 4}v8`, stroke: "var(--soft)", "stroke-width": .8, "stroke-dasharray": "1 1" }, canvas);
        if (mark.low !== null) svg("path", { d: `M${x(mark.low)} ${at}H${x(mark.high)}`, stroke: colour, "stroke-width": 1.2 }, canvas);
        if (mark.leaves_low) svg("path", { d: `M${x(mark.low) + 3} ${at - 2}l-3 2l3 2`, fill: "none", stroke: colour }, canvas);
        if (mark.leaves_high) svg("path", { d: `M${x(mark.high) - 3} ${at - 2}l3 2l-3 2`, fill: "none", stroke: colour }, canvas);
        if (mark.mean !== null) paintMark(canvas, style, colour, x(mark.mean), at, false);
        const interval = row.low === null ? "" : ` [${short(row.low)}, ${short(row.high)}]`;
        const own = { x: x(mark.mean ?? panel.no_effect), y: at, text: [row.claim, row.point, row.verdict, row.mean === null ? "no estimate" : `${short(row.mean)}${interval}`].filter(Boolean).join("\n") };
        svg("circle", { cx: own.x, cy: at, r: 3, fill: "transparent" }, canvas);
        targets.push(own);
      });
    });
    const page = { canvas, layout };
    canvas.addEventListener("pointermove", (event) => {
      const area = canvas.getBoundingClientRect(), py = (event.clientY - area.top) * layout.width / area.width;
      const best = targets.reduce((near, t) => near && Math.abs(near.y - py) <= Math.abs(t.y - py) ? near : t, null);
      best && Math.abs(best.y - py) < 7 ? tip.show(event, best.text) : tip.hide();
    });
    canvas.addEventListener("pointerleave", () => tip.hide());
    let at = -1;
    onKeys(page, (across, up) => {
      if (targets.length === 0) return;
      at = Math.max(0, Math.min(targets.length - 1, at + across - up));
      tip.showAt(page, targets[at].x, targets[at].y, targets[at].text);
    }, () => { at = -1; tip.hide(); });
    const legend = html("div", "legend soft", box);
    for (const verdict in data.styles) {
      const entry = html("span", "", legend), style = data.styles[verdict];
      paintSample(entry, style, inkOf(style.colour === "555555" ? "" : style.colour));
      entry.append(verdict);
    }
  };

  for (const box of document.querySelectorAll("figure")) {
    if (!box.querySelector("script")) continue;
    const data = JSON.parse(box.querySelector("script").textContent);
    const place = html("div", "");
    box.insertBefore(place, box.querySelector("figcaption"));
    ({ lines: paintPanels, heat_map: paintHeatMap, embedding: paintPlane, forest: paintForest })[data.kind](data, place);
    // The tip is placed within the figure, whose border box it is measured by.
    place.style.position = "relative";
  }
})();
