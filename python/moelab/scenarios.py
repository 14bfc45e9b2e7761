"""Scenarios: what they can say, whether they are valid, the data that they draw; theorem checks."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _core
from ._border import call, given_scenario, settings, shown, text, whole
from .errors import UserError

_MOST_SEEDS = 10000
_MOST_THREADS = 1024


def list_kinds(kind: str | None = None) -> dict[str, Any]:
    """What scenarios are made of, as ``moelab list --json`` answers.

    :param kind: an axis ("generators", "targets", "routers", "experts", "gatings", "losses", "optimizers",
        "schedules", "metrics", "figures"); all of them where it is left out
    :return: ``{axis: {"path": …, "kinds": [{"name", "help", "fields", …}]}}``
    :raises UserError: for a name that is no axis
    """
    return json.loads(call(_core.list_kinds, text(kind, "kind")))


def validate(
    scenario: Any, *, profile: str | None = None, overrides: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Checks a scenario, every cell of it.

    :param scenario: the path of a file, or a dict
    :param profile: one of the scenario's named sets of overrides
    :param overrides: ``{dotted path: value}``
    :return: ``{"valid": True, "name": …, "cells": …}``
    :raises UserError: with the JSON path of what is wrong, what is allowed, and the nearest valid name
    """
    return json.loads(
        call(_core.validate, *given_scenario(scenario), text(profile, "profile"), settings(overrides))
    )


def check(
    ids: str | Sequence[str] | None = None, *, seeds: int = 1, threads: int | None = None
) -> list[dict[str, Any]]:
    """Holds theorems against computation, as ``moelab check --json`` answers.

    :param ids: checks by id, or beginnings of ids such as "dikkala2023"; all of them where it is left out
    :param seeds: multiplies the random repetitions
    :param threads: checks computed at a time; one per processor where it is left out
    :return: a list of ``{"id", "source", "statement", "hypotheses", "relation", "predicted", "measured",
        "error_bound", "error_origin", "expected", "verdict", "details", "curve"}``
    :raises UserError: for an id that fits none
    """
    if ids is not None and not isinstance(ids, (str, Sequence)):
        raise UserError("ids", f"got {shown(ids)}, needs a text, or a list of texts")
    names = [text(name, "ids") for name in ([ids] if isinstance(ids, str) else ids or [])]
    if not all(names):
        raise UserError("ids", "has an empty text; needs ids, or nothing")
    whole(seeds, "seeds", 1, _MOST_SEEDS)
    workers = None if threads is None else whole(threads, "threads", 1, _MOST_THREADS)
    chosen = [entry["id"] for entry in json.loads(call(_core.list_checks, names))]
    pool = ThreadPoolExecutor(workers or _processors())
    try:
        return [json.loads(finding) for finding in pool.map(lambda name: _core.check(name, seeds), chosen)]
    finally:
        # Ctrl-C waits for the checks that are being computed, and for no other.
        pool.shutdown(wait=True, cancel_futures=True)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """The data that a cell of a scenario draws.

    ``x`` (n, d) inputs, ``y`` (n, o) targets, ``labels`` (n,) latent clusters of the training set, None where
    training takes its gradients from the population; ``test_x``, ``test_y``, ``test_labels`` of the test set.
    Of sequences x is (n, s, d), labels (n, s), y (n, o) or (n, s, o); a row of several parts has labels (n, r).
    Tokens are ids: x and y (n, s), int64.
    """

    x: np.ndarray | None
    y: np.ndarray | None
    labels: np.ndarray | None
    test_x: np.ndarray
    test_y: np.ndarray
    test_labels: np.ndarray
    name: str
    cell: str
    arm: str
    seed: int
    point: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        named = {name: getattr(self, name) for name in ("x", "y", "labels", "test_x", "test_y", "test_labels")}
        shapes = ", ".join(f"{name} {array.shape}" for name, array in named.items() if array is not None)
        place = "".join(f", {path} {value}" for path, value in self.point.items())
        return f"<moelab.Sample: {self.name}, arm {self.arm}, seed {self.seed}{place}: {shapes}>"


def sample(
    scenario: Any,
    *,
    arm: str | None = None,
    seed: int = 0,
    at: Mapping[str, Any] | None = None,
    profile: str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Sample:
    """Draws the training and test data of a cell: those that ``moelab sample`` writes, to the last bit. Of a
    scenario with phases they are those of the last.

    :param scenario: the path of a file, or a dict
    :param arm: its arm; the first where it is left out
    :param seed: its seed, counted from 0
    :param at: its sweep point, ``{swept path: value}``; of each path left out the first value
    :param profile: one of the scenario's named sets of overrides
    :param overrides: ``{dotted path: value}``
    :raises UserError: for a scenario that is not valid, and for a cell that it does not have
    """
    number = str(whole(seed, "seed", 0, 2**31 - 1))
    fields = call(
        _core.sample,
        *given_scenario(scenario),
        text(profile, "profile"),
        settings(overrides),
        text(arm, "arm"),
        number,
        settings(at, "at"),
    )
    about = json.loads(fields.pop("about"))
    for name in ("x", "y", "labels"):
        fields.setdefault(name, None)
    return Sample(**fields, **about)
