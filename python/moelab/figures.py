"""Figures by matplotlib: the data of ``moelab plot``, its colours, dashes and sizes."""

from __future__ import annotations

import textwrap
from typing import Any

from ._extras import extra
from ._figure_embedding import _draw_embedding, _embedding_looks
from ._figure_heat_map import _draw_heat_map
from ._figure_lines import _draw_lines, _grid, _looks
from ._figure_parts import _TWO_COLUMNS, _WIDTH, _legend_height
from ._figure_rates import _draw_rate_panels
from ._heat_map_layout import TITLE_LINE, HeatMapLayout
from ._text_width import wrapped

_PANEL = 1.83
_SMALL_PANEL = 1.39
_CAPTION_LINE = 0.095  # inches
_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 7,
    "axes.titlesize": 8,
    "axes.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#333333",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#D9D9D9",
    "grid.linewidth": 0.4,
    "xtick.labelsize": 6,
    "ytick.labelsize": 6,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "svg.hashsalt": "moelab",
}


def _title(data: dict[str, Any], width: float) -> list[str]:
    return wrapped(data["title"], 8.5, 72 * width - 10)


def _size(data: dict[str, Any]) -> tuple[float, float]:
    """Inches, without the caption."""
    panels = data["panels"]
    if data["kind"] == "heat_map":
        return _WIDTH, (HeatMapLayout(data).height + TITLE_LINE * len(_title(data, _WIDTH))) / 72
    if data["kind"] == "rate_panels":
        names = {line["name"] for panel in panels for line in panel} | {r["name"] for r in data["references"]}
        return _TWO_COLUMNS, 0.8 + 1.6 * len(data["rows"]) + _legend_height(names, _TWO_COLUMNS)
    if data["kind"] == "embedding":
        return _WIDTH, 0.8 + 1.7 * -(-len(panels) // 2) + _legend_height(set(_embedding_looks(data)), _WIDTH)
    rows, _ = _grid(len(panels))
    width, height = (_WIDTH, _PANEL) if len(panels) < 2 else (_TWO_COLUMNS, _SMALL_PANEL + 0.3)
    names = data["x_categories"]
    room = 0.05 * max(map(len, names), default=0)  # of names that stand upright
    return width, rows * height + 0.8 + room + _legend_height(set(_looks(data)), width)


_KINDS = {
    "lines": _draw_lines,
    "heat_map": _draw_heat_map,
    "rate_panels": _draw_rate_panels,
    "embedding": _draw_embedding,
}


def draw(data: dict[str, Any]) -> Any:
    """A matplotlib figure of what ``Run.figure_data`` returns; no window and no global state of pyplot."""
    matplotlib = extra("matplotlib", "figures", "figures")
    from ._shown_figure import ShownFigure

    with matplotlib.rc_context(_STYLE):
        width, height = _size(data)
        caption = textwrap.wrap(data["caption"], round(24 * width))
        below = _CAPTION_LINE * (len(caption) + 1)
        figure: Any = ShownFigure(figsize=(width, height + below), layout="constrained", dpi=200)
        # Parts of their own, so that the legend, which lies below the panels, stays above the caption.
        drawing, text = figure.subfigures(2, 1, height_ratios=[height, below])
        _KINDS[data["kind"]](drawing, data)
        for axes in figure.axes:  # ticks that are made later do not see this style
            axes.tick_params(which="both", labelsize=_STYLE["ytick.labelsize"])
        if data["title"]:
            drawing.suptitle("\n".join(_title(data, width)), fontsize=8)
        text.text(0.02, 1, "\n".join(caption), fontsize=5, va="top", ha="left", linespacing=1.25)
    return figure
