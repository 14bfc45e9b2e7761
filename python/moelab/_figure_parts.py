"""What figures of all kinds share: colours, markers, dashes and the legend."""

from __future__ import annotations

import math
import textwrap
from typing import Any

# Okabe and Ito's palette, as plots/figure.h has it.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# Of points and areas, above which black is drawn: violet in its place.
_AREA_COLOURS = (*_COLOURS[:-1], "#8C6BB1")
_MARKERS = ("o", "s", "^", "v", "D", "p")
_DASHES = ("-", (0, (6, 2)), (0, (2, 1.5)), (0, (6, 1.5, 1.5, 1.5)), (0, (10, 2)), (0, (1, 1)))
_REFERENCE = "#555555"
_REFERENCE_DASHES = ((0, (4, 2.5)), (0, (1, 1.5)), (0, (6, 1.5, 1, 1.5)))
_GREY = "#D0D0D0"
_WIDTH = 3.3  # inches
_TWO_COLUMNS = 6.9  # of several panels


def _look(place: int) -> dict[str, Any]:
    marker = _MARKERS[place % len(_MARKERS)]
    filled = place % (2 * len(_MARKERS)) < len(_MARKERS)
    colour = _COLOURS[place % len(_COLOURS)]
    return {
        "color": colour,
        "marker": marker,
        "markersize": 3,
        "markerfacecolor": colour if filled else "white",
        "linestyle": _DASHES[place % len(_DASHES)],
        "linewidth": 1.3,
    }


def _reference_look(place: int) -> dict[str, Any]:
    return {"color": _REFERENCE, "linewidth": 1.0, "linestyle": _REFERENCE_DASHES[place % len(_REFERENCE_DASHES)]}


def _values(points: list[dict[str, Any]], name: str, logarithmic: bool) -> list[float]:
    """One number a point; NaN, a gap, where there is none or a logarithmic axis cannot show it."""
    values = (point.get(name) for point in points)
    return [math.nan if v is None or (logarithmic and v <= 0) else v for v in values]


def _wrapped(label: str, inches: float) -> str:
    return textwrap.fill(label, max(round(19 * inches), 8))


def _legend(figure: Any, looks: dict[str, dict[str, Any]], inches: float) -> None:
    """Below all panels, in as many columns as the names have room for."""
    from matplotlib.lines import Line2D

    if not looks:
        return
    handles = [Line2D([], [], **look) for look in looks.values()]
    room = max(int(inches * 19) // (max(map(len, looks)) + 8), 1)
    figure.legend(
        handles, [_wrapped(name, inches - 0.5) for name in looks],
        loc="outside lower center", ncols=min(room, len(looks), 4),
    )


def _legend_height(names: set[str], inches: float) -> float:
    room = max(int(inches * 19) // (max(map(len, names), default=0) + 8), 1)
    return 0.16 * -(-len(names) // min(room, 4))


def _draw_band(axes: Any, x: list[float], low: list[float], high: list[float], colour: str, bars: bool) -> None:
    alone = [place for place in range(len(x)) if bars or _is_alone(place, low, high)]
    axes.vlines([x[i] for i in alone], [low[i] for i in alone], [high[i] for i in alone], color=colour, linewidth=0.8)
    if not bars:
        axes.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)


def _is_alone(place: int, low: list[float], high: list[float]) -> bool:
    """Whether the band has no width there, since both neighbours are gaps."""
    near = [i for i in (place - 1, place + 1) if 0 <= i < len(low)]
    return all(math.isnan(low[i] + high[i]) for i in near)


def _area_colour(place: int) -> str:
    return _GREY if place < 0 else _AREA_COLOURS[place]
