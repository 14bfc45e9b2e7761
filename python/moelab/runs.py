"""Runs: started, resumed, and read as frames, verdicts, arrays and figures."""

from __future__ import annotations

import html
import io
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._convert import (
    ScenarioLike,
    call,
    folder,
    given_scenario,
    json_text,
    settings,
    shown,
    text,
    to_python_names,
    whole,
)
from ._extras import extra
from ._frames import claim_columns, claim_rows, columns_of, csv_text, field_text, summary_row
from ._notes import logger
from ._program import Cancel, answer, check_cancel, check_cancelled, check_executor, text_answer
from ._progress import Progress, Shown
from .errors import UserError
from .samples import Sample, drawn

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas

_MOST_THREADS = 1024
_CHECKSUM = "checksum"
# Parts of a scenario that may name points or entries which the document of one point does not have.
_OF_ALL_POINTS = ("claims", "figures", "labels", "profiles", "sweep", "tune")


class Run:
    """One plan of a run folder.

    Each property reads the folder anew. A run that is still at work shows the finished cells.
    """

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
        """One row for each plan of the run folder. Needs pandas.

        The columns are plan (its id), name, profile, cells, and whether it was run last. ``moelab.read(directory,
        plan=id)`` opens a plan.
        """
        pandas = extra("pandas", "frames", "frames")
        rows = json.loads(call(_core.plans, self._directory))
        return pandas.DataFrame(rows, columns=["plan", "name", "profile", "cells", "last"])

    @property
    def about(self) -> dict[str, Any]:
        """What the plan says: its id, name, title, source, profile, arms, sweep, cells, figures, scenario and notes."""
        return json.loads(call(_core.about, self._directory, self._plan))

    def table(self, trace: bool = False) -> dict[str, Any]:
        """The columns of ``moelab export`` by name.

        Metrics are arrays of doubles, with NaN for an empty field. Other columns are lists. There is one entry for
        each cell. With ``trace`` there is one for each cell, recorded step and layer.
        """
        columns = call(_core.table, self._directory, self._plan, bool(trace))
        return {name: json.loads(values) if isinstance(values, str) else values for name, values in columns}

    def _frame(self, trace: bool) -> pandas.DataFrame:
        pandas = extra("pandas", "frames", "frames")
        return pandas.DataFrame(self.table(trace))

    @property
    def cells(self) -> pandas.DataFrame:
        """One row for each cell: cell, arm, seed, swept paths, state, metrics. Needs pandas."""
        return self._frame(False)

    @property
    def trace(self) -> pandas.DataFrame:
        """One row for each cell and recorded step, and for each layer of a stack. Needs pandas."""
        return self._frame(True)

    def verdicts(self) -> list[dict[str, Any]]:
        """The judged claims: ``[{"id", "verdict", "points": […], …}]``.

        ``moelab claims --json`` gives the same answer.
        """
        return json.loads(call(_core.claims, self._directory, self._plan))

    @property
    def claims(self) -> pandas.DataFrame:
        """One row for each claim and sweep point. Needs pandas.

        - ``id``, ``verdict`` and ``claim_p`` belong to the claim. Each swept path has a column.
        - ``estimate`` with ``low`` and ``high`` is the paired difference. ``scale`` says whether it is one of
          logarithms.
        - ``ratio`` with ``ratio_low`` and ``ratio_high`` is its exponential.
        - ``p``, ``test`` and ``point_verdict`` belong to the point. ``paper`` is the number of the paper.
        """
        pandas = extra("pandas", "frames", "frames")
        rows = [row for claim in self.verdicts() for row in claim_rows(claim)]
        return pandas.DataFrame(rows, columns=claim_columns(self.about["sweep"]))

    def summary(self, metric: str | None = None) -> pandas.DataFrame:
        """The mean of a metric over seeds with its 95 % interval, as ``moelab table`` computes it. Needs pandas.

        :param metric: A metric of the run. The default is the metric of the first figure.
        :return: One row for each arm and sweep point. The columns are arm, swept paths, ``cells``, ``count``,
            ``mean``, ``low``, ``high`` and ``statistic``.
        :raises UserError: If the run does not have the metric.
        """
        pandas = extra("pandas", "frames", "frames")
        (told,) = answer([*self._words("table"), *_option("--metric", text(metric, "metric"))])
        return pandas.DataFrame([summary_row(entry) for entry in told["entries"]])

    def to_latex(self, metric: str | Sequence[str] | None = None, *, booktabs: bool = True) -> str:
        """A LaTeX table with a row for each arm and sweep point, and a column for each metric.

        :param metric: One or more metrics of the run. The default is the metric of the first figure.
        :param booktabs: Whether to use the rules of the package booktabs. Otherwise the table has ``\\hline``.
        :raises UserError: If the run does not have the metric.
        """
        metrics = list(metric) if isinstance(metric, (list, tuple)) else [metric]
        if not metrics:
            raise UserError("metric", "got no metric, needs one or more; without the argument it is the first figure's")
        words = [word for name in metrics for word in _option("--metric", text(name, "metric"))]
        lines = text_answer([*self._words("table"), *words, "--format", "latex"])[1].split("\n")
        rules = () if booktabs else ("\\toprule", "\\midrule", "\\bottomrule")
        # Comments name options of the command line. The table itself may hold any text.
        lines = [to_python_names(line) if line.startswith("%") else line for line in lines]
        return "\n".join("\\hline" if line in rules else line for line in lines)

    def report(self, out: Any = None) -> str:
        """Writes the run as one HTML page with figures, claims and provenance.

        :param out: The file. The default is report.html in the run folder.
        :return: The file.
        """
        return answer([*self._words("report"), *_option("--out", "" if out is None else folder(out, "out"))])["file"]

    def agreement(self) -> pandas.DataFrame:
        """How well saved routings of the same test rows agree. Needs pandas, and ``"save": ["routing"]`` in the
        scenario.

        There is one row for each pair of arms, sweep points or seeds.
        """
        pandas = extra("pandas", "frames", "frames")
        told = answer(self._words("agreement"))["agreements"]
        return pandas.json_normalize(told) if told else pandas.DataFrame()

    def reproduce(self, cell: str) -> dict[str, Any]:
        """Runs a recorded cell again and compares every bit. ``moelab reproduce --json`` gives the same answer.

        :param cell: The cell's id, or its beginning.
        """
        return answer([*self._words("reproduce"), text(cell, "cell")])

    def verify(self) -> dict[str, Any]:
        """Reads every record and array. ``problems`` is empty for a sound run.

        ``moelab verify --json`` gives the same answer.
        """
        return answer(self._words("verify"))

    def _words(self, verb: str) -> list[str]:
        return [verb, self._directory, "--plan", self._plan]

    def arrays(self, cell: str) -> dict[str, np.ndarray]:
        """The arrays that a cell saved, by name, mapped from their files. The scenario's "save" selects them.

        :param cell: The cell's id, or its beginning.
        :raises UserError: If the plan does not have the cell, if the cell saved no arrays, or if an array is missing or
            damaged.
        """
        files = json.loads(call(_core.array_files, self._directory, self._plan, text(cell, "cell")))
        return {name: np.load(file, mmap_mode="r", allow_pickle=False) for name, file in files.items()}

    def figure(self, id: str | None = None, *, ax: Any = None, style: Any = None) -> matplotlib.figure.Figure:
        """A figure of the scenario, drawn by matplotlib. It has the data and colours of ``moelab plot``.

        Notebooks show the figure, and ``savefig`` writes it, with TrueType fonts whatever ``rcParams`` say. In a script,
        ``run.figure(ax=plt.gca())`` draws into a figure that ``plt.show()`` shows.

        :param id: The figure's id. The default is the first figure.
        :param ax: Matplotlib axes to draw into, one for each panel. They keep their place and your theme.
        :param style: A preset (``"neurips"``, ``"icml"``, ``"jmlr"``, ``"slides"``, ``"screen"``), or a dict with
            the fields of ``style`` in a scenario: width, height, font, size, title, caption, legend.
        :raises UserError: If the plan does not have the figure, or the style is unknown.
        """
        from .figures import draw, draw_into

        data = self.figure_data(id, style=style)
        return draw(data) if ax is None else draw_into(data, ax)

    def figure_data(self, id: str | None = None, *, style: Any = None) -> dict[str, Any]:
        """What a figure shows: lines with means, bands and seeds, or panels. Labels and caption.

        :param id: The figure's id. The default is the first figure.
        :param style: As in ``figure``.
        """
        if id is None:
            ids = self.about["figures"]
            if not ids:
                raise UserError("figure", "the run has no figures")
            id = ids[0]
        return json.loads(call(_core.figure, self._directory, self._plan, text(id, "figure"), _style_text(style)))

    def samples(self, arm: str | None = None) -> Iterator[Sample]:
        """The data that the cells of an arm draw, one ``Sample`` for each sweep point and seed. The run's overrides
        apply.

        :param arm: An arm of the scenario. The default is the first arm that sweeps the most paths. Arms share their
            data, unless they override fields of ``data``.
        :raises UserError: If the plan does not have the arm, or if files of the data have changed.
        """
        about = self.about
        arms, document, paths = about["arms"], about["scenario"], about["sweep"]
        table = self.table()
        chosen = _most_swept_arm(table, arms, paths) if arm is None else text(arm, "arm")
        if chosen not in arms:
            raise UserError("arm", f"got {shown(arm)}, needs one of {', '.join(arms)}")
        kept = {name: value for name, value in document.items() if name not in _OF_ALL_POINTS}
        for place, row_arm in enumerate(table["arm"]):
            if row_arm != chosen:
                continue
            seed, cell = table["seed"][place], table["cell"][place]
            point = {path: table[path][place] for path in paths if table[path][place] is not None}
            own = {**kept, "sweep": {path: [value] for path, value in point.items()}} if point else dict(kept)
            own["seeds"] = {**(document.get("seeds") or {}), "count": seed + 1}
            sample = drawn(("", json_text(own, "")), "", [], chosen, seed, [], self._plan)
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
        """Trains your own model on the data of every cell, and judges it by the scenario's claims as the arm ``name``.

        The call keeps the result of each finished cell. The same call continues where it stopped. It does not call
        ``fit`` again for a finished cell, even if ``fit`` has changed, and logs how many there are.
        ``remove_arm(name)`` begins anew.

        :param name: The arm's name. The scenario must not have it. ``Run.claims`` lists its claims as
            ``<claim>@<name>``.
        :param fit: A function of the ``Sample`` of each cell. It returns metrics by name, or arrays by the names that
            ``Sample.measure`` takes (``outputs_top1``, ``outputs_soft``, ``probs``, ``logits``). It may return both. A
            metric that is not finite makes the cell ``diverged``, and so do NaN or infinite outputs.
        :param arm: The arm whose data the cells draw. The default is that of ``samples``. If the arm does not sweep a
            path, a result counts at every value of the path.
        :param n_jobs: The number of cells at a time, each in a separate process. More than 1 needs joblib.
        :param executor: Any ``concurrent.futures.Executor``. It computes the cells instead of ``n_jobs``. Dask gives
            one by ``client.get_executor()``.
        :param progress: Whether to show progress, or a function of ``moelab.Progress``.
        :param cancel: An event that ends the call with ``concurrent.futures.CancelledError``.
        :return: The run itself.
        :raises UserError: If ``fit`` returns something else, and as ``add_arm``. Errors of ``fit`` pass through.
        """
        from ._judging import judge

        judge(self, text(name, "arm"), fit, arm, whole(n_jobs, "n_jobs", 1, _MOST_THREADS), executor, progress, cancel)
        return self

    def add_arm(self, name: str, frame: Any) -> None:
        """Adds results of your own training as an arm. ``moelab import`` does the same with a file.

        The scenario's claims judge the arm as their left side. The figures draw it. Both mark it as imported. The arm
        replaces an imported one of the same name.

        :param name: The arm's name. The scenario must not have it.
        :param frame: A frame, or a dict of columns: seed, every swept path, and metrics. An optional column is state
            ("done", "diverged" or "failed"). A column ``checksum`` proves that the rows have the plan's data, and
            ``Sample.place`` gives it. Without the column, the function warns. NaN and None are empty fields. An empty
            field of a path that some arm does not sweep means every value of the path. Without a state, an infinite
            value makes its row "diverged".
        :raises UserError: If a seed, a sweep point or a metric is unknown, or the data differ.
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
        needed: dict[str, list[tuple[str, ...]]] = {}
        for row, given in enumerate(sums):
            needed.setdefault(str(given), []).append(_key(columns, paths, row))
        for arm in about["arms"]:
            for sample in self.samples(arm):
                if sample.checksum in needed:
                    key = _key_of(sample.seed, [sample.point.get(path) for path in paths])
                    needed[sample.checksum] = [row for row in needed[sample.checksum] if not _is_at(row, key)]
            if not any(needed.values()):
                return
        wrong = {row for rows in needed.values() for row in rows}
        seed, *point = next(row for row in (_key(columns, paths, i) for i in range(len(sums))) if row in wrong)
        place = "".join(f", {path} {value}" for path, value in zip(paths, point) if value)
        raise UserError("frame", f"holds data that are not the plan's, first at seed {seed}{place}; "
                                 "Run.samples() draws the plan's")

    def remove_arm(self, name: str) -> None:
        """Removes an arm that ``add_arm``, ``judge`` or ``moelab import`` added.

        :raises UserError: If there is no such arm.
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
    """Identifies a row. The text of a path that the row's arm does not sweep is empty."""
    return tuple(field_text(value) for value in (seed, *point))


def _is_at(row: tuple[str, ...], key: tuple[str, ...]) -> bool:
    """Whether a row has the coordinates of a key. Paths that the key's arm does not sweep do not count."""
    return all(own in ("", given) for given, own in zip(row, key))


def _most_swept_arm(table: Mapping[str, Any], arms: list[str], paths: list[str]) -> str:
    """The first of the arms that sweep the most paths."""
    firsts = {arm: table["arm"].index(arm) for arm in arms}
    return max(arms, key=lambda arm: sum(table[path][firsts[arm]] is not None for path in paths))


def _key(columns: Mapping[str, list[Any]], paths: list[str], row: int) -> tuple[str, ...]:
    return _key_of(columns["seed"][row], [columns[path][row] for path in paths])


def _style_text(style: Any) -> str:
    if style is None:
        return ""
    if not isinstance(style, (str, Mapping)):
        raise UserError("style", f"got {shown(style)}, needs the name of a preset, or a dict")
    return json.dumps(style) if isinstance(style, str) else json_text(dict(style), "style")


def read(directory: Any, *, plan: str | None = None) -> Run:
    """Opens a run folder.

    :param directory: The folder, or FOLDER@ID for one of its plans.
    :param plan: The beginning of a plan's id. The default is the plan run last.
    :raises UserError: If there is no plan.
    """
    given = folder(directory, "directory")
    about = json.loads(call(_core.about, given, text(plan, "plan")))
    run = Run(about["directory"], about["plan"])
    is_named = plan is not None or not os.path.isdir(given)  # FOLDER@ID
    count = 0 if is_named else len(json.loads(call(_core.plans, run.directory)))
    if count > 1:
        logger.warning("plan %s, the last run of the %d in %s; plan= opens another", run.plan, count, run.directory)
    return run


def _added_seeds(seeds: Any) -> str:
    """What ``moelab run --seeds`` takes."""
    if seeds is None:
        return ""
    if isinstance(seeds, range) and len(seeds) and seeds.step == 1:
        return f"{seeds.start}..{seeds.stop - 1}"
    if isinstance(seeds, str):
        return text(seeds, "seeds")
    if isinstance(seeds, (range, list, tuple, set)):
        raise UserError("seeds", f"got {shown(seeds)}, needs a number of seeds, or a range with step 1 such as range(5, 10)")
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
    """Runs a scenario's missing cells and judges its claims. The numbers equal a run of the program to the last bit.

    Ctrl-C ends the call cleanly, with KeyboardInterrupt. The same call continues where it stopped.

    :param scenario: The path of a file, or a dict.
    :param profile: One of the scenario's named sets of overrides.
    :param overrides: A dict ``{dotted path: value}``.
    :param out: The run folder. The default is runs/<name>[-<profile>].
    :param threads: The number of cells at a time. The default is one for each processor.
    :param progress: Whether to show progress, by tqdm if that is installed. Or a function of ``moelab.Progress``.
    :param seeds: The least number of seeds, or ``range(5, 10)`` to add these. The run folder keeps all seeds.
    :param retry: Whether to run failed cells again.
    :param until_decided: Whether to add seeds until every claim is decided. Verdicts then use confidence sequences.
    :param max_seeds: The largest number of seeds of an arm at a sweep point, with ``until_decided``. The default is
        100.
    :param hours: With ``until_decided``, no seeds are added after this time.
    :param force: Whether to run even if memory seems too small.
    :param cancel: A ``threading.Event``, or another object with ``is_set``. Once it is set, the call ends with
        ``concurrent.futures.CancelledError`` and keeps the finished cells.
    :param executor: Any ``concurrent.futures.Executor``: a process pool, or ``client.get_executor()`` of Dask. Its
        workers share the cells through leases and must see the run folder. A killed worker loses one cell.
    :param workers: With ``executor``, the number of calls for it. The default is its own number, or one for each processor.
    :raises UserError: If the scenario is not valid, or the folder cannot take its results.
    :raises OSError: If disk or memory refuse.
    """
    check_executor(executor)
    check_cancel(cancel)
    if workers is not None and executor is None:
        raise UserError("workers", f"got {shown(workers)} without executor; needs an executor, or threads instead")
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
