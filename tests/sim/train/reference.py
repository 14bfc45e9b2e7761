"""Reference values for reference_test.cpp from PyTorch in double precision; writes reference.json beside itself.

    python3 tests/sim/train/reference.py

`optimizers`: parameters after each of five steps on fixed gradients.
`steps`: one whole training step of a mixture: inputs, weights, loss, every gradient, every parameter afterwards.
Weights are stored as (out, in), routers as (E, d): the layouts of Model::arrays().
"""

import json
import pathlib

import torch

torch.set_default_dtype(torch.float64)
torch.manual_seed(20230901)

OPTIMIZERS = {
    "sgd": (torch.optim.SGD, {"lr": 0.1}),
    "sgd with momentum and weight decay": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.02}),
    "adam": (torch.optim.Adam, {"lr": 0.01}),
    "adam with weight decay": (torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1, "betas": (0.8, 0.95)}),
    "adamw": (torch.optim.AdamW, {"lr": 0.02, "weight_decay": 0.1, "eps": 1e-6}),
}


def optimizer_case(name):
    make, options = OPTIMIZERS[name]
    parameters = torch.randn(16, requires_grad=True)
    start = parameters.detach().tolist()
    optimizer = make([parameters], **options)
    gradients, after = [], []
    for _ in range(5):
        parameters.grad = torch.randn(16)
        gradients.append(parameters.grad.tolist())
        optimizer.step()
        after.append(parameters.detach().tolist())
    kind = name.split()[0]
    spec = {"kind": kind}
    if kind == "sgd":
        spec["momentum"] = options.get("momentum", 0.0)
    else:
        spec["beta1"], spec["beta2"] = options.get("betas", (0.9, 0.999))
        spec["epsilon"] = options.get("eps", 1e-8)
    return {"name": name, "optimizer": spec, "lr": options["lr"], "weight_decay": options.get("weight_decay", 0.0),
            "start": start, "gradients": gradients, "after": after}


def soft_gates(scores):
    return torch.softmax(scores, dim=1)


def top2_gates(scores):
    probabilities = torch.softmax(scores, dim=1)
    values, places = probabilities.topk(2, dim=1)
    return torch.zeros_like(scores).scatter(1, places, values / values.sum(dim=1, keepdim=True))


def step_case(name, expert, gating, optimizer):
    n, d, o, e, width = 6, 4, 3, 3, 5
    x, y = torch.randn(n, d), torch.randn(n, o)
    arrays = {"router_weight": torch.randn(e, d)}
    if expert == "mlp":
        widths = [d, width, width, o]
        for layer in range(3):
            arrays[f"expert_weight_{layer + 1}"] = torch.randn(e, widths[layer + 1], widths[layer])
            arrays[f"expert_bias_{layer + 1}"] = torch.randn(e, widths[layer + 1])
    else:
        arrays["expert_output"] = torch.randn(e, o)
    before = {key: value.tolist() for key, value in arrays.items()}
    for value in arrays.values():
        value.requires_grad_(True)

    gates = (soft_gates if gating == "soft" else top2_gates)(x @ arrays["router_weight"].T)
    if expert == "mlp":
        hidden = x.expand(e, n, d)
        for layer in (1, 2, 3):
            hidden = hidden @ arrays[f"expert_weight_{layer}"].transpose(1, 2) + arrays[f"expert_bias_{layer}"][:, None]
            hidden = torch.relu(hidden) if layer < 3 else hidden
        outputs = torch.einsum("ne,eno->no", gates, hidden)
    else:
        outputs = gates @ arrays["expert_output"]
    loss = ((outputs - y) ** 2).sum(dim=1).mean()
    loss.backward()
    gradients = {key: value.grad.tolist() for key, value in arrays.items()}

    router, experts = {"lr": 0.3, "weight_decay": 0.05}, {"lr": 0.1, "weight_decay": 0.01}
    groups = [{"params": [arrays["router_weight"]], **router},
              {"params": [value for key, value in arrays.items() if key != "router_weight"], **experts}]
    if optimizer == "sgd":
        spec = {"kind": "sgd", "momentum": 0.9}
        torch.optim.SGD(groups, momentum=0.9).step()
    else:
        spec = {"kind": "adamw"}
        torch.optim.AdamW(groups).step()
    model = {"kind": "moe", "experts": e, "router": {"kind": "linear"},
             "expert": {"kind": "mlp", "depth": 3, "width": width} if expert == "mlp" else {"kind": "constant"},
             "gating": {"train": "soft" if gating == "soft" else {"kind": "topk", "k": 2}}}
    train = {"optimizer": spec, "lr": {"router": router["lr"], "expert": experts["lr"]},
             "weight_decay": {"router": router["weight_decay"], "expert": experts["weight_decay"]},
             "batch_size": n, "steps": 1, "precision": "double"}
    return {"name": name, "model": model, "train": train, "x": x.tolist(), "y": y.tolist(), "loss": loss.item(),
            "before": before, "gradients": gradients,
            "after": {key: value.detach().tolist() for key, value in arrays.items()}}


reference = {
    "torch": torch.__version__,
    "optimizers": [optimizer_case(name) for name in OPTIMIZERS],
    "steps": [
        step_case("soft, depth-3 experts, sgd", "mlp", "soft", "sgd"),
        step_case("top-2, depth-3 experts, adamw", "mlp", "top2", "adamw"),
        step_case("soft, constant experts, sgd", "constant", "soft", "sgd"),
    ],
}
pathlib.Path(__file__).with_name("reference.json").write_text(json.dumps(reference) + "\n")
