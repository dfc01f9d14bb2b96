"""A Llama small enough for a unit test, with random weights, as GGUF file and as folder."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import msgspec
import numpy as np
import torch
from gguf import quants
from numpy.typing import NDArray
from safetensors.torch import save_file

from radixgate.worker.weights.checkpoint import tensor_shapes
from radixgate.worker.weights.model_config import ModelConfig
from vocabularies import tokenizer_document

SPECIAL = ("<|end|>", "<|start|>")
DOCUMENT = tokenizer_document(["the", "day"], SPECIAL)
VOCABULARY: dict[str, int] = DOCUMENT["model"]["vocab"]
TEMPLATE = "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"

CONFIG = ModelConfig(
    architecture="llama",
    vocab_size=len(VOCABULARY),
    hidden_size=64,
    layers=2,
    heads=4,
    kv_heads=2,
    head_dim=16,
    intermediate_size=96,
    rope_base=10_000.0,
    rms_eps=1e-5,
    context_length=256,
    tied_embeddings=True,
)
UNTIED = replace(CONFIG, tied_embeddings=False)

Weights = dict[str, NDArray[np.float32]]


def weights_of(config: ModelConfig, seed: int = 0) -> Weights:
    """Random float32 weights under their Hugging Face names."""
    random = np.random.default_rng(seed)
    return {
        name: random.standard_normal(shape).astype(np.float32)
        for name, shape in tensor_shapes(config).items()
    }


def as_llama_cpp(rows: NDArray[Any], heads: int) -> NDArray[Any]:
    """Rows of Q or K in the order that the conversion for llama.cpp gives them."""
    halves = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
    return halves.swapaxes(1, 2).reshape(rows.shape)


def write_gguf(
    path: Path,
    weights: Mapping[str, NDArray[Any]],
    config: ModelConfig = CONFIG,
    *,
    kind: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32,
    architecture: str | None = None,
    keys: Mapping[str, object] | None = None,
    skip: str = "",
) -> Path:
    """By the writer of the `gguf` package. `keys` replace or add metadata, None leaves one out.

    The architecture is the config's own if none is given. A weight with a name of GGUF's keeps
    it; weights in bytes are blocks of `kind`, row by row.
    """
    writer = gguf.GGUFWriter(path, architecture or config.architecture)
    for key, value in (_metadata(config) | dict(keys or {})).items():
        _add(writer, key, value)
    for name, values in weights.items():
        ours = _gguf_name(name)
        if ours == skip:
            continue
        if config.architecture != "llama":
            pass  # rotated as Hugging Face has it
        elif ".q_proj." in name:
            values = as_llama_cpp(values, config.heads)
        elif ".k_proj." in name:
            values = as_llama_cpp(values, config.kv_heads)
        if values.dtype == np.uint8:
            writer.add_tensor(ours, np.ascontiguousarray(values), raw_dtype=kind)
        elif values.ndim == 1 or kind == gguf.GGMLQuantizationType.F32:
            writer.add_tensor(ours, np.ascontiguousarray(values))
        else:
            writer.add_tensor(ours, quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_folder(
    folder: Path,
    weights: Mapping[str, NDArray[np.float32]],
    config: ModelConfig = CONFIG,
    *,
    dtype: torch.dtype = torch.float32,
    shards: int = 1,
    keys: Mapping[str, object] | None = None,
) -> Path:
    """`keys` replace or add entries of config.json; None leaves one out."""
    folder.mkdir(parents=True, exist_ok=True)
    merged = _hf_config(config) | dict(keys or {})
    about = {key: value for key, value in merged.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(about))
    (folder / "tokenizer.json").write_bytes(msgspec.json.encode(DOCUMENT))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"bos_token": {"content": "<|start|>"}, "eos_token": "<|end|>"})
    )
    names = sorted(weights)
    for old in folder.glob("*.safetensors*"):
        old.unlink()
    placed: dict[str, str] = {}
    for shard in range(shards):
        file = (
            f"model-{shard + 1:05}-of-{shards:05}.safetensors"
            if shards > 1
            else "model.safetensors"
        )
        part = {name: torch.from_numpy(weights[name]).to(dtype) for name in names[shard::shards]}
        save_file(part, folder / file)
        placed |= dict.fromkeys(part, file)
    if shards > 1:
        index = {"metadata": {}, "weight_map": placed}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def _metadata(config: ModelConfig) -> dict[str, object]:
    sizes: dict[str, object] = {
        "block_count": config.layers,
        "context_length": config.context_length,
        "embedding_length": config.hidden_size,
        "feed_forward_length": config.intermediate_size,
        "attention.head_count": config.heads,
        "attention.head_count_kv": config.kv_heads,
        "attention.key_length": config.head_dim,
        "rope.freq_base": config.rope_base,
        "attention.layer_norm_rms_epsilon": config.rms_eps,
    }
    return {f"{config.architecture}.{key}": value for key, value in sizes.items()} | {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": list(VOCABULARY),
        "tokenizer.ggml.token_type": [3 if token in SPECIAL else 1 for token in VOCABULARY],
        "tokenizer.ggml.merges": [" ".join(merge) for merge in DOCUMENT["model"]["merges"]],
        "tokenizer.ggml.bos_token_id": VOCABULARY["<|start|>"],
        "tokenizer.ggml.eos_token_id": VOCABULARY["<|end|>"],
        "tokenizer.chat_template": TEMPLATE,
    }


def _hf_config(config: ModelConfig) -> dict[str, Any]:
    return {
        "model_type": config.architecture,
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "intermediate_size": config.intermediate_size,
        "rope_theta": config.rope_base,
        "rms_norm_eps": config.rms_eps,
        "max_position_embeddings": config.context_length,
        "tie_word_embeddings": config.tied_embeddings,
        "eos_token_id": VOCABULARY["<|end|>"],
    }


def _add(writer: gguf.GGUFWriter, key: str, value: object) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif isinstance(value, list):
        writer.add_array(key, value)


def _gguf_name(name: str) -> str:
    outside = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "lm_head.weight": "output.weight",
    }
    if name in outside:
        return outside[name]
    for theirs, ours in (
        ("model.layers.", "blk."),
        ("post_attention_layernorm", "ffn_norm"),
        ("input_layernorm", "attn_norm"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.", "attn_"),
        ("mlp.", "ffn_"),
        ("_proj", ""),
    ):
        name = name.replace(theirs, ours)
    return name
