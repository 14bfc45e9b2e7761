"""What moelab raises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


_PARTS = ("path", "line", "column", "message", "given", "allowed", "nearest")


class UserError(ValueError):
    """Bad input. The error names the place, the given value and what is allowed.

    ``path`` is a JSON path of a scenario ("model.router.kind"). It can also be a file with its line or an argument.
    ``message`` has the rest.

    A scenario may have several errors. ``errors`` lists all of them, and ``path`` and ``message`` are those of the first.
    Each is a dict with the keys path, line, column, message, given, allowed and nearest, as the program answers with
    ``--json``. A part that is not known is None.
    """

    def __init__(self, path: str, message: str, errors: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(path, message)
        self.path = path
        self.message = message
        unknown: dict[str, Any] = dict.fromkeys(_PARTS)
        self.errors: list[dict[str, Any]] = [unknown | error for error in errors or [{"path": path, "message": message}]]

    def __str__(self) -> str:
        return "\n".join(_line(error) for error in self.errors)


def _line(error: dict[str, Any]) -> str:
    """One error as a line of text."""
    place = f" (line {error['line']}, column {error['column']})" if error["line"] and error["path"] else ""
    return (f"{error['path']}: " if error["path"] else "") + error["message"] + place
