"""A run whose cells several workers share: leases in the run folder keep them apart."""

from __future__ import annotations

import json
import os
import uuid
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from pathlib import Path
from typing import Any

from . import _core
from ._convert import call, json_text, whole
from ._notes import logger
from ._program import Cancel, answer_of_plan, check_cancelled
from ._progress import Progress, Shown
from .errors import UserError

_POLL_SECONDS = 0.2
_MOST_WORKERS = 100_000

Given = tuple[tuple[str, str], str, list[str]]


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def work(given: Given, place: str, threads: int, further: str, stop: str) -> None:
    """A worker: runs cells that no other one runs until none is left, or until the file ``stop`` is there."""

    def watch(*_: Any) -> None:
        if os.path.exists(stop):
            raise CancelledError("the run was cancelled")

    call(_core.run, *given[0], *given[1:], place, threads, further, watch)


def share(
    executor: Executor,
    workers: int | None,
    given: Given,
    place: str,
    threads: int,
    further: dict[str, Any],
    display: Shown,
    cancel: Cancel | None,
) -> str:
    """Gives the run to the executor's workers and waits for them. A worker that dies leaves its cells to the others,
    and in the end to this process.

    :return: the run folder, an absolute path
    """
    own = getattr(executor, "_max_workers", None) or processors()
    count = own if workers is None else whole(workers, "workers", 1, _MOST_WORKERS)
    (file, document), profile, overrides = given
    planned = answer_of_plan(file, document, profile, overrides, place)
    folder = os.path.abspath(planned["directory"])
    scenario = (os.path.abspath(file) if file else "", document), profile, overrides
    # Beside the run folder, which every worker sees.
    stop = Path(f"{folder}.stop-{uuid.uuid4().hex}")
    arguments = (scenario, folder, threads or 1, json_text(further, "run"), str(stop))
    pending: set[Future[None]] = {executor.submit(work, *arguments) for _ in range(count)}
    try:
        while pending:
            done, pending = wait(pending, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in done:
                _look_at(future)
            check_cancelled(cancel)
            display(_progress(folder, planned))
    except BaseException:
        stop.parent.mkdir(parents=True, exist_ok=True)
        stop.touch()
        for future in pending:
            future.cancel()
        wait(pending)
        raise
    finally:
        stop.unlink(missing_ok=True)
    return folder


def _look_at(future: Future[None]) -> None:
    """A worker that died is no error of the run; bad input and the user's Ctrl-C are."""
    error = future.exception()
    if isinstance(error, (UserError, KeyboardInterrupt)):
        raise error
    if error is not None:
        logger.warning("a worker ended early (%s: %s); others take its cells", type(error).__name__, error)


def _progress(folder: str, planned: dict[str, Any]) -> Progress:
    try:
        columns = dict(call(_core.table, folder, planned["plan"], False))
    except (UserError, OSError):  # no worker has written the plan yet
        return Progress(0, planned["cells"])
    states = json.loads(columns["state"])
    finished = sum(state != "missing" for state in states)
    failed, diverged = states.count("failed"), states.count("diverged")
    return Progress(finished, len(states), 0.0, failed, diverged)
