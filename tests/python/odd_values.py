"""What a random call hands in where a value, an array or a scenario is expected."""

from __future__ import annotations

import contextlib
import copy
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np

Random = np.random.Generator

TYPES = ["float16", "float32", "float64", ">f8", "int8", "int32", "int64", ">i4", "uint8", "uint16", "uint64", "bool",
         "complex64", "longdouble", "O", "U3", "S2", "datetime64[s]", "V4", "f4,i4"]
TOO_LARGE = 2**31  # for any size: refused, and not allocated


def odd_value(random: Random) -> Any:
    """What stands where something else is expected."""
    values = [
        None, True, -1, 0, 1, 2, 0.5, 1e300, math.nan, math.inf, TOO_LARGE, 2**63, 2**64, 10**30, "", "x", "learned",
        "moe", "softmax", "x" * 5000, "\ud800", "a\0b", "é", b"x", [], {}, [1, [2]], [[]], {"kind": "topk", "k": 2},
        {"kind": "x"}, {1: 2}, {"a": {"b": {}}}, {"x"}, object(), len, np.float32(0.1), np.int8(3), np.array([1, 2]),
        np.array(3), Path("x"), 1j, range(3), Exception("x"), type,
    ]
    return values[random.integers(len(values))]


def odd_array(random: Random, shape: tuple[int, ...] | None = None) -> Any:
    """An array of any type, order and content, of a given shape or of any; now and then something else."""
    if random.random() < 0.05:
        return odd_value(random)
    if shape is None or random.random() < 0.15:
        shape = tuple(int(size) for size in random.integers(0, 5, size=random.integers(0, 5)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind = random.random()
        if kind < 0.4:
            array = np.asarray(random.random(shape))
            array = array / np.maximum(array.sum(axis=-1, keepdims=True), 1e-9) if array.ndim else array
        elif kind < 0.6:
            array = np.asarray(random.integers(-1, 5, size=shape))
        elif kind < 0.7:
            array = np.full(shape, random.choice([0, 1e300, -1e300, 1e-300, math.nan, math.inf]))
        else:
            array = np.frombuffer(random.bytes(8 * math.prod(shape)), "float64").reshape(shape)
        if random.random() < 0.5:
            with contextlib.suppress(TypeError, ValueError, OverflowError):
                array = array.astype(TYPES[random.integers(len(TYPES))])
    return odd_layout(random, array)


def odd_layout(random: Random, array: np.ndarray) -> Any:
    """The same values behind other strides, in another class, or without the right to write."""
    choice = random.integers(10)
    if choice == 0:
        return np.asfortranarray(array)
    if choice == 1 and array.ndim:
        return np.repeat(array, 2, axis=0)[::2]
    if choice == 2 and array.ndim:
        return array[::-1]
    if choice == 3 and array.ndim:
        return np.broadcast_to(array[:1], array.shape) if len(array) else array
    if choice == 4:
        return np.ma.masked_array(array, mask=random.random(array.shape) < 0.1)
    if choice == 5:
        array = array.copy()
        array.flags.writeable = False
        return array
    if choice == 6:
        return array.tolist()
    if choice == 7 and array.dtype.names is None and array.dtype.kind == "f" and array.ndim:
        raw = np.zeros(array.nbytes + 1, np.uint8)  # entries that lie at odd addresses
        moved = raw[1:].view(array.dtype).reshape(array.shape)
        moved[...] = array
        return moved
    return array


def changed(random: Random, document: dict[str, Any], times: int) -> dict[str, Any]:
    """A document with values, keys and parts of it exchanged."""
    document = copy.deepcopy(document)
    for _ in range(times):
        part: Any = document
        while True:
            keys = list(part) if isinstance(part, dict) else list(range(len(part)))
            if not keys:
                break
            key = keys[random.integers(len(keys))]
            inner = part[key]
            if isinstance(inner, (dict, list)) and inner and random.random() < 0.8:
                part = inner
                continue
            choice = random.integers(5)
            if choice == 0:
                del part[key]
            elif choice == 1 and isinstance(part, dict):
                part[["x", f"{key}s", "", "kind", "\ud800", 3][random.integers(6)]] = inner
            elif choice == 2 and isinstance(inner, (int, float)) and not isinstance(inner, bool):
                part[key] = [inner + 1, -inner, inner / 3, float(inner), str(inner)][random.integers(5)]
            else:
                part[key] = odd_value(random)
            break
    return document
