"""Converts Python values for the compiled part, and its messages for Python: JSON texts, settings, arrays."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ._scenario import Scenario
from .errors import UserError

ScenarioLike = str | os.PathLike[str] | Scenario | Mapping[str, Any]
"""A scenario: the path of a file, or a dict."""

Result = TypeVar("Result")

_PYTHON_ROUTER = "python"
# The path of an error that has no place inside a scenario.
_WHOLE = "scenario"

# Words of the command line whose Python arguments have other names: for every verb, and for single verbs.
_ARGUMENTS = {"NAME": "axis", "ID": "ids", "CELL": "cell", "DIR": "run", "set": "overrides"}
_ARGUMENTS_OF = {
    "new": {"NAME": "name", "axis": "name", "from": "start"},
    "compare": {"DIR": "runs"},
    "agreement": {"DIR": "runs"},
    "report": {"DIR": "runs"},
}


def _argument(option: str, verb: str = "") -> str:
    names = _ARGUMENTS | _ARGUMENTS_OF.get(verb, {})
    return names.get(option, option.replace("-", "_"))


# Phrases of the command line and their Python equivalents.
_WORDS = (
    ("the same command", "the same call"),
    ("moelab check --list shows all", "docs/theorems.md lists all"),
    ("run --until-decided", "until_decided=True"),
    ("moelab run FILE makes one", "moelab.run makes one"),
    (
        "--map OLD=NEW renames a column, --positive NAME declares a metric of your own, --ignore-unknown passes over "
        "the others",
        "rename it, or leave it out",
    ),
    ("--metric and --at choose less", "choose fewer metrics"),
)


def to_python_names(text: str) -> str:
    """A message with options of the command line ("--expert-outputs") as arguments ("expert_outputs")."""
    for said, meant in _WORDS:
        text = text.replace(said, meant)
    return re.sub(r"(?<![\w-])--([a-z][a-z-]*)", lambda found: _argument(found[1]), text)


def in_python(error: UserError, verb: str = "") -> UserError:
    """The errors of a verb with Python's names of arguments."""

    def path_of(path: str) -> str:
        return re.sub(r"^(overrides|at) ", r"\1.", _argument(to_python_names(path), verb))

    def message_of(message: str) -> str:
        message = to_python_names(message)
        # Routers written in Python have an internal kind that documents cannot name.
        for said, meant in ((f", {_PYTHON_ROUTER}", ""), (f"did you mean '{_PYTHON_ROUTER}'? Allowed", "allowed")):
            message = message.replace(said, meant)
        return message

    errors = [one | {"path": path_of(one["path"]), "message": message_of(one["message"])} for one in error.errors]
    return UserError(errors[0]["path"], errors[0]["message"], errors)


def call(function: Callable[..., Result], *arguments: Any) -> Result:
    """Calls the compiled part. Its errors name Python arguments."""
    try:
        return function(*arguments)
    except UserError as error:
        raise in_python(error) from None
    except OSError as error:
        if error.errno is not None:  # An exception of a Python callback.
            raise
        raise OSError(to_python_names(str(error))) from None


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if _is_array(value):
        return array(value, "array").tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, range):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a value of type {type(value).__name__}")


def _check_json(value: Any, path: str) -> None:
    """Refuses values that json would write, but not read back unchanged."""
    pending = [(value, path, path.rpartition(".")[2], 0)]
    while pending:
        part, place, name, depth = pending.pop()
        if depth > 64:
            raise UserError(path or _WHOLE, "is nested deeper than 64 levels")
        if isinstance(part, Mapping):
            for key, entry in part.items():
                if not isinstance(key, str):
                    raise UserError(place or _WHOLE, f"has the key {key!r}; keys are texts")
                pending.append((entry, f"{place}.{key}" if place else key, key.rpartition(".")[2], depth + 1))
        elif isinstance(part, (list, tuple, range)):
            pending.extend((entry, f"{place}[{i}]", name, depth + 1) for i, entry in enumerate(part))
        elif hasattr(part, "functions") and hasattr(part, "trainable"):
            raise UserError(place, "a router of moelab.routers works only with moelab.train")
        elif isinstance(part, (float, np.floating)) and not math.isfinite(part):
            raise UserError(place, f"got {part}, needs a finite number")
        elif isinstance(part, np.ndarray) or _is_array(part):
            if name in _FILES:  # the array becomes a file
                continue
            values = np.asarray(part) if isinstance(part, np.ndarray) else array(part, place)
            if values.dtype == object:
                pending.append((values.tolist(), place, name, depth + 1))
            elif values.dtype.kind == "f" and not np.isfinite(values).all():
                index = np.argwhere(~np.isfinite(values))[0]
                at = place + "".join(f"[{i}]" for i in index)
                raise UserError(at, f"got {values[tuple(index)]}, needs a finite number")


def json_text(value: Any, path: str) -> str:
    """The JSON text of a value of dicts, lists, texts and numbers, NumPy's too. The path of a scenario is empty."""
    _check_json(value, path)
    plain = _with_files(value, path, path.rpartition(".")[2])
    try:
        return json.dumps(plain, default=_plain, ensure_ascii=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(path or _WHOLE, f"cannot be written as JSON: {error}") from None


# Fields of data that name files (the generator "file").
_FILES = ("inputs", "targets", "labels", "test_inputs", "test_targets", "test_labels")


def _is_array(value: Any) -> bool:
    return len(getattr(value, "shape", ())) > 0 and any(
        hasattr(value, name) for name in ("__array__", "__dlpack__", "detach")
    )


def _kept_file(value: Any, path: str) -> str:
    """The .npy file of an array's content, among the user's cached files. Equal arrays have the same file."""
    content = io.BytesIO()
    np.save(content, array(value, path), allow_pickle=False)
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "moelab" / "arrays"
    file = place / f"{hashlib.sha256(content.getbuffer()).hexdigest()[:32]}.npy"
    if not file.exists():
        place.mkdir(parents=True, exist_ok=True)
        beside = file.with_name(f"{file.name}.{os.getpid()}.part")
        beside.write_bytes(content.getbuffer())
        beside.replace(file)
    return str(file.absolute())


def _with_files(value: Any, path: str, name: str = "") -> Any:
    """The value with files in the place of the arrays of data. ``name`` is the field that holds the value."""
    if isinstance(value, Mapping):
        return {
            key: _with_files(entry, f"{path}.{key}" if path else key, key.rpartition(".")[2])
            for key, entry in value.items()
        }
    is_list = isinstance(value, (list, tuple))
    # A list of numbers is an array, too. In a sweep it is the list of values.
    is_array = name in _FILES and (_is_array(value) or (is_list and "sweep" not in path.split(".")))
    if is_array:
        return _kept_file(value, path)
    return [_with_files(entry, f"{path}[{i}]", name) for i, entry in enumerate(value)] if is_list else value


def settings(overrides: Mapping[str, Any] | None, path: str = "overrides") -> list[str]:
    """{"model.experts": 32} as the texts "model.experts=32"."""
    if overrides is None:
        return []
    if not isinstance(overrides, Mapping):
        raise UserError(path, f"got a {type(overrides).__name__}, needs a dict of dotted paths and values")
    texts = []
    for key, value in overrides.items():
        if not isinstance(key, str) or not key or "=" in key or not _is_text(key):
            raise UserError(path, f"has the key {key!r}; needs a dotted path such as 'model.experts'")
        texts.append(f"{key}={json_text(value, f'{path}.{key}')}")
    return texts


def _is_text(value: str) -> bool:
    """Whether the compiled part can read the text: no lone surrogate and no zero byte."""
    return "\0" not in value and not any("\ud800" <= character <= "\udfff" for character in value)


def _check_name(file: str) -> None:
    """Refuses a text that names no file, but looks like a document or like a scenario that comes with moelab."""
    if file.lstrip().startswith("{"):
        raise UserError("scenario", "got JSON text, needs the path of a file or a dict; json.loads(text) gives the dict")
    from .scenarios import names  # which imports this module

    if file in names():
        raise UserError("scenario", f"no file '{file}'; moelab.scenarios.load({file!r}) gives the scenario of that name")


def given_scenario(scenario: ScenarioLike) -> tuple[str, str]:
    """(file, text of a document), one of them empty."""
    if isinstance(scenario, Mapping):
        return "", json_text(dict(scenario), "")
    if isinstance(scenario, (str, os.PathLike)):
        file = os.fspath(scenario)
        if isinstance(file, str) and file and _is_text(file):
            place = os.path.expanduser(file)
            if not os.path.exists(place):
                _check_name(file)
            return place, ""
    raise UserError("scenario", f"got {shown(scenario)}, needs the path of a scenario file or a dict")


def text(value: Any, path: str) -> str:
    """An argument that is a text; empty for None."""
    if value is None:
        return ""
    if not isinstance(value, str) or not _is_text(value):
        raise UserError(path, f"got {shown(value)}, needs a text")
    return value


def folder(value: Any, path: str) -> str:
    """An argument that names a file or a folder."""
    if isinstance(value, (str, os.PathLike)):
        name = os.fspath(value)
        if isinstance(name, str) and name and _is_text(name):
            return os.path.expanduser(name)
    raise UserError(path, f"got {shown(value)}, needs a path")


def whole(value: Any, path: str, minimum: int, maximum: int) -> int:
    """An argument that is a whole number within limits."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and minimum <= value <= maximum:
        return int(value)
    raise UserError(path, f"got {shown(value)}, needs a whole number of {minimum} to {maximum}")


def shown(value: Any) -> str:
    """The value as messages show it."""
    form = repr(value)
    return form if len(form) <= 60 else f"{form[:57]}…"


_READ = {"float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool"}


def _of_objects(values: np.ndarray) -> np.ndarray:
    """The same with a type of numbers, if all are numbers, as in frames with pandas' nullable types."""
    try:
        return np.array(values.tolist())
    except ValueError:
        return values


def array(value: Any, path: str) -> np.ndarray:
    """A contiguous array of numbers from a NumPy array, from what offers ``__dlpack__`` or ``__array__``
    (tensors of PyTorch that need a gradient or lie elsewhere are detached and copied), or from lists."""
    try:
        if hasattr(value, "detach"):
            value = value.detach()
            value = value.cpu() if hasattr(value, "cpu") else value
            if str(value.dtype) == "torch.bfloat16":  # which NumPy lacks
                value = value.float()
        if isinstance(value, np.ndarray):
            found = value
        elif hasattr(value, "__dlpack__"):
            try:
                found = np.from_dlpack(value)
            except (BufferError, RuntimeError, TypeError):
                found = np.asarray(value)  # a type or a device that DLPack does not carry over
        elif hasattr(value, "__array__") or isinstance(value, (list, tuple)):
            found = np.asarray(value)
        else:
            raise UserError(path, f"got {shown(value)}, needs an array")
    except UserError:
        raise
    except Exception as error:  # whatever a foreign array raises, it is no array that can be read
        raise UserError(path, f"cannot be read as an array: {error}") from None
    found = np.asarray(found)  # a matrix or a masked array as the plain array below it
    if found.dtype.name == "bfloat16":  # JAX's
        found = found.astype(np.float32)
    if found.dtype == object and not isinstance(value, np.ndarray):
        found = _of_objects(found)
    if not found.dtype.isnative:
        found = found.astype(found.dtype.newbyteorder("="))
    if found.dtype.name not in _READ:
        raise UserError(path, f"has dtype {found.dtype}; is read as one of {', '.join(sorted(_READ))}")
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise UserError(path, "has masked entries; needs an array without")
    return np.ascontiguousarray(found) if found.ndim else found
