"""Runs: started, resumed, and read as frames, verdicts, arrays and figures."""

from __future__ import annotations

import html
import io
import json
import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._border import call, folder, given_scenario, settings, text, whole
from ._extras import extra
from ._frames import CLAIM_COLUMNS, claim_rows, csv_text
from ._progress import ProgressLine
from .errors import UserError

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas

_MOST_THREADS = 1024


class Run:
    """A run folder, one plan of it. What it tells is read when it is asked for, so that a run that is still
    at work shows the cells that are done."""

    def __init__(self, directory: str, plan: str) -> None:
        self._directory = directory
        self._plan = plan

    @property
    def directory(self) -> str:
        """The run folder."""
        return self._directory

    @property
    def plan(self) -> str:
        """The id of the plan."""
        return self._plan

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
        """One row a claim and sweep point: the claim's id and verdict, both sides, the paired difference with
        its 95 % interval, and under ``paper`` what the paper reports. Needs pandas."""
        pandas = extra("pandas", "frames", "frames")
        rows = [row for claim in self.verdicts() for row in claim_rows(claim)]
        return pandas.DataFrame(rows, columns=CLAIM_COLUMNS)

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

    def add_arm(self, name: str, frame: Any) -> None:
        """Adds results of a training of one's own as an arm: judged by the scenario's claims in the place of their
        left sides, drawn in its figures, and marked as imported. ``moelab import`` does the same with a file. An
        arm of that name that was imported before is replaced.

        :param name: the arm's name, none of the scenario's
        :param frame: a frame, or a dict of columns: seed, every swept path, metrics, and if you like state
            ("done", "diverged" or "failed"); the data of a seed and sweep point are those of ``moelab.sample``
        :raises UserError: for a seed or a sweep point that the plan does not have, a name that is no metric, and
            values that are no finite numbers
        """
        call(_core.import_arm, self._directory, self._plan, text(name, "arm"), csv_text(frame))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Run, (os.path.abspath(self._directory), self._plan))

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


def run(
    scenario: Any,
    *,
    profile: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    out: Any = None,
    threads: int | None = None,
    progress: bool = True,
) -> Run:
    """Runs a scenario's missing cells and judges its claims: ``moelab run``, to the last bit. Ctrl-C ends it
    cleanly, as KeyboardInterrupt; the same call again goes on where it stopped.

    :param scenario: the path of a file, or a dict
    :param profile: one of the scenario's named sets of overrides
    :param overrides: ``{dotted path: value}``
    :param out: the run folder; runs/<name>[-<profile>] where it is left out
    :param threads: cells run at a time; one per processor where it is left out
    :param progress: whether to show a line of it on stderr
    :raises UserError: for a scenario that is not valid, and a folder that cannot take its results
    :raises OSError: where disk or memory refuse
    """
    line = ProgressLine() if progress else None
    try:
        answer = json.loads(
            call(
                _core.run,
                *given_scenario(scenario),
                text(profile, "profile"),
                settings(overrides),
                "" if out is None else folder(out, "out"),
                0 if threads is None else whole(threads, "threads", 1, _MOST_THREADS),
                line,
            )
        )
    finally:
        if line:
            line.close()
    if answer["failed"]:
        warnings.warn(f"{answer['failed']} cells failed; their state in run.cells says which", stacklevel=2)
    if answer["not_restored"]:
        warnings.warn(f"{answer['not_restored']} cells lost arrays that another run did not restore", stacklevel=2)
    if answer["hint"]:
        warnings.warn(answer["hint"], stacklevel=2)
    return Run(answer["directory"], answer["plan"])
