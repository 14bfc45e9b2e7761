"""Runs: started, resumed, and read as frames, verdicts, arrays and figures."""

from __future__ import annotations

import html
import io
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._border import ScenarioLike, call, folder, given_scenario, json_text, settings, shown, text, whole
from ._extras import extra
from ._frames import claim_columns, claim_rows, columns_of, csv_text, summary_row
from ._program import Cancel, answer, check_cancelled, text_answer
from ._progress import Progress, Shown
from .errors import UserError
from .samples import Sample, drawn

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas

_MOST_THREADS = 1024
_CHECKSUM = "checksum"


class Run:
    """A run folder, one plan of it. What it tells is read when it is asked for, so that a run that is still
    at work shows the cells that are done."""

    def __init__(self, directory: str, plan: str) -> None:
        self._directory = os.path.abspath(directory)
        self._plan = plan

    @property
    def directory(self) -> str:
        """The run folder, an absolute path."""
        return self._directory

    @property
    def plan(self) -> str:
        """The id of the plan."""
        return self._plan

    @property
    def plans(self) -> pandas.DataFrame:
        """One row a plan of the run folder: plan (its id), name, profile, cells, and whether it was run last.
        ``moelab.read(directory, plan=id)`` opens one. Needs pandas."""
        pandas = extra("pandas", "frames", "frames")
        rows = json.loads(call(_core.plans, self._directory))
        return pandas.DataFrame(rows, columns=["plan", "name", "profile", "cells", "last"])

    @property
    def about(self) -> dict[str, Any]:
        """``{"plan", "name", "title", "source", "profile", "arms", "sweep", "cells", "figures", "scenario",
        "notes"}``: what the plan says."""
        return json.loads(call(_core.about, self._directory, self._plan))

    def table(self, trace: bool = False) -> dict[str, Any]:
        """The columns of ``moelab export`` by name: metrics as arrays of doubles, NaN where a field is empty,
        the others as lists. One entry a cell, with ``trace`` one a cell, recorded step and, where a model has
        several, layer."""
        columns = call(_core.table, self._directory, self._plan, bool(trace))
        return {name: json.loads(values) if isinstance(values, str) else values for name, values in columns}

    def _frame(self, trace: bool) -> pandas.DataFrame:
        pandas = extra("pandas", "frames", "frames")
        return pandas.DataFrame(self.table(trace))

    @property
    def cells(self) -> pandas.DataFrame:
        """One row a cell: cell, arm, seed, swept paths, state, metrics. Needs pandas."""
        return self._frame(False)

    @property
    def trace(self) -> pandas.DataFrame:
        """One row a cell, recorded step and, where a model has several, layer. Needs pandas."""
        return self._frame(True)

    def verdicts(self) -> list[dict[str, Any]]:
        """The claims judged, as ``moelab claims --json`` answers: ``[{"id", "verdict", "points": […], …}]``."""
        return json.loads(call(_core.claims, self._directory, self._plan))

    @property
    def claims(self) -> pandas.DataFrame:
        """One row a claim and sweep point. Needs pandas.

        ``id`` and ``verdict`` are the claim's. A column for each swept path holds the point. ``estimate`` with
        ``low`` and ``high`` is the paired difference, of logarithms where ``scale`` says so; ``ratio`` with
        ``ratio_low`` and ``ratio_high`` is its exponential. ``p``, ``test`` and ``point_verdict`` are the point's,
        ``claim_p`` is the claim's. ``paper`` is what the paper reports."""
        pandas = extra("pandas", "frames", "frames")
        rows = [row for claim in self.verdicts() for row in claim_rows(claim)]
        return pandas.DataFrame(rows, columns=claim_columns(self.about["sweep"]))

    def summary(self, metric: str | None = None) -> pandas.DataFrame:
        """One row an arm and sweep point: the mean of a metric over seeds with its 95 % interval, as ``moelab table``
        computes them. Needs pandas.

        :param metric: a metric of the run; the first figure's where it is left out
        :return: columns arm, swept paths, ``cells``, ``count``, ``mean``, ``low``, ``high``, ``statistic``
        :raises UserError: for a metric that the run does not have
        """
        pandas = extra("pandas", "frames", "frames")
        (told,) = answer([*self._words("table"), *_option("--metric", text(metric, "metric"))])
        return pandas.DataFrame([summary_row(entry) for entry in told["entries"]])

    def to_latex(self, metric: str | list[str] | None = None, *, booktabs: bool = True) -> str:
        """A LaTeX table: a row for each arm and sweep point, a column of means and intervals for each metric.

        :param metric: a metric of the run, or several; the first figure's where it is left out
        :param booktabs: whether to use the rules of the package booktabs; otherwise ``\\hline``
        :raises UserError: for a metric that the run does not have
        """
        metrics = metric if isinstance(metric, list) else [metric]
        words = [word for name in metrics for word in _option("--metric", text(name, "metric"))]
        table = text_answer([*self._words("table"), *words, "--format", "latex"])[1]
        if booktabs:
            return table
        rules = ("\\toprule", "\\midrule", "\\bottomrule")
        return "\n".join("\\hline" if line in rules else line for line in table.split("\n"))

    def report(self, out: Any = None) -> str:
        """Writes the run as one HTML page: figures, claims, provenance.

        :param out: the file; report.html of the run folder where it is left out
        :return: the file
        """
        return answer([*self._words("report"), *_option("--out", "" if out is None else folder(out, "out"))])["file"]

    def agreement(self) -> pandas.DataFrame:
        """How well saved routings of the same test rows agree: one row a pair of arms, sweep points or seeds. Needs
        ``"save": ["routing"]`` in the scenario, and pandas."""
        pandas = extra("pandas", "frames", "frames")
        told = answer(self._words("agreement"))["agreements"]
        return pandas.json_normalize(told) if told else pandas.DataFrame()

    def reproduce(self, cell: str) -> dict[str, Any]:
        """Runs a recorded cell again and compares every bit, as ``moelab reproduce --json`` answers.

        :param cell: the cell's id, or its beginning
        """
        return answer([*self._words("reproduce"), text(cell, "cell")])

    def verify(self) -> dict[str, Any]:
        """Reads every record and array, as ``moelab verify --json`` answers; ``problems`` is empty for a sound run."""
        return answer(self._words("verify"))

    def _words(self, verb: str) -> list[str]:
        return [verb, self._directory, "--plan", self._plan]

    def arrays(self, cell: str) -> dict[str, np.ndarray]:
        """The arrays that a cell saved ("save" of its scenario), by name, mapped from their files.

        :param cell: the cell's id, or its beginning
        :raises UserError: for a cell that the plan does not have, and an array that is missing or damaged
        """
        files = json.loads(call(_core.array_files, self._directory, self._plan, text(cell, "cell")))
        return {name: np.load(file, mmap_mode="r", allow_pickle=False) for name, file in files.items()}

    def figure(self, id: str | None = None) -> matplotlib.figure.Figure:
        """A figure of the scenario, the data and colours of ``moelab plot``, drawn by matplotlib.

        :param id: the figure's id; the first where it is left out
        :raises UserError: for a figure that the plan does not have
        """
        return _drawn(self.figure_data(id))

    def figure_data(self, id: str | None = None) -> dict[str, Any]:
        """What a figure shows: its lines with means, bands and seeds, or panels; labels and caption."""
        if id is None:
            ids = self.about["figures"]
            if not ids:
                raise UserError("figure", "the run has no figures")
            id = ids[0]
        return json.loads(call(_core.figure, self._directory, self._plan, text(id, "figure")))

    def samples(self, arm: str | None = None) -> Iterator[Sample]:
        """The data that the cells of an arm draw, one ``Sample`` a sweep point and seed, with the run's overrides.

        :param arm: an arm of the scenario; the first where it is left out. Arms share their data, unless they
            override fields of ``data``.
        :raises UserError: for an arm that the plan does not have, and where files that the data need have changed
        """
        about = self.about
        arms, document, paths = about["arms"], about["scenario"], about["sweep"]
        chosen = arms[0] if arm is None else text(arm, "arm")
        if chosen not in arms:
            raise UserError("arm", f"got {shown(arm)}, needs one of {', '.join(arms)}")
        table = self.table()
        # Claims and figures may name points that a document of one point does not have.
        kept = {name: value for name, value in document.items() if name not in ("claims", "figures", "tune", "sweep")}
        for place, row_arm in enumerate(table["arm"]):
            if row_arm != chosen:
                continue
            seed, cell = table["seed"][place], table["cell"][place]
            point = {path: table[path][place] for path in paths if table[path][place] is not None}
            own = {**kept, "sweep": {path: [value] for path, value in point.items()}} if point else dict(kept)
            own["seeds"] = {**(document.get("seeds") or {}), "count": seed + 1}
            sample = drawn(("", json_text(own, "scenario")), "", [], chosen, seed, [])
            if sample.cell != cell:
                raise UserError("arm", f"cell {cell} now draws other data: a file that it reads has changed, or the "
                                       f"program's version; run the scenario again")
            yield sample

    def judge(
        self,
        name: str,
        fit: Callable[[Sample], Mapping[str, Any]],
        *,
        arm: str | None = None,
        n_jobs: int = 1,
        executor: Executor | None = None,
        progress: bool | Callable[[Progress], Any] = False,
        cancel: Cancel | None = None,
    ) -> Run:
        """Trains a model of your own on the data of every cell and judges it by the scenario's claims, as the arm
        ``name``. The results of a cell are kept as soon as they are there. The same call goes on where it stopped;
        ``remove_arm(name)`` begins anew.

        :param name: the arm's name, none of the scenario's. ``Run.claims`` has its claims as ``<claim>@<name>``.
        :param fit: called with the ``Sample`` of each cell. It returns metrics by name, or arrays by the names that
            ``Sample.measure`` takes (``outputs_top1``, ``outputs_soft``, ``probs``, ``logits``), or both. A metric that
            is not finite makes the cell ``diverged``.
        :param arm: whose data the cells draw; the first arm where it is left out
        :param n_jobs: cells at a time, each in a separate process; needs joblib for more than 1
        :param executor: computes the cells in place of ``n_jobs``; any ``concurrent.futures.Executor``
        :param progress: whether to show it, or a function of ``moelab.Progress``
        :param cancel: an event that ends the call with ``concurrent.futures.CancelledError``
        :return: the run itself
        :raises UserError: for what ``fit`` returns, and as ``add_arm``; what ``fit`` raises goes through
        """
        from ._judging import judge

        judge(self, text(name, "arm"), fit, arm, whole(n_jobs, "n_jobs", 1, _MOST_THREADS), executor, progress, cancel)
        return self

    def add_arm(self, name: str, frame: Any) -> None:
        """Adds results of your own training as an arm. The scenario's claims judge it in place of their left sides,
        its figures draw it, and both mark it as imported. ``moelab import`` does the same with a file. The arm
        replaces an imported one of the same name.

        :param name: the arm's name, none of the scenario's
        :param frame: a frame, or a dict of columns: seed, every swept path, metrics, and if you like state
            ("done", "diverged" or "failed"). With a column ``checksum`` (``Sample.place`` gives the columns of a
            row), the data of each row have to be the plan's; a warning says where it is missing.
        :raises UserError: for a seed or a sweep point that the plan does not have, a name that is no metric,
            values that are no finite numbers, and rows whose data are not the plan's
        """
        columns = columns_of(frame)
        sums = columns.pop(_CHECKSUM, None)
        csv = csv_text(columns)
        if sums is None:
            warnings.warn(
                "the frame has no column 'checksum', so nobody knows whether its data are the run's; "
                "Run.judge and Sample.place give it",
                stacklevel=2,
            )
        else:
            self._check_data(columns, sums)
        self._import(name, csv)

    def _import(self, name: str, csv: str) -> None:
        call(_core.import_arm, self._directory, self._plan, text(name, "arm"), csv)

    def _check_data(self, columns: Mapping[str, list[Any]], sums: list[Any]) -> None:
        """Refuses rows whose data no arm of the plan draws."""
        about = self.about
        paths = about["sweep"]
        if missing := [name for name in ("seed", *paths) if name not in columns]:
            raise UserError("frame", f"lacks the column {missing[0]!r}")
        needed = {_key(columns, paths, row): str(sums[row]) for row in range(len(sums))}
        for arm in about["arms"]:
            for sample in self.samples(arm):
                key = _key_of(sample.seed, [sample.point.get(path) for path in paths])
                if needed.get(key) == sample.checksum:
                    del needed[key]
            if not needed:
                return
        seed, *point = next(iter(needed))
        place = "".join(f", {path} {value}" for path, value in zip(paths, point))
        raise UserError("frame", f"holds data that are not the plan's, first at seed {seed}{place}; "
                                 "Run.samples() draws the plan's")

    def remove_arm(self, name: str) -> None:
        """Removes an arm that ``add_arm``, ``judge`` or ``moelab import`` added.

        :raises UserError: for a name that is no such arm
        """
        call(_core.remove_arm, self._directory, self._plan, text(name, "arm"))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Run, (self._directory, self._plan))

    def __repr__(self) -> str:
        return f"moelab.read({self._directory!r}, plan={self._plan!r})"

    def _repr_html_(self) -> str:
        about = self.about
        title = about["title"] or about["name"]
        parts = [f"<h4>{html.escape(title)}</h4>"]
        if about["source"]:
            parts.append(f"<p>{html.escape(about['source'])}</p>")
        if about["figures"]:
            parts.append(self._svg())
        if verdicts := self.verdicts():
            parts.append("<table><tr><th>claim</th><th>verdict</th><th>text</th></tr>")
            for claim in verdicts:
                fields = (claim["id"], claim["verdict"], claim["text"])
                parts.append("<tr>" + "".join(f"<td>{html.escape(field)}</td>" for field in fields) + "</tr>")
            parts.append("</table>")
        return "".join(parts)

    def _svg(self) -> str:
        try:
            picture = io.StringIO()
            self.figure().savefig(picture, format="svg", bbox_inches="tight")
        except ImportError as error:
            return f"<p>{html.escape(str(error))}</p>"
        except UserError:  # a figure of arrays that were not saved
            return ""
        text = picture.getvalue()
        return text[text.index("<svg") :]


def _option(name: str, value: str) -> list[str]:
    return [name, value] if value else []


def _key_of(seed: Any, point: list[Any]) -> tuple[str, ...]:
    """Identifies a row. Frames turn whole numbers into floats."""
    return tuple(f"{value:.17g}" if isinstance(value, (int, float, np.number)) else str(value) for value in (seed, *point))


def _key(columns: Mapping[str, list[Any]], paths: list[str], row: int) -> tuple[str, ...]:
    return _key_of(columns["seed"][row], [columns[path][row] for path in paths])


def _drawn(data: dict[str, Any]) -> matplotlib.figure.Figure:
    from .figures import draw

    return draw(data)


def read(directory: Any, *, plan: str | None = None) -> Run:
    """Opens a run folder.

    :param directory: the folder, or FOLDER@ID for one of its plans
    :param plan: one of its plans by the beginning of its id; the one last run where it is left out
    :raises UserError: where there is no plan
    """
    given = folder(directory, "directory")
    about = json.loads(call(_core.about, given, text(plan, "plan")))
    return Run(about["directory"], about["plan"])


def _added_seeds(seeds: Any) -> str:
    """What ``moelab run --seeds`` takes."""
    if seeds is None:
        return ""
    if isinstance(seeds, range) and len(seeds) and seeds.step == 1:
        return f"{seeds.start}..{seeds.stop - 1}"
    if isinstance(seeds, str):
        return text(seeds, "seeds")
    return f"0..{whole(seeds, 'seeds', 1, 10**7) - 1}"


def run(
    scenario: ScenarioLike,
    *,
    profile: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    out: Any = None,
    threads: int | None = None,
    progress: bool | Callable[[Progress], Any] = True,
    seeds: int | range | str | None = None,
    retry: bool = False,
    until_decided: bool = False,
    max_seeds: int | None = None,
    hours: float | None = None,
    force: bool = False,
    cancel: Cancel | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
) -> Run:
    """Runs a scenario's missing cells and judges its claims: ``moelab run``, to the last bit. Ctrl-C ends it
    cleanly, as KeyboardInterrupt; the same call again goes on where it stopped.

    :param scenario: the path of a file, or a dict
    :param profile: one of the scenario's named sets of overrides
    :param overrides: ``{dotted path: value}``
    :param out: the run folder; runs/<name>[-<profile>] where it is left out
    :param threads: cells run at a time; one per processor where it is left out
    :param progress: whether to show it (tqdm's bar where tqdm is installed), or a function of ``moelab.Progress``
    :param seeds: at least so many seeds, or ``range(5, 10)`` to add these; the run folder keeps them
    :param retry: whether to run the cells again that failed
    :param until_decided: whether to add seeds until every claim is decided; verdicts use confidence sequences
    :param max_seeds: with ``until_decided``, most seeds of an arm at a sweep point; 100 where it is left out
    :param hours: with ``until_decided``, adds no seeds after so many hours
    :param force: whether to run even if the memory seems too small
    :param cancel: a ``threading.Event``, or what else has ``is_set``. Once it is set, the call ends with
        ``concurrent.futures.CancelledError`` and keeps the finished cells.
    :param executor: any ``concurrent.futures.Executor`` (a process pool, Dask's, submitit's). Its workers share the
        cells of the run folder, which they have to see, through leases. A worker that is killed loses its cell alone.
    :param workers: calls given to the executor; its own number where it tells, else one per processor
    :raises UserError: for a scenario that is not valid, and a folder that cannot take its results
    :raises OSError: where disk or memory refuse
    """
    given = given_scenario(scenario), text(profile, "profile"), settings(overrides)
    place = "" if out is None else folder(out, "out")
    further = {
        "seeds": _added_seeds(seeds),
        "retry": bool(retry),
        "leases": executor is not None,
        "force": bool(force),
        "until_decided": bool(until_decided),
        "max_seeds": 0 if max_seeds is None else whole(max_seeds, "max_seeds", 1, 10**6),
        "hours": 0.0 if hours is None else _hours(hours),
    }
    count = 0 if threads is None else whole(threads, "threads", 1, _MOST_THREADS)
    with Shown(progress, "cells") as display:

        def watch(*told: Any) -> None:
            check_cancelled(cancel)
            display(Progress(*told))

        if executor is not None:
            from ._sharing import share

            place = share(executor, workers, given, place, count, further, display, cancel)
        told = json.loads(
            call(_core.run, *given[0], *given[1:], place, count, json_text(further, "run"), watch)
        )
    if told["failed"]:
        warnings.warn(f"{told['failed']} cells failed; their state in run.cells says which", stacklevel=2)
    if told["not_restored"]:
        warnings.warn(f"{told['not_restored']} cells lost arrays that another run did not restore", stacklevel=2)
    if told["hint"]:
        warnings.warn(told["hint"], stacklevel=2)
    return Run(told["directory"], told["plan"])


def _hours(value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 1e6:
        return float(value)
    raise UserError("hours", f"got {shown(value)}, needs a number above 0 and at most 1000000")
