"""Heat maps, rates of convergence and embeddings."""

from __future__ import annotations

import math
from typing import Any

from ._figure_parts import (
    _COLOURS,
    _GREY,
    _TWO_COLUMNS,
    _WIDTH,
    _colour,
    _draw_band,
    _legend,
    _look,
    _reference_look,
    _values,
    _wrapped,
)


def _names(names: list[str], most: int) -> tuple[list[int], list[str]]:
    """Ticks at every so many names."""
    places = list(range(0, len(names), max(1, -(-len(names) // most))))
    return places, [names[place] for place in places]


def _symmetric(data: dict[str, Any]) -> bool:
    """Whether "±" tells every interval."""
    pairs = [
        (value, interval)
        for panel in data["panels"]
        for value, interval in zip(panel["values"], panel["intervals"])
        if value is not None and interval
    ]
    return bool(pairs) and all(abs(sum(ends) - 2 * value) <= 1e-6 * (ends[1] - ends[0]) for value, ends in pairs)


def _draw_numbers(axes: Any, panel: dict[str, Any], data: dict[str, Any], with_intervals: bool) -> None:
    """The number of each cell in it, with half of its interval."""
    bright = data["low"] + 0.6 * (data["high"] - data["low"])
    for place, value in enumerate(panel["values"]):
        if value is None:
            continue
        is_above = bool(panel["censored"]) and panel["censored"][place]
        text = f"{'>' if is_above else ''}{value:.2g}"
        if with_intervals and panel["intervals"][place]:
            low, high = panel["intervals"][place]
            text += f"\n±{(high - low) / 2:.1g}"
        row, column = divmod(place, len(data["x_names"]))
        axes.text(column, row, text, fontsize=5, ha="center", va="center", color="white" if value < bright else "black")


def _draw_heat_map(figure: Any, data: dict[str, Any]) -> None:
    import numpy as np

    panels = data["panels"]
    columns, rows = len(data["x_names"]), len(data["y_names"])
    across = max(len(panels), 1) if data["compact"] else 1
    grid = figure.subplots(-(-max(len(panels), 1) // across), across, squeeze=False)
    palette = "PuOr" if data["low"] == -data["high"] else "viridis"
    square = data["compact"] and 0.5 * columns <= rows <= 1.1 * columns * across  # else cells too small to see
    with_numbers = not data["compact"] and 170 / max(columns, 1) >= 18
    image = None
    for place, (axes, panel) in enumerate(zip(grid.flat, panels)):
        values = np.array([math.nan if v is None else v for v in panel["values"]], float).reshape(rows, columns)
        axes.set_facecolor("#D9D9D9")
        image = axes.imshow(
            values, origin="lower", aspect="equal" if square else "auto", cmap=palette,
            vmin=data["low"], vmax=data["high"],
        )
        axes.set_title(panel["name"], loc="left", fontsize=7)
        axes.set_xticks(*_names(data["x_names"], 10 if not data["compact"] else max(6 // across, 2)))
        axes.set_yticks(*_names(data["y_names"], 12))
        if data["compact"] and place > 0:
            axes.set_yticks([])
        if with_numbers:
            _draw_numbers(axes, panel, data, _symmetric(data))
        axes.set_xlabel(_wrapped(data["x_label"], 2.4 / across))
        if place == 0 or not data["compact"]:
            axes.set_ylabel(_wrapped(data["y_label"], 1.5))
    if image is not None:
        figure.colorbar(image, ax=list(grid.flat), fraction=0.05, label=_wrapped(data["value_label"], 1.8))


def _draw_rate_panels(figure: Any, data: dict[str, Any]) -> None:
    rows, columns = data["rows"], data["columns"]
    grid = figure.subplots(len(rows), len(columns), squeeze=False, sharex=True, sharey=True)
    looks: dict[str, dict[str, Any]] = {}
    for name in (line["name"] for panel in data["panels"] for line in panel):
        looks.setdefault(name, {**_look(len(looks)), "linestyle": "-", "linewidth": 0.8})
    for place, (axes, panel) in enumerate(zip(grid.flat, data["panels"])):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.grid(True)
        for number, line in enumerate(panel):
            look, points = looks[line["name"]], line["points"]
            x = _values(points, "x", True)
            low, high = _values(points, "low", True), _values(points, "high", True)
            axes.plot(x, _values(points, "fitted", True), color=look["color"], linewidth=0.8)
            _draw_band(axes, x, low, high, look["color"], True)
            axes.plot(x, _values(points, "mean", True), label=line["name"], **{**look, "linestyle": "none"})
            axes.text(
                0.03, 0.03 + 0.08 * (len(panel) - 1 - number), line["slope"], transform=axes.transAxes, fontsize=5,
                color=look["color"],
            )
        axes.set_title(f"{rows[place // len(columns)]}, {columns[place % len(columns)]}", loc="left", fontsize=7)
    _draw_reference_slopes(grid, data, looks)
    for axes in grid[-1]:
        axes.set_xlabel(data["x_label"])
    for axes in grid[:, 0]:
        axes.set_ylabel(data["y_label"])
    _legend(figure, looks, _TWO_COLUMNS)


def _draw_reference_slopes(grid: Any, data: dict[str, Any], looks: dict[str, dict[str, Any]]) -> None:
    """Lines from the left edge, below the top, which leave the axes as they are."""
    (left, right), (bottom, top) = grid[0, 0].get_xlim(), grid[0, 0].get_ylim()
    begin = top**0.9 * bottom**0.1
    for place, reference in enumerate(data["references"]):
        looks[reference["name"]] = _reference_look(place)
        end = begin * (right / left) ** reference["slope"]
        for axes in grid.flat:
            axes.plot([left, right], [begin, end], label=reference["name"], **looks[reference["name"]])
    grid[0, 0].set_xlim(left, right)
    grid[0, 0].set_ylim(bottom, top)


def _draw_embedding_panel(axes: Any, panel: dict[str, Any]) -> None:
    from matplotlib.collections import PolyCollection

    corners = [
        [(r["x_low"], r["y_low"]), (r["x_high"], r["y_low"]), (r["x_high"], r["y_high"]), (r["x_low"], r["y_high"])]
        for r in panel["regions"]
    ]
    colours = [_colour(region["colour"]) for region in panel["regions"]]
    axes.add_collection(PolyCollection(corners, facecolors=colours, alpha=0.28, linewidth=0), autolim=False)
    for points, size in ((panel["points"], 1), (panel["arrows"], 5)):
        for colour in range(-1 if points is panel["points"] else 0, len(_COLOURS)):
            shown = [point for point in points if point["colour"] == colour]
            axes.scatter([p["x"] for p in shown], [p["y"] for p in shown], s=size, color=_colour(colour), zorder=2)
    for arrow in panel["arrows"]:
        if arrow["colour"] >= 0:
            axes.plot([0, arrow["x"]], [0, arrow["y"]], color="black", linewidth=0.8, zorder=1.9)
    means = panel["means"]
    axes.plot([p["x"] for p in means], [p["y"] for p in means], "x", color="black", markersize=3, markeredgewidth=1.2)
    axes.set_title(f"{panel['name']} {panel['note']}".rstrip(), loc="left", fontsize=7)
    axes.set_xticks([])
    axes.set_yticks([])


def _embedding_looks(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The labels that have a colour, by colour; then what else is drawn."""
    dot: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 3}
    panels = data["panels"]
    parts = [part for panel in panels for part in panel["points"] + panel["regions"]]
    labels = {part["colour"]: part["label"] for part in reversed(parts)}
    looks: dict[str, dict[str, Any]] = {}
    for colour in sorted(colour for colour in labels if colour >= 0):
        looks[f"{data['label']} {labels[colour]}"] = {**dot, "color": _colour(colour)}
    if -1 in labels:
        looks[f"another {data['label']}"] = {**dot, "color": _GREY}
    if any(panel["means"] for panel in panels):
        looks[data["mean_name"]] = {**dot, "marker": "x", "color": "black"}
    if any(arrow["colour"] >= 0 for panel in panels for arrow in panel["arrows"]):
        looks[data["arrow_name"]] = {"color": "black", "linewidth": 0.8}
    return looks


def _draw_embedding(figure: Any, data: dict[str, Any]) -> None:
    panels = data["panels"]
    columns = min(max(len(panels), 1), 2)
    grid = figure.subplots(-(-max(len(panels), 1) // 2), columns, squeeze=False, sharex=True, sharey=True)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    for place, (axes, panel) in enumerate(zip(grid.flat, panels)):
        _draw_embedding_panel(axes, panel)
        if columns == 1:
            axes.set_box_aspect(1)  # as square as one of two
        if place + 2 >= len(panels):
            axes.set_xlabel(_wrapped(data["x_label"], 1.6))
        if place % 2 == 0:
            axes.set_ylabel(_wrapped(data["y_label"], 1.6))
    grid[0, 0].set_xlim(data["x_range"])
    grid[0, 0].set_ylim(data["y_range"])
    _legend(figure, _embedding_looks(data), _WIDTH)
