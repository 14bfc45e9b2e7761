"""Records the routing of a PyTorch model to disk, for ``moelab.analyze``."""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ._convert import folder, shown, text, whole
from ._extras import extra
from .analysis import Analysis, analyze, config_of
from .errors import UserError

_MOST_BATCHES = 10**9
_FEWEST_EXPERTS = 2
# Modules of models whose routers have classes of their own, and the places of plain linear routers.
_ROUTER_CLASS = re.compile(r"(router|gate|gating)$|router|topkgate", re.IGNORECASE)
_ROUTER_PLACE = re.compile(r"(^|\.)(router|gate|gating|wg)$")
_EXPERT_FIELDS = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts", "num_routed_experts", "n_experts")
_STACKS = ("encoder", "decoder")
# The files of a capture.
_WRITTEN = re.compile(r"batch_\d+\.safetensors|selection_bias\.safetensors|domains\.npy|config\.json|capture\.json")
_BIASES = ("e_score_correction_bias", "expert_bias", "selection_bias")


class Capture:
    """A folder with the routing of a model, one safetensors file for each batch.

    ``analyze()`` measures it. The folder also has ``config.json``, and ``domains.npy`` if the batches name domains.
    """

    def __init__(self, directory: Any) -> None:
        self.directory = folder(directory, "directory")
        about = os.path.join(self.directory, "capture.json")
        if not os.path.exists(about):
            raise UserError("directory", f"'{self.directory}' has no capture.json; needs the folder of moelab.capture")
        with open(about, encoding="utf-8") as file:
            self._about: dict[str, Any] = json.load(file)

    @property
    def files(self) -> list[str]:
        """The file of each batch."""
        return [os.path.join(self.directory, name) for name in self._about["files"]]

    @property
    def layers(self) -> dict[str, list[int]]:
        """The numbers of the layers with a router, for each stack: "" of a decoder, "encoder" and "decoder" of both."""
        return {stack: list(layers) for stack, layers in self._about["layers"].items()}

    @property
    def routers(self) -> list[str]:
        """The names of the recorded modules. Empty if the model itself returned the logits."""
        return list(self._about["routers"])

    def __repr__(self) -> str:
        return f"<Capture of {len(self.files)} batches in {self.directory}>"

    def arguments(self, stack: str | None = None) -> dict[str, Any]:
        """The arguments of ``moelab.analyze`` for this folder.

        :param stack: "encoder" or "decoder" of a model that has both.
        """
        stacks = self.layers
        if stack is None and len(stacks) > 1:
            raise UserError("stack", f"missing; the model has the stacks {', '.join(stacks)}")
        own = next(iter(stacks)) if stack is None else text(stack, "stack")
        if own not in stacks:
            raise UserError("stack", f"got {shown(stack)}, needs one of {', '.join(stacks)}")
        start = _start(own)
        arrays = self._about["arrays"][own]

        def at(name: str) -> list[str]:
            return [f"{file}:{name}" for file in self.files]

        given: dict[str, Any] = {self._about["kind"]: at(f"{start}{arrays['values']}")}
        if arrays["numbered"]:
            given["layers"] = stacks[own]
        config = os.path.join(self.directory, "config.json")
        if os.path.exists(config):
            given["model"] = config
        elif self._about["top_k"]:
            given["top_k"] = self._about["top_k"]
        if arrays["bias"]:
            given["selection_bias"] = f"{os.path.join(self.directory, 'selection_bias.safetensors')}:{start}selection_bias"
        elif arrays["ids"]:
            given["experts"] = at(f"{start}{arrays['ids']}")
            given["by_score"] = bool(arrays["by_score"])
        if arrays["mask"]:
            given["mask"] = at(arrays["mask"])
        if arrays["tokens"]:
            given["tokens"] = at(arrays["tokens"])
            given["documents"] = "rows"
        domains = os.path.join(self.directory, "domains.npy")
        if os.path.exists(domains):
            given["labels"] = domains
        return given

    def analyze(self, stack: str | None = None, **arguments: Any) -> Analysis:
        """Measures the recorded routing. ``arguments`` win over ``arguments()``; None leaves one out."""
        given = {**self.arguments(stack), **arguments}
        return analyze(**{name: value for name, value in given.items() if value is not None})


def _start(stack: str) -> str:
    """What the names of a stack's arrays begin with."""
    return f"{stack}." if stack else ""


def _experts_of(model: Any) -> int | None:
    config = getattr(model, "config", None)
    for inner in (config, getattr(config, "text_config", None)):
        for name in _EXPERT_FIELDS:
            value = getattr(inner, name, None)
            if isinstance(value, (list, tuple)) and value:
                value = value[0]
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None


def _chosen_routers(model: Any, routers: Any, torch: Any) -> dict[str, Any]:
    """The modules to record by name: those asked for, or those that look like routers."""
    modules = dict(model.named_modules())
    if routers is not None:
        wanted = [routers] if isinstance(routers, str) else list(routers)
        found: dict[str, Any] = {}
        for name in wanted:
            pattern = re.compile(re.escape(text(name, "routers")).replace(r"\*", r"[^.]+") + r"$")
            own = {place: module for place, module in modules.items() if pattern.match(place)}
            if not own:
                raise UserError("routers", f"names no module '{name}'; '*' stands for a part between dots")
            found |= own
        return found
    experts = _experts_of(model)
    by_class = {name: module for name, module in modules.items()
                if _ROUTER_CLASS.search(type(module).__name__) and "shared" not in name}
    # A router module may hold a linear layer, whose scores it returns.
    by_class = {name: module for name, module in by_class.items()
                if not any(name.startswith(f"{other}.") for other in by_class)}
    linear = {name: module for name, module in modules.items()
              if _ROUTER_PLACE.search(name) and isinstance(module, torch.nn.Linear)
              and module.out_features >= _FEWEST_EXPERTS and module.out_features == (experts or module.out_features)
              and "shared" not in name and not any(name.startswith(f"{other}.") for other in by_class)}
    return by_class | linear


class _Recorder:
    """Sorts what routers return into scores and chosen experts, layer by layer."""

    def __init__(self, model: Any, routers: dict[str, Any], torch: Any) -> None:
        self._torch = torch
        self._experts = _experts_of(model)
        self._places: dict[str, tuple[str, int]] = {}
        numbers = {name: [int(part) for part in name.split(".") if part.isdigit()] for name in routers}
        for place, name in enumerate(routers):
            parts = name.split(".")
            stack = next((part for part in parts if part in _STACKS), "") if self._has_both(routers) else ""
            self._places[name] = (stack, numbers[name][0] if numbers[name] else place)
        if len(set(self._places.values())) < len(self._places):
            raise UserError("routers", f"has two routers of one layer among {', '.join(list(routers)[:4])}, …; needs "
                                       "their names")
        self.current: dict[str, tuple[Any, Any]] = {}
        self.repeated = ""
        self._choice: dict[str, int | None] = {}
        self.are_ordered: dict[str, bool] = {}
        self.kinds: set[str] = set()
        self.top_k = 0

    @staticmethod
    def _has_both(routers: Iterable[str]) -> bool:
        return all(any(stack in name.split(".") for name in routers) for stack in _STACKS)

    def place(self, name: str) -> tuple[str, int]:
        return self._places[name]

    def hook(self, name: str) -> Any:
        def record(module: Any, inputs: Any, output: Any) -> None:
            if name in self.current:
                self.repeated = name
                return
            parts = list(output) if isinstance(output, (tuple, list)) else [output]
            tensors = [part.detach() for part in parts if self._torch.is_tensor(part)]
            self.current[name] = self.sorted(name, tensors)

        return record

    def sorted(self, name: str, tensors: list[Any]) -> tuple[Any, Any]:
        """(scores of all experts or None, ids of the chosen ones or None) on the processor."""
        experts = self._experts or max((t.shape[-1] for t in tensors if t.ndim > 1), default=0)
        floats = [t for t in tensors if t.is_floating_point() and t.ndim > 1 and t.shape[-1] == experts]
        whole_ones = [t for t in tensors if not t.is_floating_point() and t.ndim > 1]
        ids = next((t for t in whole_ones if t.shape[-1] < experts or experts == 1), None)
        if name not in self._choice:
            # Of several candidates the logits are those beyond [0, 1].
            signed = [i for i, t in enumerate(floats) if bool(((t < 0) & self._torch.isfinite(t)).any()) or bool((t > 1).any())]
            self._choice[name] = signed[0] if signed else (0 if floats else None)
        choice = self._choice[name]
        scores = floats[choice] if choice is not None and choice < len(floats) else None
        if scores is None and ids is None:
            shapes = ", ".join(str(tuple(t.shape)) for t in tensors) or "no tensor"
            raise UserError("routers", f"'{name}' returns {shapes}; needs scores of {experts or 'E'} experts, or ids")
        if ids is not None:
            self.top_k = max(self.top_k, ids.shape[-1])
        if scores is not None:
            in_unit = bool(((scores >= 0) & (scores <= 1)).all())
            sums = scores.float().sum(-1)
            sums_to_one = in_unit and bool(((sums - 1).abs() < 4e-3).all())
            self.kinds.add("probs" if sums_to_one else "logits")
            if ids is not None:
                chosen = scores.reshape(-1, experts).float().gather(1, ids.reshape(-1, ids.shape[-1]).long())
                is_ordered = bool((chosen[:, 1:] <= chosen[:, :-1]).all())
                self.are_ordered[name] = self.are_ordered.get(name, True) and is_ordered
        return (None if scores is None else self.copied(scores), None if ids is None else self.copied(ids))

    def copied(self, tensor: Any) -> Any:
        """A copy on the processor that shares its memory with no other tensor."""
        return self._torch.clone(tensor.detach().cpu(), memory_format=self._torch.contiguous_format)


def _forward_words(model: Any) -> set[str] | None:
    """The names of the arguments of forward; None if it takes any."""
    open_kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    names = {name for name, own in inspect.signature(model.forward).parameters.items() if own.kind not in open_kinds}
    return names or None


def _called(model: Any, words: set[str] | None, batch: Any, torch: Any, device: Any, further: Mapping[str, Any]) -> Any:
    def moved(value: Any) -> Any:
        return value.to(device) if torch.is_tensor(value) else value

    if isinstance(batch, Mapping):
        return model(**{name: moved(value) for name, value in batch.items() if words is None or name in words}, **further)
    if isinstance(batch, (tuple, list)):
        return model(*[moved(value) for value in batch], **further)
    if torch.is_tensor(batch):
        return model(moved(batch), **further)
    raise UserError("dataloader", f"yields {shown(batch)}; needs a dict, a tuple or a tensor")


def capture(
    model: Any,
    dataloader: Iterable[Any],
    out: Any = "routing",
    *,
    routers: str | Sequence[str] | None = None,
    domain: str = "domain",
    batches: int | None = None,
) -> Capture:
    """Runs a PyTorch model on batches and writes its routing to disk, one file for each batch.

    Hooks record every router. A router is a module whose class or place is named router or gate. If there is none,
    the model itself has to return ``router_logits``. Memory holds one batch at a time.

    The model runs in evaluation mode without gradients, on its own device. Batches are dicts for ``model(**batch)``,
    tuples, or tensors. ``attention_mask`` and ``input_ids`` of a dict are written, too. Entries that the model does
    not take are not passed to it.

    :param model: A ``torch.nn.Module``. A configuration at ``model.config`` is written as ``config.json``.
    :param dataloader: The batches.
    :param out: The folder to write. It must be empty or new.
    :param routers: The names of the router modules. ``*`` stands for a part between dots.
    :param domain: The entry of a batch that names the domain of each row: numbers or texts. One number or text counts
        for all rows of the batch. All batches have the entry, or none has it.
    :param batches: The number of batches to take. The default is all.
    :return: The capture. ``capture.analyze()`` measures it.
    :raises UserError: If no router is found, or a router runs twice in a pass. A capture that fails removes its files.
    """
    torch: Any = extra("torch", "capture", "captures")
    saving: Any = extra("safetensors.torch", "capture", "captures")
    if not isinstance(model, torch.nn.Module):
        raise UserError("model", f"got {shown(model)}, needs a torch.nn.Module")
    most = _MOST_BATCHES if batches is None else whole(batches, "batches", 1, _MOST_BATCHES)
    place = folder(out, "out")
    was_there = os.path.isdir(place)
    if was_there and os.listdir(place):
        raise UserError("out", f"'{place}' is not empty; needs a new folder, or delete this one")
    os.makedirs(place, exist_ok=True)
    try:
        _record(model, dataloader, place, routers, domain, most, torch, saving)
    except BaseException:  # Ctrl-C, too: the corrected call needs an empty folder
        _remove_written(place, was_there)
        raise
    return Capture(place)


def _remove_written(place: str, was_there: bool) -> None:
    """Removes the files of a capture that failed, and its folder if the capture made it."""
    if not os.path.isdir(place):
        return
    for name in os.listdir(place):
        if _WRITTEN.fullmatch(name):
            os.remove(os.path.join(place, name))
    if not was_there and not os.listdir(place):
        os.rmdir(place)


def _domains_of(batch: Mapping[str, Any], domain: str, number: int, torch: Any) -> list[Any] | None:
    """The domain of each row of a batch. One text or number counts for all rows. None if there is no entry."""
    value = batch.get(domain)
    if value is None:
        return None
    tensors = [own for name, own in batch.items() if name != domain and torch.is_tensor(own) and own.ndim > 0]
    ids: Any = batch.get("input_ids")
    first = ids if torch.is_tensor(ids) and ids.ndim > 0 else tensors[0] if tensors else None
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, (str, bytes, int, float)):
        if first is None:
            raise UserError(f"dataloader.{domain}", f"batch {number} has no tensor, so its rows cannot be counted; "
                                                    "needs a list with the domain of each row")
        return [value] * len(first)
    if not isinstance(value, Iterable):
        raise UserError(f"dataloader.{domain}", f"batch {number} has {shown(value)}, needs texts or numbers")
    values = list(value)
    # Tokens may have domains of their own, one after the other.
    if first is not None and len(values) != len(first) and not (first is ids and len(values) == ids.numel()):
        raise UserError(f"dataloader.{domain}", f"batch {number} has {len(values)} domains, needs one for each of its "
                                                f"{len(first)} rows")
    return values


def _record(
    model: Any,
    dataloader: Iterable[Any],
    place: str,
    routers: str | Sequence[str] | None,
    domain: str,
    most: int,
    torch: Any,
    saving: Any,
) -> None:
    """Runs the model and writes the files of a capture."""
    found = _chosen_routers(model, routers, torch)
    recorder = _Recorder(model, found, torch)
    words = _forward_words(model)
    if not found and "output_router_logits" not in (words or set()):
        raise UserError("routers", "no module is named router or gate, and the model does not return router_logits; "
                                   "needs the names of the router modules")
    device = next((value.device for value in model.parameters()), torch.device("cpu"))
    further = {} if found else {"output_router_logits": True}
    hooks = [module.register_forward_hook(recorder.hook(name)) for name, module in found.items()]
    was_training = model.training
    files: list[str] = []
    domains: list[Any] = []
    layers: dict[str, list[int]] = {}
    arrays: dict[str, dict[str, Any]] = {}
    model.eval()
    try:
        for number, batch in enumerate(dataloader):
            if number >= most:
                break
            recorder.current.clear()
            with torch.no_grad():
                answer = _called(model, words, batch, torch, device, further)
            if recorder.repeated:
                raise UserError("routers", f"'{recorder.repeated}' runs twice in a pass, so its rows have no place")
            own, kept = _tensors_of(recorder, found, answer, torch)
            if number == 0:
                layers, arrays = kept
            elif kept[0] != layers:
                raise UserError("dataloader", f"batch {number} ran other routers than the first")
            if isinstance(batch, Mapping):
                for name in ("attention_mask", "input_ids", "decoder_attention_mask", "decoder_input_ids"):
                    if torch.is_tensor(batch.get(name)):
                        own[name] = recorder.copied(batch[name])
                own_domains = _domains_of(batch, domain, number, torch)
                if number > 0 and (own_domains is None) == bool(domains):
                    has, lacks = (0, number) if own_domains is None else (number, 0)
                    raise UserError(f"dataloader.{domain}", f"batch {has} has the entry, but batch {lacks} does not; "
                                                            "needs it in all batches, or in none")
                domains.extend(own_domains or [])
            files.append(f"batch_{number:06}.safetensors")
            saving.save_file(own, os.path.join(place, files[-1]))
            if number == 0:
                _name_sides(arrays, own)
    finally:
        for hook in hooks:
            hook.remove()
        model.train(was_training)
    if not files:
        raise UserError("dataloader", "yields no batch")
    _write_biases(model, found, recorder, arrays, os.path.join(place, "selection_bias.safetensors"), saving)
    for stack, own_arrays in arrays.items():
        ordered = [recorder.are_ordered.get(name, False) for name in found if recorder.place(name)[0] == stack]
        own_arrays["by_score"] = bool(ordered) and all(ordered)
    if domains:
        np.save(os.path.join(place, "domains.npy"), np.array(domains))
    config = config_of(model) if hasattr(model, "config") else None
    if config is not None and _experts_of(model):
        with open(os.path.join(place, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file, indent=1)
    about = {
        "files": files,
        "layers": layers,
        "arrays": arrays,
        "routers": list(found),
        "kind": "probs" if recorder.kinds == {"probs"} else "logits" if recorder.kinds else "experts",
        "top_k": recorder.top_k,
    }
    with open(os.path.join(place, "capture.json"), "w", encoding="utf-8") as file:
        json.dump(about, file, indent=1)


def _tensors_of(recorder: _Recorder, found: Mapping[str, Any], answer: Any, torch: Any) -> tuple[dict[str, Any], Any]:
    """The tensors of a batch by name, and (layers, names of arrays) of each stack."""
    own: dict[str, Any] = {}
    layers: dict[str, list[int]] = {}
    arrays: dict[str, dict[str, Any]] = {}
    if not found:
        logits = answer.get("router_logits") if isinstance(answer, Mapping) else getattr(answer, "router_logits", None)
        if logits is None:
            raise UserError("model", "returns no router_logits; needs the names of the router modules")
        for place, entry in enumerate(logits):
            if torch.is_tensor(entry):
                scores, _ = recorder.sorted(f"router_logits.{place}", [entry.detach()])
                own[f"router_logits.{place}"] = scores
                layers.setdefault("", []).append(place)
        arrays[""] = {"values": "router_logits", "ids": "", "numbered": False}
        return own, (layers, arrays)
    for name in found:
        if name not in recorder.current:
            continue  # a router that this pass did not run
        stack, layer = recorder.place(name)
        start = _start(stack)
        scores, ids = recorder.current[name]
        made = arrays.setdefault(stack, {"values": "", "ids": "", "numbered": True})
        for value, title, key in ((scores, "router_logits", "values"), (ids, "topk_ids", "ids")):
            if value is not None:
                own[f"{start}{title}.{layer}"] = value
                made[key] = title
        if scores is None:
            made["values"] = "topk_ids"
        layers.setdefault(stack, []).append(layer)
    if not own:
        raise UserError("routers", f"none of {len(found)} router modules ran")
    for stack in layers:
        layers[stack].sort()
    return own, (layers, arrays)


def _name_sides(arrays: Mapping[str, dict[str, Any]], own: Mapping[str, Any]) -> None:
    """Which mask and tokens go with a stack."""
    for stack, made in arrays.items():
        start = "decoder_" if stack == "decoder" else ""
        made["mask"] = f"{start}attention_mask" if f"{start}attention_mask" in own else ""
        made["tokens"] = f"{start}input_ids" if f"{start}input_ids" in own else ""


def _write_biases(model: Any, found: Mapping[str, Any], recorder: _Recorder, arrays: Mapping[str, dict[str, Any]],
                  file: str, saving: Any) -> None:
    """Biases of the selection, which the scores do not hold."""
    biases: dict[str, Any] = {}
    for name, module in found.items():
        stack, layer = recorder.place(name)
        # Some models keep the bias in the block around the router.
        around = model.get_submodule(name.rpartition(".")[0]) if "." in name else model
        for owner in (module, around):
            own = next((getattr(owner, bias) for bias in _BIASES if hasattr(owner, bias)), None)
            if own is not None:
                start = _start(stack)
                biases[f"{start}selection_bias.{layer}"] = own.detach().cpu().float().contiguous()
                break
    for stack, made in arrays.items():
        made["bias"] = any(name.startswith(f"{_start(stack)}selection_bias.") for name in biases)
    if biases:
        saving.save_file(biases, file)
