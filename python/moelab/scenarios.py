"""Scenarios: what they can say, whether they are valid, and the ones that come with moelab. Theorem checks."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from difflib import get_close_matches
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from . import _core
from ._convert import ScenarioLike, call, given_scenario, settings, shown, text, whole
from ._extras import extra
from ._program import Cancel, answer, check_cancel, check_cancelled
from ._progress import Progress, Shown
from ._sharing import processors
from .errors import UserError

if TYPE_CHECKING:
    import pandas

__all__ = ["check", "kinds", "load", "names", "path", "validate"]

_MOST_SEEDS = 10000
_MOST_THREADS = 1024
_POLL_SECONDS = 0.1


def kinds(axis: str | None = None) -> dict[str, Any]:
    """What scenarios are made of. ``moelab list --json`` gives the same answer.

    :param axis: An axis, such as "generators", "routers", "gatings", "losses" or "metrics". The default is all axes. A
        kind or a metric gives its entry.
    :return: A dict ``{axis: {"path": …, "kinds": [{"name", "help", "fields", …}]}}``.
    :raises UserError: If the name is not an axis, a kind or a metric.
    """
    return json.loads(call(_core.list_kinds, text(axis, "axis")))


def _folder() -> Path:
    """The scenarios of the installed package or of the checkout."""
    installed = Path(__file__).parent / "share" / "scenarios"
    return installed if installed.is_dir() else Path(__file__).resolve().parents[2] / "scenarios"


def names() -> list[str]:
    """The names of the scenarios that come with moelab, such as "dikkala2023/fig3"."""
    found = _folder().glob("*/*.json")
    return sorted(file.relative_to(_folder()).with_suffix("").as_posix() for file in found)


def path(name: str) -> str:
    """The file of a scenario that comes with moelab.

    :param name: A name such as "dikkala2023/fig3". ``moelab.scenarios.names()`` lists all names.
    :raises UserError: If the name is unknown. The error has the nearest name.
    """
    given = text(name, "name").removesuffix(".json")
    known = names()
    if given in known:
        return str(_folder() / f"{given}.json")
    near = get_close_matches(given, known, 1, 0.0)
    raise UserError(
        "name", f"unknown scenario {name!r}; did you mean {near[0]!r}? moelab.scenarios.names() lists them"
    )


def load(name: str) -> dict[str, Any]:
    """A scenario that comes with moelab, as a dict: ``moelab.run(moelab.scenarios.load("dikkala2023/fig3"))``.

    :param name: A name such as "dikkala2023/fig3". ``moelab.scenarios.names()`` lists all names.
    :raises UserError: If the name is unknown. The error has the nearest name.
    """
    return json.loads(call(_core.scenario_document, path(name)))


def validate(
    scenario: ScenarioLike, *, profile: str | None = None, overrides: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Checks a scenario with all its cells.

    :param scenario: The path of a file, or a dict.
    :param profile: One of the scenario's named sets of overrides.
    :param overrides: A dict ``{dotted path: value}``.
    :return: A dict ``{"valid": True, "name": …, "cells": …}``.
    :raises UserError: If the scenario is not valid. The error has the JSON path, what is allowed, and the nearest
        name.
    """
    return json.loads(
        call(_core.validate, *given_scenario(scenario), text(profile, "profile"), settings(overrides))
    )


class _Either:
    """Set once one of two events is set."""

    def __init__(self, first: Cancel | None, second: Cancel) -> None:
        self._all = [event for event in (first, second) if event is not None]

    def is_set(self) -> bool:
        return any(event.is_set() for event in self._all)


def check(
    ids: str | Sequence[str] | None = None,
    *,
    seeds: int = 1,
    threads: int | None = None,
    progress: bool | Callable[[Progress], Any] = False,
    cancel: Cancel | None = None,
) -> pandas.DataFrame:
    """Checks theorems numerically, as ``moelab check`` does. Ctrl-C ends the call at any time. Needs pandas.

    :param ids: Ids of checks, or beginnings of ids such as "dikkala2023". The default is all checks. An
        empty list checks nothing.
    :param seeds: Multiplies the random repetitions.
    :param threads: The number of checks at a time, each in a separate process. The default is one for each processor.
    :param progress: Whether to show progress, or a function of ``moelab.Progress``.
    :param cancel: An event that ends the call with ``concurrent.futures.CancelledError``.
    :return: One row for each check. The columns are id, source, statement, relation, predicted, measured, error_bound,
        error_origin, expected and verdict. The columns hypotheses, details and curve hold lists and dicts.
    :raises UserError: If an id fits no check.
    """
    pandas = extra("pandas", "frames", "frames")
    if ids is not None and not isinstance(ids, (str, Sequence)):
        raise UserError("ids", f"got {shown(ids)}, needs a text, or a list of texts")
    given = [text(name, "ids") for name in ([ids] if isinstance(ids, str) else ids or [])]
    if not all(given):
        raise UserError("ids", "has an empty text; needs ids, or nothing")
    check_cancel(cancel)
    repeats = str(whole(seeds, "seeds", 1, _MOST_SEEDS))
    workers = processors() if threads is None else whole(threads, "threads", 1, _MOST_THREADS)
    # The compiled part reads an empty list as all checks.
    is_none = ids is not None and not given
    chosen = [] if is_none else [entry["id"] for entry in json.loads(call(_core.list_checks, given))]
    ends = Event()

    def found(name: str) -> dict[str, Any]:
        words = ["check", name, "--seeds", repeats, "--threads", "1"]
        return next(entry for entry in answer(words, cancel=_Either(cancel, ends)) if entry["id"] == name)

    with Shown(progress, "checks") as display, ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(found, name) for name in chosen]
        pending = set(futures)
        try:
            while pending:
                done, pending = wait(pending, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                check_cancelled(cancel)
                display(Progress(len(futures) - len(pending), len(futures)))
        except BaseException:
            ends.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
        rows = [future.result() for future in futures]
    order = ["id", "verdict", "expected", "source", "statement", "relation", "predicted", "measured", "error_bound"]
    return pandas.DataFrame(rows, columns=[*order, "error_origin", "hypotheses", "details", "curve"])


def __dir__() -> list[str]:
    return __all__
