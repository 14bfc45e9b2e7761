"""Frames: the rows that claims become, and the CSV that given columns become."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ._convert import json_text, shown, text
from .errors import UserError

_OF_CLAIM = ("id", "verdict", "origin", "reading", "text", "statement", "source")
_OF_POINT = ("estimate", "low", "high", "ratio", "ratio_low", "ratio_high", "scale", "level", "p", "test", "pairs")
_SIDES = ("left", "left_low", "left_high", "right", "right_low", "right_high")
_LAST = ("paper", "claim_p", "seeds_to_decide", "note")


def claim_columns(paths: Iterable[str]) -> list[str]:
    """The columns of ``Run.claims`` for these swept paths."""
    return [*_OF_CLAIM, *paths, "point_verdict", *_OF_POINT, *_SIDES, *_LAST]


def _power(value: float | None) -> float | None:
    try:
        return None if value is None else math.exp(value)
    except OverflowError:
        return math.inf


def claim_rows(claim: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a claim; one without points has a row, too."""
    own = {name: claim.get(name) for name in (*_OF_CLAIM, "seeds_to_decide")}
    own["paper"], own["claim_p"] = claim["reported"], claim["p"]
    rows = []
    for point in claim["points"] or [{}]:
        row = {**own, **(point.get("at") or {})}
        for name in ("left", "right", "estimate", "scale", "level", "p", "test", "pairs", "note"):
            row[name] = point.get(name)
        row["point_verdict"] = point.get("verdict")
        for low, high, interval in (
            ("left_low", "left_high", "left_interval"),
            ("right_low", "right_high", "right_interval"),
            ("low", "high", "interval"),
        ):
            row[low], row[high] = point.get(interval) or (None, None)
        if row["scale"] == "log ratio":
            for ratio, logarithm in (("ratio", "estimate"), ("ratio_low", "low"), ("ratio_high", "high")):
                row[ratio] = _power(row[logarithm])
        rows.append(row)
    return rows


def summary_row(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of ``moelab table --json`` as a row: the sweep point and the interval become columns."""
    row = {**entry.pop("point"), **entry}
    row["low"], row["high"] = row.pop("interval", None) or (None, None)
    return {"arm": row.pop("arm"), **row}


def field_text(value: Any) -> str:
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


def columns_of(frame: Any) -> dict[str, list[Any]]:
    """The columns of a frame, or of a dict of columns."""
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
    return columns


def csv_text(columns: Mapping[str, list[Any]]) -> str:
    """Columns as CSV."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([field_text(value) for value in row] for row in zip(*columns.values()))
    return written.getvalue()
