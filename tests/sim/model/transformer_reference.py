"""Reference values for transformer_reference_test.cpp from PyTorch in double precision; writes
transformer_reference.json beside itself.

    python3 tests/sim/model/transformer_reference.py

Causal transformers on ids of tokens: inputs, parameters, routing probabilities of the first mixture, loss and every
gradient. The layouts are the same as of Model::arrays().
"""

import json
import math
import pathlib

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(20251122)

N, S, V, D, E, WIDTH = 3, 6, 7, 8, 3, 5


def shapes_of(model):
    shapes = {"embedding_token": (V, D)}
    if model.get("positions") != "rotary":
        shapes["embedding_position"] = (S, D)
    norm = ["norm_gain"] if model.get("norm") == "rms" else ["norm_gain", "norm_bias"]
    mixtures = mixtures_of(model)
    for layer in range(model["layers"]):
        for name in ["query", "key", "value", "output"]:
            shapes[f"block{layer}_attention_{name}"] = (D, D)
        shapes |= {f"block{layer}_attention_{name}": (D,) for name in norm}
        if layer in mixtures:
            ending = f"_layer{mixtures.index(layer)}" if len(mixtures) > 1 else ""
            shapes |= {f"router_weight{ending}": (E, D), f"expert_weight_1{ending}": (E, WIDTH, D),
                       f"expert_bias_1{ending}": (E, WIDTH), f"expert_weight_2{ending}": (E, D, WIDTH),
                       f"expert_bias_2{ending}": (E, D)}
            shapes |= {name + ending: (D,) for name in norm}
        else:
            shapes |= {f"block{layer}_dense_expert_weight_1": (1, WIDTH, D),
                       f"block{layer}_dense_expert_bias_1": (1, WIDTH),
                       f"block{layer}_dense_expert_weight_2": (1, D, WIDTH),
                       f"block{layer}_dense_expert_bias_2": (1, D)}
            shapes |= {f"block{layer}_dense_{name}": (D,) for name in norm}
    shapes |= {f"readout_{name}": (D,) for name in norm}
    if not model.get("tied_embedding"):
        shapes |= {"readout_weight_1": (V, D), "readout_bias_1": (V,)}
    return shapes


def mixtures_of(model):
    layers = list(range(model["layers"]))
    return layers[1::2] if model["moe_layers"] == "alternate" else layers if model["moe_layers"] == "all" else []


def normalised(x, arrays, prefix, ending, model):
    gain = arrays[f"{prefix}norm_gain{ending}"]
    if model.get("norm") == "rms":
        return F.rms_norm(x, (D,), gain, eps=1e-5)
    return F.layer_norm(x, (D,), gain, arrays[f"{prefix}norm_bias{ending}"], eps=1e-5)


def turned(x):
    half = x.shape[-1] // 2
    angles = torch.arange(S)[:, None] * 10000.0 ** (-torch.arange(half) / half)
    left, right = x[..., :half], x[..., half:]
    cosines, sines = angles.cos(), angles.sin()
    return torch.cat([left * cosines - right * sines, left * sines + right * cosines], -1)


def attended(x, arrays, prefix, model):
    def heads(name):
        return (x @ arrays[prefix + name].T).unflatten(2, (model["heads"], -1)).transpose(1, 2)

    query, key, value = heads("query"), heads("key"), heads("value")
    if model.get("positions") == "rotary":
        query, key = turned(query), turned(key)
    mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    return mixed.transpose(1, 2).flatten(2) @ arrays[prefix + "output"].T


def experts_outputs(x, arrays, prefix, ending):
    weight, bias = arrays[f"{prefix}expert_weight_1{ending}"], arrays[f"{prefix}expert_bias_1{ending}"]
    hidden = F.relu(torch.einsum("nsd,ehd->nseh", x, weight) + bias)
    weight, bias = arrays[f"{prefix}expert_weight_2{ending}"], arrays[f"{prefix}expert_bias_2{ending}"]
    return torch.einsum("nseh,eoh->nseo", hidden, weight) + bias


def scores_of(ids, arrays, model):
    """Scores (n, s, V) and the first mixture's probabilities (n, s, E)."""
    h = arrays["embedding_token"][ids]
    if model.get("positions") != "rotary":
        h = h + arrays["embedding_position"]
    mixtures, first = mixtures_of(model), None
    for layer in range(model["layers"]):
        prefix = f"block{layer}_attention_"
        h = h + attended(normalised(h, arrays, prefix, "", model), arrays, prefix, model)
        if layer not in mixtures:
            prefix = f"block{layer}_dense_"
            h = h + experts_outputs(normalised(h, arrays, prefix, "", model), arrays, prefix, "")[:, :, 0]
            continue
        ending = f"_layer{mixtures.index(layer)}" if len(mixtures) > 1 else ""
        x = normalised(h, arrays, "", ending, model)
        probabilities = (x @ arrays[f"router_weight{ending}"].T).softmax(-1)
        first = probabilities if first is None else first
        top, chosen = probabilities.topk(2, -1)
        gates = torch.zeros_like(probabilities).scatter(-1, chosen, top / top.sum(-1, keepdim=True))
        h = h + (gates[..., None] * experts_outputs(x, arrays, "", ending)).sum(2)
    h = normalised(h, arrays, "readout_", "", model)
    if model.get("tied_embedding"):
        return h @ arrays["embedding_token"].T / math.sqrt(D), first
    return h @ arrays["readout_weight_1"].T + arrays["readout_bias_1"], first


def case(name, **options):
    model = {"kind": "transformer", "width": D, "layers": 2, "heads": 2, "feed_forward": WIDTH, "experts": E,
             "router": "linear", "gating": {"train": {"kind": "topk", "k": 2}, "eval": {"kind": "topk", "k": 2}},
             **options}
    arrays = {array: torch.randn(shape) / 2 for array, shape in shapes_of(model).items()}
    for value in arrays.values():
        value.requires_grad_()
    ids = torch.randint(V, (N, S + 1))
    scores, probabilities = scores_of(ids[:, :-1], arrays, model)
    loss = F.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    item = {"name": name, "model": model, "x": ids[:, :-1].tolist(), "y": ids[:, 1:].tolist(), "loss": loss.item(),
            "before": {array: value.tolist() for array, value in arrays.items()},
            "gradients": {array: value.grad.tolist() for array, value in arrays.items()}}
    if probabilities is not None:
        item["probabilities"] = probabilities.tolist()
    return item


cases = [case("learned places, every layer a mixture", moe_layers="all"),
         case("rotary places, rms, tied, every second layer a mixture", moe_layers="alternate", positions="rotary",
              norm="rms", tied_embedding=True),
         case("dense, tied", moe_layers=[], tied_embedding=True)]
target = pathlib.Path(__file__).with_suffix(".json")
target.write_text(json.dumps({"vocabulary": V, "cases": cases}) + "\n")
