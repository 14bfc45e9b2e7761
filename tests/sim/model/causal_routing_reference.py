"""Reference values for causal_routing_test.cpp from NumPy; writes causal_routing_reference.json beside itself.

    python3 tests/sim/model/causal_routing_reference.py

Causal transformers whose routers look at other tokens: inputs, parameters, routing probabilities of the first mixture,
loss and every gradient. Each token is routed from a list of the tokens up to it, so that nothing later is there to be
hidden. Gradients are complex steps: the imaginary part of the loss at a parameter + 1e-30 i, over 1e-30. The layouts are
the same as of Model::arrays().
"""

import json
import math
import pathlib

import numpy as np

N, S, V, D, E, WIDTH, HEADS = 2, 4, 5, 4, 3, 4, 2
STEP = 1e-30

generator = np.random.default_rng(20251123)


def softmax(logits):
    mass = np.exp(logits - logits.real.max())
    return mass / mass.sum()


def normalised(x, arrays, prefix, ending=""):
    centred = x - x.mean()
    scaled = centred / np.sqrt((centred**2).mean() + 1e-5)
    return scaled * arrays[f"{prefix}norm_gain{ending}"] + arrays[f"{prefix}norm_bias{ending}"]


def turned(x, place):
    half = len(x) // 2
    angles = place * 10000.0 ** (-np.arange(half) / half)
    left, right = x[:half], x[half:]
    return np.concatenate(
        [left * np.cos(angles) - right * np.sin(angles), left * np.sin(angles) + right * np.cos(angles)]
    )


class Attention:
    """Of one sequence: per token and head the weights over the tokens up to it, centres, and U."""

    def __init__(self, rows, arrays, prefix, rotary):
        keys = D // HEADS
        self.weights, self.centres, self.outputs = [], [], []
        parts = []
        for h in range(HEADS):
            own = slice(h * keys, (h + 1) * keys)
            query, key, value = ([arrays[prefix + name][own] @ x for x in rows] for name in ["query", "key", "value"])
            if rotary:
                query = [turned(q, t) for t, q in enumerate(query)]
                key = [turned(k, t) for t, k in enumerate(key)]
            joined = [arrays[prefix + "output"][:, own] @ v for v in value]
            self.centres.append([HEADS * part for part in joined])
            self.weights.append(
                [
                    softmax(np.array([query[i] @ key[j] / math.sqrt(keys) for j in range(i + 1)]))
                    for i in range(len(rows))
                ]
            )
            parts.append([sum(w * joined[j] for j, w in enumerate(self.weights[h][i])) for i in range(len(rows))])
        self.outputs = [sum(parts[h][i] for h in range(HEADS)) for i in range(len(rows))]


def entropy(weights):
    return -sum(w.real * np.log(w.real) for w in weights)


def token_weights(i, rows, attention, arrays, router, ending):
    """How much token i listens to tokens 0 … i."""
    if router["kind"] == "similarity_aware":
        matrix = arrays.get(f"router_similarity{ending}", np.eye(D))
        return softmax(np.array([rows[i] @ matrix @ rows[j] / router["tau"] for j in range(i + 1)]))
    posterior = []
    for h in range(HEADS):
        differences = [attention.outputs[i] - attention.centres[h][j] for j in range(i + 1)]
        posterior.append(
            [
                np.log(attention.weights[h][i][j]) - (difference @ difference) / (2 * router["sigma"] ** 2)
                for j, difference in enumerate(differences)
            ]
        )
    if router["head"] == "posterior":
        return softmax(np.array(posterior).reshape(-1)).reshape(HEADS, -1).sum(0)
    # Of the tokens up to this one alone.
    means = [np.mean([entropy(attention.weights[h][t]) for t in range(i + 1)]) for h in range(HEADS)]
    return softmax(np.array(posterior[int(np.argmin(means))]))


def routed(rows, attention, arrays, router, ending):
    weight = arrays[f"router_weight{ending}"]
    if router["kind"] == "sequence_mean":
        bias = arrays.get(f"router_bias{ending}", 0)
        return [softmax(weight @ (sum(rows[: i + 1]) / (i + 1)) + bias) for i in range(len(rows))]
    own = [softmax(weight @ x) for x in rows]
    return [
        sum(w * own[j] for j, w in enumerate(token_weights(i, rows, attention, arrays, router, ending)))
        for i in range(len(rows))
    ]


def network(x, arrays, prefix, ending, expert):
    hidden = arrays[f"{prefix}expert_weight_1{ending}"][expert] @ x + arrays[f"{prefix}expert_bias_1{ending}"][expert]
    hidden = np.where(hidden.real > 0, hidden, 0)
    return arrays[f"{prefix}expert_weight_2{ending}"][expert] @ hidden + arrays[f"{prefix}expert_bias_2{ending}"][expert]


def mixed(x, probabilities, arrays, ending):
    chosen = np.argsort(-probabilities.real)[:2]
    total = sum(probabilities[e] for e in chosen)
    return sum(probabilities[e] / total * network(x, arrays, "", ending, e) for e in chosen)


def mixtures_of(model):
    return {"all": list(range(model["layers"])), "alternate": list(range(1, model["layers"], 2))}[model["moe_layers"]]


def loss_of(ids, arrays, model):
    """The mean loss, and the first mixture's probabilities (n, s, E)."""
    mixtures, first, losses = mixtures_of(model), [], []
    rotary = model.get("positions") == "rotary"
    for sequence in ids:
        h = [arrays["embedding_token"][v] for v in sequence[:-1]]
        if not rotary:
            h = [x + arrays["embedding_position"][t] for t, x in enumerate(h)]
        for layer in range(model["layers"]):
            prefix = f"block{layer}_attention_"
            attention = Attention([normalised(x, arrays, prefix) for x in h], arrays, prefix, rotary)
            h = [x + u for x, u in zip(h, attention.outputs)]
            if layer not in mixtures:
                prefix = f"block{layer}_dense_"
                h = [x + network(normalised(x, arrays, prefix), arrays, prefix, "", 0) for x in h]
                continue
            ending = f"_layer{mixtures.index(layer)}" if len(mixtures) > 1 else ""
            rows = [normalised(x, arrays, "", ending) for x in h]
            probabilities = routed(rows, attention, arrays, model["router"], ending)
            if layer == mixtures[0]:
                first.append([p.real.tolist() for p in probabilities])
            h = [x + mixed(row, p, arrays, ending) for x, row, p in zip(h, rows, probabilities)]
        for t, x in enumerate(h):
            scores = arrays["readout_weight_1"] @ normalised(x, arrays, "readout_") + arrays["readout_bias_1"]
            losses.append(-np.log(softmax(scores)[sequence[t + 1]]))
    return sum(losses) / len(losses), first


def shapes_of(model):
    shapes = {"embedding_token": (V, D)}
    if model.get("positions") != "rotary":
        shapes["embedding_position"] = (S, D)
    mixtures, router = mixtures_of(model), model["router"]

    def norms(prefix, ending=""):
        return {f"{prefix}norm_gain{ending}": (D,), f"{prefix}norm_bias{ending}": (D,)}

    def networks(prefix, ending, count):
        return {
            f"{prefix}expert_weight_1{ending}": (count, WIDTH, D),
            f"{prefix}expert_bias_1{ending}": (count, WIDTH),
            f"{prefix}expert_weight_2{ending}": (count, D, WIDTH),
            f"{prefix}expert_bias_2{ending}": (count, D),
        }

    for layer in range(model["layers"]):
        prefix = f"block{layer}_attention_"
        shapes |= {prefix + name: (D, D) for name in ["query", "key", "value", "output"]} | norms(prefix)
        if layer not in mixtures:
            prefix = f"block{layer}_dense_"
            shapes |= networks(prefix, "", 1) | norms(prefix)
            continue
        ending = f"_layer{mixtures.index(layer)}" if len(mixtures) > 1 else ""
        shapes[f"router_weight{ending}"] = (E, D)
        if router.get("bias"):
            shapes[f"router_bias{ending}"] = (E,)
        if router.get("similarity") == "learned":
            shapes[f"router_similarity{ending}"] = (D, D)
        shapes |= networks("", ending, E) | norms("", ending)
    return shapes | norms("readout_") | {"readout_weight_1": (V, D), "readout_bias_1": (V,)}


def case(name, router, moe_layers="all", layers=1, **options):
    model = {
        "kind": "transformer",
        "width": D,
        "layers": layers,
        "heads": HEADS,
        "feed_forward": WIDTH,
        "experts": E,
        "moe_layers": moe_layers,
        "router": router,
        "gating": {"train": {"kind": "topk", "k": 2}, "eval": {"kind": "topk", "k": 2}},
        **options,
    }
    before = {array: generator.normal(0, 0.6, shape) for array, shape in shapes_of(model).items()}
    ids = generator.integers(V, size=(N, S + 1)).tolist()
    loss, probabilities = loss_of(ids, before, model)
    gradients = {}
    for array, value in before.items():
        gradient = np.zeros(value.size)
        for place in range(value.size):
            moved = value.astype(complex)
            moved.reshape(-1)[place] += STEP * 1j
            gradient[place] = loss_of(ids, before | {array: moved}, model)[0].imag / STEP
        gradients[array] = gradient.reshape(value.shape).tolist()
    return {
        "name": name,
        "model": model,
        "x": [sequence[:-1] for sequence in ids],
        "y": [sequence[1:] for sequence in ids],
        "loss": float(loss),
        "before": {array: value.tolist() for array, value in before.items()},
        "gradients": gradients,
        "probabilities": probabilities,
    }


def similarity(**fields):
    return {"kind": "similarity_aware", "tau": 1.5, **fields}


def attention_aware(head, sigma):
    return {"kind": "attention_aware", "sigma": sigma, "head": head}


cases = [
    case("similarity", similarity()),
    case("similarity, learned, two mixtures", similarity(similarity="learned", tau=0.8), layers=2),
    case("attention, lowest entropy", attention_aware("lowest_entropy", 1.5)),
    case("attention, posterior, rotary, second layer", attention_aware("posterior", 2.5), "alternate", 2, positions="rotary"),
    case("mean of the tokens before", {"kind": "sequence_mean", "bias": True}),
]
target = pathlib.Path(__file__).with_suffix(".json")
target.write_text(json.dumps({"vocabulary": V, "cases": cases}) + "\n")
