"""Metrics of a router, from your arrays or from the dump of a language model."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from ._convert import array, call, folder, to_python_names, json_text, shown, text, whole
from ._extras import extra
from .errors import UserError

_MOST = 10**6
_NO_LABEL = -100  # PyTorch's losses skip it


def _with_names(values: np.ndarray, rows: Sequence[str], columns: Sequence[str]) -> NamedMatrix:
    made = values.view(NamedMatrix)
    made.rows, made.columns = list(rows), list(columns)
    return made


class NamedMatrix(np.ndarray):
    """A matrix whose rows and columns have names: ``rows``, ``columns``, ``frame()``.

    The names follow an index, a transpose and elementwise arithmetic. Every other result has no names. If an index
    does not select whole rows and columns, the result is a plain array.
    """

    rows: list[str]
    columns: list[str]

    def __new__(cls, values: Any, rows: Sequence[str], columns: Sequence[str]) -> NamedMatrix:
        numbers = np.array([[np.nan if x is None else x for x in row] for row in values], dtype=float)
        return _with_names(numbers, rows, columns)

    def __array_finalize__(self, other: Any) -> None:
        # NumPy calls this for results of any shape and order, so the names of ``other`` may be wrong here.
        self.rows, self.columns = [], []

    def _has_names(self) -> bool:
        return self.shape == (len(self.rows), len(self.columns))

    def _named(self, values: np.ndarray) -> Any:
        """Values of the same places with the names of this matrix."""
        if not self._has_names() or values.shape != self.shape:
            return values
        return _with_names(values, self.rows, self.columns)

    def __getitem__(self, index: Any) -> Any:
        values = np.asarray(self)[index]
        if values.ndim != 2 or values.size == 0 or not self._has_names():
            return values
        places: Any = np.indices(self.shape)
        rows, columns = places[0][index], places[1][index]
        if (rows != rows[:, :1]).any() or (columns != columns[:1]).any():
            return values
        return _with_names(
            values, [self.rows[place] for place in rows[:, 0]], [self.columns[place] for place in columns[0]]
        )

    @property
    def T(self) -> Any:
        """The transpose. Rows and columns exchange their names."""
        values = np.asarray(self).T
        if not self._has_names():
            return values
        return _with_names(values, self.columns, self.rows)

    def transpose(self, *axes: Any) -> Any:
        """The same as ``T``. With axes the result is a plain array."""
        return self.T if axes in ((), (None,)) else np.asarray(self).transpose(*axes)

    def copy(self, order: Any = "C") -> Any:
        """A copy with the names."""
        return self._named(np.asarray(self).copy(order))

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def round(self, decimals: Any = 0, out: Any = None) -> Any:
        """The rounded matrix with the names."""
        rounded = np.asarray(self).round(decimals, out)
        return rounded if out is not None else self._named(rounded)

    def sort(self, *arguments: Any, **named: Any) -> None:
        """Sorts in place. The names are lost, because they belong to other values then."""
        super().sort(*arguments, **named)
        self.rows, self.columns = [], []

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        def plain(value: Any) -> Any:
            return np.asarray(value) if isinstance(value, NamedMatrix) else value

        if out is not None:
            options["out"] = tuple(plain(value) for value in out)
        result = getattr(ufunc, method)(*[plain(value) for value in inputs], **options)
        if out is not None:
            return out[0] if len(out) == 1 else out
        own = [value for value in inputs if isinstance(value, NamedMatrix)]
        is_elementwise = method == "__call__" and ufunc.signature is None and isinstance(result, np.ndarray)
        if not own or not is_elementwise or any((v.rows, v.columns) != (own[0].rows, own[0].columns) for v in own):
            return result
        return own[0]._named(result)

    def __reduce__(self) -> Any:
        reduced: Any = super().__reduce__()
        rebuilt, arguments, state = reduced
        return rebuilt, arguments, (state, self.rows, self.columns)

    def __setstate__(self, state: Any) -> None:
        own, rows, columns = state
        super().__setstate__(own)
        self.rows, self.columns = rows, columns

    def frame(self) -> Any:
        """The matrix as a pandas DataFrame. Without names, rows and columns are numbered."""
        pandas = extra("pandas", "frames", "frames")
        names = {"index": self.rows, "columns": self.columns} if self._has_names() else {}
        return pandas.DataFrame(np.asarray(self), **names)


class Analysis(Mapping[str, Any]):
    """What ``analyze`` measures, layer by layer. No number is pooled over layers.

    ``analysis["metrics"]`` has the metrics of a single layer. With several layers it has what concerns all of them.
    The mapping is the answer of ``moelab analyze --json``.
    """

    def __init__(self, answer: dict[str, Any]) -> None:
        self._answer = answer

    def __getitem__(self, key: str) -> Any:
        return self._answer[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._answer)

    def __len__(self) -> int:
        return len(self._answer)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return self._answer == (other._answer if isinstance(other, Analysis) else dict(other))

    def __repr__(self) -> str:
        layers = [layer["layer"] for layer in self._answer["layers"]]
        return f"<Analysis of layers {shown(layers)}: {len(self.checks)} checks>"

    def _repr_html_(self) -> str:
        """The layers and the checks, as notebooks show them."""
        rows = [{"layer": layer["layer"]} | layer["metrics"] for layer in self._answer["layers"]]
        names = list(dict.fromkeys(name for row in rows for name in row))
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join("<tr>" + "".join(f"<td>{_cell(row.get(name))}</td>" for name in names) + "</tr>" for row in rows)
        notes = "".join(f"<li>{html.escape(check)}</li>" for check in self.checks)
        return (f'<div style="overflow-x: auto"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
                + (f"<ul>{notes}</ul>" if notes else ""))

    @property
    def checks(self) -> list[str]:
        """What the arrays hold, and what was assumed."""
        return [to_python_names(check) for check in self._answer["checks"]]

    @property
    def skipped(self) -> dict[str, str]:
        """The metrics that are missing, with the reason."""
        reasons: dict[str, str] = dict(self._answer["skipped"])
        for layer in self._answer["layers"]:
            for name, reason in layer["skipped"].items():
                reasons.setdefault(name, reason)
        return {name: to_python_names(reason) for name, reason in reasons.items()}

    def table(self) -> list[dict[str, Any]]:
        """One dict for each layer, with every metric.

        Where they are known, ``_low`` and ``_high`` are the ends of the interval. ``_chance`` is the value of chance.
        """
        rows = []
        for layer in self._answer["layers"]:
            row: dict[str, Any] = {"layer": layer["layer"]}
            for name, value in layer["metrics"].items():
                row[name] = value
                if name in layer["intervals"]:
                    row[f"{name}_low"], row[f"{name}_high"] = layer["intervals"][name]
                if name in layer["chance"]:
                    row[f"{name}_chance"] = layer["chance"][name]
            rows.append(row)
        return rows

    def expert_table(self) -> list[dict[str, Any]]:
        """One dict for each layer and expert: load, activation_rate, top1_load, mean_routing."""
        rows: list[dict[str, Any]] = []
        for layer in self._answer["layers"]:
            columns = layer["experts"]
            rows.extend(
                {"layer": layer["layer"], "expert": e} | {name: values[e] for name, values in columns.items()}
                for e in range(len(columns["load"]))
            )
        return rows

    @property
    def layers(self) -> Any:
        """A pandas frame of ``table()``."""
        return extra("pandas", "frames", "frames").DataFrame(self.table())

    @property
    def experts(self) -> Any:
        """A pandas frame of ``expert_table()``."""
        return extra("pandas", "frames", "frames").DataFrame(self.expert_table())

    @property
    def matrices(self) -> dict[str, Any]:
        """``{"domain": {layer: matrix}, "co_activation": {layer: matrix}, …, "layer_nmi": matrix}``."""
        made: dict[str, Any] = {}
        for layer in self._answer["layers"]:
            for name, matrix in layer["matrices"].items():
                made.setdefault(name, {})[layer["layer"]] = _matrix(matrix)
        for name, matrix in self._answer["matrices"].items():
            made[name] = _matrix(matrix)
        return made

    @property
    def documents(self) -> Any:
        """A pandas frame of metrics, one row for each layer and document. Empty without documents, or for many."""
        rows = [{"layer": layer["layer"]} | dict(zip(layer["documents"], values))
                for layer in self._answer["layers"] if layer.get("documents")
                for values in zip(*layer["documents"].values())]
        return extra("pandas", "frames", "frames").DataFrame(rows)

    def judge(self, other: Analysis, claims: Sequence[str]) -> list[dict[str, Any]]:
        """Judges claims on two routers of the same documents, paired over documents.

        Each layer is a point with the paired t interval of the difference. The two routers may differ in everything
        but the documents: two models, or two balance losses.

        :param other: The analysis to compare with.
        :param claims: Texts such as ``"routing_entropy <"``: the metric is smaller here. The operators are < and >.
        :return: The verdicts, each in the form of ``moelab claims --json``.
        """
        if not isinstance(other, Analysis):
            raise UserError("other", f"got {shown(other)}, needs an Analysis")
        texts = [json_text(analysis._answer, "analysis") for analysis in (self, other)]
        if not isinstance(claims, Sequence):
            raise UserError("claims", f"got {shown(claims)}, needs a text, or a list of texts")
        wanted = [claims] if isinstance(claims, str) else list(claims)
        judged: list[dict[str, Any]] = json.loads(call(_core.judge_analyses, *texts, [text(c, "claims") for c in wanted]))
        return judged

    def save(self, out: Any, *, figures: bool = False) -> list[str]:
        """Writes tables (CSV), ``analysis.json``, ``analysis.npz`` and ``report.html``, a page with figures.

        :param out: The folder.
        :param figures: Whether to draw the figures as SVG, PDF and PNG, too. This needs gnuplot.
        :return: The files.
        """
        answer = json_text(self._answer, "analysis")
        files: list[str] = json.loads(call(_core.save_analysis, answer, folder(out, "out"), bool(figures)))
        return files


def _cell(value: Any) -> str:
    """A value in a table of a notebook."""
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))


def _matrix(matrix: dict[str, Any]) -> NamedMatrix:
    return NamedMatrix(matrix["values"], matrix["rows"], matrix["columns"])


# Arguments


def _entry_array(value: Any, path: str) -> tuple[np.ndarray, str | None] | None:
    """A contiguous array, with the name of its type if NumPy lacks it. None for None."""
    if value is None:
        return None
    if str(getattr(value, "dtype", "")) == "torch.bfloat16":
        import torch

        value = value.detach().cpu().contiguous().view(torch.int16).numpy()
        return np.ascontiguousarray(value), "bfloat16"
    if type(value).__module__.split(".")[0] in ("jax", "jaxlib") and str(value.dtype) == "bfloat16":
        value = np.asarray(value)
    if getattr(getattr(value, "dtype", None), "name", "") == "bfloat16" and isinstance(value, np.ndarray):
        return np.ascontiguousarray(value).view(np.uint16), "bfloat16"
    return array(value, path), None


def _is_array(value: Any) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _is_file(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


_Batch = list[tuple[str, "int | None", Any, Any]]


def _batch(value: Any, path: str) -> _Batch:
    """The entries of one batch: an array, a tuple with None for a layer without a router, or {layer: array}."""
    if isinstance(value, Mapping):
        named: list[tuple[str, int | None, Any]] = []
        for key, entry in value.items():
            if isinstance(key, bool) or not isinstance(key, (int, np.integer)):
                raise UserError(path, f"has the key {key!r}; needs the numbers of layers")
            named.append((f"layer {key}", int(key), entry))
        if not named:
            raise UserError(path, "has no layers")
        return [(name, layer, *_pair(entry, path)) for name, layer, entry in named]
    if isinstance(value, tuple):
        if not value:
            raise UserError(path, "has no layers")
        return [(f"{path}.{i}", None, *_pair(entry, f"{path}.{i}")) for i, entry in enumerate(value)]
    return [("", None, _entry_array(value, path), None)]


def _pair(entry: Any, path: str) -> tuple[Any, Any]:
    """(scores, experts): entries of Switch Transformers are pairs."""
    if isinstance(entry, tuple) and len(entry) == 2:
        return _entry_array(entry[0], path), _entry_array(entry[1], path)
    return _entry_array(entry, path), None


def _is_entry(part: Any) -> bool:
    """Whether a part of a list is a layer or a batch, and no row of numbers."""
    if isinstance(part, (tuple, Mapping)):
        return len(part) > 0 and not np.isscalar(next(iter(part)))
    return part is None or (_is_array(part) and len(part.shape) > 1)


def _batches(value: Any, path: str, lists_are_batches: bool) -> list[_Batch]:
    if isinstance(value, list) and any(_is_entry(part) for part in value):
        is_plain = all(_is_array(part) for part in value)
        if is_plain and not lists_are_batches:
            raise UserError(path, "is a list of arrays: layers are a tuple, batches a list of tuples [(array,), …]")
        if any(part is None for part in value):
            raise UserError(path, "is a list with None: layers are a tuple, with None for those without a router")
        return [_batch(part, path) for part in value]
    return [_batch(value, path)]


def _names(value: Any) -> tuple[Any, list[str]]:
    """Numbers and names of labels that are texts or categories. Other labels stay as they are."""
    if _is_file(value) or value is None:
        return value, []
    if isinstance(value, tuple):
        value = list(value)
    if hasattr(value, "detach") or (_is_array(value) and getattr(value.dtype, "kind", "?") in "iufb"):
        return value, []
    try:
        values = np.asarray(value)
    except Exception:  # ragged: read as an array later, which says why not
        return value, []
    if values.dtype.kind not in "OUST" or values.size == 0:
        return value, []
    if not all(isinstance(x, (str, bytes)) for x in values.ravel()):
        return value, []
    names, places = np.unique(values.astype(str), return_inverse=True)
    return places.reshape(values.shape).astype(np.int64), [str(name) for name in names]


def config_of(model: Any) -> Any:
    """The configuration of a model as a dict. It comes from a dict, a file, or an object of transformers."""
    if model is None:
        return None
    if _is_file(model):
        try:
            with open(os.fspath(model), encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UserError("model", f"'{os.fspath(model)}' cannot be read as JSON: {reason}") from None
    if not isinstance(model, Mapping):
        model = getattr(model, "config", model)
    to_dict = getattr(model, "to_dict", None)
    if to_dict is not None:
        model = to_dict()
    if not isinstance(model, Mapping):
        raise UserError("model", f"got {shown(model)}, needs a dict, a config.json or a configuration of transformers")
    wanted = {key: value for key, value in model.items() if isinstance(value, (bool, int, float, str, list, tuple, type(None)))}
    inner = model.get("text_config")
    if isinstance(inner, Mapping) or hasattr(inner, "to_dict"):
        wanted["text_config"] = config_of(inner)
    return wanted


def _joined(value: Any, path: str, mark: str) -> str:
    """A text, or numbers as a text."""
    if isinstance(value, (list, tuple, range, np.ndarray)):
        return mark.join(str(whole(entry, path, 0, _MOST)) for entry in value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return str(value)
    return text(value, path)


_LIST_COLUMNS = ("indices", "experts", "expert_ids", "routed_experts", "topk_ids")


def _parquet(file: Any, path: str) -> tuple[Any, dict[str, Any]]:
    """The ids (T, K) or {layer: ids} of a Parquet file, and its other columns by argument."""
    pq = extra("pyarrow.parquet", "parquet", "Parquet files")
    table = pq.read_table(os.fspath(file))
    for name in _LIST_COLUMNS:
        if name in table.column_names and str(table.schema.field(name).type).startswith(("list", "fixed_size_list", "large_list")):
            return array(np.array(table[name].to_pylist()), path), {}
    columns = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    layer, expert = (next((n for n in names if n in columns), None) for names in (
        ("layer", "layer_id"), ("expert", "expert_id")))
    position = next((n for n in ("position", "token_index", "row") if n in columns), None)
    if expert is None or position is None:
        raise UserError(path, f"has the columns {', '.join(columns)}; needs a list column such as indices, or the "
                              "columns layer, document, position, rank, expert")
    zeros = np.zeros(len(columns[expert]), np.int64)
    document = next((columns[n] for n in ("document", "doc", "sequence", "request") if n in columns), zeros)
    rank = next((columns[n] for n in ("rank", "k", "choice") if n in columns), None)
    layers = columns[layer] if layer else zeros
    order = np.lexsort((zeros if rank is None else rank, columns[position], document, layers))
    made: dict[int, np.ndarray] = {}
    beside: dict[str, Any] = {}
    tokens, first = None, order
    for number in np.unique(layers):
        own = order[layers[order] == number]
        place = np.stack([document[own], columns[position][own]], 1)
        starts = np.concatenate([[True], (place[1:] != place[:-1]).any(1)])
        row = np.cumsum(starts) - 1
        column = np.arange(len(own)) - np.flatnonzero(starts)[row]
        ids = np.full((row[-1] + 1, column.max() + 1), -1, np.int64)
        ids[row, column] = columns[expert][own]
        if tokens is not None and (len(tokens) != starts.sum() or (tokens != place[starts]).any()):
            raise UserError(path, f"has other tokens in layer {number} than in the layer before")
        tokens = place[starts]
        made[int(number)] = ids
        first = own[starts]
    beside["documents"] = np.unique(document[first], return_inverse=True)[1].astype(np.int64)
    for argument, names in (("tokens", ("token_id", "token")), ("labels", ("domain", "label"))):
        found = next((n for n in names if n in columns), None)
        if found:
            beside[argument] = columns[found][first]
    if rank is not None:
        beside["by_score"] = True
    return made, beside


def _mask_of_labels(labels: list[_Batch]) -> list[_Batch]:
    """0 for rows whose label is -100, and 1 for the others. Empty if all rows have a label."""
    if not any((values[0] == _NO_LABEL).any() for batch in labels for _, _, values, _ in batch if values):
        return []
    return [
        [(name, layer, values and (values[0] != _NO_LABEL, None), None) for name, layer, values, _ in batch]
        for batch in labels
    ]


def _is_parquet(value: Any) -> bool:
    return _is_file(value) and os.fspath(value).endswith(".parquet")


def _with_parquet(given: dict[str, Any], by_score: bool) -> bool:
    """Replaces the names of Parquet files by their arrays."""
    value = given["experts"]
    if _is_parquet(value):
        given["experts"], beside = _parquet(value, "experts")
        by_score = bool(beside.pop("by_score", by_score)) or by_score
        for name, own in beside.items():
            given[name] = own if given.get(name) is None else given[name]
    elif isinstance(value, Mapping):
        given["experts"] = {k: _parquet(v, "experts")[0] if _is_parquet(v) else v for k, v in value.items()}
    elif isinstance(value, tuple):
        given["experts"] = tuple(_parquet(v, "experts")[0] if _is_parquet(v) else v for v in value)
    return by_score


def analyze(
    probs: Any = None,
    *,
    logits: Any = None,
    scores: Any = None,
    gates: Any = None,
    experts: Any = None,
    counts: Any = None,
    model: Any = None,
    axes: str | None = None,
    layers: Any = None,
    expert_count: int | None = None,
    top_k: int | None = None,
    score: str | None = None,
    selection_bias: Any = None,
    groups: Any = None,
    by_score: bool = False,
    dtype: str | None = None,
    mask: Any = None,
    tokens: Any = None,
    labels: Any = None,
    documents: Any = None,
    lengths: Any = None,
    ranks: str | None = None,
    inputs: Any = None,
    router: Any = None,
    embeddings: Any = None,
    expert_outputs: Any = None,
    previous_probs: Any = None,
    previous_logits: Any = None,
    previous_assignments: Any = None,
    neighbours: int | None = None,
) -> Analysis:
    """Measures a router, layer by layer. The numbers equal the answer of ``moelab analyze`` to the last bit.

    One of ``probs``, ``logits``, ``scores``, ``gates``, ``experts`` and ``counts`` is needed. An argument is one of:

    - an array of one layer, or of a stack of layers;
    - a tuple of layers, with ``None`` for a layer without a router;
    - a dict ``{layer: array}``;
    - a list of tuples, one for each batch;
    - the name of a file, as on the command line.

    Arrays come from NumPy, PyTorch or JAX, bfloat16 included. Objects with ``__dlpack__`` or ``__array__`` work, too.
    The function does not guess where arrays are ambiguous.

    :param probs: Routing probabilities r(x), (n, E).
    :param logits: Scores (n, E) whose softmax gives the probabilities. ``score`` selects another law.
    :param scores: Scores after a sigmoid.
    :param gates: Gates. Experts that were not selected have 0.
    :param experts: Ids of the selected experts, (n, K). A Parquet file or ``{layer: file}`` works, too.
    :param counts: The number of tokens of each expert.
    :param model: The configuration: a dict, config.json, or a configuration of transformers. It gives E, K, groups,
        scores and the layers with a router.
    :param axes: The dimensions as letters: L layers, N steps, B sequences, S positions, T tokens, E experts, K
        choices.
    :param layers: The numbers of the layers.
    :param expert_count: E. Ids alone do not show it.
    :param top_k: K, the number of experts that serve a row. One layer of r has the default 1.
    :param score: How logits become scores: "softmax", "sigmoid" or "selected".
    :param selection_bias: What selection adds to the scores, (E) for each layer, or "none".
    :param groups: The groups of the selection: (groups, kept groups).
    :param by_score: Whether ids are sorted by falling score.
    :param dtype: What 16-bit integers stand for: "bfloat16" or "float16".
    :param mask: 1 for tokens that count, (B, S) or (n,), or "none".
    :param tokens: Ids of the tokens.
    :param labels: The cluster or domain of each row, sequence or document. Integers or names. Without ``mask``, rows
        with the label -100 do not count, as in PyTorch's losses.
    :param documents: "rows" of a batch, or the document of each row. Intervals resample documents.
    :param lengths: The number of rows of each document.
    :param ranks: "first" counts equal batches once. "all" counts each of them.
    :param inputs: The router's inputs x, (n, d), for one layer.
    :param router: The weights W of a linear router, (E, d), for the shuffled baseline.
    :param embeddings: The space of overlap and silhouette, (n, m). The default is ``inputs``.
    :param expert_outputs: The outputs of every expert, (n, E, o).
    :param previous_probs: An earlier snapshot of ``probs``.
    :param previous_logits: An earlier snapshot of ``logits``.
    :param previous_assignments: An earlier snapshot of the serving experts.
    :param neighbours: The number of neighbours of expert overlap. The default is 10, or all other rows if they are
        fewer.
    :raises UserError: If an array does not fit. ``path`` is the name of its argument.
    """
    given = {
        "probs": probs,
        "logits": logits,
        "scores": scores,
        "gates": gates,
        "experts": experts,
        "counts": counts,
        "mask": mask,
        "tokens": tokens,
        "documents": documents,
        "lengths": lengths,
        "selection_bias": selection_bias,
        "inputs": inputs,
        "router": router,
        "embeddings": embeddings,
        "expert_outputs": expert_outputs,
        "previous_probs": previous_probs,
        "previous_logits": previous_logits,
        "previous_assignments": previous_assignments,
        "labels": labels,
    }
    if all(given[name] is None for name in ("probs", "logits", "scores", "gates", "experts", "counts")):
        raise UserError("probs", "missing; needs routing probabilities, or logits")
    by_score = _with_parquet(given, by_score)
    given["labels"], label_names = _names(given["labels"])
    routings = ("probs", "logits", "scores", "gates", "experts", "counts", "previous_probs", "previous_logits")
    arrays: dict[str, Any] = {}
    files: dict[str, list[str]] = {}
    for name, value in given.items():
        if value is None:
            continue
        if _is_file(value):
            files[name] = [text(os.fspath(value), name)]
        elif isinstance(value, (list, tuple)) and value and all(_is_file(part) for part in value):
            files[name] = [text(os.fspath(part), name) for part in value]
        else:
            arrays[name] = _batches(value, name, lists_are_batches=name not in routings)
    of_labels = _mask_of_labels(arrays["labels"]) if "labels" in arrays and mask is None else []
    if of_labels:
        arrays["mask"] = of_labels
    settings = {
        "files": files,
        "axes": text(axes, "axes"),
        "layers": _joined(layers, "layers", ","),
        "score": text(score, "score"),
        "groups": _joined(groups, "groups", ":"),
        "dtype": text(dtype, "dtype"),
        "ranks": text(ranks, "ranks"),
        "model": config_of(model),
        "label_names": label_names,
        "expert_count": 0 if expert_count is None else whole(expert_count, "expert_count", 1, _MOST),
        "top_k": 0 if top_k is None else whole(top_k, "top_k", 1, _MOST),
        "neighbours": 0 if neighbours is None else whole(neighbours, "neighbours", 1, _MOST),
        "by_score": bool(by_score),
    }
    try:
        answer = json.loads(call(_core.analyze, arrays, json_text(settings, "model")))
    except UserError as error:
        if of_labels and error.path == "mask":
            raise UserError("labels", f"hold -100 where a label is not of one row; give mask. {error.message}") from None
        raise
    if of_labels:
        answer["checks"].append("labels are -100 in rows that do not count")
    return Analysis(answer)
