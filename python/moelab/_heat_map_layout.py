"""Where the parts of a heat map lie and what is written in its cells, by the rules of plots/heat_map.cpp and
plots/heat_map.cpp: a caption that says where the intervals stand is the program's."""

from __future__ import annotations

import math
from typing import Any

from ._figure_parts import _WIDTH
from ._text_width import fitted_lines, text_width, widest, wrapped

# Lengths in points, as there. Texts are measured at the program's sizes, of which labels and ticks are drawn at a
# little less.
LABEL_SIZE, TICK_SIZE, NUMBER_SIZE, INTERVAL_SIZE = 7.5, 7, 6.5, 5
LABEL_LINE, TITLE_LINE, PAGE_MARGIN = 9.5, 11.5, 5
PANEL_NAME, BETWEEN_PANELS, COMPACT_GAP = 12, 8, 6
SCALE_GAP, SCALE_WIDTH = 5, 6
_SCALE_NUMBER_GAP, _ROW_NAME_GAP, _COLUMN_NAMES = 9, 6, 12
_ROW_HEIGHT, _MOST_ROW_HEIGHT, _MOST_COMPACT_HEIGHT, _LABEL_OVERHANG = 17, 44, 180, 12
_LEAST_LABEL_ROOM, _MOST_LABEL_ROOM = 60, 120
_NUMBER_ROOM = 18
_MOST_DIGITS = 5

PAGE_WIDTH = 72 * _WIDTH


def cell_number(value: float, digits: int) -> str:
    """Of so many significant digits; from there on whole: 123 takes less room than 1.2e+02, and says more."""
    return f"{value:.0f}" if 10**digits - 0.5 <= abs(value) < 9999.5 else f"{value:.{digits}g}"


def cell_texts(panel: dict[str, Any], digits: int) -> list[str | None]:
    """The number of each cell, after ">" where it is censored; None where there is none."""
    censored = panel["censored"] or [False] * len(panel["values"])
    return [
        None if value is None else f"{'>' if is_above else ''}{cell_number(value, digits)}"
        for value, is_above in zip(panel["values"], censored)
    ]


def _needed_digits(data: dict[str, Any]) -> int:
    """How many tell apart numbers whose colours can be told apart: those of a tenth of the scale."""
    step = (data["high"] - data["low"]) / 10
    if step <= 0:
        return 2
    exponent = math.floor(math.log10(max(abs(data["low"]), abs(data["high"]))))
    enough = (digits for digits in range(2, _MOST_DIGITS) if 10.0 ** (exponent + 1 - digits) <= step * (1 + 1e-9))
    return next(enough, _MOST_DIGITS)


def cell_digits(data: dict[str, Any], cell_width: float) -> int:
    """As many as that, or as cells of this width have room for, two at least."""
    digits = _needed_digits(data)

    def fits() -> bool:
        texts = [text for panel in data["panels"] for text in cell_texts(panel, digits) if text]
        return widest(texts, NUMBER_SIZE) <= cell_width - 2

    while digits > 2 and not fits():
        digits -= 1
    return digits


def _half(value: float) -> str:
    return f"{value:.0f}" if 9.5 <= value < 9999.5 else f"{value:.1g}"


def _intervals(data: dict[str, Any]) -> list[tuple[float, float, float]]:
    """Value and ends of each cell that has both."""
    return [
        (value, *interval)
        for panel in data["panels"]
        for value, interval in zip(panel["values"], panel["intervals"])
        if value is not None and interval
    ]


def _symmetric(data: dict[str, Any]) -> bool:
    """Whether "±" tells every interval."""
    return all(abs(low + high - 2 * value) <= 1e-6 * (high - low) for value, low, high in _intervals(data))


def interval_texts(data: dict[str, Any], cell_width: float, digits: int) -> list[list[str]]:
    """Of each panel's cells, "" where there is none: half of the interval where all are symmetric, else both ends,
    of so many digits. Empty where one of them does not fit."""
    present = _intervals(data)
    if not has_numbers(data, cell_width) or not present:
        return []
    symmetric = _symmetric(data)

    def written(low: float, high: float) -> str:
        if symmetric:
            return f"±{_half((high - low) / 2)}"
        return f"{cell_number(low, digits)}–{cell_number(high, digits)}"

    if not symmetric and any(text_width(written(*ends), INTERVAL_SIZE) > cell_width - 2 for _, *ends in present):
        return []
    return [
        [
            "" if value is None or not interval else written(*interval)
            for value, interval in zip(panel["values"], panel["intervals"])
        ]
        for panel in data["panels"]
    ]


def has_numbers(data: dict[str, Any], cell_width: float) -> bool:
    return not data["compact"] and cell_width >= _NUMBER_ROOM


def name_ticks(names: list[str], room: float, sizes: list[float]) -> list[int]:
    """Places of every so many names, the fewest left out so that none runs into the one before. ``room``: of each;
    ``sizes``: how much each takes."""

    def fits(step: int) -> bool:
        return all((sizes[i] + sizes[i - step]) / 2 <= room * step for i in range(step, len(names), step))

    steps = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
    return list(range(0, len(names), next((step for step in steps if fits(step)), steps[-1])))


def scale_ticks(data: dict[str, Any], height: float) -> list[tuple[float, str]]:
    """Of a colour scale of this height: multiples of 1, 2 or 5 times a power of ten from end to end; those whose
    numbers would run into the one below are left out. The value where there is a single one."""
    low, high = data["low"], data["high"]
    if not low < high:
        return [(low, _tick_label(low))]
    length = high - low
    power = 10.0 ** math.floor(math.log10(length / 4))
    step = max(digit * power for digit in (1, 2, 5) if digit == 1 or length / (digit * power) >= 4)
    ticks = []
    free_from = -height
    for count in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1):
        value = count * step
        place = (value - low) / length * height
        if place < free_from:
            continue
        free_from = place + TICK_SIZE + 1.5
        ticks.append((value, _tick_label(value)))
    return ticks


def _tick_label(value: float) -> str:
    is_far = value != 0 and (abs(value) >= 1e7 or abs(value) < 1e-4)
    return f"{value:.3g}" if is_far else f"{value:.7g}"


def _rotated_length(label: str) -> float:
    """The room in which a rotated label has two lines, where that is not too much."""
    rooms = range(_LEAST_LABEL_ROOM, _MOST_LABEL_ROOM, 4)
    return next((room for room in rooms if len(wrapped(label, LABEL_SIZE, room)) <= 2), _MOST_LABEL_ROOM)


class HeatMapLayout:
    """Lengths and places from the lower left corner of the page, without the caption."""

    def __init__(self, data: dict[str, Any]) -> None:
        count = max(len(data["panels"]), 1)
        named = PANEL_NAME + BETWEEN_PANELS
        down = 1 if data["compact"] else count
        # Rows are higher where few of them would leave the rotated labels no room.
        rows = count * max(len(data["y_names"]), 1)
        labels = max(_rotated_length(data["y_label"]), _rotated_length(data["value_label"]))
        self.row_height = min(max((labels - (count - 1) * named) / rows, _ROW_HEIGHT), _MOST_ROW_HEIGHT)
        if data["compact"]:
            self._place_panels(data, _MOST_COMPACT_HEIGHT)
            # The height of the cells, which their labels must not outgrow, follows from the width that these leave.
            self._place_panels(data, max(self.panel_height + 2 * _LABEL_OVERHANG, _LEAST_LABEL_ROOM))
        else:
            self._place_panels(data, max(self.row_height * rows + (count - 1) * named, labels))
        self.ticks = scale_ticks(data, self.panel_height)
        longest = max(widest(self.y_label, LABEL_SIZE), widest(self.value_label, LABEL_SIZE))
        self.step = self.panel_height + named
        if data["compact"]:
            self.step += max((longest - self.panel_height) / 2 - PANEL_NAME, 0)
            self.labels_middle = self.panel_height / 2
        else:  # rotated labels must not be longer than all panels
            self.step += max(longest - (self.step * down - named), 0) / down
            self.labels_middle = (self.step * down - named) / 2
        room = self.panel_width if data["compact"] else PAGE_WIDTH - abs(self.left - self.right) - 2 * PAGE_MARGIN
        self.x_label = wrapped(data["x_label"], LABEL_SIZE, room)
        label_height = LABEL_LINE * len(self.x_label)
        self.x_label_middle = 2 + label_height / 2
        self.bottom = 2 + label_height + _COLUMN_NAMES
        self.height = self.bottom + self.step * down

    def _place_panels(self, data: dict[str, Any], room: float) -> None:
        """``room``: of the rotated labels."""
        across = max(len(data["panels"]), 1) if data["compact"] else 1
        self.y_label = fitted_lines(data["y_label"], LABEL_SIZE, room, 2)
        self.value_label = fitted_lines(data["value_label"], LABEL_SIZE, room, 2)
        self.left = 3 + LABEL_LINE * len(self.y_label) + _ROW_NAME_GAP + widest(data["y_names"], TICK_SIZE)
        numbers = widest([text for _, text in scale_ticks(data, 1000)], TICK_SIZE)
        self.right = SCALE_GAP + SCALE_WIDTH + _SCALE_NUMBER_GAP + numbers + 3 + LABEL_LINE * len(self.value_label)
        self.panel_width = (PAGE_WIDTH - self.left - self.right - (across - 1) * COMPACT_GAP) / across
        self.cell_width = self.panel_width / max(len(data["x_names"]), 1)
        self.panel_height = (self.cell_width if data["compact"] else self.row_height) * len(data["y_names"])
        if data["compact"]:
            self.panel_height = min(self.panel_height, _MOST_COMPACT_HEIGHT)
