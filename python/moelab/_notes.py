"""Notes of the program, as records of Python's logging."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ._convert import to_python_names

logger = logging.getLogger("moelab")


def tell(notes: Iterable[str]) -> None:
    """Logs notes of the program ("note: …") as warnings of the logger ``moelab``."""
    for note in notes:
        logger.warning("%s", to_python_names(note.removeprefix("note: ")))
