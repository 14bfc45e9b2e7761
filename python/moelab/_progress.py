"""Progress of runs and checks: a line on stderr, a bar of tqdm, or a function of the user's."""

from __future__ import annotations

import importlib.util
import sys
import time
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

from ._convert import shown
from .errors import UserError

_PLAIN_SECONDS = 30.0
_BAR = 20


class Progress(NamedTuple):
    """How far a run is. A callback of ``progress=`` receives it some times a second."""

    finished: int
    total: int
    partial: float = 0.0
    """Sum of the shares that the running cells have done."""
    failed: int = 0
    diverged: int = 0
    seconds_left: float | None = None


def _clock(seconds: float) -> str:
    whole = int(seconds + 0.5)
    minutes = f"{whole // 60 % 60:02d}" if whole >= 3600 else str(whole // 60)
    return (f"{whole // 3600}:" if whole >= 3600 else "") + f"{minutes}:{whole % 60:02d}"


class ProgressLine:
    """One live line on a terminal and in a notebook, a plain one every half minute elsewhere."""

    def __init__(self, what: str = "cells") -> None:
        self._what = what
        self._stream = sys.stderr
        is_terminal = bool(getattr(self._stream, "isatty", lambda: False)())
        self._live = is_terminal or "ipykernel" in sys.modules
        self._start = self._last = time.monotonic()
        self._width = 0

    def __call__(
        self, finished: int, total: int, partial: float, failed: int, diverged: int, seconds_left: float | None
    ) -> None:
        now = time.monotonic()
        if not self._live and now - self._last < _PLAIN_SECONDS:
            return
        self._last = now
        share = (finished + partial) / total if total else 1.0
        full = round(_BAR * share)
        line = f"{self._what} {finished}/{total} {share:4.0%} |{'█' * full}{' ' * (_BAR - full)}|"
        line += f" {_clock(now - self._start)}"
        if seconds_left is not None:
            line += f", left {_clock(seconds_left)}"
        line += f", {diverged} diverged" if diverged else ""
        line += f", {failed} failed" if failed else ""
        self._write(line)

    def _write(self, line: str) -> None:
        if self._live:
            self._stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
        else:
            self._stream.write(line + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Clears the live line."""
        if self._live and self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()


class TqdmBar:
    """A bar of tqdm, which picks the form that terminals and notebooks show."""

    def __init__(self, what: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a notebook without widgets gets the plain bar
            auto: Any = importlib.import_module("tqdm.auto")
        self._bar = auto.tqdm(desc=what, bar_format="{desc} {n:.1f}/{total} {percentage:3.0f}% |{bar}| {elapsed}{postfix}")

    def __call__(
        self, finished: int, total: int, partial: float, failed: int, diverged: int, seconds_left: float | None
    ) -> None:
        self._bar.total = total
        self._bar.n = finished + partial
        told = {"diverged": diverged, "failed": failed}
        self._bar.set_postfix({name: count for name, count in told.items() if count}, refresh=False)
        self._bar.refresh()

    def close(self) -> None:
        """Ends the bar."""
        self._bar.close()


class Shown:
    """What ``progress=`` asks for: true for a line or a bar, false for nothing, or a function of ``Progress``."""

    def __init__(self, asked: bool | Callable[[Progress], Any], what: str) -> None:
        if not isinstance(asked, bool) and not callable(asked):
            raise UserError("progress", f"got {shown(asked)}, needs True, False or a function of moelab.Progress")
        self.display: Any = None
        if asked is True:
            self.display = TqdmBar(what) if importlib.util.find_spec("tqdm") else ProgressLine(what)
        self._callback = None if isinstance(asked, bool) else asked

    def __call__(self, at: Progress) -> None:
        if self.display is not None:
            self.display(*at)
        if self._callback is not None:
            self._callback(at)

    def __enter__(self) -> Shown:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.display is not None:
            self.display.close()
