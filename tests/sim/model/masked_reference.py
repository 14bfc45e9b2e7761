"""Reference values for masked_reference_test.cpp from NumPy in double precision; writes masked_reference.json beside
itself.

    python3 tests/sim/model/masked_reference.py

Transformers that see the whole sequence, on ids with some masked: inputs, parameters, routing probabilities of
the first mixture, loss of the masked tokens and every gradient, by complex steps: the imaginary part of the loss at
p + 1e-30 i is 1e-30 times its derivative, without any difference. The layouts are the same as of Model::arrays().
"""

import json
import pathlib

import numpy as np

generator = np.random.default_rng(20261122)
N, S, V, D, E, WIDTH, HEADS = 2, 5, 6, 6, 3, 4, 2
STEP = 1e-30


def shapes_of(model):
    shapes = {"embedding_token": (V + 1, D)}
    if model.get("positions") != "rotary":
        shapes["embedding_position"] = (S, D)
    norm = ["norm_gain"] if model.get("norm") == "rms" else ["norm_gain", "norm_bias"]
    for layer in range(model["layers"]):
        for name in ["query", "key", "value", "output"]:
            shapes[f"block{layer}_attention_{name}"] = (D, D)
        shapes |= {f"block{layer}_attention_{name}": (D,) for name in norm}
        mixture = layer in model["moe_layers"]
        prefix, count = ("", E) if mixture else (f"block{layer}_dense_", 1)
        if mixture:
            shapes["router_weight"] = (E, D)
        shapes |= {f"{prefix}expert_weight_1": (count, WIDTH, D), f"{prefix}expert_bias_1": (count, WIDTH),
                   f"{prefix}expert_weight_2": (count, D, WIDTH), f"{prefix}expert_bias_2": (count, D)}
        shapes |= {prefix + name: (D,) for name in norm}
    shapes |= {f"readout_{name}": (D,) for name in norm}
    if not model.get("tied_embedding"):
        shapes |= {"readout_weight_1": (V, D), "readout_bias_1": (V,)}
    return shapes


def softmax(x):
    weights = np.exp(x - x.real.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def normalised(x, arrays, prefix, model):
    if model.get("norm") == "rms":
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * arrays[prefix + "norm_gain"]
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    return x * arrays[prefix + "norm_gain"] + arrays[prefix + "norm_bias"]


def turned(x):
    half = x.shape[-1] // 2
    angles = np.arange(S)[:, None] * 10000.0 ** (-np.arange(half) / half)
    left, right = x[..., :half], x[..., half:]
    return np.concatenate([left * np.cos(angles) - right * np.sin(angles),
                           left * np.sin(angles) + right * np.cos(angles)], -1)


def attended(x, arrays, prefix, model):
    heads = []
    size = D // model["heads"]
    for head in range(model["heads"]):
        columns = slice(head * size, (head + 1) * size)
        query, key, value = (x @ arrays[prefix + name][columns].T for name in ["query", "key", "value"])
        if model.get("positions") == "rotary":
            query, key = turned(query), turned(key)
        heads.append(softmax(query @ key.swapaxes(1, 2) / np.sqrt(size)) @ value)
    return np.concatenate(heads, -1) @ arrays[prefix + "output"].T


def expert_output(x, arrays, prefix, expert):
    hidden = x @ arrays[prefix + "expert_weight_1"][expert].T + arrays[prefix + "expert_bias_1"][expert]
    hidden = np.where(hidden.real > 0, hidden, 0)
    return hidden @ arrays[prefix + "expert_weight_2"][expert].T + arrays[prefix + "expert_bias_2"][expert]


def loss_of(x, y, arrays, model):
    """Mean over masked tokens, and the mixture's probabilities (n, s, E)."""
    h = arrays["embedding_token"][x]
    if model.get("positions") != "rotary":
        h = h + arrays["embedding_position"]
    probabilities = None
    for layer in range(model["layers"]):
        prefix = f"block{layer}_attention_"
        h = h + attended(normalised(h, arrays, prefix, model), arrays, prefix, model)
        if layer not in model["moe_layers"]:
            prefix = f"block{layer}_dense_"
            h = h + expert_output(normalised(h, arrays, prefix, model), arrays, prefix, 0)
            continue
        u = normalised(h, arrays, "", model)
        probabilities = softmax(u @ arrays["router_weight"].T)
        chosen = np.argsort(-probabilities.real, -1)[..., :2]
        gates = np.zeros_like(probabilities)
        np.put_along_axis(gates, chosen, np.take_along_axis(probabilities, chosen, -1), -1)
        gates = gates / gates.sum(-1, keepdims=True)
        h = h + sum(gates[..., e : e + 1] * expert_output(u, arrays, "", e) for e in range(E))
    h = normalised(h, arrays, "readout_", model)
    if model.get("tied_embedding"):
        scores = h @ arrays["embedding_token"][:V].T / np.sqrt(D)
    else:
        scores = h @ arrays["readout_weight_1"].T + arrays["readout_bias_1"]
    rows, targets = scores[y >= 0], y[y >= 0]
    losses = np.log(np.exp(rows).sum(-1)) - rows[np.arange(len(targets)), targets]
    return losses.mean(), probabilities


def case(name, **options):
    model = {"kind": "transformer", "causal": False, "width": D, "layers": 2, "heads": HEADS, "feed_forward": WIDTH,
             "experts": E, "router": "linear",
             "gating": {"train": {"kind": "topk", "k": 2}, "eval": {"kind": "topk", "k": 2}}, **options}
    arrays = {array: generator.normal(size=shape) / 2 for array, shape in shapes_of(model).items()}
    x = generator.integers(V, size=(N, S))
    y = np.full((N, S), -1)
    for row in range(N):
        places = generator.choice(S, 2, replace=False)
        y[row, places] = x[row, places]
        x[row, places] = V
    loss, probabilities = loss_of(x, y, arrays, model)
    gradients = {}
    for array, values in arrays.items():
        gradient = np.zeros(values.size)
        for place in range(values.size):
            moved = values.astype(complex)
            moved.flat[place] += STEP * 1j
            gradient[place] = loss_of(x, y, arrays | {array: moved}, model)[0].imag / STEP
        gradients[array] = gradient.reshape(values.shape).tolist()
    item = {"name": name, "model": model, "x": x.tolist(), "y": y.tolist(), "loss": loss,
            "before": {array: values.tolist() for array, values in arrays.items()}, "gradients": gradients}
    if probabilities is not None:
        item["probabilities"] = probabilities.tolist()
    return item


cases = [case("learned places, the second layer a mixture", moe_layers=[1]),
         case("rotary places, rms, tied", moe_layers=[0], positions="rotary", norm="rms", tied_embedding=True, heads=1)]
target = pathlib.Path(__file__).with_suffix(".json")
target.write_text(json.dumps({"vocabulary": V, "cases": cases}) + "\n")
