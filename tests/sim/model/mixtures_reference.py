"""Reference values for mixtures_reference_test.cpp from NumPy in double precision; writes mixtures_reference.json
beside itself.

    python3 tests/sim/model/mixtures_reference.py

Mixtures with a linear router written from their equations, one row, expert and slot at a time: probabilities, the
loss (squares summed over outputs, averaged over rows) and its gradient in every array by complex steps, what is
selected held fixed.
"""

import itertools
import json
import pathlib

import numpy

STEP = 1e-30
ROWS, WIDTH, OUTPUTS, EXPERTS, HIDDEN = 6, 3, 2, 3, 4


def softmax(z, axis=-1):
    powers = numpy.exp(z - z.real.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def logistic(z):
    return 1 / (1 + numpy.exp(-z))


def network(arrays, prefix, e, row):
    for layer in itertools.count(1):
        weight, bias = prefix + f"expert_weight_{layer}", prefix + f"expert_bias_{layer}"
        if weight not in arrays:
            return row
        if layer > 1:
            row = numpy.where(row.real > 0, row, 0)
        row = arrays[weight][e] @ row + arrays[bias][e]


def experts(arrays, model, e, row):
    """Expert e, or nothing of a null one."""
    return network(arrays, "", e, row) if e < model["experts"] else numpy.zeros(OUTPUTS, complex)


def selected(keys, k):
    order = sorted(range(len(keys)), key=lambda e: (-keys[e], e))[:k]
    return numpy.isin(range(len(keys)), order)


def gates_of(gating, z):
    r = softmax(z)
    if gating["kind"] == "topk":
        gates = numpy.array([row * selected(row.real, gating["k"]) for row in r])
        return gates / gates.sum(axis=1, keepdims=True)
    if gating["kind"] == "dense_to_sparse":
        r = softmax(z / gating["tau"])
        active = r.real > gating["threshold"]
        for row in range(len(r)):
            if not active[row].any():
                active[row, r[row].real.argmax()] = True
        gates = r * active
        return gates / gates.sum(axis=1, keepdims=True) if gating.get("renormalize") else gates
    assert gating["kind"] == "balanced_assignment"
    most = -(-len(z) // z.shape[1])
    best = max((choice for choice in itertools.product(range(z.shape[1]), repeat=len(z))
                if max(numpy.bincount(choice)) <= most),
               key=lambda choice: sum(z[row, e].real for row, e in enumerate(choice)))
    mask = numpy.zeros(z.shape)
    mask[range(len(z)), best] = 1
    return logistic(z) * mask


def soft_slots(arrays, model, x, z):
    each = model["gating"]["train"].get("slots", 1)
    count = z.shape[1]
    logits = numpy.zeros((len(x), count, each), complex)
    for row, e, j in numpy.ndindex(*logits.shape):
        further = arrays["gating_slot_weight"][e, j - 1] @ x[row] if j > 0 else 0
        logits[row, e, j] = z[row, e] + further
    dispatch = softmax(logits, axis=0)
    combine = softmax(logits.reshape(len(x), -1)).reshape(logits.shape)
    f = numpy.zeros((len(x), OUTPUTS), complex)
    for e, j in numpy.ndindex(count, each):
        answer = experts(arrays, model, e, dispatch[:, e, j] @ x)
        f += combine[:, e, j, None] * answer
    return f


def outputs(arrays, model, x):
    z = x @ arrays["router_weight"].T
    if model["gating"]["train"]["kind"] == "soft_slots":
        f = soft_slots(arrays, model, x, z)
    else:
        gates = gates_of(model["gating"]["train"], z)
        f = numpy.zeros((len(x), OUTPUTS), complex)
        for row, e in numpy.ndindex(*gates.shape):
            f[row] += gates[row, e] * experts(arrays, model, e, x[row])
    for s in range(model.get("shared_experts", 0)):
        f += numpy.array([network(arrays, "shared_", s, row) for row in x])
    return f


def shapes(model):
    routed = model["experts"] + model.get("null_experts", 0)
    widths = [WIDTH, HIDDEN, OUTPUTS] if model["expert"]["kind"] == "mlp" else [WIDTH, OUTPUTS]
    found = {"router_weight": (routed, WIDTH)}
    slots = model["gating"]["train"].get("slots", 1)
    if slots > 1:
        found["gating_slot_weight"] = (routed, slots - 1, WIDTH)
    for prefix, count in (("", model["experts"]), ("shared_", model.get("shared_experts", 0))):
        for layer in range(1, len(widths)) if count else ():
            found[prefix + f"expert_weight_{layer}"] = (count, widths[layer], widths[layer - 1])
            found[prefix + f"expert_bias_{layer}"] = (count, widths[layer])
    return found


def case(random, name, gating, expert="mlp", **more):
    model = {"experts": EXPERTS, "router": "linear", "gating": {"train": gating}, **more,
             "expert": {"kind": "mlp", "depth": 2, "width": HIDDEN} if expert == "mlp" else {"kind": expert}}
    arrays = {name: random.normal(size=shape).round(6) for name, shape in shapes(model).items()}
    x, y = random.normal(size=(ROWS, WIDTH)).round(6), random.normal(size=(ROWS, OUTPUTS)).round(6)

    def loss(values):
        return ((outputs(values, model, x.astype(complex)) - y) ** 2).sum(axis=1).mean()

    whole = {name: array.astype(complex) for name, array in arrays.items()}
    gradients = {}
    for name_of, array in arrays.items():
        gradient = numpy.zeros(array.shape)
        for place in numpy.ndindex(*array.shape):
            moved = {**whole, name_of: array.astype(complex)}
            moved[name_of][place] += 1j * STEP
            gradient[place] = loss(moved).imag / STEP
        gradients[name_of] = gradient.tolist()
    return {"name": name, "model": model, "x": x.tolist(), "y": y.tolist(),
            "before": {name_of: array.tolist() for name_of, array in arrays.items()},
            "probabilities": softmax((x @ arrays["router_weight"].T).astype(complex)).real.tolist(),
            "loss": float(loss(whole).real), "gradients": gradients}


random = numpy.random.default_rng(20231202)
top2 = {"kind": "topk", "k": 2}
quiet = {"kind": "dense_to_sparse", "gumbel": False, "threshold": 0.2}
cases = [
    case(random, "one shared expert", top2, shared_experts=1),
    case(random, "two shared linear experts", top2, "linear", shared_experts=2),
    case(random, "two null experts", top2, null_experts=2),
    case(random, "a null linear expert beside a shared one", top2, "linear", null_experts=1, shared_experts=1),
    case(random, "a slot for each expert", {"kind": "soft_slots"}),
    case(random, "three slots for each linear expert", {"kind": "soft_slots", "slots": 3}, "linear"),
    case(random, "slots of null experts", {"kind": "soft_slots", "slots": 2}, null_experts=1),
    case(random, "a warm softmax", {**quiet, "tau": 2.5}),
    case(random, "a cold one, renormalised", {**quiet, "tau": 0.5, "renormalize": True}, "linear"),
    case(random, "nothing above the threshold", {**quiet, "tau": 1.5, "threshold": 0.9}),
    case(random, "two rows for each expert", {"kind": "balanced_assignment"}),
    case(random, "uneven rows", {"kind": "balanced_assignment"}, "linear", null_experts=1),
]
text = json.dumps({"numpy": numpy.__version__, "cases": cases})
pathlib.Path(__file__).with_name("mixtures_reference.json").write_text(text + "\n")
