"""capture: small random models of transformers, against what the models themselves say."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import moelab

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")
safetensors: Any = pytest.importorskip("safetensors.torch")

VOCABULARY, EXPERTS, BATCHES, SEQUENCES = 60, 8, 3, 4
DECODER = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "num_experts_per_tok": 2,
}


def mixtral() -> Any:
    config = transformers.MixtralConfig(**DECODER, num_local_experts=EXPERTS)
    return transformers.MixtralForCausalLM(config)


def olmoe() -> Any:
    config = transformers.OlmoeConfig(**{**DECODER, "num_experts_per_tok": 3}, num_experts=EXPERTS)
    return transformers.OlmoeForCausalLM(config)


def qwen() -> Any:
    config = transformers.Qwen2MoeConfig(
        **DECODER, num_experts=EXPERTS, moe_intermediate_size=24, shared_expert_intermediate_size=24,
        mlp_only_layers=[0], decoder_sparse_step=1)
    return transformers.Qwen2MoeForCausalLM(config)


def deepseek() -> Any:
    config = transformers.DeepseekV3Config(
        **DECODER, n_routed_experts=EXPERTS, n_group=4, topk_group=2, moe_intermediate_size=24, n_shared_experts=1,
        first_k_dense_replace=1, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8)
    return transformers.DeepseekV3ForCausalLM(config)


def switch() -> Any:
    config = transformers.SwitchTransformersConfig(
        vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=48, num_layers=4, num_sparse_encoder_layers=2,
        num_decoder_layers=4, num_sparse_decoder_layers=2, num_heads=4, num_experts=EXPERTS, expert_capacity=64,
        pad_token_id=0, decoder_start_token_id=0)
    return transformers.SwitchTransformersForConditionalGeneration(config)


def seeded(make: Any) -> Any:
    """A model whose routers are not even, and whose selection has a bias."""
    torch.manual_seed(1)
    model = make()
    for name, value in model.named_parameters():
        if name.endswith(("gate.weight", "router.classifier.weight")):
            value.data = torch.randn_like(value) / 2
    for name, value in model.named_buffers():
        if "correction_bias" in name:
            value.copy_(torch.randn_like(value) * 0.3)
    return model


def batches(with_decoder: bool = False) -> Iterator[dict[str, Any]]:
    """Padded batches of other widths."""
    random = torch.Generator().manual_seed(1)
    for _ in range(BATCHES):
        lengths = torch.randint(5, 12, (SEQUENCES,), generator=random)
        mask = (torch.arange(int(lengths.max()))[None] < lengths[:, None]).long()
        tokens = torch.randint(1, VOCABULARY, mask.shape, generator=random) * mask
        batch = {"input_ids": tokens, "attention_mask": mask, "domain": ["code", "law"] * (SEQUENCES // 2)}
        yield batch | ({"decoder_input_ids": tokens, "decoder_attention_mask": mask} if with_decoder else {})


def of_model(model: Any, batch: dict[str, Any], name: str) -> list[Any]:
    """The logits that the model itself returns."""
    model.eval()
    with torch.no_grad():
        answer = model(**{key: value for key, value in batch.items() if key != "domain"}, output_router_logits=True)
    return [entry for entry in getattr(answer, name) if entry.ndim > 1]


@pytest.mark.parametrize(("make", "layers"), [
    (mixtral, [0, 1, 2]), (olmoe, [0, 1, 2]), (qwen, [1, 2]), (deepseek, [1, 2])])
def test_decoders_are_recorded_as_they_answer(make: Any, layers: list[int], tmp_path: Any) -> None:
    model = seeded(make)
    model.train()
    captured = moelab.capture(model, batches(), tmp_path / "routing")
    assert model.training
    assert captured.layers == {"": layers}
    ids: dict[int, list[Any]] = {layer: [] for layer in layers}
    for file, batch in zip(captured.files, batches()):
        saved = safetensors.load_file(file)
        own = of_model(model, batch, "router_logits")
        assert len(own) == len(layers)
        for layer, logits in zip(layers, own):
            assert torch.equal(saved[f"router_logits.{layer}"], logits)
            ids[layer].append(saved[f"topk_ids.{layer}"][batch["attention_mask"].reshape(-1).bool()])
    analysis = captured.analyze()
    assert [layer["layer"] for layer in analysis["layers"]] == layers
    for layer in analysis["layers"]:
        counts = np.bincount(torch.cat(ids[layer["layer"]]).reshape(-1).numpy(), minlength=EXPERTS)
        assert layer["experts"]["load"] == pytest.approx(counts / counts.sum(), abs=1e-12)
        assert {"top1_cluster_nmi", "token_specialisation_all", "routing_entropy"} <= set(layer["metrics"])
        assert "expert_load_max_violation" in layer["intervals"]
    assert analysis.matrices["domain"][layers[0]].rows == ["code", "law"]


def test_an_encoder_and_a_decoder_are_two_stacks(tmp_path: Any) -> None:
    model = seeded(switch)
    captured = moelab.capture(model, batches(with_decoder=True), tmp_path / "routing")
    assert captured.layers == {"encoder": [1, 3], "decoder": [1, 3]}
    with pytest.raises(moelab.UserError, match="encoder, decoder"):
        captured.analyze()
    for stack in ("encoder", "decoder"):
        for file, batch in zip(captured.files, batches(with_decoder=True)):
            saved = safetensors.load_file(file)
            for layer, logits in zip([1, 3], of_model(model, batch, f"{stack}_router_logits")):
                assert torch.equal(saved[f"{stack}.router_logits.{layer}"].reshape(logits.shape), logits)
        assert [layer["layer"] for layer in captured.analyze(stack)["layers"]] == [1, 3]


class Plain(torch.nn.Module):
    """A model of one's own: linear gates without a configuration."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.ModuleDict({"gate": torch.nn.Linear(5, 4)}) for _ in range(2))

    def forward(self, x: Any) -> Any:
        return sum(layer["gate"](x).sum() for layer in self.layers)


def test_linear_gates_of_any_model_are_routers(tmp_path: Any) -> None:
    model, inputs = Plain(), [torch.randn(7, 5), torch.randn(9, 5)]
    captured = moelab.capture(model, inputs, tmp_path / "routing")
    assert captured.routers == ["layers.0.gate", "layers.1.gate"]
    analysis = captured.analyze(top_k=1)
    with torch.no_grad():
        expected = moelab.analyze(logits=[tuple(layer["gate"](x) for layer in model.layers) for x in inputs], top_k=1)
    assert [layer["metrics"] for layer in analysis["layers"]] == [layer["metrics"] for layer in expected["layers"]]
    assert moelab.Capture(captured.directory).files == captured.files
    one = moelab.capture(model, inputs, tmp_path / "one", routers="layers.*.gate", batches=1)
    assert len(one.files) == 1


class TextConfig:
    """The configuration of the language part of a multimodal model."""

    num_local_experts = 4
    num_experts_per_tok = 1

    def to_dict(self) -> dict[str, Any]:
        return {"num_local_experts": 4, "num_experts_per_tok": 1}


class MultimodalConfig:
    """A configuration that names the experts only in its part ``text_config``."""

    text_config = TextConfig()

    def to_dict(self) -> dict[str, Any]:
        return {"model_type": "multimodal", "text_config": self.text_config.to_dict()}


def test_a_multimodal_model_names_its_experts_in_text_config(tmp_path: Any) -> None:
    model = Plain()
    model.config = MultimodalConfig()
    model.vision = torch.nn.ModuleDict({"gate": torch.nn.Linear(5, 3)})  # has another number of outputs
    captured = moelab.capture(model, [torch.randn(7, 5)], tmp_path / "routing")
    assert captured.routers == ["layers.0.gate", "layers.1.gate"]
    written = json.loads((tmp_path / "routing" / "config.json").read_text())
    assert written["text_config"] == {"num_local_experts": 4, "num_experts_per_tok": 1}
    assert captured.arguments()["model"] == str(tmp_path / "routing" / "config.json")


class OneBias(torch.nn.Module):
    """A model with an encoder and a decoder. Only the decoder has a selection bias."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = torch.nn.ModuleList([torch.nn.ModuleDict({"gate": torch.nn.Linear(5, 4)})])
        self.decoder = torch.nn.ModuleList([torch.nn.ModuleDict({"gate": torch.nn.Linear(5, 4)})])
        self.decoder[0].register_buffer("expert_bias", torch.tensor([3.0, 0.0, 0.0, 0.0]))

    def forward(self, x: Any) -> Any:
        return self.encoder[0]["gate"](x).sum() + self.decoder[0]["gate"](x).sum()


def test_a_bias_belongs_to_its_stack(tmp_path: Any) -> None:
    captured = moelab.capture(OneBias(), [torch.randn(7, 5)], tmp_path / "routing")
    assert "selection_bias" not in captured.arguments("encoder")
    assert captured.arguments("decoder")["selection_bias"].endswith(":decoder.selection_bias")
    for stack in ("encoder", "decoder"):
        assert [layer["layer"] for layer in captured.analyze(stack, top_k=1)["layers"]] == [0]


def test_what_cannot_be_recorded_is_refused(tmp_path: Any) -> None:
    with pytest.raises(moelab.UserError, match="no module is named router or gate"):
        moelab.capture(torch.nn.Linear(3, 4), [torch.zeros(2, 3)], tmp_path / "a")
    with pytest.raises(moelab.UserError, match="names no module 'router'"):
        moelab.capture(Plain(), [torch.zeros(2, 5)], tmp_path / "b", routers="router")
    with pytest.raises(moelab.UserError, match="yields no batch"):
        moelab.capture(Plain(), [], tmp_path / "c")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "kept.txt").write_text("")
    with pytest.raises(moelab.UserError, match="is not empty"):
        moelab.capture(Plain(), [torch.zeros(2, 5)], tmp_path / "d")
    twice = Plain()
    twice.layers[1] = twice.layers[0]
    with pytest.raises(moelab.UserError, match="runs twice"):
        moelab.capture(twice, [torch.zeros(2, 5)], tmp_path / "e")
    assert os.listdir(tmp_path / "d") == ["kept.txt"]


def test_the_folder_says_what_it_holds(tmp_path: Any) -> None:
    captured = moelab.capture(seeded(mixtral), batches(), tmp_path / "routing")
    about = json.loads((tmp_path / "routing" / "capture.json").read_text())
    assert about["kind"] == "logits" and about["top_k"] == 2 and about["arrays"][""]["by_score"]
    files = captured.analyze().save(tmp_path / "measured")
    assert {"layers.csv", "analysis.json", "analysis.npz", "report.html"} <= {os.path.basename(file) for file in files}
    arrays = np.load(tmp_path / "measured" / "analysis.npz")
    assert arrays["layers"].tolist() == [0, 1, 2]
    assert arrays["experts.load"].shape == (3, EXPERTS)
    assert arrays["domain.rows"].tolist() == ["code", "law"]
    assert arrays["domain"].sum(-1) == pytest.approx(np.full((3, 2), 2))


class Tokens(torch.nn.Module):
    """A model of tokens with one router."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(9, 5)
        self.gate = torch.nn.Linear(5, 4)

    def forward(self, input_ids: Any) -> Any:
        return self.gate(self.embed(input_ids)).sum()


def of_domains(*domains: Any) -> list[dict[str, Any]]:
    """Batches of 4 rows and 3 tokens. ``...`` stands for a batch without a domain."""
    made = []
    for place, domain in enumerate(domains):
        ids = (torch.arange(12).reshape(4, 3) + place) % 9
        made.append({"input_ids": ids} if domain is ... else {"input_ids": ids, "domain": domain})
    return made


def test_one_domain_counts_for_all_rows_of_a_batch(tmp_path: Any) -> None:
    captured = moelab.capture(Tokens(), of_domains("code", ["a", "b", "c", "d"], "math"), tmp_path / "texts")
    domains = np.load(tmp_path / "texts" / "domains.npy")
    assert domains.tolist() == ["code"] * 4 + ["a", "b", "c", "d"] + ["math"] * 4
    assert captured.analyze(top_k=1).matrices["domain"][0].rows == ["a", "b", "c", "code", "d", "math"]
    moelab.capture(Tokens(), of_domains(3, torch.tensor(1), np.int64(2)), tmp_path / "numbers")
    assert np.load(tmp_path / "numbers" / "domains.npy").tolist() == [3] * 4 + [1] * 4 + [2] * 4


@pytest.mark.parametrize(
    ("domains", "message"),
    [
        (["code", ["a", "b", "c"]], "batch 1 has 3 domains, needs one for each of its 4 rows"),
        ([torch.zeros(5)], "batch 0 has 5 domains"),
        (["code", ...], "batch 0 has the entry, but batch 1 does not"),
        ([..., "code"], "batch 1 has the entry, but batch 0 does not"),
        ([object()], "needs texts or numbers"),
    ],
)
def test_domains_that_do_not_fit_are_refused_at_once(tmp_path: Any, domains: Any, message: str) -> None:
    with pytest.raises(moelab.UserError, match=message) as caught:
        moelab.capture(Tokens(), of_domains(*domains), tmp_path / "routing")
    assert caught.value.path == "dataloader.domain"


def test_a_failed_capture_can_be_repeated(tmp_path: Any) -> None:
    def broken() -> Iterator[Any]:
        yield from of_domains("code")
        raise RuntimeError("the disk is gone")

    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "empty", tmp_path / "new"):
        with pytest.raises(RuntimeError, match="the disk is gone"):
            moelab.capture(Tokens(), broken(), place)
        assert place.exists() == (place.name == "empty")
        assert len(moelab.capture(Tokens(), of_domains("code"), place).files) == 1
        with pytest.raises(moelab.UserError, match="is not empty; needs a new folder"):
            moelab.capture(Tokens(), of_domains("code"), place)
        assert (place / "capture.json").exists()
