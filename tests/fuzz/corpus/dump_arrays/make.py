"""Writes the small router dumps of dump_arrays, dump_lines and dump_table. Needs NumPy."""

import base64
import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
TOKENS, EXPERTS, K = 6, 4, 2
random = np.random.default_rng(1)
logits = [random.normal(size=(TOKENS, EXPERTS)).astype("float32") for _ in range(2)]
ids = [np.argsort(-layer, -1)[:, :K] for layer in logits]


def npy(array: np.ndarray, allow_pickle: bool = False) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=allow_pickle)
    return file.getvalue()


def npz(name: str, method: int, **arrays: np.ndarray) -> None:
    with zipfile.ZipFile(HERE / name, "w") as archive:
        for key, array in arrays.items():
            info = zipfile.ZipInfo(f"{key}.npy", (1980, 1, 1, 0, 0, 0))
            info.compress_type = method
            archive.writestr(info, npy(array))


def safetensors(name: str, kind: str, **arrays: bytes) -> None:
    header, body = {}, b""
    for key, data in arrays.items():
        header[key] = {"dtype": kind, "shape": [TOKENS, EXPERTS], "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header, separators=(",", ":")).encode()
    (HERE / name).write_bytes(struct.pack("<Q", len(text)) + text + body)


def lines(name: str, records: list[dict]) -> None:
    (HERE.parent / "dump_lines" / name).write_text("".join(json.dumps(record) + "\n" for record in records))


def table(name: str, *rows: str) -> None:
    (HERE.parent / "dump_table" / name).write_text("\n".join(rows) + "\n")


entries = {f"router_logits.{i}": layer for i, layer in enumerate(logits)}
npz("stored.npz", zipfile.ZIP_STORED, **entries)
npz("packed.npz", zipfile.ZIP_DEFLATED, **entries)
safetensors("bfloat16.safetensors", "BF16", **{k: (v.view("uint32") >> 16).astype("uint16").tobytes() for k, v in entries.items()})
soft = np.exp(logits[0]) / np.exp(logits[0]).sum(-1, keepdims=True)
safetensors("refused_probabilities.safetensors", "F32", **{"router_logits.0": logits[0].tobytes(), "router_logits.1": soft.tobytes()})
safetensors("refused_short.safetensors", "F64", **{"router_logits.0": logits[0].tobytes()})
(HERE / "refused_integers.npy").write_bytes(npy(ids[0]))
(HERE / "refused_objects.npy").write_bytes(npy(np.array([None, 1], object), allow_pickle=True))

stack = np.stack(ids, 1)  # (T, L, K)
packed = [base64.b64encode(npy(part.astype("uint8"))).decode() for part in (stack[:3], stack[3:])]
raw = [base64.b64encode(part.astype("<i4").tobytes()).decode() for part in (stack[:3], stack[3:])]
lines("vllm.jsonl", [{"token_ids": [1, 2, 3], "routed_experts": text} for text in packed])
lines("sglang.jsonl", [{"token_ids": [1, 2, 3, 4], "meta_info": {"routed_experts": text}} for text in raw])
lines("lists.jsonl", [{"prompt_routed_experts": stack[:2].tolist(), "routed_experts": stack[2:].tolist()}])
lines("refused_range.jsonl", [{"routed_experts": [[[0, 9]]]}])
lines("refused_ragged.jsonl", [{"routed_experts": [[[0, 1]], [[2]]]}])
lines("refused_field.jsonl", [{"other": 1}])

table("counts.csv", "layer,expert,count", "0,0,5", "0,3,7", "1,2,12")
table("choices.csv", "layer,document,position,rank,expert", *(f"{layer},0,{t},{k},{ids[layer][t, k]}"
      for layer in range(2) for t in range(TOKENS) for k in range(K)))
table("trace.csv", "layer,expert", "0,1", "0,2", "1,0", "1,3")
table("refused_range.csv", "layer,expert,count", "0,4,5")
table("refused_text.csv", "layer,expert,count", "0,one,5")
table("refused_fields.csv", "layer,expert,count", "0,1")
