"""A model of the user's, trained on the data of every cell and judged as an arm."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import closing
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from ._convert import shown
from ._extras import extra
from ._frames import csv_text
from ._notes import logger
from ._program import Cancel, check_cancel, check_cancelled, check_executor
from ._progress import Progress, Shown
from .errors import UserError
from .samples import Sample

if TYPE_CHECKING:
    from .runs import Run

Fit = Callable[[Sample], Mapping[str, Any]]
Found = Generator[tuple[Sample, dict[str, float]], None, None]

_MEASURED = ("outputs_top1", "outputs_soft", "probs", "logits")
_OF_POINTS = ("expert_overlap", "silhouette")
_POLL_SECONDS = 0.1


def _metrics(fit: Fit, sample: Sample, known: list[str]) -> dict[str, float]:
    """What ``fit`` tells of a sample, as metrics that the run has."""
    told = fit(sample)
    if not isinstance(told, Mapping):
        raise UserError("fit", f"returned {shown(told)}, needs a dict of metrics, or of arrays to measure")
    arrays = {name: value for name, value in told.items() if name in _MEASURED}
    values: dict[str, float] = {}
    if sample.is_diverged(arrays):
        return {"state": math.nan}
    if arrays:
        needs_points = any(name in known for name in _OF_POINTS)
        measured = sample.measured(**arrays, points=needs_points)
        values = {name: value for name, value in measured.items() if name in known}
    for name, value in told.items():
        if name in arrays:
            continue
        try:
            values[name] = float(value)
        except (TypeError, ValueError):
            near = get_close_matches(str(name), _MEASURED, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; arrays are {', '.join(_MEASURED)}"
            raise UserError("fit", f"returned {shown(value)} for {name!r}, needs a number{hint}") from None
    if not values:
        raise UserError("fit", f"returned no metric of the run; it has {', '.join(known)}")
    return values


def _row(values: Mapping[str, float]) -> dict[str, Any]:
    """Metrics with the state of their cell."""
    if all(math.isfinite(value) for value in values.values()):
        return {"state": "done", **values}
    return {"state": "diverged"}


def _in_turn(fit: Fit, samples: list[Sample], known: list[str]) -> Found:
    for sample in samples:
        yield sample, _metrics(fit, sample, known)


def _by_joblib(fit: Fit, samples: list[Sample], known: list[str], n_jobs: int) -> Found:
    joblib = extra("joblib", "sklearn", "several processes (n_jobs)")

    def one(place: int) -> tuple[int, dict[str, float]]:
        return place, _metrics(fit, samples[place], known)

    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    with closing(parallel(joblib.delayed(one)(place) for place in range(len(samples)))) as found:
        for place, values in found:
            yield samples[place], values


def _by_executor(
    fit: Fit, samples: list[Sample], known: list[str], executor: Executor, cancel: Cancel | None
) -> Found:
    pending: dict[Future[dict[str, float]], Sample] = {
        executor.submit(_metrics, fit, sample, known): sample for sample in samples
    }
    try:
        while pending:
            done, _ = wait(pending, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
            check_cancelled(cancel)
            for future in done:
                yield pending.pop(future), future.result()
    finally:
        for future in pending:
            future.cancel()


def judge(
    run: Run,
    name: str,
    fit: Fit,
    arm: str | None,
    n_jobs: int,
    executor: Executor | None,
    progress: bool | Callable[[Progress], Any],
    cancel: Cancel | None,
) -> None:
    """See ``Run.judge``."""
    if not callable(fit):
        raise UserError("fit", f"got {shown(fit)}, needs a function of a Sample")
    check_executor(executor)
    check_cancel(cancel)
    about, table = run.about, run.table()
    paths = about["sweep"]
    if name in about["arms"]:
        raise UserError("arm", f"{name!r} is an arm of the scenario; needs a name of its own")
    keys = ("cell", "arm", "seed", *paths, "state")
    known = [column for column in table if column not in keys]
    samples = list(run.samples(arm))
    # A result counts at every value of a path that the arm of the data does not sweep.
    swept = {path for sample in samples for path in sample.point}
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for place, row_arm in enumerate(table["arm"]):
        if row_arm == name and table["state"][place] != "missing":
            values = {metric: float(table[metric][place]) for metric in known}
            key = tuple([table["seed"][place], *(table[path][place] if path in swept else None for path in paths)])
            rows[key] = {"state": table["state"][place]} | {
                metric: value for metric, value in values.items() if not np.isnan(value)
            }
    wanted = {tuple([sample.seed, *(sample.point.get(path) for path in paths)]): sample for sample in samples}
    missing = [sample for key, sample in wanted.items() if key not in rows]
    if len(missing) < len(wanted):
        logger.warning(
            "%d of %d cells of %s are there already, and fit is not called for them; run.remove_arm(%r) begins anew",
            len(wanted) - len(missing), len(wanted), name, name,
        )
    if executor is not None:
        found = _by_executor(fit, missing, known, executor, cancel)
    elif n_jobs > 1:
        found = _by_joblib(fit, missing, known, n_jobs)
    else:
        found = _in_turn(fit, missing, known)
    with Shown(progress, f"cells of {name}") as display, closing(found):
        check_cancelled(cancel)
        display(Progress(len(rows), len(wanted)))
        for sample, values in found:
            rows[tuple([sample.seed, *(sample.point.get(path) for path in paths)])] = _row(values)
            run._import(name, _csv(rows, paths))  # pyright: ignore[reportPrivateUsage]
            check_cancelled(cancel)
            diverged = sum(row["state"] == "diverged" for row in rows.values())
            display(Progress(len(rows), len(wanted), diverged=diverged))


def _csv(rows: Mapping[tuple[Any, ...], dict[str, Any]], paths: list[str]) -> str:
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    columns: dict[str, list[Any]] = {
        name: [key[place] for key in rows] for place, name in enumerate(("seed", *paths))
    }
    for name in names:
        columns[name] = [row.get(name) for row in rows.values()]
    return csv_text(columns)
