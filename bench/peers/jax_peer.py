#!/usr/bin/env python3
"""Trains a saved workload with JAX. One compiled function runs a piece of an epoch: `scan` over steps, with donated
buffers. `--seeds 8` trains as many models at once by `vmap`, each with its own batches. Prints one line of JSON, which
counts the steps of all seeds."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np

import common

PIECE = 16  # steps in one call, so that large workloads stop near the time that was asked for


def constants(parameters, x):
    """f = softmax(x W^T) U."""
    router, outputs = parameters["router"], parameters["experts"][0]
    return jax.nn.softmax(x @ router.T) @ outputs


def one_output(parameters, x):
    """Linear experts with a single output: the whole bank is one product."""
    weight, bias = parameters["experts"]
    return (jax.nn.softmax(x @ parameters["router"].T) * (x @ weight[:, 0].T + bias[:, 0])).sum(1, keepdims=True)


def networks(parameters, x):
    """Experts of any depth, one batched product a layer."""
    gates = jax.nn.softmax(x @ parameters["router"].T)
    layers = parameters["experts"]
    hidden = jnp.einsum("nd,ehd->enh", x, layers[0]) + layers[1][:, None]
    for at in range(2, len(layers), 2):
        hidden = jnp.einsum("enh,eoh->eno", jax.nn.relu(hidden), layers[at]) + layers[at + 1][:, None]
    return jnp.einsum("ne,eno->no", gates, hidden)


def load(folder, expert):
    """The outputs as a function of parameters and rows, and the parameters."""
    def array(name):
        return jnp.asarray(np.load(folder / f"{name}.npy"))

    if expert["kind"] == "constant":
        return constants, {"router": array("router_weight"), "experts": [array("expert_output")]}
    layers = []
    for layer in range(1, expert.get("depth", 1) + 1):
        layers += [array(f"expert_weight_{layer}"), array(f"expert_bias_{layer}")]
    single = len(layers) == 2 and layers[0].shape[1] == 1
    return one_output if single else networks, {"router": array("router_weight"), "experts": layers}


def adam(rule, rates):
    beta1, beta2, epsilon = rule["beta1"], rule["beta2"], rule["epsilon"]

    def step(parameters, moments, gradient, count):
        def moved(p, m, v, g, rate):
            m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
            size = rate / (1 - beta1**count)
            return p - size * m / (jnp.sqrt(v / (1 - beta2**count)) + epsilon), m, v

        all_three = jax.tree.map(moved, parameters, *moments, gradient, rates)
        return tuple(jax.tree.map(lambda leaf, i=i: leaf[i], all_three, is_leaf=lambda leaf: isinstance(leaf, tuple))
                     for i in range(3))

    def update(parameters, state, gradient):
        count = state[2] + 1
        parameters, first, second = step(parameters, state[:2], gradient, count)
        return parameters, (first, second, count)

    def start(parameters):
        zeros = jax.tree.map(jnp.zeros_like, parameters)
        return zeros, jax.tree.map(jnp.zeros_like, parameters), jnp.zeros((), jnp.float32)

    return start, update


def descent(rule, rates):
    """SGD with momentum."""
    def update(parameters, velocity, gradient):
        velocity = jax.tree.map(lambda v, g: rule["momentum"] * v + g, velocity, gradient)
        return jax.tree.map(lambda p, v, rate: p - rate * v, parameters, velocity, rates), velocity

    return lambda parameters: jax.tree.map(jnp.zeros_like, parameters), update


def main():
    parser = common.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="models that are trained at once")
    options = parser.parse_args()
    workload = common.settings(options.folder)
    train, batch, seeds = workload["train"], workload["train"]["batch_size"], options.seeds
    x, y = (jnp.asarray(np.load(options.folder / f"{name}.npy")) for name in ["x", "y"])
    outputs_of, parameters = load(options.folder, workload["expert"])
    rates = {"router": train["lr"]["router"], "experts": [train["lr"]["expert"]] * len(parameters["experts"])}
    rule = train["optimizer"]
    start, update = (adam if rule["kind"] == "adam" else descent)(rule, rates)
    pieces = len(x) // batch // PIECE
    steps_of_piece = min(PIECE, len(x) // batch)

    def loss(parameters, rows, targets):
        return jnp.sum((outputs_of(parameters, rows) - targets) ** 2) / batch

    def shuffled(key):
        order = jax.random.permutation(key, len(x))
        return x[order].reshape(-1, batch, x.shape[1]), y[order].reshape(-1, batch, y.shape[1])

    def piece(state, rows, targets, first):
        def one(state, pair):
            parameters, moments = state
            return update(parameters, moments, jax.grad(loss)(parameters, *pair)), None

        chosen = [jax.lax.dynamic_slice_in_dim(part, first, steps_of_piece) for part in (rows, targets)]
        return jax.lax.scan(one, state, tuple(chosen))[0]

    shuffle = jax.jit(jax.vmap(shuffled))
    advance = jax.jit(jax.vmap(piece, in_axes=(0, 0, 0, None)), donate_argnums=0)

    def training_pieces():
        state = jax.vmap(lambda _: (parameters, start(parameters)))(jnp.arange(seeds))
        keys = jax.random.split(jax.random.key(1), seeds)
        while True:
            keys = jax.vmap(lambda key: jax.random.split(key)[0])(keys)
            rows, targets = shuffle(keys)
            for at in range(max(pieces, 1)):
                state = jax.block_until_ready(advance(state, rows, targets, at * steps_of_piece))
                yield state

    @jax.jit
    def nmse(parameters, rows, targets):
        return jnp.sum((outputs_of(parameters, rows) - targets) ** 2) / jnp.sum((targets - targets.mean(0)) ** 2)

    result = {"workload": workload["workload"], "program": f"jax {jax.__version__}"}
    result["first_batch_error"] = float(nmse(parameters, x[:batch], y[:batch]))
    trained = training_pieces()
    next(trained)  # compiles
    result.update(common.measure_rate(trained, options.seconds, seeds * steps_of_piece))
    first_seed = jax.tree.map(lambda leaf: leaf[0], next(trained)[0])
    result["trained_batch_error"] = float(nmse(first_seed, x[:batch], y[:batch]))
    if not math.isfinite(result["trained_batch_error"]):
        raise RuntimeError("the training diverged")
    result["peak_memory_mb"] = common.peak_memory_mb()
    print(json.dumps(result))


main()
