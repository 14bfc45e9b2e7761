"""Paints figures with matplotlib.

``Run.figure_data`` returns a figure with its layout: frames, ticks, texts and legend in points from the lower left
corner of the page. The program computes this layout once for all painters, so nothing is measured or chosen here.
With axes of your own, your theme decides how texts and frames look, and matplotlib places the legend.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ._convert import shown
from ._extras import extra
from .errors import UserError

_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.labelsize": 7.5,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#333333",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#D9D9D9",
    "grid.linewidth": 0.4,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "svg.hashsalt": "moelab",
}
_MARKER_SIZE = 3
_LENGTHS = ("font.size", "size", "width")


def _theme(layout: dict[str, Any]) -> dict[str, Any]:
    """The style in the layout's font and size. Glyphs that the font lacks come from DejaVu Sans."""
    scale = layout["font_scale"]
    theme = {name: value * scale if name.endswith(_LENGTHS) else value for name, value in _STYLE.items()}
    return {**theme, "font.family": list(dict.fromkeys((layout["font"], "DejaVu Sans")))}


def _scaled(look: dict[str, Any], scale: float) -> dict[str, Any]:
    """A look whose lines and marks grow with the letters."""
    return {**look, "linewidth": look["linewidth"] * scale, "markersize": look["markersize"] * scale}


def _line(style: dict[str, Any], width: float) -> dict[str, Any]:
    """A style of the layout as keywords of matplotlib. Dashes are in units of gnuplot, about half a line width."""
    dash = style["dash"]
    return {
        "color": f"#{style['colour']}",
        "linewidth": width,
        "linestyle": "none" if dash is None else (0, [length / 2 for length in dash]) if dash else "-",
        "marker": style["marker"] or "none",
        "markersize": _MARKER_SIZE,
        "markerfacecolor": f"#{style['colour']}" if style["filled"] else "white",
    }


def _values(points: list[dict[str, Any]], name: str, logarithmic: bool) -> list[float]:
    """One number for each point. NaN, a gap, replaces an absent number and one that a logarithmic axis cannot show."""
    values = (point.get(name) for point in points)
    return [math.nan if v is None or (logarithmic and v <= 0) else v for v in values]


def _paint_band(axes: Any, x: list[float], low: list[float], high: list[float], colour: str, bars: bool) -> None:
    alone = [place for place in range(len(x)) if bars or _is_alone(place, low, high)]
    axes.vlines([x[i] for i in alone], [low[i] for i in alone], [high[i] for i in alone], color=colour, linewidth=0.8)
    if not bars:
        axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)


def _is_alone(place: int, low: list[float], high: list[float]) -> bool:
    """Whether the band has no width there, because both neighbours are gaps."""
    near = [i for i in (place - 1, place + 1) if 0 <= i < len(low)]
    return all(math.isnan(low[i] + high[i]) for i in near)


def _paint_series(axes: Any, line: dict[str, Any], data: dict[str, Any]) -> None:
    y_log, look = data["y_log"], _line(data["styles"][line["name"]], 1.3)
    within = data["x_range"] or (-math.inf, math.inf)
    points = [point for point in line["points"] if within[0] <= point["x"] <= within[1]]
    x = _values(points, "x", data["x_log"])
    mean = _values(points, "mean", y_log)
    if line["look"] == "reference":
        axes.plot(x, mean, label=line["name"], **{**look, "linewidth": 1})
        return
    # On a logarithmic axis a band that reaches zero ends at the frame.
    floor = data["layout"]["y"]["low"] if y_log else -math.inf
    low = [max(value, floor) for value in _values(points, "low", False)]
    _paint_band(axes, x, low, _values(points, "high", y_log), look["color"], line["look"] == "marks")
    if line["seed_lines"]:
        seeds = max(len(point["seeds"]) for point in points)
        for seed in range(seeds):
            of_seed = [{"y": (point["seeds"] + [None] * seeds)[seed]} for point in points]
            axes.plot(x, _values(of_seed, "y", y_log), color=look["color"], linewidth=0.4, alpha=0.44)
    marked = [i for i, point in enumerate(points) if not point["censored"]][:: line["marker_step"]]
    axes.plot(x, mean, label=line["name"], markevery=marked, **look)
    bounds = [i for i, point in enumerate(points) if point["censored"]]
    if bounds:
        axes.plot([x[i] for i in bounds], [mean[i] for i in bounds], label="_censored",
                  **{**look, "linestyle": "none", "markerfacecolor": "white"})


def _paint_lines(axes: Any, data: dict[str, Any], place: int) -> None:
    axes.grid(True)
    axes.set_axisbelow(True)
    for line in data["panels"][place]["series"] if data["panels"] else []:
        _paint_series(axes, line, data)


def _paint_rates(axes: Any, data: dict[str, Any], place: int) -> None:
    axes.grid(True)
    for line in data["panels"][place]:
        look, points = _line(data["styles"][line["name"]], 1.2), line["points"]
        x = _values(points, "x", True)
        axes.plot(x, _values(points, "fitted", True), color=look["color"], linewidth=1.2)
        _paint_band(axes, x, _values(points, "low", True), _values(points, "high", True), look["color"], True)
        axes.plot(x, _values(points, "mean", True), label=line["name"], **{**look, "linestyle": "none"})
    for reference in data["references"]:
        ends = reference["ends"]
        axes.plot([end[0] for end in ends], [end[1] for end in ends], label=reference["name"], **_line(data["styles"][reference["name"]], 0.8))


def _paint_heat_map(axes: Any, data: dict[str, Any], place: int) -> None:
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap

    layout, panel = data["layout"], data["panels"][place]
    scale, columns = layout["scale"], len(data["x_names"])
    axes.set_facecolor("#D9D9D9")
    axes.spines[:].set_visible(False)
    axes.tick_params(which="both", length=0, pad=3)
    values = np.array([math.nan if v is None else v for v in panel["values"]], float)
    image = axes.imshow(
        values.reshape(len(data["y_names"]), columns), origin="lower", aspect="auto", interpolation="nearest",
        cmap=LinearSegmentedColormap.from_list("scale", scale["palette"]), vmin=scale["low"], vmax=scale["high"],
    )
    for cell, text in enumerate(layout["cells"][place] if layout["cells"] else []):
        row, column = divmod(cell, columns)
        look = {"ha": "center", "va": "center", "color": "black" if text["bright"] else "white"}
        if text["number"]:
            axes.text(column, row + layout["number_rise"], text["number"], fontsize=layout["number_size"], **look)
        if text["interval"]:
            axes.text(column, row + layout["interval_rise"], text["interval"], fontsize=layout["interval_size"], **look)
    if place + 1 == len(data["panels"]):
        page = (layout["width"], layout["height"])
        beside = axes.figure.add_axes([
            scale["left"] / page[0], scale["bottom"] / page[1], scale["width"] / page[0], scale["height"] / page[1],
        ])
        bar = axes.figure.colorbar(image, cax=beside, ticks=[value for value, _ in scale["ticks"]])
        bar.set_ticklabels([label for _, label in scale["ticks"]])
        beside.tick_params(length=2, pad=2, labelsize=7)


def _paint_embedding(axes: Any, data: dict[str, Any], place: int) -> None:
    from matplotlib.collections import PolyCollection

    panel, colours = data["panels"][place], data["colours"]
    corners = [
        [(r["x_low"], r["y_low"]), (r["x_high"], r["y_low"]), (r["x_high"], r["y_high"]), (r["x_low"], r["y_high"])]
        for r in panel["regions"]
    ]
    pale = [f"#{colours['areas'][region['colour']]}" for region in panel["regions"]]
    axes.add_collection(PolyCollection(corners, facecolors=pale, linewidth=0), autolim=False)
    for points, size in ((panel["points"], 3), (panel["arrows"], 9)):
        for colour in range(-1 if points is panel["points"] else 0, len(colours["points"]) - 1):
            drawn = [point for point in points if point["colour"] == colour]
            look = {"s": size, "marker": colours["markers"][colour], "color": f"#{colours['points'][colour]}", "linewidths": 0, "zorder": 2}
            axes.scatter([p["x"] for p in drawn], [p["y"] for p in drawn], **look)
    for arrow in panel["arrows"]:
        if arrow["colour"] >= 0:
            axes.plot([0, arrow["x"]], [0, arrow["y"]], color="black", linewidth=0.8, zorder=1.9)
    means = panel["means"]
    axes.plot([p["x"] for p in means], [p["y"] for p in means], "x", color="black", markersize=3, markeredgewidth=1.2)
    axes.spines[:].set(visible=True, color="#999999")


def _paint_forest(axes: Any, data: dict[str, Any], place: int) -> None:
    panel, grey = data["panels"][place], "#555555"
    axes.grid(True, axis="x")
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    axes.axvline(panel["no_effect"], color=grey, linewidth=0.8, linestyle=(0, (2, 1.5)))
    for mark in data["marks"][place]:
        look, row = _line(data["styles"][mark["verdict"]], 1.2), mark["place"]
        axes.vlines(mark["limits"], row - 0.4, row + 0.4, color=grey, linewidth=0.8, linestyle=(0, (1, 1)))
        if mark["low"] is not None:
            axes.hlines([row], [mark["low"]], [mark["high"]], color=look["color"], linewidth=1.2)
            for end, marker in (("low", "<"), ("high", ">")):
                if mark[f"leaves_{end}"]:
                    axes.plot([mark[end]], [row], marker, color=look["color"], markersize=3, clip_on=False)
        if mark["mean"] is not None:
            axes.plot([mark["mean"]], [row], label=f"_{mark['verdict']}", **{**look, "linestyle": "none"})


_KINDS = {
    "forest": _paint_forest,
    "lines": _paint_lines,
    "heat_map": _paint_heat_map,
    "rate_panels": _paint_rates,
    "embedding": _paint_embedding,
}


def _set_axis(axis: Any, of: dict[str, Any], labelled: bool, sized: bool = True) -> None:
    """Scale, range and ticks. Ticks without a label are minor ones."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullFormatter

    axis._set_axes_scale("log" if of["log"] else "linear")
    ticks = [(place, label) for place, label in of["ticks"] if label]
    axis.set_major_locator(FixedLocator([place for place, _ in ticks]))
    axis.set_major_formatter(FixedFormatter([label for _, label in ticks]))
    axis.set_minor_locator(FixedLocator([place for place, label in of["ticks"] if not label]))
    axis.set_minor_formatter(NullFormatter())
    if of["upright"]:
        axis.set_tick_params(rotation=90)
    if sized:
        axis.set_tick_params(labelsize=of["size"])
    if not labelled:
        axis.set_tick_params(which="both", labelbottom=False, labelleft=False)


def _write_texts(axes: Any, frame: dict[str, Any], layout: dict[str, Any]) -> None:
    """The texts that belong to a panel. Labels of axes and names of panels are matplotlib's own, at their places."""
    from matplotlib.lines import Line2D

    figure, width, height = axes.figure, layout["width"], layout["height"]
    blocks: dict[str, list[dict[str, Any]]] = {}
    for text in frame["texts"]:
        if text["role"] in ("x_label", "y_label", "panel"):
            blocks.setdefault(text["role"], []).append(text)
            continue
        x, y = text["x"] / width, text["y"] / height
        if "sample" in text:
            look, length = _scaled(_line(text["sample"], 1.3), layout["font_scale"]), layout["sample"] / width
            on_page = {"transform": figure.transFigure}
            figure.add_artist(Line2D([x, x + length], [y, y], **{**look, "marker": "none"}, **on_page))
            figure.add_artist(Line2D([x + length / 2], [y], **{**look, "linestyle": "none"}, **on_page))
            continue
        figure.text(
            x, y, text["text"], fontsize=text["size"], rotation=text["rotation"], va="center",
            ha="center" if text["centred"] else "left", rotation_mode="anchor" if not text["rotation"] else "default",
            color=f"#{text['colour']}" if text["colour"] else "black",
        )
    for role, lines in blocks.items():
        label, size = "\n".join(line["text"] for line in lines), lines[0]["size"]
        x, y = (sum(line[axis] for line in lines) / len(lines) for axis in ("x", "y"))
        if role == "panel":
            above = (y - frame["bottom"]) / frame["height"]
            axes.set_title(label, loc="center" if lines[0]["centred"] else "left", y=above, pad=0, va="center",
                           fontsize=lines[0]["size"])
        else:
            axis = axes.xaxis if role == "x_label" else axes.yaxis
            axis.set_label_text(label, va="center", ha="center", fontsize=size)
            axis.set_label_coords(x / width, y / height, transform=figure.transFigure)


def draw(data: dict[str, Any]) -> Any:
    """A matplotlib figure of what ``Run.figure_data`` returns. It opens no window and does not touch pyplot."""
    matplotlib = extra("matplotlib", "figures", "figures")
    from ._shown_figure import ShownFigure

    layout = data["layout"]
    width, height = layout["width"], layout["height"]
    with matplotlib.rc_context(_theme(layout)):
        figure: Any = ShownFigure(figsize=(width / 72, height / 72), dpi=200)
        for place, frame in enumerate(layout["panels"]):
            axes = figure.add_axes([
                frame["left"] / width, frame["bottom"] / height, frame["width"] / width, frame["height"] / height,
            ])
            x_axis = frame.get("x", layout["x"])
            y_axis = frame.get("y", layout["y"])
            _set_axis(axes.xaxis, x_axis, frame["x_labels"])
            _set_axis(axes.yaxis, y_axis, frame["y_labels"])
            _KINDS[data["kind"]](axes, data, place)
            axes.set_xlim(x_axis["low"], x_axis["high"])
            axes.set_ylim(y_axis["low"], y_axis["high"])
            _write_texts(axes, frame, layout)
            _grow(axes, layout["font_scale"])
    return figure


def _grow(axes: Any, scale: float) -> None:
    """Lines and marks of a panel grow with the letters."""
    for line in axes.lines if scale != 1 else ():
        line.set_linewidth(line.get_linewidth() * scale)
        line.set_markersize(line.get_markersize() * scale)


def draw_into(data: dict[str, Any], ax: Any) -> Any:
    """Paints the panels of ``Run.figure_data`` into axes of your own: one, or as many as there are panels.

    The axes keep their places, and your theme their look. Returns the matplotlib figure of the axes.
    """
    extra("matplotlib", "figures", "figures")
    layout = data["layout"]
    given = list(ax.flat) if hasattr(ax, "flat") else list(ax) if isinstance(ax, Iterable) else [ax]
    if not all(hasattr(axes, "xaxis") and hasattr(axes, "yaxis") for axes in given):
        raise UserError("ax", f"got {shown(ax)}, needs axes of matplotlib, such as plt.gca()")
    if len(given) != len(layout["panels"]):
        raise UserError("ax", f"got {len(given)} axes, needs {len(layout['panels'])}: one for each panel of {data['id']}")
    for place, (axes, frame) in enumerate(zip(given, layout["panels"], strict=True)):
        x_axis, y_axis = frame.get("x", layout["x"]), frame.get("y", layout["y"])
        _set_axis(axes.xaxis, x_axis, True, sized=False)
        _set_axis(axes.yaxis, y_axis, True, sized=False)
        _KINDS[data["kind"]](axes, data, place)
        axes.set_xlim(x_axis["low"], x_axis["high"])
        axes.set_ylim(y_axis["low"], y_axis["high"])
        texts: dict[str, list[str]] = {}
        for text in frame["texts"]:
            texts.setdefault(text["role"], []).append(text["text"])
        if "panel" in texts:
            axes.set_title("\n".join(texts["panel"]))
        axes.set_xlabel(data.get("x_label", ""))
        axes.set_ylabel(data.get("y_label", ""))
        named = [line for line in axes.lines if not line.get_label().startswith("_")]
        if place == 0 and named:
            axes.legend(handles=named)
    return given[0].figure
