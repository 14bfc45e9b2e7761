"""Verbs of the program, each in a separate process, which Ctrl-C and ``cancel`` can end at any time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError, Executor
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Protocol

from ._convert import in_python, shown, to_python_names
from ._notes import tell
from .errors import UserError

_POLL_SECONDS = 0.05
_GRACE_SECONDS = 3.0
_INTERRUPTED = 130


class Cancel(Protocol):
    """What ``cancel=`` takes: a ``threading.Event``, or another object with ``is_set``."""

    def is_set(self) -> bool:
        """Whether the call shall end."""
        ...


def check_cancel(cancel: Any) -> None:
    """Refuses what cannot cancel a call."""
    if cancel is not None and not callable(getattr(cancel, "is_set", None)):
        raise UserError("cancel", f"got {shown(cancel)}, needs a threading.Event, or an object with is_set")


def check_executor(executor: Any) -> None:
    """Refuses what is no executor. Dask's client is none: its futures are of another kind."""
    if executor is not None and not isinstance(executor, Executor):
        raise UserError(
            "executor", f"got {shown(executor)}, needs a concurrent.futures.Executor (Dask: client.get_executor())"
        )


def check_cancelled(cancel: Cancel | None) -> None:
    """Raises CancelledError once ``cancel`` is set."""
    if cancel is not None and cancel.is_set():
        raise CancelledError("cancelled; finished cells are kept")


def _environment() -> dict[str, str]:
    """The child imports this package, however it came into sys.path."""
    places = [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
    # The files may be links; the extension lies beside the links.
    places.insert(0, str(Path(__file__).absolute().parents[1]))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(place for place in places if place)}


def _pass_on(stream: IO[str], shown: bool, kept: list[str]) -> None:
    for line in stream:
        if line.startswith("moelab: "):
            kept.append(line.strip().removeprefix("moelab: "))
        elif shown:
            sys.stderr.write(line)


def _end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def text_answer(
    words: Sequence[str], *, document: str = "", cancel: Cancel | None = None, progress: bool = False
) -> tuple[int, str]:
    """The exit status (0 or 1) and the text that ``moelab WORDS…`` prints.

    :param document: a scenario's text, for the file "-"
    :param progress: whether lines of progress go to stderr
    :raises UserError, OSError: as the program reports bad input and a failing environment
    """
    check_cancel(cancel)
    process = subprocess.Popen(
        [sys.executable, "-m", "moelab", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=_environment(),
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    notes: list[str] = []
    printed: list[str] = []
    readers = [
        threading.Thread(target=_pass_on, args=(process.stderr, progress, notes), daemon=True),
        threading.Thread(target=lambda stream: printed.append(stream.read()), args=(process.stdout,), daemon=True),
    ]
    try:
        for reader in readers:
            reader.start()
        try:
            process.stdin.write(document)
            process.stdin.close()
        except BrokenPipeError:
            pass  # it ended before it read; its status says why
        while process.poll() is None:
            check_cancelled(cancel)
            try:
                process.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                continue
    finally:
        if process.poll() is None:
            _end(process)
        for reader in readers:
            reader.join()
        for stream in (process.stdin, process.stdout, process.stderr):
            with suppress(BrokenPipeError):  # the program ended before it read
                stream.close()
    text = "".join(printed)
    if process.returncode in (0, 1):
        tell(note for note in notes if not note.startswith("error: ") and not _names_known_plan(note))
        return process.returncode, text
    raise _error(words[0], process.returncode, text, notes)


def _names_known_plan(note: str) -> bool:
    """Whether a note says which plan was asked about, although the caller named it."""
    return note.startswith("note: plan ") and not note.endswith("asks about another")


def _error(verb: str, status: int, text: str, notes: list[str]) -> BaseException:
    if status in (_INTERRUPTED, -signal.SIGINT):
        return KeyboardInterrupt()
    try:
        errors = json.loads(text)["errors"]
        path, message = errors[0]["path"], errors[0]["message"]
    except (ValueError, KeyError, TypeError):
        errors, path, message = [], "", "; ".join(note.removeprefix("error: ") for note in notes)
    if status == 2:
        return in_python(UserError(path, message, errors), verb)
    return OSError(to_python_names(message) or f"the program ended with status {status}")


def answer(
    words: Sequence[str], *, document: str = "", cancel: Cancel | None = None, progress: bool = False
) -> Any:
    """What ``moelab WORDS… --json`` answers."""
    return json.loads(text_answer([*words, "--json"], document=document, cancel=cancel, progress=progress)[1])


def scenario_words(scenario: tuple[str, str], profile: str, overrides: Sequence[str]) -> list[str]:
    """FILE, --profile and --set of a verb; a document goes to stdin as the file "-"."""
    words = [scenario[0] or "-"]
    if profile:
        words += ["--profile", profile]
    for setting in overrides:
        words += ["--set", setting]
    return words


def answer_of_plan(file: str, document: str, profile: str, overrides: Sequence[str], out: str) -> dict[str, Any]:
    """What ``moelab plan --json`` answers."""
    words = ["plan", *scenario_words((file, document), profile, overrides), *(["--out", out] if out else [])]
    return answer(words, document=document)
