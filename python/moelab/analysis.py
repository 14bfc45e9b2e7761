"""Metrics of one's own arrays."""

from __future__ import annotations

import json
from typing import Any

from . import _core
from ._border import array, call, whole
from .errors import UserError


def analyze(
    probs: Any = None,
    *,
    logits: Any = None,
    labels: Any = None,
    inputs: Any = None,
    router: Any = None,
    embeddings: Any = None,
    expert_outputs: Any = None,
    previous_probs: Any = None,
    previous_logits: Any = None,
    previous_assignments: Any = None,
    top_k: int = 1,
    neighbours: int | None = None,
) -> dict[str, Any]:
    """Every metric of routing that the arrays allow; the numbers of ``moelab analyze``, to the last bit.

    Arrays are NumPy's or offer ``__dlpack__`` or ``__array__``. Rows may be tokens: where ``probs`` is
    (n, s, E), the others have the dimensions n and s, too.

    :param probs: routing probabilities r(x), (n, E), or
    :param logits: scores whose softmax they are, (n, E)
    :param labels: cluster of each row, integers (n,), or (n, r) for rows of several parts
    :param inputs: inputs x of the router, (n, d)
    :param router: weights W of a linear router, (E, d), for the shuffled baseline
    :param embeddings: space of overlap and silhouette, (n, m); the inputs where there is none
    :param expert_outputs: outputs of every expert, (n, E, o)
    :param previous_probs: an earlier snapshot of ``probs``, for fluctuation; or ``previous_logits``; or
        ``previous_assignments``, its experts, integers (n,), or (n, K) with ``top_k`` K
    :param top_k: experts that serve a row
    :param neighbours: of expert overlap; 10, or all other rows where they are fewer
    :return: ``{"metrics": {name: value}, "skipped": {name: reason}, "intervals": {name: [low, high]},
        "settings": {…}}``; the metrics are those of docs/scenario.md
    :raises UserError: for an array that does not fit, ``path`` being the name of its argument
    """
    given = {
        "probs": probs,
        "logits": logits,
        "labels": labels,
        "inputs": inputs,
        "router": router,
        "embeddings": embeddings,
        "expert_outputs": expert_outputs,
        "previous_probs": previous_probs,
        "previous_logits": previous_logits,
        "previous_assignments": previous_assignments,
    }
    arrays = {name: array(value, name) for name, value in given.items() if value is not None}
    if not arrays:
        raise UserError("probs", "missing; needs routing probabilities, or logits")
    most = 10**6
    asked = 0 if neighbours is None else whole(neighbours, "neighbours", 1, most)
    return json.loads(call(_core.analyze, arrays, whole(top_k, "top_k", 1, most), asked))
