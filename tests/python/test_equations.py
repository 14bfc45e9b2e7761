"""docs/explanation/equations.md, tested: models rebuilt from the page alone reproduce what the program saved.

Nothing here looks at the sources of the program. Each scenario is small, trains in double, and saves weights and
routing. The rebuilt outputs equal the saved ones to 1e-12 of their largest entry.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TOLERANCE = 1e-12  # sums of some hundred terms in another order


# The page's functions.


def softmax(z):
    z = np.exp(z - z.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def log_softmax(z):
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def mlp(x, weights, biases):
    """Layers with ReLU between them; x (…, in), weights (out, in)."""
    for layer, (weight, bias) in enumerate(zip(weights, biases)):
        x = x @ weight.T + bias
        if layer + 1 < len(weights):
            x = np.maximum(x, 0)
    return x


def layers(arrays, prefix, ending="", of=None):
    """Weights and biases of the layers `<prefix>weight_1`, …, of one expert where `of` says which."""
    found = []
    while f"{prefix}weight_{len(found) + 1}{ending}" in arrays:
        number = len(found) + 1
        pair = [arrays[f"{prefix}{part}_{number}{ending}"] for part in ("weight", "bias")]
        found.append([array if of is None else array[of] for array in pair])
    return [weight for weight, _ in found], [bias for _, bias in found]


class Rebuilt:
    """A model from its scenario and its saved arrays."""

    def __init__(self, scenario: dict[str, Any], arrays: dict[str, np.ndarray]):
        self.model = scenario["model"]
        self.arrays = arrays
        self.batch_size = scenario["train"].get("batch_size", 1024)

    def get(self, name, ending=""):
        return self.arrays[name + ending]

    # Routers: scores of rows u (n, s, d).

    def scores(self, u, ending, context):
        router = self.model["router"]
        router = {"kind": router} if isinstance(router, str) else router
        return getattr(self, "router_" + router["kind"])(u, ending, router, context)

    def affine(self, u, ending):
        scores = u @ self.get("router_weight", ending).T
        if "router_bias" + ending in self.arrays:
            scores = scores + self.get("router_bias", ending)
        if "router_log_scale" + ending in self.arrays:
            scores = scores * np.exp(self.get("router_log_scale", ending)[0])
        return scores

    def router_linear(self, u, ending, router, context):
        return self.affine(u, ending)

    def router_mlp(self, u, ending, router, context):
        return mlp(u, *layers(self.arrays, "router_", ending))

    def router_cosine(self, u, ending, router, context, tau1=0.0, tau2=0.0):
        if "router_projection" + ending in self.arrays:
            u = u @ self.get("router_projection", ending).T
        rows = self.get("router_direction", ending)
        scores = u @ rows.T / (np.linalg.norm(rows, axis=1) + tau1)
        scores = scores / (np.linalg.norm(u, axis=-1, keepdims=True) + tau2)
        if "router_log_scale" + ending in self.arrays:
            scores = scores * np.exp(self.get("router_log_scale", ending)[0])
        return scores + self.get("router_bias", ending)

    def router_perturbed_cosine(self, u, ending, router, context):
        return self.router_cosine(u, ending, router, context, router["tau1"], router["tau2"])

    def router_squared_distance(self, u, ending, router, context):
        centers = self.get("router_centers", ending)
        distances = ((u[..., None, :] - centers) ** 2).sum(axis=-1)
        return -distances / (2 * np.maximum(self.get("router_std", ending), 0.01) ** 2) + self.get("router_bias", ending)

    def router_two_level(self, u, ending, router, context):
        of_groups = log_softmax(u @ self.get("router_group_weight", ending).T + self.get("router_group_bias", ending))
        within = u @ self.get("router_within_weight", ending).T + self.get("router_within_bias", ending)
        experts = within.shape[-1]
        group = np.arange(experts) * router["groups"] // experts
        scores = np.empty_like(within)
        for k in range(router["groups"]):
            scores[..., group == k] = of_groups[..., [k]] + log_softmax(within[..., group == k])
        return scores

    def router_nearest_centroid(self, u, ending, router, context):
        return -((u[..., None, :] - self.get("router_centroids", ending)) ** 2).sum(axis=-1) / 2

    def router_formula(self, u, ending, router, context):  # the score of the scenario below
        w, s = self.get("router_formula_w", ending), self.get("router_formula_s", ending)
        return -((u[..., None, :] - w) ** 2).sum(axis=-1) / (2 * np.maximum(s, 0.01) ** 2)

    def router_sequence_mean(self, u, ending, router, context):
        return self.affine(np.broadcast_to(u.mean(axis=1, keepdims=True), u.shape), ending)

    def router_adaptive_clustering(self, u, ending, router, context):
        if "previous_inputs" not in context:
            return self.affine(u, ending)
        weighted = np.empty_like(u)
        experts = self.model["experts"]
        for first in range(0, len(u), self.batch_size):
            rows = slice(first, first + self.batch_size)
            measured = context["previous_inputs"][rows].reshape(-1, u.shape[-1])
            cluster = context["previous_probabilities"][rows].reshape(-1, experts).argmax(axis=1)
            matrix = np.ones((experts, u.shape[-1]))
            for k in range(experts):
                own = measured[cluster == k]
                if len(own) == 0:
                    continue
                spread = np.abs(own - own.mean(axis=0)).mean(axis=0)
                counted = spread > 1e-12 * spread.max()
                inverse = 1 / spread[counted]
                matrix[k, counted] = inverse / inverse.mean() if counted.any() else 1
            weighted[rows] = u[rows] * matrix[cluster].reshape(u[rows].shape)
        return self.affine(weighted, ending)

    def router_stable(self, u, ending, router, context):
        return context["first_inputs"] @ self.get("frozen_light_router_weight", ending).T

    def base_probabilities(self, u, ending, router):
        base = router.get("base", {"kind": "linear"})
        return softmax(getattr(self, "router_" + base["kind"])(u, ending, base, {}))

    def seen(self, tokens):
        return np.tril(np.ones((tokens, tokens), bool)) if self.causal() else np.ones((tokens, tokens), bool)

    def router_similarity_aware(self, u, ending, router, context):
        logits = u @ self.arrays.get("router_similarity" + ending, np.eye(u.shape[-1])) @ u.swapaxes(1, 2)
        mixing = softmax(np.where(self.seen(u.shape[1]), logits / router["tau"], -np.inf))
        return np.log(mixing @ self.base_probabilities(u, ending, router))

    def router_attention_aware(self, u, ending, router, context):
        weights, centres, outputs = context["attention"]  # (n, H, s, s), (n, H, s, d), (n, s, d)
        samples, heads, tokens, _ = weights.shape
        seen = self.seen(tokens)
        with np.errstate(divide="ignore"):
            log_weights = np.log(weights)
        distances = ((outputs[:, None, :, None, :] - centres[:, :, None, :, :]) ** 2).sum(axis=-1)
        joint = np.where(seen, log_weights - distances / (2 * router.get("sigma", 1.0) ** 2), -np.inf)
        if router.get("head", "lowest_entropy") == "posterior":
            flat = joint.transpose(0, 2, 1, 3).reshape(samples, tokens, heads * tokens)
            mixing = softmax(flat).reshape(samples, tokens, heads, tokens).sum(axis=2)
        else:
            with np.errstate(invalid="ignore"):
                entropies = -np.where(weights > 0, weights * log_weights, 0).sum(axis=-1)  # (n, H, s)
            total = np.cumsum(entropies, axis=-1) if self.causal() else entropies.sum(axis=-1, keepdims=True)
            chosen = np.broadcast_to(total.argmin(axis=1), (samples, tokens))
            mixing = softmax(joint[np.arange(samples)[:, None], chosen, np.arange(tokens)])
        return np.log(mixing @ self.base_probabilities(u, ending, router))

    def causal(self):
        if self.model.get("kind") == "transformer":
            return self.model.get("causal", True)
        return False

    # Gatings: probabilities r and gates under an evaluation.

    def gate(self, scores, x, ending, evaluation):
        gating = self.model.get("gating", {}).get("eval", "top1")
        gating = {"kind": gating} if isinstance(gating, str) else gating
        kind, experts = gating["kind"], scores.shape[-1]
        bias = self.arrays.get("selection_bias" + ending, np.zeros(experts))
        selected_by = scores
        r = softmax(scores)
        if kind == "sigmoid":
            r = sigmoid(scores) / sigmoid(scores).sum(axis=-1, keepdims=True)
            selected_by = sigmoid(scores) + bias
        elif kind == "relu":
            total = np.maximum(scores, 0).sum(axis=-1, keepdims=True)
            r = np.where(total > 0, np.maximum(scores, 0) / np.where(total > 0, total, 1), 1 / experts)
        elif kind == "dense_to_sparse":
            tau = gating["tau"] + (gating["tau_end"] - gating["tau"]) * self.get("training_progress")[0]
            r = softmax(scores / tau)
        elif bias.any():
            selected_by = r + bias
        if evaluation == "soft":
            return r, r
        if evaluation == "top1" or kind == "top1":
            largest = np.lexsort((-scores, -(r + bias)))[..., :1]  # of equal r, the larger score
            return r, (np.arange(experts) == largest).astype(float)
        if kind in ("topk", "noisy_topk", "sigmoid"):
            k = gating["k"]
            chosen = np.zeros_like(r)
            np.put_along_axis(chosen, np.argsort(-selected_by, axis=-1, kind="stable")[..., :k], 1.0, axis=-1)
            gates = chosen * (sigmoid(scores) if kind == "sigmoid" else r)
            return r, gates / gates.sum(axis=-1, keepdims=True) if k > 1 else gates
        if kind == "topp":
            p = sigmoid(self.get("gating_threshold_logit", ending)[0])
            gates = np.maximum(r - p, 0)
            assert gates.sum(axis=-1).min() > 0
            return r, gates / gates.sum(axis=-1, keepdims=True)
        if kind == "relu":
            return r, np.maximum(scores, 0)
        if kind == "dense_to_sparse":
            assert (r > gating["threshold"]).any(axis=-1).all()
            return r, r * (r > gating["threshold"])
        if kind == "sinkhorn":
            plan, b = np.empty_like(r), np.ones(experts)
            for first in range(0, len(r), self.batch_size):
                rows, b = r[first : first + self.batch_size], np.ones(experts)
                for _ in range(100):
                    a = 1 / (len(rows) * (rows @ b))
                    before, b = b, 1 / (experts * (a @ rows))
                    if np.abs(b - before).mean() <= 1e-4:
                        break
                plan[first : first + self.batch_size] = rows * b
            chosen = np.zeros_like(r)
            np.put_along_axis(chosen, np.argsort(-plan, axis=-1, kind="stable")[:, : gating["k"]], 1.0, axis=-1)
            return r, chosen * r
        if kind == "expert_choice":
            gates, rows = np.zeros_like(r), len(r)
            for first in range(0, rows, self.batch_size):
                group = r[first : first + self.batch_size]
                count = int(np.ceil(gating["capacity_factor"] * len(group) / experts))
                for e in range(experts):
                    best = np.argsort(-group[:, e], kind="stable")[:count]
                    gates[first + best, e] = group[best, e]
            return r, gates
        raise AssertionError(kind)

    # Experts: outputs (…, E, o) of rows x.

    def expert_outputs(self, x, ending):
        if "expert_output" + ending in self.arrays:
            outputs = self.get("expert_output", ending)
            return np.broadcast_to(outputs, x.shape[:-1] + outputs.shape)
        expert = self.model.get("expert", "mlp")
        expert = {"kind": expert} if isinstance(expert, str) else expert
        count = self.get("expert_weight_1", ending).shape[0]
        outputs = np.stack([mlp(x, *layers(self.arrays, "expert_", ending, e)) for e in range(count)], axis=-2)
        if expert["kind"] == "polynomial":
            return outputs ** expert["power"]
        units = {
            "relu": lambda z: np.maximum(z, 0),
            "gelu": np.vectorize(lambda z: z * math.erfc(-z / math.sqrt(2)) / 2),
            "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
        }
        return units.get(expert["kind"], lambda z: z)(outputs)

    def mixture(self, x, ending, context, evaluation):
        if "slots" in str(self.model.get("gating", {})):
            f, r = self.slots(x, ending, context)
            # Without slots, each expert reads the rows.
            return (f if evaluation == "eval" else self.weighted(x, ending, r, evaluation)), r
        r, gates = self.gate(self.scores(x, ending, context), x, ending, evaluation)
        outputs = self.expert_outputs(x, ending)
        f = np.einsum("...e,...eo->...o", gates[..., : outputs.shape[-2]], outputs)  # null experts come last
        if "shared_expert_weight_1" + ending in self.arrays:
            for e in range(self.model["shared_experts"]):
                f = f + mlp(x, *layers(self.arrays, "shared_expert_", ending, e))
        return f, r

    def weighted(self, x, ending, r, evaluation):
        gates = r if evaluation == "soft" else np.arange(r.shape[-1]) == r.argmax(axis=-1)[..., None]
        return np.einsum("...e,...eo->...o", gates, self.expert_outputs(x, ending))

    def slots(self, x, ending, context):
        gamma, v = self.scores(x, ending, context), self.get("gating_slot_weight", ending)
        logits = np.concatenate([gamma[:, :, None], gamma[:, :, None] + np.einsum("nd,epd->nep", x, v)], axis=2)
        outputs, r = [], []
        for first in range(0, len(x), self.batch_size):
            group, rows = logits[first : first + self.batch_size], x[first : first + self.batch_size]
            dispatch = softmax(group.transpose(1, 2, 0)).transpose(2, 0, 1)
            combine = softmax(group.reshape(len(group), -1)).reshape(group.shape)
            read = np.einsum("nep,nd->epd", dispatch, rows)
            answers = np.stack([mlp(read[e], *layers(self.arrays, "expert_", ending, e)) for e in range(group.shape[1])])
            outputs.append(np.einsum("nep,epo->no", combine, answers))
            r.append(combine.sum(axis=2))
        return np.concatenate(outputs), np.concatenate(r)

    # Attention before a mixture and in a transformer: weights, centres, output.

    def averaged_attention(self, x):
        query, key, value = (self.get("attention_" + part) for part in ("query", "key", "value_output"))
        q, k = np.einsum("nsd,hkd->nhsk", x, query), np.einsum("nsd,hkd->nhsk", x, key)
        logits = q @ k.swapaxes(2, 3) / np.sqrt(query.shape[1])
        if self.model["attention"].get("causal"):
            logits = np.where(np.tril(np.ones(logits.shape[2:], bool)), logits, -np.inf)
        weights = softmax(logits)
        centres = np.einsum("nsd,hde->nhse", x, value)
        return weights, centres, (weights @ centres).mean(axis=1)

    def joined_attention(self, x, prefix):
        heads = self.model["heads"]
        samples, tokens, dim = x.shape
        width = dim // heads
        parts = [
            (x @ self.get(prefix + part).T).reshape(samples, tokens, heads, width).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        ]
        if self.model.get("positions") == "rotary":
            parts[:2] = [self.turned(part) for part in parts[:2]]
        logits = parts[0] @ parts[1].swapaxes(2, 3) / np.sqrt(width)
        weights = softmax(np.where(self.seen(tokens), logits, -np.inf))
        output = self.get(prefix + "output")
        joined = (weights @ parts[2]).transpose(0, 2, 1, 3).reshape(samples, tokens, dim)
        of_heads = output.reshape(dim, heads, width)  # the columns of each head
        centres = heads * np.einsum("nhsk,dhk->nhsd", parts[2], of_heads)
        return weights, centres, joined @ output.T

    @staticmethod
    def turned(part):
        tokens, width = part.shape[2:]
        angles = np.arange(tokens)[:, None] * 10000.0 ** (-2 * np.arange(width // 2) / width)
        a, b = part[..., : width // 2], part[..., width // 2 :]
        return np.concatenate([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)], axis=-1)

    # Models.

    def norm(self, x, prefix, ending=""):
        gain = self.get(prefix + "norm_gain", ending)
        if self.model.get("norm", "layer") == "rms":
            return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5) * gain
        centred = x - x.mean(axis=-1, keepdims=True)
        normal = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
        return normal * gain + self.get(prefix + "norm_bias", ending)

    def outputs(self, evaluation):
        """f of the test rows, and r of each mixture."""
        inputs = self.arrays["test_inputs"]
        kind = self.model.get("kind", "moe")
        if kind == "transformer":
            return self.transformer(inputs.astype(int), evaluation)
        if kind == "dense":
            return mlp(inputs, *layers(self.arrays, "expert_", of=0)), []
        h, probabilities, context = inputs, [], {"first_inputs": inputs}
        count = self.model.get("layers", 1)
        if "input_width" in self.model:
            h = h @ self.get("projection_weight_1").T + self.get("projection_bias_1")
        for layer in range(count):
            ending = f"_layer{layer}" if count > 1 else ""
            if "attention" in self.model:
                context["attention"] = self.averaged_attention(h)
                h = context["attention"][2] + (h if self.model["attention"].get("residual") else 0)
            f, r = self.mixture(h, ending, context, evaluation)
            probabilities.append(r)
            context |= {"previous_inputs": h, "previous_probabilities": r}
            h = h + f if count > 1 else f
        if count > 1:
            h = h @ self.get("readout_weight_1").T + self.get("readout_bias_1")
        return h.sum(axis=1) if h.ndim == 3 else h, probabilities

    def transformer(self, ids, evaluation):
        table = self.get("embedding_token")
        h = table[ids]
        if "embedding_position" in self.arrays:
            h = h + self.get("embedding_position")
        mixtures = self.model["moe_layers"]
        mixtures = list(range(self.model["layers"])) if mixtures == "all" else mixtures
        probabilities = []
        for layer in range(self.model["layers"]):
            prefix = f"block{layer}_"
            attention = self.joined_attention(self.norm(h, prefix + "attention_"), prefix + "attention_")
            h = h + attention[2]
            if layer not in mixtures:
                rows = self.norm(h, prefix + "dense_")
                h = h + mlp(rows, *layers(self.arrays, prefix + "dense_expert_", of=0))
                continue
            ending = f"_layer{len(probabilities)}" if len(mixtures) > 1 else ""
            f, r = self.mixture(self.norm(h, "", ending), ending, {"attention": attention}, evaluation)
            probabilities.append(r)
            h = h + f
        h = self.norm(h, "readout_")
        if self.model.get("tied_embedding"):
            return h @ table[: self.vocabulary].T / np.sqrt(h.shape[-1]), probabilities
        return h @ self.get("readout_weight_1").T + self.get("readout_bias_1"), probabilities


# Scenarios, one for each kind.

MIXTURE_DATA = {
    "generator": "gaussian_mixture",
    "clusters": 4,
    "dim": 5,
    "target": {"kind": "constant", "dim": 3},
    "train_samples": 64,
    "test_samples": 40,
}
TOKEN_DATA = {
    "generator": "tokenized_mixture",
    "clusters": 4,
    "dim": 5,
    "tokens": 6,
    "target": {"kind": "linear", "dim": 3},
    "train_samples": 64,
    "test_samples": 20,
}
LANGUAGE_DATA = {
    "generator": "synthetic_language",
    "domains": 2,
    "vocabulary": 11,
    "tokens": 8,
    "train_samples": 64,
    "test_samples": 10,
}
MLP = {"kind": "mlp", "depth": 2, "width": 6}
TOP2 = {"kind": "topk", "k": 2}


def mixture(router="linear", expert="constant", data=MIXTURE_DATA, gating=None, balance={}, **model):
    model = {"experts": 4, "router": router, "expert": expert, **model}
    if gating:
        model["gating"] = {"train": gating, "eval": gating} | balance
    return {"data": data, "model": model}


def transformer(router="linear", loss="cross_entropy", **model):
    shape = {"kind": "transformer", "width": 8, "layers": 2, "heads": 2, "feed_forward": 12, "moe_layers": [1]}
    gatings = {"train": TOP2, "eval": TOP2}
    model = {**shape, "experts": 4, "router": router, "gating": gatings, **model}
    return {"data": LANGUAGE_DATA, "model": model, "loss": {"task": loss}}


MODELS = {
    "linear": mixture({"kind": "linear", "bias": True}, {"kind": "mlp", "depth": 3, "width": 6}),
    "mlp": mixture({"kind": "mlp", "depth": 2, "width": 6}, "linear", shared_experts=2, null_experts=1),
    "cosine": mixture({"kind": "cosine", "projection_dim": 3}, {"kind": "polynomial", "power": 3}),
    "perturbed_cosine": mixture({"kind": "perturbed_cosine", "tau1": 0.1, "tau2": 0.2}, "relu"),
    "squared_distance": mixture({"kind": "squared_distance", "std": 1.5, "bias": True}),
    "two_level": mixture({"kind": "two_level", "groups": 2, "bias": True}, "gelu"),
    "sigmoid_experts": mixture("linear", "sigmoid"),
    "nearest_centroid": mixture("nearest_centroid"),
    "formula": mixture(
        {
            "kind": "formula",
            "score": "-norm(x-w)^2/(2*s^2)",
            "parameters": {"w": "d", "s": {"start": 1.0, "min": 0.01}},
        }
    ),
    "adaptive_clustering": mixture("adaptive_clustering", MLP, layers=3),
    "stable": mixture("stable", MLP, layers=2),
    "stack_behind_a_projection": mixture(expert=MLP, layers=2, input_width=6),
    "dense": {"data": MIXTURE_DATA, "model": {"kind": "dense", "width": 7, "depth": 3}},
    "sequence_mean": mixture("sequence_mean", "linear", TOKEN_DATA),
    "similarity_aware": mixture({"kind": "similarity_aware", "similarity": "learned", "tau": 0.7}, "linear", TOKEN_DATA),
    "attention_aware": mixture(
        "attention_aware", "linear", TOKEN_DATA, attention={"heads": 2, "key_dim": 3, "residual": True}
    ),
    "attention_aware_posterior": mixture(
        {"kind": "attention_aware", "head": "posterior", "sigma": 2.0}, "linear", TOKEN_DATA, attention={"heads": 2}
    ),
    "topk": mixture(gating=TOP2, expert=MLP),
    "balanced": mixture(gating={"kind": "sigmoid", "k": 2}, balance={"balance_rate": 0.01}),
    "topp": mixture(gating={"kind": "topp", "learnable": True}),
    "noisy_topk": mixture(gating={"kind": "noisy_topk", "k": 2}),
    "relu": mixture(gating={"kind": "relu", "k": 2}),
    "expert_choice": mixture(gating={"kind": "expert_choice", "capacity_factor": 2.0}),
    "sinkhorn": mixture(gating={"kind": "sinkhorn", "k": 2}),
    "dense_to_sparse": mixture(gating={"kind": "dense_to_sparse", "tau": 2.0, "tau_end": 0.3, "threshold": 0.1}),
    "soft_slots": mixture(gating={"kind": "soft_slots", "slots": 2}, expert=MLP),
    "transformer": transformer(),
    "transformer_similarity": transformer({"kind": "similarity_aware", "tau": 0.5}, moe_layers="all"),
    "transformer_rotary_tied": transformer("attention_aware", positions="rotary", norm="rms", tied_embedding=True),
    "transformer_masked": transformer(loss="masked_tokens", causal=False, moe_layers=[]),
}


def run(name, scenario, folder: Path, program, steps=20):
    """Runs a scenario of one cell; returns its arrays, and its row of the export."""
    scenario = {
        "name": name,
        "metrics": ["task"],
        "save": ["weights", "routing"],
        "seeds": {"count": 1},
        "train": {
            "optimizer": "adam",
            "lr": {"expert": 0.01, "router": 0.01},
            "batch_size": 16,
            "steps": steps,
            "precision": "double",
        },
    } | scenario
    file = folder / f"{name}.json"
    file.write_text(json.dumps(scenario))
    done = subprocess.run([program, "run", file, "--out", folder / name], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    export = subprocess.run([program, "export", folder / name], capture_output=True, text=True, check=True).stdout
    row = next(csv.DictReader(io.StringIO(export)))
    cell = next((folder / name / "cells").iterdir())
    return scenario, {file.stem: np.load(file) for file in cell.glob("*.npy")}, row


def near(found, saved):
    assert found.shape == saved.shape
    return np.abs(found - saved).max() <= TOLERANCE * max(1.0, np.abs(saved).max())


@pytest.fixture
def program():
    return os.environ["MOELAB_PROGRAM"]


@pytest.mark.parametrize("name", MODELS)
def test_a_rebuilt_model_gives_the_saved_outputs(name, tmp_path, program):
    scenario, arrays, row = run(name, json.loads(json.dumps(MODELS[name])), tmp_path, program)
    rebuilt = Rebuilt(scenario, arrays)
    rebuilt.vocabulary = LANGUAGE_DATA["vocabulary"]
    targets = arrays["test_targets"]
    for evaluation in ("soft", "top1", "eval"):
        outputs, probabilities = rebuilt.outputs(evaluation)
        if evaluation == "eval":
            for layer, r in enumerate(probabilities):
                saved = arrays["test_probs" if len(probabilities) == 1 else f"test_probs_layer{layer}"]
                assert near(r, saved), f"probabilities of layer {layer}"
        if "test_outputs_" + evaluation in arrays:
            assert near(outputs, arrays["test_outputs_" + evaluation]), evaluation
        metric = row.get("test_loss_" + evaluation) or row.get("test_loss_soft")
        if targets.dtype.kind in "iu" or "vocabulary" in scenario["data"]:
            ids = targets.astype(int)
            asked = ids >= 0
            losses = -np.take_along_axis(log_softmax(outputs), np.maximum(ids, 0)[..., None], axis=-1)[..., 0]
            loss = losses[asked].mean()
        else:
            loss = ((outputs - targets) ** 2).mean()
        assert abs(loss - float(metric)) <= TOLERANCE * max(1, abs(loss)), evaluation


# Optimizers, schedules, decay and reductions: training with whole-set batches, whose order does not matter.

TRAININGS = {
    "sgd": {"optimizer": {"kind": "sgd", "momentum": 0.9}, "weight_decay": {"expert": 0.02, "router": 0.01}},
    "adam": {"optimizer": "adam", "weight_decay": 0.05},
    "adamw": {"optimizer": "adamw", "weight_decay": 0.05, "schedule": {"kind": "cosine", "warmup_steps": 3, "final": 0.1}},
    "clipped": {"optimizer": "sgd", "clip_norm": 0.5, "schedule": {"kind": "step", "every": 2, "factor": 0.5}},
}


def rate_factor(schedule, t, steps):
    if schedule is None:
        return 1.0
    if schedule["kind"] == "step":
        return schedule["factor"] ** (t // schedule["every"])
    w, final = schedule["warmup_steps"], schedule["final"]
    if t < w:
        return (t + 1) / w
    return final + (1 - final) * 0.5 * (1 + np.cos(np.pi * (t - w) / (steps - w)))


def gradients(weight, outputs, x, y, reduction):
    """Of the soft mixture of constant experts behind a linear router, and of the balance loss 0.1 · z."""
    gamma = x @ weight.T
    r = softmax(gamma)
    upstream = 2 * (r @ outputs - y) / len(x) / (y.shape[1] if reduction == "mean" else 1)
    of_r = upstream @ outputs.T
    of_gamma = r * (of_r - (r * of_r).sum(axis=1, keepdims=True))
    log_sum = np.log(np.exp(gamma).sum(axis=1, keepdims=True))
    of_gamma += 0.1 * 2 / len(x) * log_sum * r
    return of_gamma.T @ x, r.T @ upstream


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("name", TRAININGS)
def test_training_follows_the_page(name, reduction, tmp_path, program):
    steps, rates = 7, {"expert": 0.05, "router": 0.03}
    training = {"batch_size": 64, "precision": "double", "lr": rates, **TRAININGS[name]}
    base = mixture({"kind": "linear"}, "constant") | {"loss": {"task": "mse", "reduction": reduction, "z": 0.1}}
    gating = {"train": {"kind": "soft", "skip_below": 0}, "eval": "soft"}
    base["model"] = base["model"] | {"gating": gating}

    def trained(label, train):
        return run(label, json.loads(json.dumps(base | {"train": train})), tmp_path, program)[1]

    still = {"batch_size": 64, "precision": "double", "optimizer": "sgd", "lr": 0.0, "steps": 1}
    start, end = trained("start", still), trained("end", training | {"steps": steps})
    sample = tmp_path / "sample"
    subprocess.run([program, "sample", tmp_path / "end.json", "--out", sample], capture_output=True, check=True)
    x, y = np.load(sample / "train_inputs.npy"), np.load(sample / "train_targets.npy")

    values = [start["router_weight"].copy(), start["expert_output"].copy()]
    decays = training.get("weight_decay", 0.0)
    decays = [decays["router"], decays["expert"]] if isinstance(decays, dict) else [decays, decays]
    kind = training["optimizer"]
    kind = {"kind": kind} if isinstance(kind, str) else kind
    first, second = [np.zeros_like(v) for v in values], [np.zeros_like(v) for v in values]
    for t in range(steps):
        given = gradients(*values, x, y, reduction)
        norm = np.sqrt(sum((g**2).sum() for g in given))
        if "clip_norm" in training and norm > training["clip_norm"]:
            given = [g * training["clip_norm"] / norm for g in given]
        for i, g in enumerate(given):
            rate = rates["router" if i == 0 else "expert"] * rate_factor(training.get("schedule"), t, steps)
            if kind["kind"] == "sgd":
                first[i] = kind.get("momentum", 0.0) * first[i] + g + decays[i] * values[i]
                values[i] = values[i] - rate * first[i]
                continue
            if kind["kind"] == "adamw":
                values[i] = values[i] - rate * decays[i] * values[i]
            else:
                g = g + decays[i] * values[i]
            first[i] = 0.9 * first[i] + 0.1 * g
            second[i] = 0.999 * second[i] + 0.001 * g**2
            mean, square = first[i] / (1 - 0.9 ** (t + 1)), second[i] / (1 - 0.999 ** (t + 1))
            values[i] = values[i] - rate * mean / (np.sqrt(square) + 1e-8)
    for found, saved, begun in zip(values, ("router_weight", "expert_output"), start.values()):
        assert np.abs(found - end[saved]).max() <= 1e-11, saved  # Adam divides by small numbers
        assert np.abs(end[saved] - start[saved]).max() > 1e-3, "training moved nothing"
