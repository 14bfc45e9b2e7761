"""Frames: the rows that claims become, and the CSV that given columns become."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ._border import json_text, shown, text
from .errors import UserError

CLAIM_COLUMNS = [
    "id",
    "verdict",
    "origin",
    "text",
    "source",
    "paper",
    "p",
    "seeds_to_decide",
    "at",
    "point_verdict",
    "left",
    "left_low",
    "left_high",
    "right",
    "right_low",
    "right_high",
    "estimate",
    "low",
    "high",
    "scale",
    "pairs",
    "note",
]


def claim_rows(claim: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a claim; one without points has a row, too."""
    own = {name: claim[name] for name in ("id", "verdict", "origin", "text", "source", "p", "seeds_to_decide")}
    own["paper"] = claim["reported"]
    rows = []
    for point in claim["points"] or [{}]:
        row = dict(own)
        for name in ("at", "left", "right", "estimate", "scale", "pairs", "note"):
            row[name] = point.get(name)
        row["point_verdict"] = point.get("verdict")
        for low, high, interval in (
            ("left_low", "left_high", "left_interval"),
            ("right_low", "right_high", "right_interval"),
            ("low", "high", "interval"),
        ):
            row[low], row[high] = point.get(interval) or (None, None)
        rows.append(row)
    return rows


def _field(value: Any) -> str:
    """A value as a field of CSV; what does not apply (None, NaN, pandas's NA and NaT) is empty."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(value, float):
        # Rows of frames turn whole numbers, such as seeds, into floats.
        if math.isnan(value):
            return ""
        return repr(int(value) if value.is_integer() and abs(value) < 2**53 else value)
    return text(value, "frame") if isinstance(value, str) else json_text(value, "frame")


def csv_text(frame: Any) -> str:
    """A frame, or a dict of columns, as CSV."""
    if isinstance(frame, Mapping):
        named = list(frame.items())
    elif hasattr(frame, "columns") and hasattr(frame, "__getitem__"):
        named = [(name, frame[name]) for name in frame.columns]
    else:
        raise UserError("frame", f"got {shown(frame)}, needs a frame, or a dict of columns")
    columns: dict[str, list[Any]] = {}
    for name, values in named:
        if isinstance(values, (str, bytes)) or getattr(values, "ndim", 1) != 1 or not isinstance(values, Iterable):
            raise UserError("frame", f"has the column {name!r} with {shown(values)}, needs a value for each row")
        columns[text(str(name), "frame")] = list(values)
    if len(columns) < len(named):
        raise UserError("frame", "has two columns of one name")
    if len({len(values) for values in columns.values()}) > 1:
        raise UserError("frame", "has columns of different lengths")
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_field(value) for value in row] for row in zip(*columns.values()))
    return written.getvalue()
