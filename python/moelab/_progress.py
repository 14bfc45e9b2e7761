"""The progress line of a run."""

from __future__ import annotations

import sys
import time

_PLAIN_SECONDS = 30.0
_BAR = 20


def _clock(seconds: float) -> str:
    whole = int(seconds + 0.5)
    minutes = f"{whole // 60 % 60:02d}" if whole >= 3600 else str(whole // 60)
    return (f"{whole // 3600}:" if whole >= 3600 else "") + f"{minutes}:{whole % 60:02d}"


class ProgressLine:
    """One live line on a terminal and in a notebook, a plain one every half minute elsewhere."""

    def __init__(self) -> None:
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
        line = f"cells {finished}/{total} {share:4.0%} |{'█' * full}{' ' * (_BAR - full)}| {_clock(now - self._start)}"
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
