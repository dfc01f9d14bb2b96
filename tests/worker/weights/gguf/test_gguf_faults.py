"""Whatever is wrong with a GGUF file is named."""

from pathlib import Path

import numpy as np
import pytest

from radixgate.errors import ModelError
from radixgate.worker.weights.gguf.file import GgufFile
from radixgate.worker.weights.gguf.model import read_config, read_tensors
from radixgate.worker.weights.gguf.tokenizer import read_bundle
from tiny_llama import CONFIG, weights_of, write_gguf


def opened(path: Path) -> None:
    """Everything a start reads."""
    with GgufFile(path) as file:
        config = read_config(file)
        read_bundle(file)
        for _ in read_tensors(file, config):
            pass


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"tokenizer.ggml.pre": "tekken"}, "tokenizer.ggml.pre 'tekken'"),
        ({"tokenizer.ggml.pre": None}, "tokenizer.ggml.pre is missing"),
        ({"tokenizer.ggml.model": "bert"}, "tokenizer.ggml.model 'bert'"),
        ({"tokenizer.ggml.model": "llama"}, "tokenizer.ggml.scores is missing"),
        ({"tokenizer.ggml.merges": ["a b c"]}, r"merges\[0\]"),
        ({"tokenizer.ggml.tokens": ["a", "a"]}, "the same token twice"),
        ({"tokenizer.ggml.tokens": ["a", "b"]}, "tokenizer.ggml.tokens has 2"),
        ({"tokenizer.ggml.token_type": [1]}, "token_type has 1 entries"),
        ({"tokenizer.ggml.eos_token_id": 9_999}, "eos_token_id is 9999"),
        ({"llama.block_count": None}, "llama.block_count is missing"),
        ({"llama.block_count": 3}, r"model.layers.2.input_layernorm.weight .* is missing"),
        ({"llama.block_count": 1}, r"model.layers.1\S* is not part of llama"),
        ({"llama.feed_forward_length": 128}, "gate_proj.weight has shape"),
        ({"llama.expert_count": 8}, "expert_count"),
        ({"llama.rope.dimension_count": 8}, "rope.dimension_count is 8"),
        ({"llama.attention.value_length": 8}, "attention.value_length is 8"),
        ({"llama.attention.sliding_window": 128}, "llama.attention.sliding_window 128"),
        ({"llama.rope.scaling.type": "longrope"}, "scaling.type 'longrope'"),
        ({"llama.rope.scaling.type": "yarn"}, "scaling.factor is missing"),
        ({"llama.rope.scaling.attn_factor": 1.5}, "llama.rope.scaling.attn_factor 1.5"),
        ({"llama.attention.head_count_kv": 3}, "m.gguf: model config: kv_heads 3"),
        ({"split.count": 3}, "split.count is 3"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, keys: dict[str, object], named: str) -> None:
    path = write_gguf(tmp_path / "m.gguf", weights_of(CONFIG), keys=keys)
    with pytest.raises(ModelError, match=named):
        opened(path)


@pytest.mark.parametrize(
    ("divisors", "keys", "named"),
    [
        pytest.param(7, {}, "7 divisors for 8 frequencies", id="too-few"),
        pytest.param(
            8,
            {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 2.0},
            "'linear' together with the tensor rope_freqs",
            id="two-scalings",
        ),
    ],
)
def test_divisors_that_do_not_fit_are_named(
    tmp_path: Path, divisors: int, keys: dict[str, object], named: str
) -> None:
    weights = weights_of(CONFIG) | {"rope_freqs.weight": np.ones(divisors, np.float32)}
    with pytest.raises(ModelError, match=named):
        opened(write_gguf(tmp_path / "m.gguf", weights, keys=keys))


def test_an_unknown_architecture_is_named(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", weights_of(CONFIG), architecture="mamba")
    with pytest.raises(ModelError, match="'mamba' is not supported, only llama"):
        opened(path)


@pytest.mark.parametrize(
    ("skip", "named"),
    [
        ("token_embd.weight", "token_embd.weight is missing"),
        ("blk.1.ffn_up.weight", r"model.layers.1.mlp.up_proj.weight \(96, 64\) is missing"),
    ],
)
def test_a_missing_tensor_is_named(tmp_path: Path, skip: str, named: str) -> None:
    path = write_gguf(tmp_path / "m.gguf", weights_of(CONFIG), skip=skip)
    with pytest.raises(ModelError, match=named):
        opened(path)


def test_a_tensor_that_we_would_ignore_is_refused(tmp_path: Path) -> None:
    weights = weights_of(CONFIG) | {"rope_factors_long.weight": np.ones(8, np.float32)}
    with pytest.raises(ModelError, match=r"rope_factors_long.weight is not part of llama"):
        opened(write_gguf(tmp_path / "m.gguf", weights))


def test_a_file_cut_anywhere_says_so(tmp_path: Path) -> None:
    whole = write_gguf(tmp_path / "m.gguf", weights_of(CONFIG)).read_bytes()
    cut = tmp_path / "cut.gguf"
    for length in [*range(0, len(whole), 2_999), len(whole) - 1]:
        cut.write_bytes(whole[:length])
        with pytest.raises(ModelError, match=r"cut\.gguf"):
            opened(cut)


@pytest.mark.parametrize(
    ("start", "data", "named"),
    [
        pytest.param(0, b"GGML", "not a GGUF file", id="magic"),
        pytest.param(4, b"\x00\x00\x00\x03", "version 50331648", id="big-endian"),
        pytest.param(16, b"\xff" * 8, "cut|ends within|unknown type", id="endless-metadata"),
    ],
)
def test_a_file_that_lies_is_refused(tmp_path: Path, start: int, data: bytes, named: str) -> None:
    path = write_gguf(tmp_path / "m.gguf", weights_of(CONFIG))
    whole = bytearray(path.read_bytes())
    whole[start : start + len(data)] = data
    path.write_bytes(whole)
    with pytest.raises(ModelError, match=named):
        opened(path)


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"none\.gguf"):
        GgufFile(tmp_path / "none.gguf")
