"""Packages that are asked for when they are used, and not before."""

from __future__ import annotations

import importlib
from types import ModuleType


def extra(module: str, name: str, what: str) -> ModuleType:
    """Imports a module of an optional package; the error names the extra that brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] != module.split(".")[0]:
            raise
        package = module.split(".")[0]
        raise ImportError(f"{what} need {package}: pip install 'moelab[{name}]'", name=package) from None
