"""The type of a scenario, made from docs/scenario.schema.json by python/scenario_types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

# The functional form, because of "$schema". Annotations are texts, which cost nothing at import.
Scenario = TypedDict(
    "Scenario",
    {
        "$schema": 'str',
        "version": 'int',
        "extends": 'str',
        "name": 'str',
        "title": 'str',
        "source": 'str',
        "notes": 'str | Sequence[str]',
        "data": 'Literal["image_clusters", "task_pool", "single_index"] | Mapping[str, Any]',
        "model": 'Mapping[str, Any]',
        "loss": 'Mapping[str, Any]',
        "train": 'Mapping[str, Any]',
        "phases": 'Sequence[Mapping[str, Any]]',
        "metrics": 'Sequence[str | Mapping[str, Any]]',
        "save": 'Sequence[Literal["weights", "routing", "routing_steps"]]',
        "evaluations": 'Mapping[str, Mapping[str, Any]]',
        "arms": 'Mapping[str, Mapping[str, Any]]',
        "sweep": 'Mapping[str, Sequence[Any] | Mapping[str, Sequence[Any] | Mapping[str, Any]]]',
        "seeds": 'Mapping[str, Any]',
        "objective": 'str | Mapping[str, Any]',
        "tune": 'Mapping[str, Mapping[str, Any]]',
        "labels": 'Mapping[str, str]',
        "claims": 'Sequence[Mapping[str, Any]]',
        "figures": 'Sequence[Mapping[str, Any]]',
        "profiles": 'Mapping[str, Mapping[str, Any]]',
    },
    total=False,
)
Scenario.__doc__ = "A scenario as a dict; docs/scenario.md explains each field."
