"""Further commands of the program as functions: tune, plan, new, compare, agreement, table, report, reproduce, verify."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ._convert import ScenarioLike, folder, given_scenario, settings, shown, text, whole
from ._extras import extra
from ._program import Cancel, answer, answer_of_plan, scenario_words
from .errors import UserError
from .runs import Run, read

if TYPE_CHECKING:
    import pandas

_MOST_CELLS = 10**6
_MOST_THREADS = 1024


def tune(
    scenario: ScenarioLike,
    *,
    profile: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    arms: Sequence[str] | None = None,
    budget: int = 60,
    metric: str | None = None,
    maximize: bool = False,
    out: Any = None,
    threads: int | None = None,
    leases: bool = False,
    progress: bool = True,
    cancel: Cancel | None = None,
) -> dict[str, Any]:
    """Chooses the fields of a scenario's ``tune`` for every arm, on a separate root seed.

    The answer is the one of ``moelab tune --json``.

    :param scenario: The path of a file, or a dict.
    :param profile: One of the scenario's named sets of overrides.
    :param overrides: A dict ``{dotted path: value}``.
    :param arms: Names of arms. The default is all arms.
    :param budget: The number of cells for each arm.
    :param metric: The metric to minimise. The default is the main metric.
    :param maximize: Whether to maximise the metric.
    :param out: The run folder. The default is runs/<name>[-<profile>]-tune.
    :param threads: The number of cells at a time. The default is one for each processor.
    :param leases: Whether to share the cells with other processes on the folder.
    :param progress: Whether to print progress to stderr.
    :param cancel: An event that ends the call with ``concurrent.futures.CancelledError``.
    """
    given = given_scenario(scenario)
    words = ["tune", *scenario_words(given, text(profile, "profile"), settings(overrides))]
    if arms is not None:
        if isinstance(arms, str) or not isinstance(arms, Sequence):
            raise UserError("arms", f"got {shown(arms)}, needs a list of names")
        words += ["--arms", ",".join(text(arm, "arms") for arm in arms)]
    words += ["--budget", str(whole(budget, "budget", 1, _MOST_CELLS))]
    if metric is not None:
        words += ["--metric", text(metric, "metric")]
    if threads is not None:
        words += ["--threads", str(whole(threads, "threads", 1, _MOST_THREADS))]
    if out is not None:
        words += ["--out", folder(out, "out")]
    words += ["--maximize"] * bool(maximize) + ["--leases"] * bool(leases)
    return answer(words, document=given[1], cancel=cancel, progress=progress)


def plan(
    scenario: ScenarioLike,
    *,
    profile: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    out: Any = None,
) -> dict[str, Any]:
    """What ``run`` would do: cells, cells to run, seconds, memory. It writes nothing.

    The answer is the one of ``moelab plan --json``.

    :param scenario: The path of a file, or a dict.
    :param profile: One of the scenario's named sets of overrides.
    :param overrides: A dict ``{dotted path: value}``.
    :param out: The run folder. The default is runs/<name>[-<profile>].
    """
    given = given_scenario(scenario)
    place = "" if out is None else folder(out, "out")
    return answer_of_plan(*given, text(profile, "profile"), settings(overrides), place)


def new(name: str, *, start: str = "idea", out: Any = None) -> str:
    """Writes a small scenario to start from. Its comments explain the parts.

    :param name: The scenario's name.
    :param start: "idea", "sweep", "balance", "language" or "router".
    :param out: The file. The default is NAME.json.
    :return: The file.
    """
    words = ["new", text(name, "name"), "--from", text(start, "start")]
    if out is not None:
        words += ["--out", folder(out, "out")]
    return os.path.abspath(answer(words)["file"])


def _directories(runs: Sequence[Any], least: int = 1) -> list[str]:
    """Run folders, each at the plan that a Run shows."""
    if len(runs) < least:
        raise UserError("runs", f"got {len(runs) or 'none'}, needs at least {least}; each is a Run or a run folder")
    return [f"{run.directory}@{run.plan}" if isinstance(run, Run) else folder(run, "runs") for run in runs]


def compare(*runs: Any, metric: str | None = None) -> pandas.DataFrame:
    """Runs side by side: one row for each arm and sweep point. Needs pandas.

    Each run has the mean of a metric with its interval.

    :param runs: Two or more. Each is a ``Run`` or a run folder.
    :param metric: A metric. The default is the metric of the first figure.
    :return: A frame with the places as its index. Columns are pairs of a run folder and ``mean``, ``low``, ``high``,
        ``count`` or ``statistic``.
    """
    pandas = extra("pandas", "frames", "frames")
    words = ["compare", *_directories(runs, least=2)]
    if metric is not None:
        words += ["--metric", text(metric, "metric")]
    told = answer(words)
    names = _distinct(told["directories"])
    rows: dict[str, dict[tuple[str, str], Any]] = {}
    for row in told["rows"]:
        at: dict[tuple[str, str], Any] = {}
        for name, value in zip(names, row["values"]):
            own = value or {}
            low, high = own.get("interval") or (None, None)
            at |= {(name, "mean"): own.get("mean"), (name, "low"): low, (name, "high"): high}
            at |= {(name, "count"): own.get("count", 0), (name, "statistic"): own.get("statistic")}
        rows[row["at"]] = at
    frame = pandas.DataFrame.from_dict(rows, orient="index")
    frame.columns = pandas.MultiIndex.from_tuples(list(frame.columns), names=["run", told["metric"]])
    return frame


def _distinct(names: list[str]) -> list[str]:
    """The names, numbered where two are equal."""
    return [name if names.count(name) == 1 else f"{name} ({place + 1})" for place, name in enumerate(names)]


def _run(run: Any) -> Run:
    return run if isinstance(run, Run) else read(run)


def agreement(*runs: Any) -> pandas.DataFrame:
    """How well saved routings of the same test rows agree: one row for each pair. Needs pandas.

    :param runs: One or more. Each is a ``Run`` or a run folder.
    """
    pandas = extra("pandas", "frames", "frames")
    told = answer(["agreement", *_directories(runs)])["agreements"]
    return pandas.json_normalize(told) if told else pandas.DataFrame()


def table(run: Any, metric: str | None = None) -> pandas.DataFrame:
    """``Run.summary`` of a ``Run`` or a run folder."""
    return _run(run).summary(metric)


def report(*runs: Any, out: Any = None) -> str:
    """Writes runs as one HTML page with figures, claims and provenance.

    :param runs: Each is a ``Run`` or a run folder.
    :param out: The file. The default is report.html in the first folder.
    :return: The file.
    """
    words = ["report", *_directories(runs)]
    if out is not None:
        words += ["--out", folder(out, "out")]
    return os.path.abspath(answer(words)["file"])


def reproduce(run: Any, cell: str) -> dict[str, Any]:
    """Runs a recorded cell again and compares every bit. ``run`` is a ``Run`` or a run folder."""
    return _run(run).reproduce(cell)


def verify(run: Any) -> dict[str, Any]:
    """Reads every record and array. ``run`` is a ``Run`` or a run folder."""
    return _run(run).verify()
