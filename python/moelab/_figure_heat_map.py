"""Heat maps: cells with numbers, or compact ones side by side."""

from __future__ import annotations

import math
from typing import Any

from ._heat_map_layout import (
    COMPACT_GAP,
    INTERVAL_SIZE,
    LABEL_LINE,
    LABEL_SIZE,
    NUMBER_SIZE,
    PAGE_WIDTH,
    SCALE_GAP,
    SCALE_WIDTH,
    TICK_SIZE,
    HeatMapLayout,
    cell_digits,
    cell_texts,
    has_numbers,
    interval_texts,
    name_ticks,
)
from ._text_width import fitted_line, text_width

# Orange over white at 0 to blue, for scales from −a to a; an odd number of steps gives 0 a colour of its own.
_SIGNED = ("#B35806", "#F1A340", "#FFFFFF", "#67A9CF", "#08306B")
_SIGNED_STEPS = 257


def _palette(data: dict[str, Any]) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    if data["low"] != -data["high"]:
        return "viridis"
    return LinearSegmentedColormap.from_list("signed", _SIGNED, _SIGNED_STEPS)


def _draw_numbers(
    axes: Any, panel: dict[str, Any], data: dict[str, Any], digits: int, intervals: list[str]
) -> None:
    """The number of each cell in it, and below it its interval."""
    texts = cell_texts(panel, digits)
    bright = data["low"] + 0.6 * (data["high"] - data["low"])
    for place, value in enumerate(panel["values"]):
        if value is None:
            continue
        row, column = divmod(place, len(data["x_names"]))
        look = {"ha": "center", "va": "center", "color": "white" if value < bright else "black"}
        axes.text(column, row + (0.18 if intervals else 0), texts[place], fontsize=NUMBER_SIZE, **look)
        if intervals and intervals[place]:
            axes.text(column, row - 0.27, intervals[place], fontsize=INTERVAL_SIZE, **look)


def _draw_scale(figure: Any, image: Any, page: HeatMapLayout, low: float, height: float) -> Any:
    place = [(PAGE_WIDTH - page.right + SCALE_GAP) / PAGE_WIDTH, low / height, SCALE_WIDTH / PAGE_WIDTH,
             page.panel_height / height]
    axes = figure.add_axes(place)
    scale = figure.colorbar(image, cax=axes, ticks=[value for value, _ in page.ticks])
    scale.set_ticklabels([text for _, text in page.ticks])
    scale.ax.tick_params(length=2, pad=2)
    return axes


def _ticks(axes: Any, data: dict[str, Any], page: HeatMapLayout) -> None:
    x, y = data["x_names"], data["y_names"]
    columns = name_ticks(x, page.cell_width, [text_width(name, TICK_SIZE) + 3 for name in x])
    rows = name_ticks(y, page.panel_height / max(len(y), 1), [TICK_SIZE + 1] * len(y))
    axes.set_xticks(columns, [x[place] for place in columns])
    axes.set_yticks(rows, [y[place] for place in rows])
    axes.tick_params(length=0, pad=3)


def _draw_heat_map(figure: Any, data: dict[str, Any]) -> None:
    import numpy as np

    page = HeatMapLayout(data)
    height = 72 * figure.bbox.height / figure.dpi  # with the title's
    panels, compact = data["panels"], data["compact"]
    digits = cell_digits(data, page.cell_width)
    intervals = interval_texts(data, page.cell_width, digits)
    # An empty range would be widened.
    extra = 0 if data["low"] < data["high"] else max(1e-12, 0.1 * abs(data["low"]))
    for place, panel in enumerate(panels):
        is_first, is_last = place == 0, place + 1 == len(panels)
        low = page.bottom + (0 if compact else page.step * (len(panels) - 1 - place))
        left = page.left + (place * (page.panel_width + COMPACT_GAP) if compact else 0)
        axes = figure.add_axes(
            [left / PAGE_WIDTH, low / height, page.panel_width / PAGE_WIDTH, page.panel_height / height]
        )
        axes.set_facecolor("#D9D9D9")
        axes.spines[:].set_visible(False)
        values = np.array([math.nan if v is None else v for v in panel["values"]], float)
        image = axes.imshow(
            values.reshape(len(data["y_names"]), len(data["x_names"])), origin="lower", aspect="auto",
            interpolation="nearest", cmap=_palette(data), vmin=data["low"] - extra, vmax=data["high"] + extra,
        )
        room = page.panel_width if compact else PAGE_WIDTH - left
        axes.set_title(fitted_line(panel["name"], LABEL_SIZE, room), loc="left", fontsize=7, pad=3)
        _ticks(axes, data, page)
        if compact and not is_first:
            axes.set_yticks([])
        if is_first:
            axes.set_ylabel("\n".join(page.y_label), va="center")
            x = 3 + LABEL_LINE * len(page.y_label) / 2
            _place_label(figure, axes.yaxis, x, page.bottom + page.labels_middle, height)
        if is_last or compact:
            axes.set_xlabel("\n".join(page.x_label), va="center")
            _place_label(figure, axes.xaxis, left + page.panel_width / 2, page.x_label_middle, height)
        else:
            axes.set_xticks([])
        if has_numbers(data, page.cell_width):
            _draw_numbers(axes, panel, data, digits, intervals[place] if intervals else [])
        if is_last or not compact:
            scale = _draw_scale(figure, image, page, low, height)
            if is_last:
                scale.set_ylabel("\n".join(page.value_label), va="center")
                x = PAGE_WIDTH - 2 - LABEL_LINE * len(page.value_label) / 2
                _place_label(figure, scale.yaxis, x, page.bottom + page.labels_middle, height)


def _place_label(figure: Any, axis: Any, x: float, y: float, height: float) -> None:
    axis.set_label_coords(x / PAGE_WIDTH, y / height, transform=figure.transSubfigure)
