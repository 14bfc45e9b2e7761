"""Reference values for graph_of_tokens_reference_test.cpp from PyTorch in double precision; writes
graph_of_tokens_reference.json beside itself.

    python3 tests/sim/model/graph_of_tokens_reference.py

Mixtures behind multi-head self-attention whose tokens mix their routing (Nguyen et al. 2025): inputs, parameters,
routing probabilities, loss and every gradient. The layouts are the same as of Model::arrays(). What is not differentiated,
the choice of the head of lowest mean row entropy, is an index here.
"""

import json
import math
import pathlib

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(20250601)

N, S, D, O, E, WIDTH = 3, 4, 5, 2, 3, 4


def attend(x, arrays, spec):
    """Per head log weights (n, H, s, s), centres (n, H, s, d) and U (n, s, d)."""
    query = torch.einsum("nsd,hkd->nhsk", x, arrays["attention_query"])
    key = torch.einsum("nsd,hkd->nhsk", x, arrays["attention_key"])
    logits = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
    if spec["causal"]:
        logits = logits.masked_fill(torch.triu(torch.ones(S, S, dtype=torch.bool), 1), float("-inf"))
    centres = torch.einsum("nsd,hdf->nhsf", x, arrays["attention_value_output"])
    return F.log_softmax(logits, -1), centres, (logits.softmax(-1) @ centres).mean(1)


def base_scores(u, arrays, spec):
    if spec["kind"] == "linear":
        return u @ arrays["router_weight"].T
    z = u @ arrays["router_projection"].T if "projection_dim" in spec else u
    scores = F.normalize(z, dim=-1) @ F.normalize(arrays["router_direction"], dim=-1).T
    return scores * arrays["router_log_scale"].exp() + arrays["router_bias"]


def token_weights(u, attention, arrays, spec):
    if spec["kind"] == "similarity_aware":
        matrix = arrays.get("router_similarity", torch.eye(D))
        return (u @ matrix @ u.transpose(1, 2) / spec["tau"]).softmax(-1)
    log_weights, centres, output = attention
    squares = ((output[:, None, :, None] - centres[:, :, None]) ** 2).sum(-1)
    joint = log_weights - squares / (2 * spec["sigma"] ** 2)
    if spec["head"] == "posterior":
        return joint.permute(0, 2, 1, 3).flatten(2).softmax(-1).unflatten(2, (-1, S)).sum(2)
    weights = log_weights.exp()
    entropy = -(weights * log_weights.clamp(min=-1e30)).sum(-1).mean(-1)
    chosen = joint[torch.arange(N), entropy.argmin(1)]
    return chosen.softmax(-1)


def case(name, router, attention, top_k=None):
    heads, keys = attention["heads"], attention["key_dim"]
    shapes = {"attention_query": (heads, keys, D), "attention_key": (heads, keys, D),
              "attention_value_output": (heads, D, D)}
    base = router["base"]
    if base["kind"] == "linear":
        shapes["router_weight"] = (E, D)
    else:
        columns = base.get("projection_dim", D)
        if "projection_dim" in base:
            shapes["router_projection"] = (columns, D)
        shapes |= {"router_direction": (E, columns), "router_bias": (E,), "router_log_scale": (1,)}
    if router.get("similarity") == "learned":
        shapes["router_similarity"] = (D, D)
    shapes |= {"expert_weight_1": (E, WIDTH, D), "expert_bias_1": (E, WIDTH), "expert_weight_2": (E, O, WIDTH),
               "expert_bias_2": (E, O)}
    arrays = {key: 0.7 * torch.randn(shape) for key, shape in shapes.items()}
    before = {key: value.tolist() for key, value in arrays.items()}
    for value in arrays.values():
        value.requires_grad_(True)
    x, y = torch.randn(N, S, D), torch.randn(N, S, O)

    state = attend(x, arrays, attention)
    u = state[2] + x if attention["residual"] else state[2]
    r = base_scores(u, arrays, base).softmax(-1)
    p = token_weights(u, state, arrays, router) @ r
    gates = p
    if top_k:
        top = p.topk(top_k, -1)
        gates = torch.zeros_like(p).scatter(-1, top.indices, top.values / top.values.sum(-1, keepdim=True))
    rows = u.reshape(1, N * S, D).expand(E, -1, -1)
    h = F.relu(rows @ arrays["expert_weight_1"].transpose(1, 2) + arrays["expert_bias_1"][:, None])
    h = h @ arrays["expert_weight_2"].transpose(1, 2) + arrays["expert_bias_2"][:, None]
    output = torch.einsum("ne,eno->no", gates.reshape(N * S, E), h)
    loss = ((output - y.reshape(N * S, O)) ** 2).sum(1).mean()
    loss.backward()
    train = {"kind": "topk", "k": top_k, "renormalize": True} if top_k else "soft"
    model = {"kind": "moe", "experts": E, "attention": attention, "router": router,
             "expert": {"kind": "mlp", "depth": 2, "width": WIDTH}, "gating": {"train": train, "eval": "top1"}}
    return {"name": name, "model": model, "x": x.tolist(), "y": y.tolist(), "before": before,
            "probabilities": p.tolist(), "loss": loss.item(),
            "gradients": {key: value.grad.tolist() for key, value in arrays.items()}}


LINEAR = {"kind": "linear"}
XMOE = {"kind": "cosine", "projection_dim": 3, "temperature": {"start": 0.3, "learned": True}}


def similarity(base, **fields):
    return {"kind": "similarity_aware", "base": base, "tau": 1.5, "similarity": "identity"} | fields


def attention_aware(base, **fields):
    return {"kind": "attention_aware", "base": base, "sigma": 1.5, "head": "lowest_entropy"} | fields


def block(heads, keys, causal=False, residual=False):
    return {"heads": heads, "key_dim": keys, "causal": causal, "residual": residual}


reference = {"torch": torch.__version__, "cases": [
    case("similarity", similarity(LINEAR), block(1, 5)),
    case("similarity, learned, X-MoE, residual", similarity(XMOE, similarity="learned"), block(2, 3, residual=True)),
    case("similarity, top-2, causal attention", similarity(LINEAR, tau=0.5), block(3, 2, causal=True), 2),
    case("attention, lowest entropy", attention_aware(LINEAR), block(2, 3)),
    case("attention, lowest entropy, causal, top-2", attention_aware(XMOE, sigma=0.6), block(3, 4, causal=True), 2),
    case("attention, posterior, residual", attention_aware(LINEAR, head="posterior"), block(3, 3, residual=True)),
]}
pathlib.Path(__file__).with_name("graph_of_tokens_reference.json").write_text(json.dumps(reference) + "\n")
