"""Figures of lines and marks, in one panel or several with common axes."""

from __future__ import annotations

import math
from typing import Any

from ._figure_parts import _TWO_COLUMNS, _WIDTH, _draw_band, _legend, _look, _reference_look, _values, _wrapped

_SEED_LINES_BELOW = 10
_MOST_MARKERS = 12
_MOST_TICKS = 8


def _looks(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The looks of the series by name, in the order in which they are first seen; equal names look alike."""
    looks: dict[str, dict[str, Any]] = {}
    styled = references = 0
    for line in (line for panel in data["panels"] for line in panel["series"]):
        if line["name"] in looks:
            continue
        if line["look"] == "reference":
            looks[line["name"]] = _reference_look(references)
            references += 1
        else:
            looks[line["name"]] = _look(styled) | ({"linestyle": "none"} if line["look"] == "marks" else {})
            styled += 1
    return looks


def _scales(axes: Any, data: dict[str, Any], inches: float) -> None:
    """Scales, with ticks of few places at the places themselves."""
    if data["x_log"]:
        axes.set_xscale("log")
    if data["y_log"]:
        axes.set_yscale("log")
    lines = [line for panel in data["panels"] for line in panel["series"]]
    places = sorted({point["x"] for line in lines for point in line["points"]})
    names = data["x_categories"]
    if names:
        upright = max(map(len, names)) * len(names) > 22 * inches
        axes.set_xticks(range(len(names)), names, rotation=90 if upright else 0)
        axes.set_xlim(-0.5, len(names) - 0.5)
    elif 0 < len(places) <= _MOST_TICKS and not data["x_range"] and (not data["x_log"] or places[0] > 0):
        axes.set_xticks(places, [f"{place:g}" for place in places])
        axes.set_xticks([], minor=True)
    axes.grid(True)
    axes.set_axisbelow(True)


def _draw_series(axes: Any, line: dict[str, Any], look: dict[str, Any], data: dict[str, Any], floor: float) -> None:
    y_log = data["y_log"]
    within = data["x_range"] or (-math.inf, math.inf)
    points = [point for point in line["points"] if within[0] <= point["x"] <= within[1]]
    x = _values(points, "x", data["x_log"])
    mean = _values(points, "mean", y_log)
    if line["look"] == "reference":
        axes.plot(x, mean, label=line["name"], **look)
        return
    high = _values(points, "high", y_log)
    # A band that reaches below a logarithmic axis ends at its frame.
    low = [max(value, floor) for value in _values(points, "low", False)]
    _draw_band(axes, x, low, high, look["color"], line["look"] == "marks")
    seeds = max((len(point["seeds"]) for point in points), default=0)
    for seed in range(seeds if line["look"] == "line" and 1 < seeds < _SEED_LINES_BELOW else 0):
        of_seed = [{"y": (point["seeds"] + [None] * seeds)[seed]} for point in points]
        axes.plot(x, _values(of_seed, "y", y_log), color=look["color"], linewidth=0.4, alpha=0.44)
    measured = [i for i, point in enumerate(points) if not point["censored"]]
    marked = measured[:: max(1, -(-len(points) // _MOST_MARKERS))]
    axes.plot(x, mean, label=line["name"], markevery=marked, **look)
    bounds = [i for i, point in enumerate(points) if point["censored"]]
    if bounds:
        axes.plot([x[i] for i in bounds], [mean[i] for i in bounds], label="_censored",
                  **{**look, "linestyle": "none", "markerfacecolor": "white"})


def _floor(data: dict[str, Any]) -> float:
    """Where bands end on a logarithmic axis if one of them reaches zero; else −∞."""
    points = [p for panel in data["panels"] for line in panel["series"] for p in line["points"]]
    if not data["y_log"] or all(p["low"] is None or p["low"] > 0 for p in points):
        return -math.inf
    if data["y_range"]:
        return float(data["y_range"][0])
    shown = [p[name] for p in points for name in ("mean", "low", "high") if p[name] is not None and p[name] > 0]
    return min(shown) / 1.3 if shown else -math.inf


def _grid(count: int) -> tuple[int, int]:
    """Rows and columns of so many panels of lines."""
    columns = 1 if count <= 1 else 2 if count in (2, 4) else 3
    return -(-max(count, 1) // columns), columns


def _draw_lines(figure: Any, data: dict[str, Any]) -> None:
    panels = data["panels"]
    rows, columns = _grid(len(panels))
    width = _WIDTH if len(panels) < 2 else _TWO_COLUMNS
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    looks, floor = _looks(data), _floor(data)
    for place, axes in enumerate(grid.flat):
        if place >= max(len(panels), 1):
            axes.set_axis_off()
            continue
        _scales(axes, data, width / columns)
        for line in panels[place]["series"] if panels else []:
            _draw_series(axes, line, looks[line["name"]], data, floor)
        if len(panels) > 1:
            axes.set_title(_wrapped(panels[place]["name"], width / columns), fontsize=7)
        if place + columns >= len(panels):  # the lowest of each column
            axes.tick_params(labelbottom=True)
            axes.set_xlabel(_wrapped(data["x_label"], width / columns))
        if place % columns == 0:
            axes.set_ylabel(_wrapped(data["y_label"], 2))
    if math.isfinite(floor):
        grid[0, 0].set_ylim(bottom=floor)
    if data["x_range"]:
        grid[0, 0].set_xlim(data["x_range"])
    if data["y_range"]:
        grid[0, 0].set_ylim(data["y_range"])
    _legend(figure, looks, width)
