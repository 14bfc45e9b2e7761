"""Reference values for cnn_reference_test.cpp from PyTorch in double precision; writes cnn_reference.json beside itself.

    python3 tests/sim/model/cnn_reference.py

Mixtures whose CNN router reads the image that leads a row and hands its penultimate layer to the experts, on images of
even and of odd sides: inputs, parameters, routing probabilities, loss and every gradient. The layouts are the same as of
Model::arrays(): convolutions (out, in, 3, 3), dense layers (out, in) with inputs (channel, row, column).
"""

import json
import pathlib

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(20230902)


def case(name, image, channels):
    n, vector, o, e, width, hidden = 4, 3, 2, 3, 5, 4
    pixels = torch.Size(image).numel()
    x, y = torch.randn(n, pixels + vector), torch.randn(n, o)
    arrays = {}

    def add(layer, *shape):
        arrays[layer.format("weight")] = 0.5 * torch.randn(*shape)
        arrays[layer.format("bias")] = 0.5 * torch.randn(*shape[:-3] if len(shape) == 4 else shape[:-1])

    sides = list(image[1:])
    before = image[0]
    for layer, after in enumerate(channels):
        add(f"router_{{}}_{layer + 1}", after, before, 3, 3)
        sides = [(side + 1) // 2 for side in sides]
        before = after
    add(f"router_{{}}_{len(channels) + 1}", width, before * sides[0] * sides[1])
    add(f"router_{{}}_{len(channels) + 2}", e, width)
    for layer, (inputs, outputs) in enumerate([(vector + width, hidden), (hidden, o)]):
        add(f"expert_{{}}_{layer + 1}", e, outputs, inputs)
    before_step = {key: value.tolist() for key, value in arrays.items()}
    for value in arrays.values():
        value.requires_grad_(True)

    z = x[:, :pixels].reshape(n, *image)
    for layer in range(1, len(channels) + 1):
        z = F.relu(F.conv2d(z, arrays[f"router_weight_{layer}"], arrays[f"router_bias_{layer}"], stride=2, padding=1))
    dense, last = len(channels) + 1, len(channels) + 2
    features = F.relu(F.linear(z.flatten(1), arrays[f"router_weight_{dense}"], arrays[f"router_bias_{dense}"]))
    gates = F.linear(features, arrays[f"router_weight_{last}"], arrays[f"router_bias_{last}"]).softmax(1)
    h = torch.cat([x[:, pixels:], features], 1).expand(e, n, vector + width)
    h = F.relu(h @ arrays["expert_weight_1"].transpose(1, 2) + arrays["expert_bias_1"][:, None])
    h = h @ arrays["expert_weight_2"].transpose(1, 2) + arrays["expert_bias_2"][:, None]
    loss = ((torch.einsum("ne,eno->no", gates, h) - y) ** 2).sum(1).mean()
    loss.backward()
    model = {"kind": "moe", "experts": e, "router": {"kind": "cnn", "channels": channels, "width": width},
             "expert": {"kind": "mlp", "depth": 2, "width": hidden}}
    return {"name": name, "image": image, "model": model, "x": x.tolist(), "y": y.tolist(), "before": before_step,
            "probabilities": gates.tolist(), "loss": loss.item(),
            "gradients": {key: value.grad.tolist() for key, value in arrays.items()}}


reference = {"torch": torch.__version__,
             "cases": [case("2 × 4 × 4", [2, 4, 4], [3, 5]), case("1 × 5 × 7", [1, 5, 7], [4]),
                       case("3 × 6 × 6, three convolutions", [3, 6, 6], [2, 3, 4])]}
pathlib.Path(__file__).with_name("cnn_reference.json").write_text(json.dumps(reference) + "\n")
