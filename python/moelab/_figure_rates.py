"""Rates of convergence: panels of errors over samples, with the slopes of their power laws."""

from __future__ import annotations

from typing import Any

from ._figure_parts import _TWO_COLUMNS, _draw_band, _legend, _look, _reference_look, _values
from ._text_width import fitted_line, wrapped

_PANEL_HEIGHT = 1.4  # inches, at least
_SLOPE_ROOM = 0.3  # share of the data's decades that the axis has besides, below them


def _draw_rate_panels(figure: Any, data: dict[str, Any]) -> None:
    from matplotlib.ticker import NullFormatter

    rows, columns = data["rows"], data["columns"]
    width = _TWO_COLUMNS / (len(columns) + 0.4)  # of a panel, beside the axis
    grid = figure.subplots(len(rows), len(columns), squeeze=False, sharex=True, sharey=True)
    looks: dict[str, dict[str, Any]] = {}
    for name in (line["name"] for panel in data["panels"] for line in panel):
        looks.setdefault(name, {**_look(len(looks)), "linestyle": "-", "linewidth": 0.8})
    for place, (axes, panel) in enumerate(zip(grid.flat, data["panels"])):
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):  # panels this small have room for the decades alone
            axis.set_minor_formatter(NullFormatter())
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
    _draw_reference_slopes(grid, data, looks)
    for axes, name in zip(grid[0], columns):
        axes.set_title(fitted_line(name, 7, 72 * width), fontsize=7)
    for axes, name in zip(grid[:, -1], rows):
        axes.annotate(
            fitted_line(name, 7, 72 * _PANEL_HEIGHT), (1, 0.5), (4, 0), xycoords="axes fraction",
            textcoords="offset points", rotation=-90, ha="left", va="center", fontsize=7,
        )
    for axes in grid[-1]:
        axes.set_xlabel("\n".join(wrapped(data["x_label"], 7, 72 * width)))
    for axes in grid[:, 0]:
        axes.set_ylabel("\n".join(wrapped(data["y_label"], 7, 72 * _PANEL_HEIGHT)))
    _legend(figure, looks, _TWO_COLUMNS)


def _draw_reference_slopes(grid: Any, data: dict[str, Any], looks: dict[str, dict[str, Any]]) -> None:
    """Lines from the left edge, below the top, in axes with room for the slopes below the data."""
    (left, right), (bottom, top) = grid[0, 0].get_xlim(), grid[0, 0].get_ylim()
    bottom *= (bottom / top) ** _SLOPE_ROOM
    begin = top**0.9 * bottom**0.1
    for place, reference in enumerate(data["references"]):
        looks[reference["name"]] = _reference_look(place)
        end = begin * (right / left) ** reference["slope"]
        for axes in grid.flat:
            axes.plot([left, right], [begin, end], label=reference["name"], **looks[reference["name"]])
    grid[0, 0].set_xlim(left, right)
    grid[0, 0].set_ylim(bottom, top)
